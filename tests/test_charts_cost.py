"""The charts and the table of the page Cost: numbers in their places, text literal, nothing drawn by WebGL."""

import math
import re
from typing import Any

import plotly.graph_objects as go
import pytest

from app import palette
from app.charts_cost import Mark, Series, cost_curves
from app.charts_cost_tables import cost_table
from app.charts_curves import line_colour
from app.cost_numbers import Row
from app.cost_units import (
    bytes_both,
    bytes_decimal,
    bytes_text,
    flop_text,
    in_words,
    many_times,
    money_text,
    scaled,
    time_text,
    times,
    tokens_text,
)
from engine.errors import CaptureError, ShapeError

HOSTILE = "<b>x</b> $y$ &amp;"
ESCAPED = "&lt;b&gt;x&lt;/b&gt; &#36;y&#36; &amp;amp;"
LENGTHS = [1, 10, 100, 1000, 1_000_000]
NARROW = "\u202f"


def curve(name: str = "scores", power: int = 2, **settings: Any) -> Series:
    """A cost that grows with a power of the length, from a million on."""
    values = [1e6 * length**power for length in LENGTHS]
    return Series(name, LENGTHS, values, [f"{value:,.0f} FLOP" for value in values], **settings)


def drawn(*series: Series, **settings: Any) -> go.Figure:
    """A picture of operations."""
    return cost_curves(series or [curve()], **{"unit": "FLOP", "title": HOSTILE, "y_title": "operations", **settings})


def ticks(figure: go.Figure, axis: str = "yaxis") -> list[str]:
    """What an axis names, with plain spaces."""
    return [text.replace(NARROW, " ") for text in figure.layout[axis].ticktext]


@pytest.mark.parametrize("dark", [False, True])
def test_no_chart_uses_webgl(dark: bool):
    """A page with many WebGL charts loses some of them; here every line is a path."""
    assert {trace.type for trace in drawn(curve(), curve("one", 1), dark=dark).data} == {"scatter"}


def test_both_axes_are_logarithmic_and_hold_every_value():
    figure = drawn(curve(), curve("projections", 1))
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
    for axis, ends in (("xaxis", LENGTHS), ("yaxis", [1e6, 1e18])):
        low, high = figure.layout[axis].range
        assert low < math.log10(min(ends))
        assert high > math.log10(max(ends))


def test_lengths_and_operations_are_named_with_their_unit():
    figure = drawn()
    assert ticks(figure, "xaxis") == ["1", "10", "100", "1k", "10k", "100k", "1M"]
    assert ticks(figure) == ["1 MFLOP", "1 GFLOP", "1 TFLOP", "1 PFLOP", "1 EFLOP"]
    assert figure.layout.yaxis.title.text == "operations"


def test_bytes_are_named_in_powers_of_1024_and_more_finely_where_few_would_be_seen():
    assert ticks(drawn(unit="B")) == ["1 MiB", "1 GiB", "1 TiB", "1 PiB", "1 EiB"]
    few = Series("peak", [64, 128], [2.0**20, 2.0**26], ["", ""])
    assert ticks(drawn(few, unit="B")) == ["1 MiB", "4 MiB", "16 MiB", "64 MiB"]
    assert ticks(drawn(few, unit="B"), "xaxis") == ["64", "128"]


def test_seconds_are_named_in_tens():
    few = Series("time", [64, 128], [2e-4, 0.2], ["", ""])
    assert ticks(drawn(few, unit="s")) == ["1 ms", "10 ms", "100 ms"]


def test_the_hover_gives_the_exact_number():
    (line,) = drawn().data
    assert line.text[2] == "10,000,000,000 FLOP"
    assert "%{text}" in line.hovertemplate


def test_text_is_literal_in_titles_names_marks_and_hovers():
    series = Series(HOSTILE, [1, 2], [1.0, 2.0], [HOSTILE, HOSTILE])
    figure = drawn(series, marks=[Mark(HOSTILE, 2)])
    (line,), (mark,) = figure.data, figure.layout.annotations
    assert figure.layout.title.text == ESCAPED
    assert (line.name, line.text[0]) == (ESCAPED, ESCAPED)
    assert mark.text == f"{ESCAPED}: 2"


def test_a_length_is_marked_at_its_place_and_the_readers_own_in_the_accent():
    figure = drawn(marks=[Mark("sentence", 12), Mark("n", 4096, main=True)])
    assert {(shape.x0, shape.x1) for shape in figure.layout.shapes} == {(12, 12), (4096, 4096)}
    places = {note.text: note for note in figure.layout.annotations}
    assert places["n: 4,096"].x == pytest.approx(math.log10(4096))
    assert places["n: 4,096"].font.color == line_colour("accent", False)
    assert places["sentence: 12"].font.color == palette.SOFT_INK_LIGHT


