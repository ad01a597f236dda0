"""The Python side of the browser pieces: what is sent, how small it is, and which picks are believed."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from playwright.sync_api import Page, expect

from app.components import Chip, grid, heatmap_canvas, ribbon
from app.components import grid as grid_function
from app.components import mount as mount_module
from app.components.mount import valid_pick
from app.components.palette import ACCENT_DARK, ACCENT_LIGHT, SCALE_DARK, SCALE_LIGHT, scale, themes
from app.components.payload import (
    MAX_THUMBNAIL_BYTES,
    pooled_thumbnails,
    quantised,
    thumbnail_frame,
    visible_frame,
    weight_frame,
)
from app.phrases import percent
from engine.errors import ShapeError
from tests.conftest import settle, streamlit_server

HOSTILE = ["<img src=x onerror=alert(1)>", "a<b<c", "**bold** $x^2$ `code`", "שלום", "में", "\t"]
FOLDER = Path(mount_module.__file__).parent


def chips(texts: list[str]) -> list[Chip]:
    return [Chip(text=text, hover=f"raw {text}", special=False, padding=False) for text in texts]


def attention(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    scores = np.exp(np.random.default_rng(seed).normal(size=(rows, columns)) * 3)
    return (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)


def arrow_bytes(frame: pd.DataFrame) -> int:
    sink = io.BytesIO()
    table = pa.Table.from_pandas(frame)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.tell()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Catch what the pieces would send, in place of mounting them in a browser."""
    calls: list[dict[str, Any]] = []

    def caught(_renderer: Any, **arguments: Any) -> None:
        calls.append(arguments)

    for name in ("ribbon", "grid", "heatmap"):
        module = __import__(f"app.components.{name}", fromlist=["mount"])
        monkeypatch.setattr(module, "mount", caught)
    return calls


def test_sixteen_bits_keep_every_weight_within_eight_millionths():
    """Rounding to steps of 1/65535 errs by half a step at most: 7.63e-6, and float32 adds next to nothing."""
    weights = np.concatenate([np.linspace(0, 1, 200_001), np.random.default_rng(0).random(100_000)])
    weights = weights.clip(1.6e-5, 1 - 1.6e-5)
    restored = quantised(weights.astype(np.float32)).astype(np.float64) / 65535
    assert np.abs(restored - weights).max() <= 8e-6


def test_no_weight_is_sent_as_nothing_or_as_all_that_is_not():
    """What is below 1 would else be "100 %" beside a "0.3 %"."""
    assert quantised(np.array([1e-9, 1e-6, 1 - 1e-6, np.float32(1 - 6e-8)], np.float32)).tolist() == [
        1,
        1,
        65534,
        65534,
    ]


def test_zero_and_one_are_kept_exactly_and_nonsense_is_clipped():
    values = np.array([0.0, 1.0, -0.25, 1.5, np.nan, np.inf, -np.inf], dtype=np.float32)
    assert quantised(values).tolist() == [0, 65535, 0, 65535, 0, 65535, 0]


def test_a_map_of_512_tokens_with_its_mask_stays_under_600_kilobytes():
    frame = weight_frame(attention(512, 512))
    mask = visible_frame(np.tri(512, dtype=bool))
    assert frame.shape == (512 * 512, 1)
    assert str(frame.dtypes.iloc[0]) == "uint16"
    assert arrow_bytes(frame) + arrow_bytes(mask) <= 600_000


def test_visibility_travels_as_one_bit_a_cell_first_cell_highest():
    visible = np.array([[True, False, False], [True, True, False], [True, True, True]])
    frame = visible_frame(visible)
    assert frame["bits"].tolist() == [0b10011011, 0b10000000]


def test_thumbnails_come_back_within_half_a_percent_of_their_largest():
    thumbs = np.stack([attention(15, 15, seed) for seed in range(6)]).reshape(2, 3, 15, 15)
    frame, largest = thumbnail_frame(thumbs)
    bytes_ = frame["byte"].to_numpy().reshape(thumbs.shape).astype(np.float64)
    restored = np.reshape(largest, (2, 3, 1, 1)) * (bytes_ / 255) ** 2
    relative = np.abs(restored - thumbs) / np.reshape(largest, (2, 3, 1, 1))
    assert len(frame) == thumbs.size
    assert relative.max() < 0.005


def test_an_empty_thumbnail_is_all_zero_and_not_divided_by_nothing():
    frame, largest = thumbnail_frame(np.zeros((1, 2, 4, 4), dtype=np.float32))
    assert largest == [0.0, 0.0]
    assert frame["byte"].to_numpy().max() == 0


