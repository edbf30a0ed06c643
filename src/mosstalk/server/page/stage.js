// The recording that is looked at and listened to: waveform, position, play and pause.

import { byId, inSeconds } from "./dom.js";
import { Player } from "./player.js";
import { Waveform } from "./waveform.js";

/** Fires `change` when playing begins or ends. */
export class Stage extends EventTarget {
  clip = null;
  isPlaying = false;
  #player = new Player();
  #waveform = new Waveform(byId("waveform"));
  #position = 0; // frames
  #isWaiting = false; // for a model that is slower than speech
  #isDue = false; // a drawing

  constructor() {
    super();
    this.#player.addEventListener("report", ({ detail }) => this.#hear(detail));
    byId("play").addEventListener("click", () => this.play(!this.isPlaying));
    byId("position").addEventListener("input", ({ target }) => {
      this.#position = Math.round(target.value * (this.clip.rate || 0));
      this.#player.seek(this.#position);
      this.#draw();
    });
  }

  /** Begin a clip whose samples will come; see Player.open. */
  async open(clip, rate, channels) {
    this.clip = clip;
    this.#position = 0;
    byId("stage").hidden = false;
    byId("playing").textContent = clip.title;
    this.#waveform.clear();
    this.#setPlaying(true);
    this.#draw();
    await this.#player.open(rate, channels);
  }

  /** Interleaved samples of a clip; dropped where another took its place. */
  add(clip, samples) {
    if (clip !== this.clip) return;
    this.#player.add(samples);
    this.#waveform.add(samples, clip.channels);
    this.#draw();
  }

  /** No more samples of a clip will come. */
  end(clip) {
    if (clip !== this.clip) return;
    this.#player.end();
    this.#draw();
    if (!clip.frames) {
      this.#setPlaying(false);
      byId("stage").hidden = true;
    }
  }

  /** Play a clip that is there. */
  async show(clip) {
    await this.open(clip, clip.rate, clip.channels);
    for (const part of clip.parts) this.add(clip, part);
    this.end(clip);
  }

  play(isPlaying) {
    const atEnd = this.clip && this.#position >= this.clip.frames;
    if (isPlaying && atEnd) {
      this.#position = 0;
      this.#player.seek(0);
    }
    this.#player.play(isPlaying);
    this.#setPlaying(isPlaying);
  }

  #hear({ position, isPlaying, isWaiting }) {
    this.#position = position;
    this.#isWaiting = isPlaying && isWaiting && position > 0;
    this.#setPlaying(isPlaying);
    this.#draw();
    // For scripts: `played` is what the audio device was given of the clip.
    const detail = { played: position, received: this.clip.frames, isPlaying, isWaiting };
    document.dispatchEvent(new CustomEvent("mosstalk:progress", { detail }));
  }

  #setPlaying(isPlaying) {
    if (isPlaying === this.isPlaying) return;
    this.isPlaying = isPlaying;
    byId("play").textContent = isPlaying ? "Pause" : "Play";
    this.dispatchEvent(new Event("change"));
  }

  #draw() {
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => {
      this.#isDue = false;
      const { frames, rate, seconds } = this.clip;
      const now = rate ? this.#position / rate : 0;
      const clock = `${inSeconds(now)} of ${inSeconds(seconds)}`;
      this.#waveform.draw(frames ? this.#position / frames : 0);
      byId("waveform").setAttribute("aria-label", `Waveform, ${inSeconds(seconds)}`);
      byId("clock").textContent = this.#isWaiting ? `${clock}, waiting` : clock;
      const slider = byId("position");
      slider.max = seconds;
      slider.value = now;
      slider.setAttribute("aria-valuetext", clock);
    });
  }
}
