"""The pictures of the page Build, without a browser: the diagram, the table, the bars, the heads that share."""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from app.charts_build import Labels, block_diagram, parts_of, steps_table
from app.charts_build_parts import cached_row, parts_bars, sharing
from engine import PRESETS, Config, Decoder, EncoderDecoder, ShapeError, build, count_parameters
from engine.shapes import steps

SMALL = Config(width=16, layers=3, heads=4, feed_forward=32, vocabulary=50, head="own", norm="rms")
LABELS = Labels("NORM", "ATTENTION", "FEED", "POSITIONS", "MASK", layers=3, begins="5 words")


def drawn(config: Config = SMALL, make: type = Decoder, labels: Labels = LABELS) -> str:
    """The diagram for five words."""
    return block_diagram(steps(make, config, 5), labels)


def order_of(html: str) -> list[str]:
    """Boxes and sums from top to bottom."""
    names = re.findall(r"<span>(NORM|ATTENTION|Cross-attention|FEED)</span>|(class=\"plus\")", html)
    return [name or "+" for name, _ in names]


def lines(figure: go.Figure) -> list[tuple[float, float]]:
    """The lines of a figure, from above to below."""
    pairs = []
    for trace in figure.data:
        if trace.mode == "lines":
            pairs += [(a, b) for a, b, _ in zip(trace.x[::3], trace.x[1::3], trace.x[2::3], strict=True)]
    return sorted(pairs)


def test_pre_norm_norms_what_goes_in_and_post_norm_what_comes_out():
    assert order_of(drawn()) == ["NORM", "ATTENTION", "+", "NORM", "FEED", "+"]
    post = replace(SMALL, norm_place="post", final_norm=False)
    assert order_of(drawn(post)) == ["ATTENTION", "+", "NORM", "FEED", "+", "NORM"]


@pytest.mark.parametrize("place", ["pre", "post"])
def test_a_decoder_beside_an_encoder_has_three_detours(place: Any):
    config = replace(SMALL, norm_place=place)
    names = [name for name in order_of(drawn(config, EncoderDecoder)) if name not in ("NORM", "+")]
    assert names == ["ATTENTION", "Cross-attention", "FEED"]
    parts = parts_of(steps(EncoderDecoder, config, 5))
    assert [part.norm_first for part in parts] == [place == "pre"] * 3
    assert [part.crosses for part in parts] == [False, True, False]


@pytest.mark.parametrize("positions", ["learned", "rotary", "alibi", "relative", "none"])
def test_the_numbers_in_the_boxes_are_all_the_parameters(positions: Any):
    """Before the layers, L times a layer, after the layers; a bias that all layers share stands inside the first."""
    config = replace(SMALL, positions=positions)
    html = drawn(config)
    counts = [int(text.replace(",", "")) for text in re.findall(r'class="count">([\d,]+)', html)]
    layer = next(place for place, count in enumerate(counts) if f"{count:,} each" in html)
    inside = counts[layer + 1 : layer + 5]
    assert sum(inside) == counts[layer]
    shared = re.search(r"POSITIONS \(([\d,]+) numbers", html)
    total = sum(counts) + 2 * counts[layer] - sum(inside) + (int(shared[1]) if shared else 0)
    assert total == sum(count_parameters(build(Decoder, config, device="meta")).values())


@pytest.mark.parametrize(
    ("positions", "text"),
    [
        ("learned", "<span>+ POSITIONS</span>"),
        ("sinusoidal", "<span>+ POSITIONS</span>"),
        ("rotary", "queries and keys turned: rotary positions"),
        ("alibi", 'plus POSITIONS</div><div class="line">mask'),
        ("relative", "plus POSITIONS (128 numbers, shared by all layers)<"),
    ],
)
def test_positions_are_drawn_where_they_enter(positions: Any, text: str):
    html = drawn(replace(SMALL, positions=positions))
    assert text in html
    assert text not in drawn(replace(SMALL, positions="none"))


def test_every_arrow_carries_the_shape_of_what_passes():
    """T, then T × C throughout, and T × V at the end."""
    shapes = re.findall(r'class="shape">([^<]+)<', drawn())
    assert shapes[0] == "5"
    assert shapes[-1] == "5 × 50"
    assert set(shapes[1:-1]) == {"5 × 16"}


def test_a_gate_is_drawn_as_a_second_copy():
    assert "twice 5 × 32: one is the other’s gate" in drawn(replace(SMALL, activation="swiglu"))
    assert "twice" not in drawn()


def test_labels_are_never_markup():
    html = drawn(labels=replace(LABELS, norm="<b>n</b>", attention="<i>", begins="<s>", aside="a & b", ends="<u>"))
    for tag in ("<b>", "<i>", "<s>", "<u>"):
        assert tag not in html
    assert "a &amp; b" in html