def test_large_thumbnails_are_max_pooled_so_that_a_lone_bright_cell_stays():
    thumbs = np.zeros((12, 12, 129, 129), dtype=np.float32)
    thumbs[3, 4, 128, 128] = thumbs[5, 6, 77, 30] = 0.9
    pooled = pooled_thumbnails(thumbs)
    assert pooled.size <= MAX_THUMBNAIL_BYTES
    assert pooled.shape[2:] == (33, 33)
    assert pooled[3, 4, 32, 32] == pooled[5, 6, 19, 7] == np.float32(0.9)
    assert np.count_nonzero(pooled) == 2


def test_small_thumbnails_are_sent_as_they_are():
    thumbs = attention(15, 15)[None, None]
    assert pooled_thumbnails(thumbs) is thumbs


def test_a_users_text_is_sent_letter_for_letter(sent: list[dict[str, Any]]):
    """The browser puts it into the page with textContent only, as the next test sees to."""
    ribbon(chips(HOSTILE), None, attention(6, 6), key="words")
    heatmap_canvas(attention(6, 6), HOSTILE, HOSTILE, key="map")
    assert [chip["text"] for chip in sent[0]["data"]["queries"]] == HOSTILE
    assert [chip["hover"] for chip in sent[0]["data"]["queries"]] == [f"raw {text}" for text in HOSTILE]
    assert sent[1]["data"]["queries"] == sent[1]["data"]["keys"] == HOSTILE


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.js")), ids=lambda path: path.name)
def test_no_script_makes_markup_out_of_text_or_reaches_out(script: Path):
    text = script.read_text(encoding="utf-8")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "http"):
        assert word not in text


def test_what_a_click_changes_is_kept_out_of_the_heavy_payload(sent: list[dict[str, Any]]):
    """Two calls that differ in pin, direction, scale, head or outline send equal data."""
    weights, words = attention(6, 6), [str(number) for number in range(6)]
    thumbs = np.stack([attention(6, 6)] * 4).reshape(2, 2, 6, 6)
    ribbon(chips(words), None, weights, key="words", pinned=1)
    ribbon(chips(words), None, weights, key="words", pinned=2, direction="by", scale="unit", threshold=0.1)
    grid(thumbs, key="heads", layer=0, head=0)
    grid(thumbs, key="heads", layer=1, head=1, shade=np.eye(2), colour="shade", log=True)
    heatmap_canvas(weights, words, words, key="map")
    heatmap_canvas(weights, words, words, key="map", row=1, column=2, log=True, scale="row")
    for first, second in zip(sent[::2], sent[1::2], strict=True):
        assert first["data"].keys() == second["data"].keys()
        for name, value in first["data"].items():
            other = second["data"][name]
            assert value.equals(other) if isinstance(value, pd.DataFrame) else value == other
        assert first["view"] != second["view"]


def test_cross_attention_sends_two_lines_and_limits_picks_by_direction(sent: list[dict[str, Any]]):
    ribbon(chips(["a", "b"]), chips(["x", "y", "z"]), attention(2, 3), key="words")
    ribbon(chips(["a", "b"]), chips(["x", "y", "z"]), attention(2, 3), key="words", direction="by")
    assert sent[0]["limits"] == ({"pin": 2}, {"partner": 3})
    assert sent[1]["limits"] == ({"pin": 3}, {"partner": 2})


def test_self_attention_sends_one_line(sent: list[dict[str, Any]]):
    ribbon(chips(["a", "b"]), None, attention(2, 2), key="words")
    assert sent[0]["data"]["keys"] is None
    assert "visible" not in sent[0]["data"]


def test_numbers_per_head_become_plain_json_with_gaps_for_nan(sent: list[dict[str, Any]]):
    shade = np.array([[0.25, np.nan], [np.inf, 1 / 3]])
    grid(np.zeros((2, 2, 3, 3)), key="heads", layer=0, head=0, shade=shade, colour="shade")
    assert sent[0]["view"]["shade"] == [0.25, None, None, 0.333333333]


def test_colouring_by_a_number_that_is_not_given_falls_back_to_weights(sent: list[dict[str, Any]]):
    grid(np.zeros((2, 2, 3, 3)), key="heads", layer=0, head=0, colour="shade")
    assert sent[0]["view"]["colour"] == "weights"


