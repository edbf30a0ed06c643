// Asks for the API key where the server wants one.

import { byId } from "./dom.js";

let asking = null; // one question for all requests that wait for it

/** A key, or null where the user gives none. */
export function askForKey(isWrong) {
  asking ??= new Promise((resolve) => {
    const dialog = byId("key-dialog");
    byId("key-why").textContent = isWrong
      ? "The server does not know that key. Give another."
      : "This server asks for a key. It is kept until this tab is closed.";
    byId("key").value = "";
    dialog.returnValue = "";
    byId("key-form").onsubmit = (event) => {
      event.preventDefault();
      dialog.close(byId("key").value);
    };
    byId("key-cancel").onclick = () => dialog.close("");
    dialog.onclose = () => {
      asking = null;
      resolve(dialog.returnValue || null);
    };
    dialog.showModal();
  });
  return asking;
}
