// Samples that are played in order while more are added. Runs beside the audio device, so it
// computes little and asks for no memory.

const LEAD_SECONDS = 0.15; // there before the first sound, so that it does not stutter
const CATCH_UP_SECONDS = 0.6; // and before the next, where the model was too slow

export class Tape {
  frames = 0; // that are there
  position = 0; // next frame to be played
  isPlaying = true;
  isWaiting = true; // for more samples
  hasEnded = false; // no more will come
  #parts = []; // Int16Array each, interleaved
  #part = 0; // where `position` is
  #offset = 0; // frames
  #lead;

  constructor(rate, channels) {
    this.rate = rate;
    this.channels = channels;
    this.#lead = LEAD_SECONDS * rate;
  }

  /** What the page tells: { add: samples }, { end: true }, { play: bool } or { seek: frame }. */
  tell({ add, end, play, seek }) {
    if (add) {
      this.#parts.push(add);
      this.frames += add.length / this.channels;
    }
    if (end) this.hasEnded = true;
    if (play !== undefined) this.isPlaying = play;
    if (seek !== undefined) this.#seek(seek);
  }

  /** Fill an output with what comes next: a silent Float32Array for each channel. */
  fill(output) {
    if (!this.isPlaying) return;
    if (this.isWaiting) {
      if (!this.hasEnded && this.frames - this.position < this.#lead) return;
      this.isWaiting = false;
    }
    const { channels } = this;
    let filled = 0;
    while (filled < output[0].length && this.#part < this.#parts.length) {
      const part = this.#parts[this.#part];
      const frames = part.length / channels;
      const count = Math.min(output[0].length - filled, frames - this.#offset);
      for (let channel = 0; channel < channels; channel++) {
        let at = this.#offset * channels + channel;
        for (let i = filled; i < filled + count; i++, at += channels) {
          output[channel][i] = part[at] / 32767;
        }
      }
      filled += count;
      this.#offset += count;
      if (this.#offset === frames) {
        this.#part++;
        this.#offset = 0;
      }
    }
    this.position += filled;
    if (filled < output[0].length) this.#runOut();
  }

  /** For the page. */
  get report() {
    const { position, isPlaying, isWaiting } = this;
    return { position, isPlaying, isWaiting };
  }

  #runOut() {
    if (this.hasEnded) {
      this.isPlaying = false;
    } else {
      this.isWaiting = true;
      this.#lead = CATCH_UP_SECONDS * this.rate;
    }
  }

  #seek(frame) {
    this.position = Math.max(0, Math.min(frame, this.frames));
    let left = this.position;
    for (this.#part = 0; this.#part < this.#parts.length; this.#part++) {
      const frames = this.#parts[this.#part].length / this.channels;
      if (left < frames) break;
      left -= frames;
    }
    this.#offset = left;
  }
}