def test_a_mean_has_no_framed_head_but_a_note(sent: list[dict[str, Any]]):
    grid(np.zeros((2, 2, 3, 3)), key="heads", layer=None, head=None, note="mean of all heads")
    view = sent[0]["view"]
    assert (view["layer"], view["head"], view["note"]) == (None, None, "mean of all heads")


@pytest.mark.parametrize(
    "draw",
    [
        lambda: ribbon(chips(["a", "b"]), None, attention(2, 3), key="words"),
        lambda: ribbon(chips(["a"]), None, attention(1, 1), visible=np.ones((2, 2), bool), key="words"),
        lambda: heatmap_canvas(attention(2, 2), ["a"], ["b", "c"], key="map"),
        lambda: grid_function(np.zeros((2, 2, 3)), key="heads", layer=0, head=0),
        lambda: grid_function(np.zeros((0, 2, 3, 3)), key="heads", layer=0, head=0),
        lambda: grid_function(np.zeros((2, 2, 3, 3)), key="heads", layer=0, head=0, shade=np.zeros((2, 3))),
    ],
)
def test_shapes_that_do_not_fit_are_refused_in_words(draw: Callable[[], object]):
    with pytest.raises(ShapeError, match=r"\d"):
        draw()


def test_a_map_too_large_to_send_says_what_to_do():
    side = 2049
    with pytest.raises(ShapeError, match="choose a range of rows"):
        heatmap_canvas(np.zeros((side, side), np.float32), [""] * side, [""] * side, key="map")


LIMITS = ({"pin": 3}, {"partner": 5}, {"row": 2, "column": 2})


@pytest.mark.parametrize("pick", [{"pin": 0}, {"pin": 2}, {"partner": 4}, {"row": 1, "column": 0}])
def test_a_pick_within_its_limits_is_believed(pick: dict[str, int]):
    assert valid_pick(pick, LIMITS) == pick


@pytest.mark.parametrize(
    "pick",
    [
        None, "pin", 3, [], {}, {"pin": 3}, {"pin": -1}, {"pin": True}, {"pin": "1"}, {"pin": 1.0},
        {"pin": None}, {"pin": 1, "partner": 1}, {"row": 1}, {"row": 1, "column": 2}, {"word": 1},
    ],
)  # fmt: skip
def test_any_other_pick_is_ignored(pick: object):
    assert valid_pick(pick, LIMITS) is None


def luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_both_scales_run_one_way_in_luminance_from_the_page():
    light = [luminance(colour) for _, colour in SCALE_LIGHT]
    dark = [luminance(colour) for _, colour in SCALE_DARK]
    assert light == sorted(light, reverse=True)
    assert light[0] > 0.9
    assert light[-1] < 0.05
    assert dark == sorted(dark)
    assert dark[0] < 0.02
    assert dark[-1] > 0.85


def test_both_scales_have_even_steps_of_lightness():
    """L* is the lightness the eye sees; no step is more than half as large again as the mean."""
    for stops in (SCALE_LIGHT, SCALE_DARK):
        seen = [luminance(colour) for _, colour in stops]
        lightness = [116 * np.cbrt(value) - 16 for value in seen if value > 0.0089]
        steps = np.abs(np.diff(lightness))
        assert steps.max() <= 1.5 * steps.mean()
        assert steps.min() >= 0.6 * steps.mean()


def test_the_accent_reads_as_text_on_both_pages():
    assert (1.0 + 0.05) / (luminance(ACCENT_LIGHT) + 0.05) >= 4.5
    assert (luminance(ACCENT_DARK) + 0.05) / (luminance("#0e1117") + 0.05) >= 4.5


def test_plotly_and_the_browser_get_the_same_stops():
    assert scale(dark=False)[0] == [0.0, SCALE_LIGHT[0][1]]
    assert themes()["dark"]["stops"] == scale(dark=True)


SHARED = f"const PALETTE = {{}};\n{(FOLDER / 'shared.js').read_text(encoding='utf-8')}"
PAGE = """
import numpy as np
import streamlit as st
from app.components import Chip, grid, ribbon

def chips(words):
    return [Chip(text=word, hover=f"raw {word}", special=False, padding=False) for word in words]

words = st.text_input("Words", "one two three " + "m" * 400).split()
weights = np.arange(1, len(words) ** 2 + 1, dtype=np.float32).reshape(len(words), -1) / 3000
pin = st.session_state.get("pin", 0)
ribbon(chips(words), None, weights, key="ribbon", pinned=pin, on_pick=lambda pick: st.session_state.update(pick))
with st.container(width=int(st.query_params.get("width", 700))):
    chosen = st.session_state.get("chosen", {"layer": None, "head": None})
    grid(
        np.full((2, 3, 4, 4), 0.25), key="grid", **chosen, note="mean of all" if chosen["head"] is None else "",
        shade=np.full((2, 3), 0.294), shade_title="from " + "w" * 80 + " to it", ranking=False,
        on_pick=lambda pick: st.session_state.update(chosen=pick),
    )
"""


