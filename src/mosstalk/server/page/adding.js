// A voice from a recording: from the microphone or a file, listened to, named and kept.

import { call, explain } from "./api.js";
import { byId, inSeconds, tell } from "./dom.js";
import { LONGEST_SECONDS, Microphone, asWav } from "./microphone.js";

const LARGEST_BYTES = 25 * 2 ** 20; // that the server takes
const READ_BY_SERVER = /\.(wav|flac|ogg|oga|mp3)$/i;

export class Adding {
  #microphone = null; // while it records
  #recording = null; // Blob
  #origin = null; // of a designed voice
  #onKept;

  /** `onKept(name)`: the server has a new voice. */
  constructor(onKept) {
    this.#onKept = onKept;
    byId("record").hidden = !Microphone.isThere;
    byId("no-microphone").hidden = Microphone.isThere;
    byId("record").addEventListener("click", () => this.#attempt(() => this.#record()));
    byId("file").addEventListener("change", () => this.#attempt(() => this.#choose()));
    byId("add-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#attempt(() => this.#keep());
    });
  }

  async #attempt(action) {
    tell(byId("add-problem"), "");
    try {
      await action();
    } catch (error) {
      byId("recorded").textContent = "";
      tell(byId("add-problem"), explain(error));
    }
  }

  async #record() {
    if (this.#microphone) {
      this.#finish();
      return;
    }
    const microphone = new Microphone();
    this.#take(null);
    await microphone.start(() => {
      const { seconds } = microphone;
      byId("record").dataset.seconds = Math.floor(seconds);
      if (seconds >= LONGEST_SECONDS) this.#finish();
    });
    this.#microphone = microphone;
    byId("record").textContent = "Stop recording";
    byId("recorded").textContent = `Recording, up to ${LONGEST_SECONDS} s.`;
  }

  #finish() {
    const microphone = this.#microphone;
    if (!microphone) return;
    this.#microphone = null;
    delete byId("record").dataset.seconds;
    byId("record").textContent = "Record again";
    byId("recorded").textContent = `Recorded ${inSeconds(microphone.seconds)}.`;
    byId("file").value = "";
    this.#take(microphone.stop());
  }

  async #choose() {
    const files = [...byId("file").files];
    const about = files.find(({ name }) => name.endsWith(".json"));
    const sound = files.find((file) => file !== about);
    this.#take(null);
    byId("recorded").textContent = "";
    if (!sound) throw new Error("choose a recording");
    if (sound.size > LARGEST_BYTES) throw new Error(`${sound.name} has more than 25 MiB`);
    const origin = about ? await readAbout(about) : null;
    this.#take(READ_BY_SERVER.test(sound.name) ? sound : await asWav(sound), origin);
  }

  #take(recording, about = null) {
    this.#recording = recording;
    const { text, ...origin } = about ?? {};
    this.#origin = about && origin;
    if (about) byId("transcript").value = text;
    const preview = byId("preview");
    if (preview.src) URL.revokeObjectURL(preview.src);
    preview.hidden = !recording;
    if (recording) preview.src = URL.createObjectURL(recording);
    else preview.removeAttribute("src");
  }

  async #keep(replace = false) {
    if (this.#microphone) this.#finish();
    if (!this.#recording) throw new Error("record or upload something first");
    const name = byId("name").value.trim();
    if (!name) {
      byId("name").focus();
      throw new Error("give the voice a name");
    }
    const form = new FormData();
    form.set("name", name);
    form.set("file", this.#recording, "recording");
    const transcript = byId("transcript").value.trim();
    if (transcript) form.set("transcript", transcript);
    if (this.#origin) form.set("origin", JSON.stringify(this.#origin));
    if (replace) form.set("replace", "true");
    byId("recorded").textContent = "The model listens to it…";
    let kept;
    try {
      kept = await (await call("v1/audio/voices", { form })).json();
    } catch (error) {
      if (error.code !== "taken" || !confirm(`Replace the voice ${name}?`)) throw error;
      await this.#keep(true);
      return;
    }
    this.#take(null);
    byId("add-form").reset();
    byId("record").textContent = "Record";
    await this.#onKept(name);
    byId("recorded").textContent = [`Kept as ${name}.`, ...kept.warnings].join(" ");
  }
}

async function readAbout(file) {
  try {
    const { text, instruction, seed, model_identity, codec_identity } = JSON.parse(
      await file.text(),
    );
    return { text, instruction, seed, model_identity, codec_identity };
  } catch {
    throw new Error(`${file.name} is not the .json of a designed voice`);
  }
}
