"""What a reader does and sees, in a real browser against a running server."""

import csv
import io
import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, WebSocket, expect

from app.export import readable
from app.shown import shown
from app.view import View
from engine import HuggingFaceModel, Mask
from tests.conftest import WITNESSED, Server, settle

pytestmark = pytest.mark.browser

NURSE = "The nurse thanked the doctor because she was kind"
OPENING = "The shopkeeper gave the customer a discount because she was a regular"
SHE = 6


@dataclass
class Traffic:
    """What went over the page's websockets."""

    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Count from now on; before the page is opened."""
        page.on("websocket", self._listen)

    def _listen(self, websocket: WebSocket) -> None:
        websocket.on("framesent", lambda payload: self.sent.append(len(payload)))
        websocket.on("framereceived", lambda payload: self.received.append(len(payload)))


@pytest.fixture
def traffic(page: Page) -> Traffic:
    """Every frame of the page."""
    counted = Traffic()
    counted.watch(page)
    return counted


def arrive(page: Page, address: str) -> None:
    """Open an address and wait until all is drawn."""
    page.goto(address)
    page.get_by_test_id("grid").wait_for()
    settle(page)


def type_in(page: Page, sentence: str) -> None:
    """Type a sentence, press Enter, wait for its words."""
    page.get_by_label("Sentence").fill(sentence)
    page.get_by_label("Sentence").press("Enter")
    *_, last = sentence.split()
    expect(page.locator("[data-testid=chip] bdi").last).to_have_text(last)
    settle(page)


def chip(page: Page, word: str, number: int = 0) -> Locator:
    """One word of the ribbon."""
    return page.locator("[data-testid=chip]").filter(has=page.get_by_text(word, exact=True)).nth(number)


def shading(page: Page) -> list[str]:
    """The background of every word."""
    colours: list[str] = page.locator("[data-testid=chip]").evaluate_all(
        "chips => chips.map((chip) => chip.style.backgroundColor)"
    )
    return colours


def darkness(colour: str) -> int:
    """How far a colour is from white; no colour is white."""
    return sum(255 - int(part) for part in re.findall(r"\d+", colour)) if colour else 0


def click_head(page: Page, layer: int, head: int, layers: int = 6, heads: int = 12) -> None:
    """Click a cell of the grid."""
    box = page.get_by_test_id("grid").bounding_box()
    assert box is not None
    position = {"x": box["width"] * (head + 0.5) / heads, "y": box["height"] * (layer + 0.5) / layers}
    page.get_by_test_id("grid").click(position=position)  # type: ignore[arg-type]


def map_title(page: Page) -> Locator:
    """The title of the map of one head."""
    return page.locator(".js-plotly-plot .gtitle").first


def strongest(page: Page) -> list[str]:
    """What the line below the ribbon says, as "customer 29.4 %"."""
    items = page.locator("[data-testid=strongest-item]:not([hidden])")
    return [" ".join(text.split()) for text in items.all_inner_texts()]


def row_of(model: HuggingFaceModel, sentence: str, view: View, word: int) -> list[tuple[str, float]]:
    """What the engine says a word attends to, strongest first."""
    made = shown(model.run(sentence, mask=Mask.parse(view.mask)), view, "encoder")
    pairs = [(group.text, float(weight)) for group, weight in zip(made.keys, made.weights[word], strict=True)]
    return sorted(pairs, key=lambda pair: -pair[1])


def expect_view(page: Page) -> None:
    """Check that a page shows the nurse's view: sentence, word, mask, head."""
    expect(page.get_by_label("Sentence")).to_have_value(NURSE, timeout=30_000)
    expect(page.get_by_role("radio", name="GPT-style", exact=True)).to_be_checked()
    expect(map_title(page)).to_have_text("layer 2, head 3")
    expect(chip(page, "she")).to_have_class(re.compile(r"\bpinned\b"))