def test_a_dark_page_has_other_colours_and_the_same_words():
    light, dark = (block_diagram(steps(Decoder, SMALL, 5), LABELS, dark=dark) for dark in (False, True))
    assert light != dark
    assert re.sub(r"--\w+:#\w+;?", "", light) == re.sub(r"--\w+:#\w+;?", "", dark)


def test_the_table_lists_every_step_under_its_place():
    made = steps(Decoder, SMALL, 5)
    html = steps_table(made, 3)
    assert html.count("<td>") == 4 * len(made)
    assert html.count('class="fleeting"') == 2
    assert "In each of the 3 layers" in html
    assert "In the only layer" in steps_table(made, 1)
    assert "<td>Scores q · k / √D</td><td>H × T × S</td><td>4 × 5 × 5</td><td></td>" in html


def test_the_table_says_nothing_of_wide_and_narrow():
    """The inside of a feed-forward layer may be narrower than the width, 8 here against 16."""
    html = steps_table(steps(Decoder, replace(SMALL, feed_forward=8, activation="swiglu"), 5), 3)
    assert "idened" not in html
    assert "arrowed" not in html
    assert "<td>Feed-forward, inside</td><td>T × F</td><td>5 × 8</td>" in html
    assert "<td>Feed-forward, its gate</td>" in html
    assert "<td>Feed-forward, back to the width</td><td>T × C</td><td>5 × 16</td>" in html


def test_a_part_without_steps_has_no_heading():
    """After post-norm nothing comes behind the layers of an encoder."""
    config = replace(SMALL, norm_place="post", final_norm=False, head="none")
    assert "After the layers" not in steps_table(steps(Decoder, config, 5), 3)
    assert "After the layers" in steps_table(steps(Decoder, SMALL, 5), 3)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("gpt2", '<div class="line">scores q · k / √D: 12 × 5 × 5</div>'),
        ("t5-small", 'scores q · k, not divided by √D: 8 × 5 × 5</div><div class="line">plus POSITIONS (256 numbers'),
    ],
)
def test_the_diagram_divides_where_the_model_does(name: str, line: str):
    known = PRESETS[name]
    assert line in block_diagram(steps(known.make, replace(known.config, layers=1), 5), LABELS)


def test_where_an_encoder_goes_stands_at_its_end():
    html = block_diagram(steps(EncoderDecoder, SMALL, 5, reading=True), replace(LABELS, ends="ELSEWHERE"))
    assert "ELSEWHERE" in html.split('class="arrow"')[-1]
    assert "Cross-attention" not in html


def test_bars_are_as_long_as_their_numbers():
    figure = parts_bars({"attention": 3000, "<b>norms</b>": 1000})
    assert list(figure.data[0].x) == [3000, 1000]
    assert [note.text for note in figure.layout.annotations] == [
        "attention: 3,000 · 75.0 %",
        "&lt;b&gt;norms&lt;/b&gt;: 1,000 · 25.0 %",
    ]


def test_a_bar_of_next_to_nothing_is_not_said_to_be_nothing():
    assert parts_bars({"a": 1_000_000, "b": 1}).layout.annotations[1].text == "b: 1 · <0.1 %"


def test_heads_of_a_group_meet_in_one_key_value_head():
    assert lines(sharing(4, 2)) == [(0, 0.5), (1, 0.5), (2, 2.5), (3, 2.5)]
    assert lines(sharing(4, 4)) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert {below for _, below in lines(sharing(4, 1))} == {1.5}


@pytest.mark.parametrize(("heads", "groups"), [(1, 1), (8, 2), (32, 8), (64, 8), (64, 64), (128, 1)])
def test_any_number_of_heads_is_drawn_apart(heads: int, groups: int):
    """Every head one line, neighbours in other colours, and marks that leave each other room."""
    figure = sharing(heads, groups)
    assert len(lines(figure)) == heads
    above, below = figure.data[-2:]
    assert (len(above.x), len(below.x)) == (heads, groups)
    assert above.marker.size <= max(4, 480 / heads)
    colours = below.marker.line.color
    assert all(one != other for one, other in pairwise(colours))


@pytest.mark.parametrize(("heads", "groups"), [(4, 3), (4, 0), (0, 1)])
def test_heads_that_cannot_be_shared_evenly_are_refused(heads: int, groups: int):
    with pytest.raises(ShapeError, match="evenly"):
        sharing(heads, groups)


def test_a_cached_row_labels_its_words_literally():
    figure = cached_row(np.full((1, 3), 1 / 3), "x", ["<b>", "$a$", "c"], np.ones((1, 3), dtype=bool), title="t")
    assert list(figure.layout.xaxis2.ticktext) == ["&lt;b&gt;", "&#36;a&#36;", "c"]
    assert {trace.zmax for trace in figure.data if getattr(trace, "hoverongaps", None) is False} == {100}


def test_every_known_model_can_be_drawn():
    for known in PRESETS.values():
        config = replace(known.config, layers=1, decoder_layers=None)
        assert 'class="plus"' in block_diagram(steps(known.make, config, 5), LABELS)
