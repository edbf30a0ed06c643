// What was spoken in this session; nothing of it is stored.

import { button, byId, inSeconds, make } from "./dom.js";

const MOST_BYTES = 256 * 2 ** 20; // of samples; then the oldest go
const SHOWN_CHARACTERS = 140;

export class History {
  #clips = []; // newest first
  #actions;

  /** `actions`: what `hear`, `download` and `reuse` do with a clip. */
  constructor(actions) {
    this.#actions = actions;
    byId("clear").addEventListener("click", () => {
      this.#clips = [];
      this.#render();
      byId("text").focus();
    });
    this.#render();
  }

  add(clip) {
    this.#clips.unshift(clip);
    let bytes = 0;
    this.#clips = this.#clips.filter((one, at) => {
      bytes += one.bytes;
      return at === 0 || bytes <= MOST_BYTES;
    });
    this.#render();
  }

  #render() {
    byId("clear").hidden = !this.#clips.length;
    byId("history").replaceChildren(...this.#clips.map((clip) => this.#row(clip)));
  }

  #row(clip) {
    const { title } = clip;
    const isLong = title.length > SHOWN_CHARACTERS;
    const text = isLong ? `${title.slice(0, SHOWN_CHARACTERS)}…` : title;
    const { hear, download, reuse } = this.#actions;
    const about = [clip.request.voice, inSeconds(clip.seconds), `seed ${clip.seed}`];
    if (!clip.isWhole) about.push("stopped early");
    return make(
      "li",
      {},
      make("p", { className: "quoted" }, text),
      make("p", { className: "quiet" }, about.filter(Boolean).join(" · ")),
      make(
        "div",
        { className: "row" },
        button("Hear", () => hear(clip), `Hear: ${text}`),
        button("Download", () => download(clip), `Download: ${text}`),
        button("Use again", () => reuse(clip), `Use again: ${text}`),
      ),
    );
  }
}