def test_a_teacher_shows_what_she_attends_to_flips_the_mask_and_shares_the_view(
    page: Page, browser: Browser, hosts: set[str], app_server: Server, minilm: HuggingFaceModel
):
    """Type, click, read, flip, pick a head, copy the link, open it elsewhere, reload, look at Masks, come back."""
    arrive(page, f"{app_server.url}/?model=minilm")
    type_in(page, NURSE)
    chip(page, "she").click()
    expect(chip(page, "she")).to_have_class(re.compile(r"\bpinned\b"))
    settle(page)
    page.mouse.move(5, 5)
    native = row_of(minilm, NURSE, View(layer=5, head=8), SHE)
    assert strongest(page) == [f"{word} {weight:.1%}".replace("%", " %") for word, weight in native[:5]]
    words = page.locator("[data-testid=chip] bdi").all_inner_texts()
    by_shade = sorted(zip(words, shading(page), strict=True), key=lambda pair: -darkness(pair[1]))
    assert [word for word, _ in by_shade[:3]] == [word for word, _ in native[:3]]

    page.get_by_text("GPT-style", exact=True).click()
    expect(page.get_by_text("Not what this model was trained with.")).to_be_visible()
    settle(page)
    for word in ("was", "kind"):
        expect(chip(page, word)).to_have_class(re.compile(r"\bmasked\b"))
        assert "gradient" in chip(page, word).evaluate("chip => getComputedStyle(chip).backgroundImage")
    expect(chip(page, "doctor")).not_to_have_class(re.compile(r"\bmasked\b"))
    expect(page.get_by_text("What changed for she")).to_be_visible()
    expect(
        page.locator("[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg").first
    ).to_be_visible()

    click_head(page, 2, 3)
    expect(map_title(page)).to_have_text("layer 2, head 3")
    page.wait_for_url("**head=3*")
    settle(page)
    causal = row_of(minilm, NURSE, View(mask="causal", layer=2, head=3), SHE)
    page.mouse.move(5, 5)
    assert strongest(page)[0] == f"{causal[0][0]} {causal[0][1]:.1%}".replace("%", " %")
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url

    elsewhere = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    elsewhere.goto(link)
    expect_view(elsewhere)
    elsewhere.reload()
    expect_view(elsewhere)
    elsewhere.context.close()
    page.reload()
    expect_view(page)

    page.get_by_role("link", name="Masks").click()
    page.get_by_text("Who may see whom").wait_for()
    settle(page)
    expect(page.get_by_label("Sentence")).to_have_value(NURSE)
    expect(page.get_by_label("Layer", exact=True)).to_have_value("2")
    expect(page.get_by_label("Head", exact=True)).to_have_value("3")
    page.get_by_role("link", name="Explore").click()
    expect_view(page)
    assert hosts == {"127.0.0.1"}


def test_hovering_shades_the_words_and_sends_nothing(page: Page, traffic: Traffic, app_server: Server):
    """The weights are already there: not one frame goes over the websocket."""
    arrive(page, f"{app_server.url}/?model=minilm")
    page.mouse.move(5, 5)
    before, sent = shading(page), len(traffic.sent)
    assert sent > 0
    seen = []
    for word in ("discount", "customer", "gave"):
        chip(page, word).hover()
        seen.append(shading(page))
    assert all(one != other for one, other in pairwise([before, *seen]))
    page.mouse.move(5, 5)
    page.wait_for_timeout(200)
    assert shading(page) == before
    assert len(traffic.sent) == sent


def test_the_map_reads_she_customer_29_percent_on_hover(page: Page, app_server: Server):
    """Query, arrow, key, per cent."""
    arrive(page, f"{app_server.url}/?model=minilm")
    plot = page.locator(".js-plotly-plot").first
    place = plot.evaluate(
        """(plot) => {
          const { xaxis, yaxis, _size } = plot._fullLayout;
          const box = plot.getBoundingClientRect();
          return { x: box.left + xaxis._offset + xaxis.c2p(4), y: box.top + yaxis._offset + yaxis.c2p(8) };
        }"""
    )
    page.mouse.move(place["x"] - 3, place["y"])
    page.mouse.move(place["x"], place["y"])
    label = plot.locator(".hoverlayer .hovertext")
    expect(label).to_have_count(1)
    assert re.sub(r"[\u2066-\u2069]", "", label.text_content() or "").strip() == "she → customer 29.4 %"


def test_a_ranking_button_goes_to_its_head(page: Page, app_server: Server):
    """The map, the frame in the grid and the address follow."""
    arrive(page, f"{app_server.url}/?model=minilm")
    page.get_by_role("button", name=re.compile(r"^L3 H1 · 24\.9\s%$")).click()
    expect(map_title(page)).to_have_text("layer 3, head 1")
    page.wait_for_url("**/?model=minilm&layer=3&head=1")
    expect(page.get_by_test_id("grid")).to_have_attribute("aria-label", re.compile("layer 3, head 1, .* is shown"))


