"""The Python side of the browser pieces: what is sent, how small it is, and which picks are believed."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

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
from engine.errors import ShapeError

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
    restored = quantised(weights.astype(np.float32)).astype(np.float64) / 65535
    assert np.abs(restored - weights).max() <= 8e-6


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
    assert sent[0]["view"]["shade"] == [0.25, None, None, 0.333333]


def test_colouring_by_a_number_that_is_not_given_falls_back_to_weights(sent: list[dict[str, Any]]):
    grid(np.zeros((2, 2, 3, 3)), key="heads", layer=0, head=0, colour="shade")
    assert sent[0]["view"]["colour"] == "weights"


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
