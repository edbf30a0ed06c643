// How loud a recording is over its length, and how much of it was played.

const BIN_FRAMES = 256;
const BAR_PIXELS = 3; // with the gap after it

export class Waveform {
  #canvas;
  #peaks = []; // of each bin, 0..1
  #filled = 0; // frames in the last bin
  #played = 0; // share

  constructor(canvas) {
    this.#canvas = canvas;
    new ResizeObserver(() => this.draw(this.#played)).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
      this.draw(this.#played),
    );
  }

  clear() {
    this.#peaks = [];
    this.#filled = BIN_FRAMES;
    this.draw(0);
  }

  /** Interleaved 16-bit samples. */
  add(samples, channels) {
    for (let at = 0; at < samples.length; at += channels, this.#filled++) {
      if (this.#filled === BIN_FRAMES) {
        this.#peaks.push(0);
        this.#filled = 0;
      }
      const last = this.#peaks.length - 1;
      this.#peaks[last] = Math.max(this.#peaks[last], Math.abs(samples[at]) / 32768);
    }
  }

  /** `played`: share of the recording, 0..1, which is drawn higher in colour. */
  draw(played) {
    this.#played = played;
    const canvas = this.#canvas;
    const scale = devicePixelRatio;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = width * scale;
    canvas.height = height * scale;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    const style = getComputedStyle(canvas);
    const [done, rest] = [style.color, style.getPropertyValue("--rest")];
    const bars = Math.floor(width / BAR_PIXELS);
    for (let bar = 0; bar < bars; bar++) {
      const loud = Math.max(2, this.#loudest(bar / bars, (bar + 1) / bars) * height);
      context.fillStyle = (bar + 0.5) / bars <= played ? done : rest;
      context.fillRect(bar * BAR_PIXELS, (height - loud) / 2, BAR_PIXELS - 1, loud);
    }
  }

  #loudest(from, to) {
    const count = this.#peaks.length;
    const first = Math.floor(from * count);
    const last = Math.max(first + 1, Math.floor(to * count));
    let loudest = 0;
    for (let at = first; at < last && at < count; at++) {
      loudest = Math.max(loudest, this.#peaks[at]);
    }
    return loudest;
  }
}
