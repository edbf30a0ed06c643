// What runs on the audio thread: a tape that is played, and a microphone that is recorded.

import { Tape } from "./tape.js";

const REPORT_FRAMES = 1024; // between two reports while playing

class TapeProcessor extends AudioWorkletProcessor {
  #tape;
  #isOpen = true;
  #before = {}; // the last report

  constructor({ processorOptions }) {
    super();
    this.#tape = new Tape(sampleRate, processorOptions.channels);
    this.port.onmessage = ({ data }) => {
      if (data.close) this.#isOpen = false;
      else this.#tape.tell(data);
    };
  }

  process(_, [output]) {
    this.#tape.fill(output);
    const [before, now] = [this.#before, this.#tape.report];
    if (
      Math.abs(now.position - (before.position ?? 0)) >= REPORT_FRAMES ||
      now.isPlaying !== before.isPlaying ||
      now.isWaiting !== before.isWaiting
    ) {
      this.#before = now;
      this.port.postMessage(now);
    }
    return this.#isOpen;
  }
}

class MicrophoneProcessor extends AudioWorkletProcessor {
  process([input]) {
    if (input.length) this.port.postMessage(input[0].slice());
    return true;
  }
}

registerProcessor("tape", TapeProcessor);
registerProcessor("microphone", MicrophoneProcessor);
