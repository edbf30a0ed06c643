// Voices from a description, for models that make them.

import { call, explain } from "./api.js";
import { Clip } from "./clip.js";
import { button, byId, make, save, tell } from "./dom.js";
import { readSettings } from "./settings.js";

export class Designing {
  #job = null; // AbortController, while voices are made
  #hear;

  /** `hear(clip)` plays a voice. */
  constructor(hear) {
    this.#hear = hear;
    byId("design-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#design();
    });
    byId("design-stop").addEventListener("click", () => this.#job?.abort());
  }

  get description() {
    return byId("description").value.trim();
  }

  async #design() {
    this.#job?.abort();
    const { description } = this;
    const count = Number(byId("count").value);
    const text = byId("sample").value.trim();
    tell(byId("design-problem"), "");
    if (!description) {
      byId("description").focus();
      tell(byId("design-problem"), "Describe the voice first.");
      return;
    }
    const job = new AbortController();
    this.#job = job;
    byId("design-stop").disabled = false;
    byId("candidates").replaceChildren();
    try {
      let { seed, temperature, max_frames } = readSettings();
      for (let number = 1; number <= count; number++) {
        byId("designed").textContent = `Making voice ${number} of ${count}…`;
        const json = { description, text: text || undefined, seed, temperature, max_frames };
        const request = { json, signal: job.signal };
        const { candidates } = await (await call("v1/audio/voices/design", request)).json();
        this.#show(candidates[0], number);
        seed = candidates[0].seed + 1;
      }
      byId("designed").textContent = `Made ${count}.`;
    } catch (error) {
      const isStopped = error.name === "AbortError";
      if (job === this.#job) byId("designed").textContent = isStopped ? "Stopped." : "";
      if (!isStopped) tell(byId("design-problem"), explain(error));
    } finally {
      if (job === this.#job) byId("design-stop").disabled = true;
    }
  }

  #show({ audio, text, seed, origin }, number) {
    const name = `Voice ${number}`;
    const row = make("li", {}, make("span", {}, name, make("small", {}, `seed ${seed}`)));
    byId("candidates").append(row);
    if (!audio) {
      row.append(make("span", { className: "quiet" }, "did not come to speak"));
      return;
    }
    const bytes = Uint8Array.from(atob(audio), (character) => character.charCodeAt(0));
    const request = { input: text, instructions: origin.instruction, seed };
    const clip = Clip.ofFile(text, request, bytes);
    row.append(
      button("Hear", () => this.#hear(clip), `Hear ${name}`),
      button("Keep", () => keep(clip, { text, ...origin }), `Keep ${name}`),
    );
  }
}

/** The two files that `mosstalk design` writes for a voice. */
function keep(clip, about) {
  const name = `voice-${about.seed}`;
  save(clip.wav(), `${name}.wav`);
  save(new Blob([JSON.stringify(about)], { type: "application/json" }), `${name}.json`);
}