def test_the_grid_is_reached_by_tab_moved_in_by_arrows_and_picked_by_enter(page: Page, app_server: Server):
    """Without a mouse."""
    arrive(page, f"{app_server.url}/?model=minilm")
    page.get_by_label("Sentence").focus()
    active = """() => {
      let node = document.activeElement;
      while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
      return node?.dataset?.testid ?? "";
    }"""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(active) == "grid":
            break
    assert page.evaluate(active) == "grid"
    for key in ("ArrowUp", "ArrowUp", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    expect(map_title(page)).to_have_text("layer 3, head 7")
    page.wait_for_url("**/?model=minilm&layer=3&head=7")


def test_the_csv_holds_the_engines_numbers(page: Page, app_server: Server, minilm: HuggingFaceModel):
    """Twelve words, 144 lines, nine digits."""
    arrive(page, f"{app_server.url}/?model=minilm")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    content = Path(download.value.path()).read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(content)))
    expected = shown(minilm.run(OPENING), View(layer=5, head=8), "encoder")
    assert np.array([float(row["weight"]) for row in rows]) == pytest.approx(expected.weights.ravel(), abs=1e-6)
    assert [readable(row["query"]) for row in rows[::12]] == OPENING.split()
    assert {(row["model"], row["mask"], row["layer"], row["head"]) for row in rows} == {("minilm", "native", "5", "8")}


def test_repeated_words_are_eight_rows_and_eight_columns(page: Page, app_server: Server):
    """Plotly merges equal labels unless it is kept from doing so."""
    arrive(page, f"{app_server.url}/?model=minilm")
    type_in(page, "the cat sat on the mat the end")
    for axis in ("xaxis2", "yaxis2"):
        ticks = page.locator(f".js-plotly-plot .{axis}layer-above text, .js-plotly-plot .{axis[0]}2tick text")
        assert ticks.all_text_contents() == ["the", "cat", "sat", "on", "the", "mat", "the", "end"]
    chip(page, "the", 2).click()
    page.wait_for_url("**word=6*")


def test_512_tokens_are_drawn_on_a_canvas_within_a_megabyte_and_a_half(
    page: Page, traffic: Traffic, app_server: Server
):
    """The whole answer to a new sentence is counted; then a cell can be read and picked."""
    arrive(page, f"{app_server.url}/?model=minilm")
    before = sum(traffic.received)
    type_in(page, " ".join(["at"] * 600))
    expect(page.get_by_text("512 of 512 tokens")).to_be_visible()
    canvas = page.get_by_test_id("heatmap")
    expect(canvas).to_be_visible()
    received = sum(traffic.received) - before
    assert 500_000 < received <= 1_500_000
    assert page.locator(".js-plotly-plot").count() == 0
    canvas.hover(position={"x": 100, "y": 100})
    expect(page.get_by_test_id("heatmap-tip")).to_have_text(re.compile(r"^at → at (<\s*)?[\d.]+\s%$"))
    canvas.click(position={"x": 100, "y": 100})
    page.wait_for_url("**word=*")
    settle(page)
    assert page.get_by_test_id("stException").count() == 0


def test_nothing_leaves_the_machine_neither_from_the_browser_nor_from_the_server(
    page: Page, hosts: set[str], app_server: Server
):
    """Started from / and used on both pages, the app listens on this machine only and asks nobody for anything."""
    arrive(page, f"{app_server.url}/?model=minilm")
    page.get_by_role("link", name="Masks").click()
    page.get_by_text("Does padding change anything?").wait_for()
    settle(page)
    lines = (app_server.log.parent / WITNESSED).read_text(encoding="utf-8").splitlines()
    asked = {tuple(line.split(" ", 1)) for line in lines}
    assert ("socket.bind", "127.0.0.1") in asked
    assert {host for _, host in asked} <= {"127.0.0.1", "localhost", "::1"}
    assert hosts == {"127.0.0.1"}


def test_thirty_fast_clicks_end_on_the_last_one_and_pick_nothing_else(page: Page, app_server: Server):
    """Each click changes the strongest word, which the page shows in a box; that is no choice of the reader's."""
    arrive(page, f"{app_server.url}/?model=minilm&word=5&to=none")
    for number in range(30):
        click_head(page, number % 6, number * 5 % 12)
    settle(page)
    page.wait_for_timeout(1500)
    expect(map_title(page)).to_have_text("layer 5, head 1", timeout=30_000)
    page.wait_for_url("**head=1*")
    assert "to=" not in page.url.replace("to=none", "")
