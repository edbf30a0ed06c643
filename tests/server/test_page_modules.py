"""Modules of the page by themselves, run in a browser: the tape that plays, and WAV files."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest
import soundfile
from browser import chromium, needs_browser, visited
from live_server import LiveServer

from mosstalk.audio.write import wav_header

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = needs_browser
RATE = 1_000  # Hz; 150 frames are there before the first sound, 600 after a gap
_TAPE = """
const { Tape } = await import("./tape.js");
const tape = new Tape(1000, 2);
const pull = (count) => {
  const output = [new Float32Array(count), new Float32Array(count)];
  tape.fill(output);
  return output.map((plane) => [...plane].map((value) => Math.round(value * 32767)));
};
const stereo = (from, to) => {
  const numbers = Array.from({ length: to - from }, (_, at) => from + at);
  return Int16Array.from(numbers.flatMap((number) => [number, -number]));
};
"""


@pytest.fixture(scope="module")
def page(shared: LiveServer) -> "Iterator[Page]":
    with chromium() as browser, visited(browser, shared.url) as opened:
        yield opened


def run(page: "Page", script: str) -> object:
    return page.evaluate(f"async () => {{ {script} }}")


def test_tape_plays_parts_in_order(page: "Page") -> None:
    left, right = run(  # type: ignore[misc]
        page,
        _TAPE
        + """
for (const [from, to] of [[1, 8], [8, 9], [9, 200], [200, 301]]) {
  tape.tell({ add: stereo(from, to) });
}
tape.tell({ end: true });
const planes = [[], []];
while (tape.isPlaying) pull(16).forEach((plane, at) => planes[at].push(...plane));
return planes;
""",
    )
    wanted = [*range(1, 301), *[0] * 4]  # 19 blocks of 16
    assert left == wanted
    assert right == [-value for value in wanted]


def test_tape_waits_for_a_slow_model(page: "Page") -> None:
    """For little before it begins, for more after it has run out, for nothing at the end."""
    found = run(
        page,
        _TAPE
        + """
const states = [];
const look = () => states.push([pull(100)[0][0], tape.position, tape.isWaiting]);
tape.tell({ add: stereo(1, 150) });
look();
tape.tell({ add: stereo(150, 181) });
look();
look();
tape.tell({ add: stereo(181, 700) });
look();
tape.tell({ end: true });
look();
return states;
""",
    )
    waiting, beginning, out, still, last = found  # type: ignore[misc]
    assert waiting == [0, 0, True]
    assert beginning == [1, 100, False]
    assert out == [101, 180, True]
    assert still == [0, 180, True]
    assert last == [181, 280, False]


def test_tape_seeks_and_pauses(page: "Page") -> None:
    found = run(
        page,
        _TAPE
        + """
tape.tell({ add: stereo(0, 200) });
tape.tell({ add: stereo(200, 400) });
tape.tell({ end: true });
const first = (message) => { tape.tell(message); return pull(2)[0][0]; };
const seen = [250, 200, 7, 399].map((seek) => first({ seek }));
seen.push(first({ play: false, seek: 9 }), tape.position, first({ play: true }));
tape.tell({ seek: 4000 });
return [...seen, tape.position];
""",
    )
    assert found == [250, 200, 7, 399, 0, 9, 9, 400]


def test_wav_file_is_read_however_it_is_cut(page: "Page") -> None:
    samples = np.arange(-300, 300, dtype="<i2")
    content = wav_header(48_000, 2, None) + samples.tobytes()
    found = run(
        page,
        f"""
const {{ WavReader }} = await import("./wav.js");
const bytes = Uint8Array.from({list(content)});
return [1, 3, 45, 5000].map((size) => {{
  const reader = new WavReader();
  const all = [];
  for (let at = 0; at < bytes.length; at += size) {{
    all.push(...reader.push(bytes.slice(at, at + size)));
  }}
  return [reader.rate, reader.channels, all];
}});
""",
    )
    assert found == [[48_000, 2, samples.tolist()]] * 4


def test_wav_file_that_is_written_can_be_read(page: "Page") -> None:
    content = run(
        page,
        """
const { quantised, wavFile } = await import("./wav.js");
const parts = [[0, 0.5], [-1, 2, -2]].map((part) => quantised(Float32Array.from(part)));
return [...new Uint8Array(await wavFile(parts, 44100, 1).arrayBuffer())];
""",
    )
    samples, rate = soundfile.read(io.BytesIO(bytes(content)), dtype="int16")  # type: ignore[call-overload]
    assert rate == 44_100
    assert samples.tolist() == [0, 16_384, -32_767, 32_767, -32_767]
