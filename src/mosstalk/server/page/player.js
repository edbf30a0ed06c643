// Plays samples while more of them arrive.

import { Tape } from "./tape.js";

const BLOCK_FRAMES = 2048; // of the way without an AudioWorklet

/** Fires `report` with { position, isPlaying, isWaiting } as `detail`, from what was played. */
export class Player extends EventTarget {
  #context = null;
  #node = null;
  #tell = () => {};

  /**
   * Begin a new recording. Call it while a click or a key is handled: browsers play no sound else.
   * Resolves when samples can be added.
   */
  async open(rate, channels) {
    this.close();
    if (this.#context?.sampleRate !== rate) {
      this.#context?.close();
      this.#context = new AudioContext({ sampleRate: rate });
    }
    const context = this.#context;
    context.resume();
    await context.audioWorklet?.addModule("worklet.js").catch(noServer);
    if (context !== this.#context) return;
    this.close();
    const report = (detail) => {
      if (!detail.isPlaying) context.suspend(); // it would keep the audio device awake
      this.dispatchEvent(new CustomEvent("report", { detail }));
    };
    [this.#node, this.#tell] = context.audioWorklet
      ? workletTape(context, channels, report)
      : plainTape(context, channels, report);
    this.#node.connect(context.destination);
  }

  /** Interleaved 16-bit samples, to be played after the others. */
  add(samples) {
    this.#tell({ add: samples });
  }

  /** No more samples will come. */
  end() {
    this.#tell({ end: true });
  }

  play(isPlaying) {
    if (isPlaying) this.#context?.resume();
    this.#tell({ play: isPlaying });
  }

  seek(frame) {
    this.#tell({ seek: frame });
  }

  close() {
    this.#tell({ close: true });
    if (this.#node?.port) this.#node.port.onmessage = null;
    this.#node?.disconnect();
    this.#node = null;
    this.#tell = () => {};
  }
}

/** What `fetch` throws too: the error of `addModule` is that of a request that was stopped. */
function noServer() {
  throw new TypeError("worklet.js cannot be loaded");
}

function workletTape(context, channels, report) {
  const node = new AudioWorkletNode(context, "tape", {
    numberOfInputs: 0,
    outputChannelCount: [channels],
    processorOptions: { channels },
  });
  node.port.onmessage = ({ data }) => report(data);
  return [node, (message) => node.port.postMessage(message)];
}

/** For pages that came over plain http from another machine: browsers give those no worklet. */
function plainTape(context, channels, report) {
  const tape = new Tape(context.sampleRate, channels);
  const node = context.createScriptProcessor(BLOCK_FRAMES, 0, channels);
  node.onaudioprocess = ({ outputBuffer }) => {
    tape.fill(Array.from({ length: channels }, (_, at) => outputBuffer.getChannelData(at)));
    report(tape.report);
  };
  return [node, (message) => tape.tell(message)];
}
