// Records what the microphone hears, uncompressed.

import { quantised, wavFile } from "./wav.js";

export const LONGEST_SECONDS = 60;

/** What is recorded; `stop` gives it back as a WAV file. */
export class Microphone {
  frames = 0;
  #parts = [];
  #stream = null;
  #context = null;
  #node = null;

  /** Whether this browser lets this page record. */
  static get isThere() {
    return Boolean(navigator.mediaDevices?.getUserMedia && window.AudioWorkletNode);
  }

  get seconds() {
    return this.#context ? this.frames / this.#context.sampleRate : 0;
  }

  /** Begin; `onSamples` is called after each few. Throws Error in words for the user. */
  async start(onSamples) {
    // What makes calls clearer would change the voice.
    const plain = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    try {
      this.#stream = await navigator.mediaDevices.getUserMedia({ audio: plain });
    } catch (error) {
      throw new Error(
        error.name === "NotAllowedError"
          ? "the browser was not allowed to use the microphone; allow it, or upload a file"
          : "no microphone can be used; connect one, or upload a file",
      );
    }
    this.#context = new AudioContext();
    await this.#context.audioWorklet.addModule("worklet.js");
    const source = this.#context.createMediaStreamSource(this.#stream);
    this.#node = new AudioWorkletNode(this.#context, "microphone", { numberOfOutputs: 0 });
    this.#node.port.onmessage = ({ data }) => {
      this.#parts.push(quantised(data));
      this.frames += data.length;
      onSamples();
    };
    source.connect(this.#node);
  }

  /** A Blob of one channel. */
  stop() {
    this.#node.port.onmessage = null;
    for (const track of this.#stream.getTracks()) track.stop();
    this.#context.close();
    return wavFile(this.#parts, this.#context.sampleRate, 1);
  }
}

/** A recording in any format that the browser knows, as WAV; throws Error in words for the user. */
export async function asWav(file) {
  const context = new AudioContext();
  try {
    const audio = await context.decodeAudioData(await file.arrayBuffer());
    return wavFile([quantised(audio.getChannelData(0))], audio.sampleRate, 1);
  } catch {
    throw new Error(`${file.name} cannot be read; try WAV, FLAC, OGG or MP3`);
  } finally {
    context.close();
  }
}
