// The page: what the user asks for goes to the server, and what it says is heard while it comes.

import { Adding } from "./adding.js";
import { call, explain, onKeyNeeded } from "./api.js";
import { Clip } from "./clip.js";
import { Designing } from "./designing.js";
import { byId, inSeconds, save, tell } from "./dom.js";
import { History } from "./history.js";
import { askForKey } from "./key.js";
import { readSettings, writeSettings } from "./settings.js";
import { Stage } from "./stage.js";
import { Voices } from "./voices.js";

const SAMPLE_TEXT = "This is how I sound when I read a sentence to you.";
const WHOLE_CHARACTERS = 10_000; // of texts that the server makes whole files of

let model = null; // as /v1/models tells of it
let job = null; // AbortController, while the server speaks
const samples = new Map(); // of voices that were heard: clips by name

const stage = new Stage();
const voices = new Voices(hearVoice, fail);
const designing = new Designing((clip) => hear(clip));
const history = new History({ hear, download, reuse });
new Adding(async (name) => {
  samples.delete(name);
  await voices.load(name);
});

function report(message) {
  byId("status").textContent = message;
}

function fail(error) {
  report("");
  tell(byId("problem"), explain(error));
}

function showBusy() {
  byId("stop").disabled = !job && !stage.isPlaying;
}

/** The server speaks `clip`, which is heard meanwhile; whether it came to its end. */
async function perform(clip) {
  stop();
  const mine = new AbortController();
  job = mine;
  tell(byId("problem"), "");
  report("Waiting for the first sound…");
  showBusy();
  const began = performance.now();
  try {
    await stage.open(clip, model.sample_rate, model.channels);
    for await (const part of clip.speak(mine.signal)) {
      if (clip.parts.length === 1) {
        report(`Speaking. First sound after ${inSeconds((performance.now() - began) / 1000)}.`);
      }
      stage.add(clip, part);
    }
    if (mine === job) report(`Done: ${inSeconds(clip.seconds)} of audio, seed ${clip.seed}.`);
  } catch (error) {
    if (mine === job) lament(error, clip);
  } finally {
    stage.end(clip);
    if (mine === job) job = null;
    showBusy();
  }
}

function lament(error, clip) {
  const after = clip.frames ? ` after ${inSeconds(clip.seconds)} of audio` : "";
  if (error.name === "AbortError") report(`Stopped${after}.`);
  else if (after) fail(new Error(`the answer broke off${after}; see the server's log`));
  else fail(error);
}

/** Silence, and no more work for the server. */
function stop() {
  if (stage.isPlaying) stage.play(false);
  job?.abort();
}

async function speak() {
  tell(byId("problem"), "");
  const input = byId("text").value;
  let request;
  try {
    if (!input.trim()) {
      byId("text").focus();
      throw new Error("there is no text; write what should be said");
    }
    request = { input, ...readSettings() };
  } catch (error) {
    fail(error);
    return;
  }
  if (model === null) {
    await start();
    if (model === null) return;
  }
  if (!model.designs_voices && voices.chosen) request.voice = voices.chosen;
  if (model.designs_voices && designing.description) {
    request.instructions = designing.description;
  }
  const clip = new Clip(input.trim(), request);
  await perform(clip);
  if (clip.frames) history.add(clip);
}

function hear(clip) {
  stop();
  tell(byId("problem"), "");
  report("");
  stage.show(clip).catch(fail);
}

async function hearVoice(name) {
  const known = samples.get(name);
  if (known) {
    hear(known);
    return;
  }
  const clip = new Clip(SAMPLE_TEXT, { input: SAMPLE_TEXT, voice: name, seed: 0 });
  await perform(clip);
  if (clip.isWhole) samples.set(name, clip);
}

/** Save a clip; other formats than WAV are made by the server, which speaks it again. */
async function download(clip) {
  const format = byId("format").value;
  const name = `mosstalk-${clip.seed}`;
  tell(byId("problem"), "");
  if (format === "wav" || !clip.isWhole) {
    save(clip.wav(), `${name}.wav`);
    return;
  }
  report(`Making the ${format} file…`);
  try {
    const stream = clip.request.input.length > WHOLE_CHARACTERS;
    const json = { ...clip.request, seed: clip.seed, response_format: format, stream };
    save(await (await call("v1/audio/speech", { json })).blob(), `${name}.${format}`);
    report(`Saved ${name}.${format}.`);
  } catch (error) {
    fail(error);
  }
}

function reuse({ request, seed }) {
  byId("text").value = request.input;
  writeSettings({ ...request, seed });
  if (request.instructions !== undefined) byId("description").value = request.instructions;
  if (request.voice !== undefined) voices.choose(request.voice);
  byId("text").focus();
  report("Text and settings are as they were, with the same seed.");
}

async function start() {
  try {
    const { data } = await (await call("v1/models")).json();
    if (data[0].designs_voices) byId("design-card").hidden = false;
    else {
      await voices.load();
      byId("voice-card").hidden = false;
    }
    model = data[0];
    byId("model").textContent = `Model: ${model.id}`;
  } catch (error) {
    fail(error);
  }
}

stage.addEventListener("change", showBusy);
byId("compose").addEventListener("submit", (event) => {
  event.preventDefault();
  speak();
});
byId("stop").addEventListener("click", () => {
  stop();
  byId("speak").focus();
});
byId("download").addEventListener("click", () => download(stage.clip));
byId("again").addEventListener("click", () => {
  byId("seed").value = stage.clip.seed;
  report(`The next text is spoken with seed ${stage.clip.seed}.`);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") stop();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    if (event.target === byId("text")) byId("compose").requestSubmit();
  }
});
onKeyNeeded(askForKey);
start();
