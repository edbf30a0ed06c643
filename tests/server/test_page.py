"""The page in a browser: a text is heard while it is spoken, stopped, repeated and saved."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import (
    chromium,
    needs_browser,
    speak,
    visited,
    wait_for_status,
    wait_until_heard,
    wait_until_played,
)
from live_server import LiveServer, live

import mosstalk
from mosstalk import Speaker
from mosstalk.voices import VoiceStore

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = needs_browser
SHORT = "The kettle is on."
LONG = " ".join(f"Number {index} is on its way, said the kettle." for index in range(40))


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: "Browser", built_in: LiveServer) -> "Iterator[Page]":
    with visited(browser, built_in.url) as opened:
        opened.wait_for_selector("#voice-card:not([hidden])")
        yield opened
    built_in.wait_until_idle(5)


def downloaded(page: "Page", selector: str = "#download") -> tuple[str, bytes]:
    """Name and content of a file that the page saves."""
    with page.expect_download() as saved:
        page.click(selector)
    return saved.value.suggested_filename, Path(saved.value.path()).read_bytes()


def test_text_is_heard_while_it_is_made(page: "Page", built_in: LiveServer) -> None:
    page.fill("#text", LONG)
    page.click("#speak")
    wait_until_heard(page)
    assert built_in.service.scheduler.stats().streams == 1
    wait_for_status(page, "Done")
    first, last = page.evaluate("[heard.find(({ played }) => played > 0), heard.at(-1)]")
    assert 0 < first["played"] < first["received"] < last["received"]


def test_all_of_it_is_heard(page: "Page") -> None:
    speak(page, SHORT, seed=3)
    wait_until_played(page)
    last = page.evaluate("heard.at(-1)")
    name, content = downloaded(page)
    assert name == "mosstalk-3.wav"
    assert last["played"] == last["received"] == (len(content) - 44) // 2
    assert page.text_content("#play") == "Play"
    page.evaluate("heard.length = 0")
    page.click("#play")
    wait_until_heard(page)


def test_browser_without_worklets_hears_it_too(browser: "Browser", built_in: LiveServer) -> None:
    """As over plain http from another machine."""
    script = "delete BaseAudioContext.prototype.audioWorklet; delete window.AudioWorkletNode;"
    with visited(browser, built_in.url, script) as page:
        page.wait_for_selector("#voice-card:not([hidden])")
        page.fill("#text", SHORT)
        page.click("#speak")
        wait_until_heard(page)
        wait_until_played(page)
        last = page.evaluate("heard.at(-1)")
        assert last["played"] == last["received"]
        page.click("#add summary")
        assert page.is_visible("#no-microphone") and not page.is_visible("#record")


def test_stop_is_silence_and_frees_the_place(page: "Page", built_in: LiveServer) -> None:
    cancelled = built_in.service.scheduler.stats().cancelled
    page.fill("#text", LONG)
    page.click("#speak")
    wait_until_heard(page)
    page.click("#stop")
    assert wait_for_status(page, "Stopped after").endswith("s of audio.")
    built_in.wait_until_idle(5)
    assert built_in.service.scheduler.stats().cancelled == cancelled + 1
    wait_until_played(page)
    assert page.is_disabled("#stop")
    assert page.evaluate("document.activeElement.id") == "speak"
    assert "stopped early" in (page.text_content("#history") or "")


def test_keys_speak_and_stop(page: "Page", built_in: LiveServer) -> None:
    page.fill("#text", LONG)
    page.press("#text", "Control+Enter")
    wait_until_heard(page)
    page.keyboard.press("Escape")
    wait_for_status(page, "Stopped after")


def test_seed_gives_the_same_audio(page: "Page", built_in: LiveServer) -> None:
    recordings = []
    for seed in (7, 7, 8):
        speak(page, SHORT, seed=seed)
        recordings.append(downloaded(page)[1])
    first, same, other = recordings
    assert first == same != other
    wanted = built_in.speak(SHORT, seed=7, response_format="wav", stream=False)
    assert first == wanted.content


def test_seed_that_was_drawn_can_be_kept(page: "Page") -> None:
    status = speak(page, SHORT)
    name, first = downloaded(page)
    assert status.endswith(f"seed {name.removeprefix('mosstalk-').removesuffix('.wav')}.")
    page.click("#again")
    speak(page, SHORT)
    assert downloaded(page)[1] == first


def test_position_is_chosen_with_keys(page: "Page") -> None:
    speak(page, SHORT, seed=7)
    wait_until_played(page)
    page.press("#position", "Home")
    for _ in range(5):  # 0.1 s each
        page.press("#position", "ArrowRight")
    page.locator("#clock", has_text="0.5 s of ").wait_for()
    assert page.get_attribute("#position", "aria-valuetext") == page.inner_text("#clock")
    page.evaluate("heard.length = 0")
    page.click("#play")
    wait_until_heard(page)
    assert page.evaluate("heard[0].played") >= 0.5 * 16_000


def test_settings_are_sent(page: "Page", built_in: LiveServer) -> None:
    settings = {"seed": 5, "temperature": 0.5, "top_p": 0.9, "top_k": 12, "max_frames": 9}
    speak(page, SHORT, **settings)
    wanted = built_in.speak(SHORT, **settings, response_format="wav", stream=False)
    assert downloaded(page)[1] == wanted.content


@pytest.mark.parametrize("kind", ["flac", "mp3", "opus", "aac"])
def test_other_formats_are_saved(page: "Page", built_in: LiveServer, kind: str) -> None:
    speak(page, SHORT, seed=5, max_frames=9)
    page.select_option("#format", kind)
    name, content = downloaded(page)
    fields = {"seed": 5, "max_frames": 9, "response_format": kind, "stream": False}
    assert name == f"mosstalk-5.{kind}"
    wanted = built_in.speak(SHORT, **fields).content
    assert len(content) == len(wanted)  # an Ogg stream has a number of its own


def test_history_is_heard_saved_and_used_again(page: "Page") -> None:
    speak(page, SHORT, seed=7, max_frames=20)
    first = downloaded(page)[1]
    speak(page, "Another text.", seed=8)
    rows = page.locator("#history li")
    assert rows.count() == 2
    assert "Another text." in rows.nth(0).inner_text()
    page.click("#stop")
    page.evaluate("heard.length = 0")
    rows.nth(1).get_by_role("button", name="Hear").click()
    wait_until_heard(page)
    assert page.text_content("#playing") == SHORT
    assert downloaded(page, "#history li:nth-child(2) button:nth-child(2)")[1] == first
    rows.nth(1).get_by_role("button", name="Use again").click()
    values = [page.input_value(f"#{name}") for name in ("text", "seed", "max_frames", "top_p")]
    assert values == [SHORT, "7", "20", ""]
    page.click("#clear")
    assert rows.count() == 0


def test_nothing_is_stored_and_nothing_leaves(browser: "Browser", built_in: LiveServer) -> None:
    with visited(browser, built_in.url) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.reload()
        page.wait_for_selector("#voice-card:not([hidden])")
        speak(page, SHORT)
        kept = page.evaluate(
            "async () => [localStorage.length, sessionStorage.length, "
            "(await indexedDB.databases()).length, document.cookie, (await caches.keys()).length]"
        )
        assert kept == [0, 0, 0, "", 0]
        assert asked and all(url.startswith(built_in.url) for url in asked)
        page.reload()
        assert page.input_value("#text") == "" and page.locator("#history li").count() == 0


def test_empty_text_is_an_error(page: "Page") -> None:
    page.fill("#text", "  ")
    page.click("#speak")
    alert = page.get_by_role("alert")
    assert alert.inner_text() == "Error: There is no text; write what should be said."
    assert page.evaluate("document.activeElement.id") == "text"
    speak(page, SHORT)
    assert alert.count() == 0


def test_setting_out_of_range_is_an_error(page: "Page") -> None:
    page.click("text=Settings")
    page.fill("#top_p", "3")
    page.click("text=Settings")
    page.fill("#text", SHORT)
    page.click("#speak")
    assert page.get_by_role("alert").inner_text().startswith("Error: Top-p:")
    assert page.evaluate("document.activeElement.id") == "top_p"
    assert page.get_attribute("#top_p", "aria-invalid") == "true"


def test_server_that_is_gone_is_an_error(browser: "Browser", talker: Speaker) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        with live(talker) as server:
            page.goto(server.url)
            page.wait_for_selector("#voice-card:not([hidden])")
        page.fill("#text", SHORT)
        page.click("#speak")
        alert = page.get_by_role("alert")
        alert.wait_for()
        assert alert.inner_text() == "Error: The server does not answer. Is it still running?"
        assert not page.is_visible("#stage")


def test_answer_that_breaks_off_is_an_error(browser: "Browser", talker: Speaker) -> None:
    """What came until then is kept."""
    with live(talker, time_limit=1.0) as server, visited(browser, server.url) as page:
        page.wait_for_selector("#voice-card:not([hidden])")
        page.fill("#text", LONG)
        page.click("#speak")
        alert = page.get_by_role("alert")
        alert.wait_for()
        assert alert.inner_text().startswith("Error: The answer broke off after ")
        assert page.locator("#history li").count() == 1


def test_refusal_is_told_in_the_servers_words(
    browser: "Browser", mute_path: Path, tmp_path: Path
) -> None:
    speaker = mosstalk.load(mute_path, threads=1)
    speaker.voices = VoiceStore(tmp_path)
    with live(speaker) as server, visited(browser, server.url) as page:
        page.wait_for_selector("#voice-card:not([hidden])")
        page.fill("#text", SHORT)
        page.click("#speak")
        alert = page.get_by_role("alert")
        alert.wait_for()
        assert alert.inner_text().startswith("Error: The model stopped before its first frame")


def test_key_is_asked_for_and_kept_for_the_tab(browser: "Browser", talker: Speaker) -> None:
    with (
        live(talker, api_key="long enough") as server,
        visited(browser, server.url) as page,
    ):
        page.wait_for_selector("#key-dialog[open]")
        page.fill("#key", "a wrong one")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=does not know that key")
        page.fill("#key", "long enough")
        page.keyboard.press("Enter")
        page.wait_for_selector("#voice-card:not([hidden])")
        page.reload()
        speak(page, SHORT, max_frames=5)
        stored = page.evaluate("[Object.values(sessionStorage), localStorage.length]")
        assert stored == [["long enough"], 0]
    with live(talker, api_key="long enough") as server, visited(browser, server.url) as page:
        page.wait_for_selector("#key-dialog[open]")
        page.click("#key-cancel")
        alert = page.get_by_role("alert")
        alert.wait_for()
        assert "API key" in alert.inner_text()
