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
  #parts = []; // each an array of planes (Float32Array), one for each channel
  #part = 0; // where `position` is
  #offset = 0;
  #lead;

  constructor(rate) {
    this.rate = rate;
    this.#lead = LEAD_SECONDS * rate;
  }

  /** What the page tells: { add: planes }, { end: true }, { play: bool } or { seek: frame }. */
  tell({ add, end, play, seek }) {
    if (add) {
      this.#parts.push(add);
      this.frames += add[0].length;
    }
    if (end) this.hasEnded = true;
    if (play !== undefined) this.isPlaying = play;
    if (seek !== undefined) this.#seek(seek);
  }

  /** Fill one output's planes, which are silent, with what comes next. */
  fill(output) {
    if (!this.isPlaying) return;
    if (this.isWaiting) {
      if (!this.hasEnded && this.frames - this.position < this.#lead) return;
      this.isWaiting = false;
    }
    let filled = 0;
    while (filled < output[0].length && this.#part < this.#parts.length) {
      const part = this.#parts[this.#part];
      const count = Math.min(output[0].length - filled, part[0].length - this.#offset);
      for (let channel = 0; channel < output.length; channel++) {
        const plane = part[Math.min(channel, part.length - 1)];
        output[channel].set(plane.subarray(this.#offset, this.#offset + count), filled);
      }
      filled += count;
      this.#offset += count;
      if (this.#offset === part[0].length) {
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
    this.#part = 0;
    let left = this.position;
    while (this.#part < this.#parts.length && left >= this.#parts[this.#part][0].length) {
      left -= this.#parts[this.#part][0].length;
      this.#part++;
    }
    this.#offset = left;
  }
}
