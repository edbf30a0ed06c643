// What runs on the audio thread: a tape that is played, and a microphone that is recorded.

import { Tape } from "./tape.js";

const REPORT_FRAMES = 1024; // between two reports while playing

class TapeProcessor extends AudioWorkletProcessor {
  #tape;
  #isOpen = true;
  #reported = -REPORT_FRAMES;
  #wasPlaying = true;

  constructor({ processorOptions }) {
    super();
    this.#tape = new Tape(sampleRate, processorOptions.channels);
    this.port.onmessage = ({ data }) => {
      if (data.close) this.#isOpen = false;
      else this.#tape.tell(data);
    };
  }

  process(_, [output]) {
    const tape = this.#tape;
    tape.fill(output);
    const moved = Math.abs(tape.position - this.#reported);
    if (moved >= REPORT_FRAMES || tape.isPlaying !== this.#wasPlaying) {
      this.#reported = tape.position;
      this.#wasPlaying = tape.isPlaying;
      this.port.postMessage(tape.report);
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
