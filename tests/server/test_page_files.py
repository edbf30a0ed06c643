"""The page's files: small, whole, within their own policy, and usable by everybody."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from browser import chromium, needs_browser, visited
from live_server import LiveServer

from mosstalk.server.app import PAGE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MOST_BYTES = 60_000
FILES = sorted(PAGE.iterdir())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".js": "text/javascript",
}
# Colours of text and of what it stands on, as the style sheet calls them.
TEXTS = (
    ("ink", "page"),
    ("ink", "card"),
    ("ink", "hover"),
    ("quiet", "page"),
    ("quiet", "card"),
    ("on-accent", "accent"),
    ("error", "error-back"),
)
SIGNS = (("accent", "card"), ("edge", "card"), ("edge", "page"), ("accent", "rest"))


class Elements(HTMLParser):
    """All elements of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def elements() -> list[tuple[str, dict[str, str | None]]]:
    return Elements((PAGE / "index.html").read_text(encoding="utf-8")).found


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as opened:
        yield opened


def test_files_are_few_and_small() -> None:
    assert sum(path.stat().st_size for path in FILES) < MOST_BYTES


def test_files_are_served_as_what_they_are(shared: LiveServer) -> None:
    http = shared.http()
    for path in FILES:
        response = http.get(f"/{path.name}")
        assert response.status_code == 200
        assert response.headers["content-type"].split(";")[0] == KINDS[path.suffix]
        assert "script-src 'self'" in response.headers["content-security-policy"]
    assert http.get("/").content == (PAGE / "index.html").read_bytes()


def test_nothing_is_inline_and_nothing_from_elsewhere(
    elements: list[tuple[str, dict[str, str | None]]],
) -> None:
    for tag, attributes in elements:
        assert tag != "style" and "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        if tag == "script":
            assert attributes["src"]
        for name in ("src", "href"):
            assert attributes.get(name) is None or (PAGE / str(attributes[name])).is_file()
    for path in FILES:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|innerHTML|eval\(", text), path.name


def test_scripts_find_their_elements_and_modules(
    elements: list[tuple[str, dict[str, str | None]]],
) -> None:
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for path in SCRIPTS:
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r'byId\("([^"]+)"\)', text)) <= set(ids), path.name
        for module in re.findall(r'from "\./([^"]+)"', text):
            assert (PAGE / module).is_file(), path.name


def test_labels_and_descriptions_point_at_something(
    elements: list[tuple[str, dict[str, str | None]]],
) -> None:
    ids = {attributes["id"] for _, attributes in elements if "id" in attributes}
    for _, attributes in elements:
        for name in ("for", "aria-labelledby", "aria-describedby"):
            assert set((attributes.get(name) or "").split()) <= ids


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_have_contrast(scheme: str) -> None:
    """WCAG 2.2: 4.5 for text (1.4.3), 3 for what can be used and is seen by its edge (1.4.11)."""
    blocks = re.findall(r":root \{(.*?)\}", (PAGE / "style.css").read_text("utf-8"), re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w+);", blocks[0]))
    if scheme == "dark":
        colours |= dict(re.findall(r"--([\w-]+): (#\w+);", blocks[1]))
    for text, back in TEXTS:
        assert contrast(colours[text], colours[back]) >= 4.5, (text, back)
    for sign, back in SIGNS:
        assert contrast(colours[sign], colours[back]) >= 3, (sign, back)


@needs_browser
def test_everything_that_can_be_used_has_a_name(browser: "Browser", shared: LiveServer) -> None:
    with visited(browser, shared.url) as page:
        page.wait_for_selector("#voice-card:not([hidden])")
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll("input, select, textarea, button, audio")]
              .filter((one) => !one.labels?.length && !one.ariaLabel && !one.textContent.trim())
              .map((one) => one.id)"""
        )
        assert unnamed == []


@needs_browser
def test_focus_goes_in_the_order_that_is_read(browser: "Browser", shared: LiveServer) -> None:
    """And is seen wherever it is."""
    with visited(browser, shared.url) as page:
        page.wait_for_selector("#voice-card:not([hidden])")
        order = []
        for _ in range(6):
            page.keyboard.press("Tab")
            order.append(
                page.evaluate("document.activeElement.id || document.activeElement.innerText")
            )
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid"
        assert order[:3] == ["text", "speak", "Settings"]
        assert order[4:] == ["Hear", "Add a voice"]


@needs_browser
@pytest.mark.parametrize("width", [320, 375, 800, 1280])
def test_fits_any_width(browser: "Browser", shared: LiveServer, width: int) -> None:
    viewport = {"width": width, "height": 700}
    with visited(browser, shared.url, viewport=viewport) as page:
        page.wait_for_selector("#voice-card:not([hidden])")
        for part in ("details", "#stage", "#design-card"):
            page.evaluate(
                "(part) => document.querySelectorAll(part).forEach((one) => {"
                "one.open = true; one.hidden = false; })",
                part,
            )
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, "contrast ratio"."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """WCAG 2.2, "relative luminance", of #rgb or #rrggbb."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
