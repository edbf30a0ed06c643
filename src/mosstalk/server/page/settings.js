// The fields under Settings, each named as the API names it; an empty one is left to the model.

import { byId } from "./dom.js";

const NUMBERS = ["seed", "temperature", "top_p", "top_k", "max_frames"];

/** For a request. Throws Error for a value that cannot be, and shows which. */
export function readSettings() {
  const settings = {};
  for (const id of NUMBERS) {
    const field = byId(id);
    field.setAttribute("aria-invalid", String(!field.validity.valid));
    if (!field.validity.valid) {
      field.closest("details").open = true;
      field.focus();
      throw new Error(`${labelOf(field)}: ${field.validationMessage}`);
    }
    if (field.value !== "") settings[id] = Number(field.value);
  }
  return settings;
}

/** Fill the fields as they were for a request. */
export function writeSettings(request) {
  for (const id of NUMBERS) byId(id).value = request[id] ?? "";
}

function labelOf(field) {
  return field.labels[0].firstChild.textContent.trim();
}