def computed(page: Page, expression: str) -> Any:
    """What the pieces' shared script makes of an expression."""
    return page.evaluate(f"() => {{ {SHARED}\nreturn {expression}; }}")


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A page with a ribbon of rising weights and a grid that shows a mean; its address."""
    folder = tmp_path_factory.mktemp("pieces")
    (folder / "page.py").write_text(PAGE, encoding="utf-8")
    with streamlit_server(folder / "page.py", folder, "--server.address", "127.0.0.1") as server:
        yield server.url


@pytest.mark.browser
def test_percentages_in_the_browser_are_those_of_python(page: Page):
    """The space is narrow, and no line ends at it."""
    shares = [0, 1e-9, 0.0002, 0.00049, 0.0005, 0.004, 0.0094, 0.0096, 0.294, 0.9994, 0.9996, 0.9999999, 1]
    assert computed(page, f"{shares}.map((share) => percent(share))") == [percent(share) for share in shares]
    assert computed(page, "[percent(1e-4, 2), percent(0.99999, 2)]") == ["0.01\u202f%", ">99.99\u202f%"]


@pytest.mark.browser
def test_a_long_word_is_cut_between_letters_as_they_are_seen(page: Page):
    """Accents stay on their letters."""
    assert computed(page, "brief('e\u0301'.repeat(24))") == "e\u0301" * 24
    assert computed(page, "brief('e\u0301'.repeat(25))") == "e\u0301" * 23 + "…"


@pytest.mark.browser
def test_the_note_on_the_pointed_word_follows_the_pin_and_goes_with_its_sentence(page: Page, pieces: str):
    """Four words: weight (row, column) is (4 row + column + 1) / 3000."""
    page.goto(pieces)
    words, detail = page.get_by_test_id("chip"), page.get_by_test_id("detail")
    words.nth(2).hover()
    expect(detail).to_contain_text("one → three 0.1")
    words.nth(2).click()
    expect(detail).to_contain_text("three → three 0.4")
    settle(page)
    expect(detail).to_contain_text("three → three 0.4")
    page.get_by_label("Words").focus()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("four five six seven eight")
    page.keyboard.press("Enter")
    expect(words).to_have_count(5)
    settle(page)
    expect(detail).not_to_contain_text("three")


@pytest.mark.browser
def test_the_strongest_have_their_number_however_small_or_long_the_word(page: Page, pieces: str):
    """Also where the word has 400 letters."""
    page.goto(pieces)
    item = page.get_by_test_id("strongest-item").first
    expect(item).to_have_text(f"{'m' * 23}… 0.1\u202f%")
    inside, share = item.bounding_box(), item.locator(".share").bounding_box()
    assert inside is not None
    assert share is not None
    assert share["x"] + share["width"] <= inside["x"] + inside["width"]
    numbers = page.get_by_test_id("percent").all_inner_texts()
    assert numbers == [f"{number}\u202f%" for number in ("<0.1", "0.1", "0.1", "0.1")]


@pytest.mark.browser
@pytest.mark.parametrize("width", [300, 700])
def test_the_grid_says_a_means_note_then_the_number_before_the_words(page: Page, pieces: str, width: int):
    """The cursor begins at the first head; only the words are cut."""
    page.goto(f"{pieces}/?width={width}")
    heads, caption = page.get_by_test_id("grid"), page.get_by_test_id("grid-caption")
    expect(caption).to_have_text("mean of all", timeout=20_000)
    expect(page.get_by_test_id("grid-selected")).to_be_hidden()
    legend = "each map from 0 to its own largest weight"
    expect(page.get_by_test_id("grid-legend")).to_have_text(legend, use_inner_text=True)
    heads.focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    settle(page)
    expect(page.get_by_test_id("grid-selected")).to_be_visible()
    expect(caption).to_contain_text("layer 1, head 1: 29.4\u202f% from www")
    # Both at once: the words are drawn anew once more, when the app has answered.
    number, frame = caption.evaluate(
        "caption => [caption.querySelector('.number'), caption].map(one => one.getBoundingClientRect().toJSON())"
    )
    assert number["right"] <= frame["right"]
    assert number["bottom"] <= frame["bottom"]
