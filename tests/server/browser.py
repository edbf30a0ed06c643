"""Chromium, led by Playwright, and what tests of the page look for in it."""

import importlib.util
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="Chromium or Playwright for Python is not here",
)
WAIT_MS = 60_000
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-device-for-media-stream",  # a microphone that beeps
    "--use-fake-ui-for-media-stream",  # and may be used
)
# What the page says it has played, and a tap before the loudspeaker that knows by itself.
_LISTENING = """
window.heard = [];
document.addEventListener("mosstalk:progress", ({ detail }) => heard.push(detail));
const connect = AudioNode.prototype.connect;
AudioNode.prototype.connect = function (target, ...rest) {
  if (target instanceof AudioDestinationNode) {
    window.tap = target.context.createAnalyser();
    connect.call(this, tap);
  }
  return connect.call(this, target, ...rest);
};
window.isLoud = () => {
  if (!window.tap) return false;
  const samples = new Float32Array(tap.fftSize);
  tap.getFloatTimeDomainData(samples);
  return samples.some((sample) => Math.abs(sample) > 0.01);
};
"""


@contextmanager
def chromium() -> "Iterator[Browser]":
    """The browser, until the block is left."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def visited(browser: "Browser", url: str, script: str = "", **options: Any) -> "Iterator[Page]":
    """A page in a session of its own; scripts that fail or break the page's own policy fail here.

    `script` runs before the page's own.
    """
    problems: list[str] = []
    with browser.new_context(**options) as context:
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda message: (
                problems.append(message.text) if "Content Security" in message.text else None
            ),
        )
        page.add_init_script(_LISTENING + script)
        page.goto(url)
        yield page
    assert problems == []


def wait_until(page: "Page", expression: str) -> None:
    """Until a script's value is true. Playwright's own way would need a looser policy."""
    deadline = time.monotonic() + WAIT_MS / 1_000
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(20)


def wait_for_status(page: "Page", beginning: str) -> str:
    """The status, when it begins so."""
    page.locator("#status", has_text=re.compile(f"^{beginning}")).wait_for()
    return page.inner_text("#status")


def wait_until_heard(page: "Page") -> None:
    """Until sound reaches the loudspeaker."""
    wait_until(page, "isLoud() && heard.some(({ played }) => played > 0)")


def wait_until_played(page: "Page") -> None:
    """Until the loudspeaker has had all that there was, or is paused."""
    wait_until(page, "heard.length > 0 && !heard.at(-1).isPlaying")


def speak(page: "Page", text: str, **settings: object) -> str:
    """Have a text spoken to its end; gives back the status."""
    page.fill("#text", text)
    if settings:
        page.evaluate("document.querySelector('.compose details').open = true")
    for name, value in settings.items():
        page.fill(f"#{name}", str(value))
    page.evaluate("document.getElementById('status').textContent = ''")
    page.click("#speak")
    return wait_for_status(page, "Done")