def test_names_of_marks_stand_in_rows_of_their_own_and_cross_no_line():
    """A name that ends at its line stands above those to its left, one that begins there above those to its right."""
    marks = [Mark(name, tokens) for name, tokens in (("a", 2), ("b", 20), ("c", 5000), ("d", 6000))]
    figure = drawn(marks=marks)
    heights = {note.text[0]: -note.ay for note in figure.layout.annotations}
    assert len(set(heights.values())) == 4
    assert heights["c"] < heights["d"] < heights["b"] < heights["a"]
    sides = {note.text[0]: note.xanchor for note in figure.layout.annotations}
    assert sides == {"a": "left", "b": "left", "c": "right", "d": "right"}
    assert figure.layout.margin.t > max(heights.values())


def test_a_gap_is_left_where_nothing_is_needed():
    figure = drawn(Series("cache", [1, 2, 3], [None, 4.0, 8.0], ["", "4 B", "8 B"]), unit="B")
    assert figure.data[0].y == (None, 4.0, 8.0)


def test_a_single_length_can_be_drawn():
    assert len(drawn(Series("one", [7], [5.0], ["5"]), unit="s", marks=[Mark("n", 7)]).data) == 1


def test_points_are_points_and_lines_are_lines():
    figure = drawn(curve("predicted"), curve("measured", points=True))
    assert [trace.mode for trace in figure.data] == ["lines", "markers"]


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ShapeError, match="lengths"):
        drawn(Series("x", [1, 2], [1.0], [""]))
    for value in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(CaptureError, match="above 0"):
            drawn(Series("x", [1], [value], [""]))


ROWS = [
    Row("projections", 4.0, 8_000, 16_000, "FLOP", 0.2),
    Row("scores + mixing", 16.0, 32_000, 128_000, "FLOP", 0.8),
    Row("in all", None, 40_000, 144_000, "FLOP", 1.0, is_sum=True),
    Row("cache", 512.0, 1024, 2048, "B"),
    Row("nothing", None, 0, 0, "B"),
]


def test_the_table_lists_twice_the_text_beside_the_text():
    """Attention times four and set apart, the rest times two."""
    html = cost_table(ROWS, 64)
    lines = re.findall(r"<tr[^>]*>(?:<td.*?)</tr>", html)
    factors = [re.findall(r"<td[^>]*>([^<]*)</td>", line)[-1] for line in lines]
    assert factors == ["× 2.00", "× 4.00", "× 3.60", "× 2.00", "–"]
    assert [line.startswith('<tr class="square">') for line in lines] == [False, True, False, False, False]
    assert "model, 64 tokens" in html
    assert "<th>128 tokens</th>" in html


def test_a_cell_of_the_table_holds_the_exact_number_and_its_unit():
    html = cost_table(ROWS, 64)
    assert 'title="32,000 FLOP">32' + NARROW + "kFLOP<" in html
    assert f'title="1,024 B, 1{NARROW}KiB (1.02{NARROW}kB)">1{NARROW}KiB<' in html


def test_a_dark_table_has_other_colours_and_the_same_words():
    light, dark = (cost_table(ROWS, 64, dark=dark) for dark in (False, True))
    assert light != dark
    assert re.sub(r"--\w+:#\w+;?", "", light) == re.sub(r"--\w+:#\w+;?", "", dark)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (flop_text(1_630_449_696_768), "1.63 TFLOP"),
        (flop_text(999), "999 FLOP"),
        (flop_text(999_600), "1 MFLOP"),
        (flop_text(5e16), "50 PFLOP"),
        (scaled(0, "B"), "0 B"),
        (bytes_decimal(603_979_776), "604 MB"),
        (bytes_both(603_979_776), "576 MiB (604 MB)"),
        (bytes_both(2**30), "1 GiB (1.07 GB)"),
        (bytes_both(7), "7 B"),
        (in_words(2_970_000_000), "2.97 billion"),
        (in_words(10_000), "10,000"),
        (in_words(5.6e20), "560 quintillion"),
        (in_words(2e21), "2 sextillion"),
        (flop_text(3.2e20), "320 EFLOP"),
        (flop_text(7e21), "7 ZFLOP"),
        (bytes_text(3 * 2**50), "3 PiB"),
        (bytes_text(2**61), "2 EiB"),
        (bytes_text(0), "0 B"),
        (bytes_text(1536), "1.5 KiB"),
        (many_times(1.001), "as much"),
        (many_times(1.05), "1.05 times as much"),
        (many_times(6.8e6), "6.8 million times as much"),
        (money_text(0.0004), "less than 0.01"),
        (money_text(0), "0.00"),
        (money_text(1234567.891), "1,234,567.89"),
        (time_text(0.0032), "3.2 ms"),
        (time_text(90), "90 s"),
        (time_text(7200), "2 hours"),
        (time_text(5e-10), "0.5 ns"),
        (time_text(1e9), "31.7 years"),
        (times(2.9411), "2.94"),
        (times(4), "4.00"),
        (times(1.0003), "1.0003"),
        (times(1), "1.00"),
        (times(12345.6), "12,346"),
        (tokens_text(1), "1 token"),
        (tokens_text(4096), "4,096 tokens"),
    ],
)
def test_numbers_are_written_with_their_unit(written: str, expected: str):
    assert written.replace(NARROW, " ") == expected
