"""Voices on the page: recorded, uploaded, replaced, removed, and designed."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import soundfile
from browser import chromium, needs_browser, speak, visited, wait_until, wait_until_heard
from live_server import LiveServer, live

from mosstalk import Speaker
from mosstalk.design import read_candidate

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Download, Page

pytestmark = needs_browser
SHORT = "The kettle is on."


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as opened:
        yield opened


@pytest.fixture
def cloning(cloner: Speaker) -> Iterator[LiveServer]:
    """A server of a model that needs a voice and has none."""
    with live(cloner) as server:
        yield server


def keep(page: "Page", name: str, content: bytes, file_name: str = "clip.wav") -> None:
    """Upload a recording under a name."""
    page.evaluate("document.getElementById('add').open = true")
    page.set_input_files("#file", {"name": file_name, "mimeType": "audio/wav", "buffer": content})
    page.wait_for_selector("#preview:not([hidden])")
    page.fill("#name", name)
    page.click("#keep")


def test_recorded_voice_is_kept_heard_and_spoken_with(
    browser: "Browser", built_in: LiveServer
) -> None:
    """It is there after a reload, as it is the server that keeps it."""
    store = built_in.service.speaker.voices
    with visited(browser, built_in.url) as page:
        page.click("text=Add a voice")
        page.click("#record")
        page.wait_for_selector("#record[data-seconds='2']")
        page.click("#record")
        assert page.inner_text("#recorded").startswith("Recorded 2.")
        wait_until(page, "document.getElementById('preview').duration > 2")
        page.fill("#name", "beeper")
        page.fill("#transcript", "beep beep")
        page.click("#keep")
        page.locator("#recorded", has_text="Kept as beeper.").wait_for()
        assert page.inner_text("#chosen") == "Voice: beeper"
        voice = store.load("beeper")
        assert voice.transcript == "beep beep"

        page.reload()
        page.get_by_role("button", name="Hear beeper").click()
        wait_until_heard(page)
        page.get_by_role("radio", name="beeper").check()
        speak(page, SHORT, seed=7)
        with page.expect_download() as saved:
            page.click("#download")
        wanted = built_in.speak(SHORT, voice="beeper", seed=7, response_format="wav", stream=False)
        assert Path(saved.value.path()).read_bytes() == wanted.content

        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Remove beeper").click()
        page.get_by_role("radio", name="beeper").wait_for(state="detached")
        assert store.names() == []


def test_recording_holds_what_the_microphone_heard(browser: "Browser", cloning: LiveServer) -> None:
    """The fake device beeps once a second and is silent between."""
    script = (
        "const make = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { window.made = blob; return make(blob); };"
    )
    with visited(browser, cloning.url, script) as page:
        page.click("text=Add a voice")
        page.click("#record")
        page.wait_for_selector("#record[data-seconds='2']")
        page.click("#record")
        content = page.evaluate("async () => Array.from(new Uint8Array(await made.arrayBuffer()))")
    samples, rate = soundfile.read(io.BytesIO(bytes(content)))
    assert 2 <= len(samples) / rate < 10
    loud = abs(samples) > 0.05
    assert 0 < loud.mean() < 0.5


def test_uploaded_voice_is_kept_and_replaced(
    browser: "Browser", cloning: LiveServer, recording: bytes
) -> None:
    store = cloning.service.speaker.voices
    with visited(browser, cloning.url) as page:
        page.wait_for_selector("#no-voices:not([hidden])")
        keep(page, "anna", recording)
        page.get_by_role("radio", name="anna").wait_for()
        first = store.load("anna").source_hash
        assert not page.is_visible("#no-voices")
        page.once("dialog", lambda dialog: dialog.dismiss())
        keep(page, "anna", recording[:-8] + bytes(8))
        page.locator("#add-problem", has_text="There is a voice").wait_for()
        assert store.load("anna").source_hash == first
        page.once("dialog", lambda dialog: dialog.accept())
        page.click("#keep")
        page.locator("#recorded", has_text="Kept as anna.").wait_for()
        assert store.load("anna").source_hash != first


def test_format_that_the_server_does_not_read_is_converted(
    browser: "Browser", cloning: LiveServer, recording: bytes
) -> None:
    """By the browser; here a WAV file under a name that tells of no format."""
    with visited(browser, cloning.url) as page:
        keep(page, "anna", recording, "memo.m4a")
        page.get_by_role("radio", name="anna").wait_for()
        page.set_input_files(
            "#file", {"name": "memo.m4a", "mimeType": "audio/mp4", "buffer": b"no audio"}
        )
        page.locator("#add-problem", has_text="memo.m4a cannot be read").wait_for()


def test_faults_of_a_new_voice_are_told(
    browser: "Browser", cloning: LiveServer, recording: bytes
) -> None:
    with visited(browser, cloning.url) as page:
        page.click("text=Add a voice")
        page.click("#keep")
        assert "Record or upload something first" in page.inner_text("#add-problem")
        keep(page, "", recording)
        assert "Give the voice a name" in page.inner_text("#add-problem")
        keep(page, "a/b", recording)
        page.locator("#add-problem", has_text="cannot be a voice's name").wait_for()


def test_microphone_that_is_refused_is_told(browser: "Browser", cloning: LiveServer) -> None:
    script = (
        "navigator.mediaDevices.getUserMedia = async () => {"
        "throw new DOMException('no', 'NotAllowedError'); };"
    )
    with visited(browser, cloning.url, script) as page:
        page.click("text=Add a voice")
        page.click("#record")
        page.locator("#add-problem", has_text="not allowed to use the microphone").wait_for()
        assert page.inner_text("#record") == "Record"


def test_designed_voice_is_heard_kept_and_cloned(
    browser: "Browser", designer: Speaker, cloning: LiveServer, tmp_path: Path
) -> None:
    """What is kept are the files that `mosstalk design` writes; another server takes them."""
    with live(designer) as server, visited(browser, server.url) as page:
        page.wait_for_selector("#design-card:not([hidden])")
        assert not page.is_visible("#voice-card")
        page.click("#design")
        assert "Describe the voice first." in page.inner_text("#design-problem")
        page.fill("#description", "An old man, calm and warm.")
        page.fill("#sample", "Good morning.")
        page.select_option("#count", "2")
        page.click("text=Settings")
        page.fill("#seed", "4")
        page.click("#design")
        page.locator("#designed", has_text="Made 2.").wait_for()
        rows = page.locator("#candidates li")
        assert rows.count() == 2
        rows.nth(1).get_by_role("button", name="Hear").click()
        wait_until(page, "heard.some(({ played }) => played > 0)")
        saved: list[Path] = []

        def take(download: "Download") -> None:
            path = tmp_path / download.suggested_filename
            download.save_as(path)
            saved.append(path)

        page.on("download", take)
        rows.nth(1).get_by_role("button", name="Keep").click()
        while len(saved) < 2:
            page.wait_for_timeout(20)
    sound = next(path for path in saved if path.suffix == ".wav")
    candidate = read_candidate(sound)
    assert candidate.text == "Good morning."
    assert candidate.origin.seed == 5
    assert candidate.origin.instruction == "An old man, calm and warm."

    with visited(browser, cloning.url) as page:
        page.click("text=Add a voice")
        page.set_input_files("#file", saved)
        page.wait_for_selector("#preview:not([hidden])")
        page.fill("#name", "grandfather")
        page.click("#keep")
        page.get_by_role("radio", name="grandfather").wait_for()
    voice = cloning.service.speaker.voices.load("grandfather")
    assert voice.origin == candidate.origin
    assert voice.transcript == "Good morning."


def test_description_is_spoken_with(browser: "Browser", designer: Speaker) -> None:
    with live(designer) as server, visited(browser, server.url) as page:
        page.wait_for_selector("#design-card:not([hidden])")
        page.fill("#description", "A child.")
        with page.expect_request("**/v1/audio/speech") as asked:
            speak(page, SHORT, seed=1, max_frames=8)
        assert asked.value.post_data_json == {
            "input": SHORT,
            "seed": 1,
            "max_frames": 8,
            "instructions": "A child.",
            "response_format": "wav",
        }
