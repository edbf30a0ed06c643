// The voices of the server: which one speaks, and how each sounds.

import { call } from "./api.js";
import { button, byId, make } from "./dom.js";

export class Voices {
  #list = byId("voices");

  /** `hear(name)` plays a voice; `fail(error)` shows what went wrong. */
  constructor(hear, fail) {
    this.hear = hear;
    this.fail = fail;
    this.#list.addEventListener("change", () => this.#showChosen());
  }

  /** The name of the one that is to speak; null where there is none. */
  get chosen() {
    return this.#list.querySelector("input:checked")?.value ?? null;
  }

  /** Ask the server anew; `wanted` is chosen where it is there, else the one that was. */
  async load(wanted = this.chosen) {
    const { voices } = await (await call("v1/audio/voices")).json();
    this.#list.replaceChildren(...voices.map((voice) => this.#row(voice)));
    byId("no-voices").hidden = voices.length > 0;
    this.#list.hidden = !voices.length;
    const first = this.#list.querySelector("input");
    if (first) first.checked = true;
    this.choose(wanted);
  }

  /** Have a voice speak, if it is there. */
  choose(name) {
    for (const radio of this.#list.querySelectorAll("input")) {
      if (radio.value === name) radio.checked = true;
    }
    this.#showChosen();
  }

  #row({ id, frames, transcript }) {
    const isSaved = frames !== undefined; // else what the model does by itself
    const radio = make("input", { type: "radio", name: "voice", value: id });
    const label = make("label", { title: transcript ?? "" }, radio, make("span", {}, id));
    const row = make("li", {}, label, button("Hear", () => this.hear(id), `Hear ${id}`));
    if (isSaved) row.append(button("Remove", () => this.#remove(id), `Remove ${id}`));
    return row;
  }

  async #remove(id) {
    if (!confirm(`Remove the voice ${id}? It is deleted on the server.`)) return;
    try {
      await call(`v1/audio/voices/${encodeURIComponent(id)}`, { method: "DELETE" });
      await this.load();
      this.#list.querySelector("input:checked")?.focus();
    } catch (error) {
      this.fail(error);
    }
  }

  #showChosen() {
    byId("chosen").textContent = this.chosen ? `Voice: ${this.chosen}` : "";
  }
}
