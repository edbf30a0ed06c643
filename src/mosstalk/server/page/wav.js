// WAV files of 16-bit samples, read while they arrive and written whole.

const HEADER_BYTES = 44; // as the server writes it, and as it is written here

/** Takes a file's bytes as they come and gives back its samples. */
export class WavReader {
  rate = 0; // Hz
  channels = 0;
  #rest = new Uint8Array(0);

  /** Interleaved samples (Int16Array of whole frames) that are complete with these bytes. */
  push(bytes) {
    let data = joined([this.#rest, bytes]);
    if (!this.rate) {
      if (data.length < HEADER_BYTES) {
        this.#rest = data;
        return new Int16Array(0);
      }
      this.#readHeader(new DataView(data.buffer, 0, HEADER_BYTES));
      data = data.slice(HEADER_BYTES);
    }
    const whole = data.length - (data.length % (2 * this.channels));
    this.#rest = data.slice(whole);
    return new Int16Array(data.buffer, 0, whole / 2);
  }

  #readHeader(header) {
    const [riff, wave, bits] = [header.getUint32(0), header.getUint32(8), header.getUint16(34, true)];
    if (riff !== 0x52494646 || wave !== 0x57415645 || bits !== 16) {
      throw new Error("the server sent something else than a WAV file");
    }
    this.channels = header.getUint16(22, true);
    this.rate = header.getUint32(24, true);
  }
}

/** A WAV file (Blob) of interleaved samples in parts (Int16Array). */
export function wavFile(parts, rate, channels) {
  const size = parts.reduce((sum, part) => sum + part.byteLength, 0);
  const header = new DataView(new ArrayBuffer(HEADER_BYTES));
  const frame = 2 * channels;
  header.setUint32(0, 0x52494646); // "RIFF"
  header.setUint32(4, size + HEADER_BYTES - 8, true);
  header.setUint32(8, 0x57415645); // "WAVE"
  header.setUint32(12, 0x666d7420); // "fmt "
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true); // integers
  header.setUint16(22, channels, true);
  header.setUint32(24, rate, true);
  header.setUint32(28, rate * frame, true);
  header.setUint16(32, frame, true);
  header.setUint16(34, 16, true);
  header.setUint32(36, 0x64617461); // "data"
  header.setUint32(40, size, true);
  return new Blob([header, ...parts], { type: "audio/wav" });
}

/** Float32Array as 16-bit samples; beyond [-1, 1] they are clipped. */
export function quantised(samples) {
  return Int16Array.from(samples, (x) => Math.round(32767 * Math.max(-1, Math.min(1, x))));
}

function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
