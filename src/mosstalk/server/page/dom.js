// The few things that every part of the page does with its elements.

/** The element of an id that the page has. */
export const byId = (id) => document.getElementById(id);

/** A new element; `properties` are set, `children` are elements and texts. */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** A button with a short face and, where given, a longer name for those who do not see around it. */
export function button(face, onclick, name) {
  const made = make("button", { type: "button", onclick }, face);
  if (name) made.setAttribute("aria-label", name);
  return made;
}

/** Show an error in an element of role `alert`, or hide it where there is none. */
export function tell(element, message) {
  element.textContent = message ? `Error: ${message}` : "";
  element.hidden = !message;
}

/** Have the browser save a Blob. */
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // some browsers fetch it after the click
}

/** 1.25 s as people write it. */
export const inSeconds = (seconds) => `${seconds.toFixed(1)} s`;
