"""What a reader waits for: the first picture after the start, a picture after a click, and nothing for a hover."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from time import perf_counter

from playwright.sync_api import Browser, Locator, Page, WebSocket, sync_playwright

from tests.benchmarks.rows import REPEATS, Row, middle
from tests.benchmarks.sentences import SPECIAL, sentence
from tests.conftest import CHROMIUM_FLAGS, CHROMIUM_NAMES, ROOT, settle, streamlit_server

PART = "browser"
STARTS = 5
LENGTHS = (15, 128, 512)
FIRST_PICTURE = 10.0  # seconds
HOVERS = 12


def waits() -> list[Row]:
    """Measure in Chromium, started before the clock is."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=list(CHROMIUM_FLAGS))
        rows = [middle(PART, "start to first word", [_start(browser) for _ in range(STARTS)], "s", aim=FIRST_PICTURE)]
        with tempfile.TemporaryDirectory() as folder, streamlit_server(ROOT / "app" / "main.py", Path(folder)) as app:
            page = _window(browser)
            frames: list[int] = []
            page.on("websocket", lambda socket: _count(socket, frames))
            page.goto(app.url)
            _first_chip(page).wait_for()
            for tokens in LENGTHS:
                _write(page, sentence(tokens, 0), tokens)
                rows += [_hover(page, frames, tokens), _clicks(page, tokens)]
        browser.close()
    return rows


def _start(browser: Browser) -> float:
    """Start the app and open it; seconds from starting the process to the first word of the ribbon."""
    with tempfile.TemporaryDirectory() as folder:
        began = perf_counter()
        with streamlit_server(ROOT / "app" / "main.py", Path(folder)) as app:
            page = _window(browser)
            page.goto(app.url)
            _first_chip(page).wait_for()
            took = perf_counter() - began
            page.context.close()
    return took


def _hover(page: Page, frames: list[int], tokens: int) -> Row:
    """Point at words and heads; the number of websocket frames, to or from the server, that this took."""
    settle(page)
    before, said = len(frames), set()
    for step in range(HOVERS):
        page.get_by_test_id("chip").nth(step % (tokens - SPECIAL)).hover()
        said.add(page.get_by_test_id("strongest").inner_text())
        _point_at(page, step % 6, step % 12)
    settle(page)
    if len(said) < HOVERS // 3:
        raise RuntimeError("Pointing at words did not change what the ribbon says.")
    return Row(PART, f"{2 * HOVERS} hovers", len(frames) - before, "frames", tokens, aim=0)


def _clicks(page: Page, tokens: int) -> Row:
    """Click heads; milliseconds from the click to the map's new title on the screen."""
    times = []
    for number in range(REPEATS):
        layer, head = number % 6, (3 * number + 1) % 12
        _point_at(page, layer, head)
        settle(page)
        began = perf_counter()
        page.mouse.down()
        page.mouse.up()
        page.wait_for_function(_TITLED, arg=f"layer {layer}, head {head}", polling="raf")
        times.append((perf_counter() - began) * 1000)
    return middle(PART, "click on a head to its map", times, "ms", tokens=tokens)


# The grid names the head at once, so only titles of maps count: plotly's, or the line above the canvas.
_TITLED = """title => [...document.querySelectorAll('.plotly text, [data-testid=stMarkdownContainer] strong')]
    .some(text => text.textContent.startsWith(title))"""


def _point_at(page: Page, layer: int, head: int) -> None:
    grid = page.get_by_test_id("grid")
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    if box is None:
        raise RuntimeError("The grid of heads is not to be seen.")
    page.mouse.move(box["x"] + box["width"] * (head + 0.5) / 12, box["y"] + box["height"] * (layer + 0.5) / 6)


def _write(page: Page, text: str, tokens: int) -> None:
    page.get_by_label("Sentence").fill(text)
    page.get_by_label("Sentence").press("Enter")
    page.get_by_text(f"{tokens} of 512 tokens").wait_for()
    settle(page)


def _chromium() -> str:
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        raise RuntimeError(f"No Chromium is installed (looked for {', '.join(CHROMIUM_NAMES)}).")
    return path


def _window(browser: Browser) -> Page:
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.set_default_timeout(30_000)
    return page


def _first_chip(page: Page) -> Locator:
    return page.get_by_test_id("chip").first


def _count(socket: WebSocket, frames: list[int]) -> None:
    socket.on("framesent", lambda frame: frames.append(len(frame)))
    socket.on("framereceived", lambda frame: frames.append(len(frame)))
