// A recording of this session: what was asked for, and the samples that came.

import { call } from "./api.js";
import { WavReader, wavFile } from "./wav.js";

export class Clip {
  rate = 0; // Hz; 0 before the first samples
  channels = 0;
  parts = []; // Int16Array each, interleaved
  frames = 0; // samples of each channel
  seed = null;
  isWhole = false; // the server came to the end of `request`, and would do so again

  /** `request`: the body of POST /v1/audio/speech, without a format. */
  constructor(title, request) {
    this.title = title;
    this.request = request;
  }

  get seconds() {
    return this.rate ? this.frames / this.rate : 0;
  }

  get bytes() {
    return 2 * this.frames * this.channels;
  }

  wav() {
    return wavFile(this.parts, this.rate, this.channels);
  }

  /**
   * Has the server speak, and yields samples as they arrive: in the model's own rate and channels,
   * which the format `pcm` would not keep. Throws what `call` does; what came until then stays.
   */
  async *speak(signal) {
    const json = { ...this.request, response_format: "wav" };
    const response = await call("v1/audio/speech", { json, signal });
    this.seed = Number(response.headers.get("x-seed"));
    const bytes = response.body.getReader();
    const reader = new WavReader();
    for (;;) {
      const { done, value } = await bytes.read();
      if (done) break;
      const samples = this.#add(reader, value);
      if (samples.length) yield samples;
    }
    this.isWhole = true;
  }

  /** A clip of a WAV file's bytes, which /v1/audio/speech may not give again. */
  static ofFile(title, request, bytes) {
    const clip = new Clip(title, request);
    clip.#add(new WavReader(), bytes);
    clip.seed = request.seed;
    return clip;
  }

  #add(reader, bytes) {
    const samples = reader.push(bytes);
    if (samples.length) {
      this.rate = reader.rate;
      this.channels = reader.channels;
      this.parts.push(samples);
      this.frames += samples.length / this.channels;
    }
    return samples;
  }
}
