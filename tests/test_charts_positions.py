"""The charts of the page Positions: every number is in its place, text is literal, and nothing is drawn by WebGL."""

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from app import charts, palette
from app.charts_curves import Level, Line, bars, curves, line_colour
from app.charts_rotary import PARTS, Plane, Score, turning
from app.charts_tables import bucket_map, similarity_map, table_map
from engine.errors import CaptureError, ShapeError

HOSTILE = "<b>x</b> $y$ &amp;"
ESCAPED = "&lt;b&gt;x&lt;/b&gt; &#36;y&#36; &amp;amp;"
X = np.arange(5)


def curve(**settings: Any) -> go.Figure:
    """Two curves over five points."""
    lines = [Line("before", X * 1.0 + 1, "before"), Line(HOSTILE, X * 2.0 + 1)]
    return curves(X, lines, **{"x_title": "position (tokens)", "y_title": "value", "title": HOSTILE, **settings})


def still(planes: int = 3) -> dict[str, Any]:
    """A moving picture of two steps, in which the query turns by a right angle and the key stands still."""
    turns = np.linspace(0, math.pi / 2, PARTS + 1)
    plane = Plane(f"pair {HOSTILE}", turns, np.zeros(PARTS + 1), turns, ["none", "a right angle"])
    score = Score(np.arange(4.0), np.arange(4.0), np.linspace(0, 1, PARTS + 1), ["here", "there"])
    figure = turning(
        [plane] * planes, score, query=HOSTILE, key="k", query_places=[3, 4], key_places=[3, 3], steps=["0", "1"],
        slider="moved by",
    )  # fmt: skip
    made: dict[str, Any] = figure.to_plotly_json()
    return made


@pytest.mark.parametrize("dark", [False, True])
def test_no_chart_uses_webgl(dark: bool):
    """A page with many WebGL charts loses some of them; here every line is a path."""
    table = np.zeros((3, 4))
    figures = (
        curve(dark=dark),
        bars(["a", "b"], np.array([1.0, 2.0]), x_title="head", y_title="slope", dark=dark),
        table_map(table, ["w"], title="t", dark=dark),
        similarity_map(np.eye(3), [], title="t", dark=dark),
        bucket_map(np.zeros((2, 2), dtype=int), ["a", "b"], ["a", "b"], count=32, title="t", dark=dark),
    )
    kinds = {trace.type for figure in figures for trace in figure.data}
    assert kinds == {"scatter", "bar", "heatmap"}


def test_twelve_curves_of_1200_points_are_all_drawn():
    """E8: twelve figures beside each other, every point of each, none of them on a canvas that a browser gives up."""
    x = np.arange(1200)
    for number in range(12):
        figure = curves(x, [Line("wave", np.sin(x / (number + 1)))], x_title="position (tokens)", y_title="value")
        (trace,) = figure.data
        assert (trace.type, len(trace.x), len(trace.y)) == ("scatter", 1200, 1200)
    assert {trace["type"] for trace in still()["data"]} == {"scatter"}


def test_curves_name_their_axes_and_escape_their_text():
    """Titles, legend and hover show what was typed."""
    figure = curve()
    assert figure.layout.title.text == ESCAPED
    assert [trace.name for trace in figure.data] == ["before", ESCAPED]
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("position (tokens)", "value")
    assert figure.layout.showlegend


def test_one_curve_needs_no_legend():
    """Its title says what it is."""
    figure = curves(X, [Line("alone", X)], x_title="x", y_title="y")
    assert not figure.layout.showlegend


def test_what_matters_is_drawn_in_the_accent_colour():
    """And what it is compared with in grey."""
    assert line_colour("accent", True) == palette.ACCENT_DARK
    assert [trace.line.color for trace in curve().data] == [palette.BEFORE_LIGHT, palette.ACCENT_LIGHT]


def test_a_level_is_marked_on_a_logarithmic_axis():
    """Its name stands where the line is: annotations count in powers of ten."""
    figure = curve(log=True, levels=[Level("limit", 100)])
    assert figure.data[-1].y == (100, 100)
    assert figure.layout.annotations[0].y == pytest.approx(2)


def test_a_curve_that_does_not_fit_is_refused():
    """Too few points, nothing to take a logarithm of, and no end."""
    with pytest.raises(ShapeError, match="“short”"):
        curves(X, [Line("short", X[:3])], x_title="x", y_title="y")
    for values in (X, X + np.inf):
        with pytest.raises(CaptureError, match="“wild”"):
            curves(X, [Line("wild", values * 1.0)], x_title="x", y_title="y", log=True)


def test_the_picked_bar_is_in_the_accent_colour():
    """And the others are not."""
    figure = bars(["0", "1"], np.array([0.5, 0.25]), x_title="head", y_title="slope", selected=1)
    assert list(figure.data[0].marker.color) == [palette.BEFORE_LIGHT, palette.ACCENT_LIGHT]
    assert list(figure.data[0].y) == [0.5, 0.25]


def test_a_tables_first_rows_are_named_by_the_words():
    """The others have numbers alone; text is literal."""
    figure = table_map(np.ones((4, 6)), ["she", HOSTILE], title="t")
    assert list(figure.layout.yaxis.ticktext) == ["0 she", "1 &lt;b&gt;x&lt;/b&gt; &#36;y&#36; …", "2", "3"]
    assert figure.data[0].z.shape == (4, 6)


def test_larger_values_than_the_colours_reach_are_told():
    """A few learned values are twenty times as large as the others."""
    figure = table_map(np.array([[0.1, -5.0]]), [], title="t", reach=0.2)
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-0.2, 0.2)
    assert figure.layout.title.subtitle.text == "value; the largest is 5"


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
def test_an_empty_table_says_so(shape: tuple[int, int]):
    """Instead of bare axes."""
    figure = table_map(np.zeros(shape), [], title="t")
    assert figure.layout.annotations[0].text == "no data"


def test_a_table_that_is_none_is_refused():
    """A row is no table, and a map of similarities is square."""
    with pytest.raises(ShapeError):
        table_map(np.zeros(3), [], title="t")
    with pytest.raises(ShapeError):
        similarity_map(np.zeros((2, 3)), [], title="t")


def test_buckets_are_written_into_cells_that_have_room():
    """Twelve words have, forty have not."""
    for count, written in ((12, True), (40, False)):
        words = ["w"] * count
        figure = bucket_map(np.zeros((count, count), dtype=int), words, words, count=32, title="t", width=520)
        assert (figure.data[0].texttemplate is not None) == written


def test_parts_of_scores_say_what_they_are():
    """The scores' own map may show what is added to them."""
    figure = charts.scores_figure(-np.eye(2), None, ["a", "b"], ["a", "b"], meaning="added")
    assert figure.layout.title.subtitle.text == "added"


def test_the_arrows_turn_and_keep_their_length_in_every_frame():
    """The tip of the query runs along the circle from right to top, the key stays."""
    frames = still()["frames"]
    assert len(frames) == PARTS + 1
    for number, frame in enumerate(frames):
        _, key, query, *_ = frame["data"]
        angle = math.pi / 2 * number / PARTS
        assert (query["x"][1], query["y"][1]) == pytest.approx((math.cos(angle), math.sin(angle)), abs=1e-3)
        assert (key["x"][1], key["y"][1]) == (1, 0)


def test_frames_change_what_was_drawn_and_nothing_else():
    """Each of a frame's traces finds its own in the figure: same axes, words only at the steps of the slider."""
    made = still()
    for number, frame in enumerate(made["frames"]):
        assert list(frame["traces"]) == list(range(len(made["data"]) - len(frame["data"]), len(made["data"])))
        assert any("text" in trace for trace in frame["data"]) == (number % PARTS == 0)
    names = [trace["text"][-1] for trace in made["frames"][-1]["data"][1:3]]
    assert names == ["<b>k</b> “k”<br>position 3", "<b>q</b> “&lt;b&gt;x&lt;/b&gt; &#36;y…”<br>position 4"]


def test_play_and_slider_ask_the_browser_alone():
    """Both play frames that are in the figure; the slider goes to whole steps."""
    layout = still()["layout"]
    assert [button["method"] for button in layout["updatemenus"][0]["buttons"]] == ["animate", "animate"]
    assert [step["args"][0] for step in layout["sliders"][0]["steps"]] == [["0"], [str(PARTS)]]


def test_names_of_arrows_that_coincide_stand_apart():
    """In the slow pair both arrows point the same way."""
    _, key, query, *_ = still()["frames"][0]["data"]
    assert abs(query["y"][3] - key["y"][3]) > 0.5


def test_one_plane_alone_is_larger_and_above_its_curve():
    """Its frames find their traces as well."""
    made = still(planes=1)
    assert made["layout"]["height"] > still()["layout"]["height"]
    assert {name for name in made["layout"] if name.startswith("xaxis")} == {"xaxis", "xaxis2"}
    assert made["layout"]["xaxis"]["domain"] == [0, 1]
    assert made["layout"]["yaxis2"]["domain"][1] < made["layout"]["yaxis"]["domain"][0]
    for frame in made["frames"]:
        assert list(frame["traces"]) == list(range(len(made["data"]) - 5, len(made["data"])))
    assert {trace["xaxis"] for trace in made["data"]} == {"x", "x2"}


def test_a_moving_picture_needs_three_planes_or_one_and_all_its_frames():
    """Otherwise it says what is missing."""
    flat = np.zeros(PARTS + 1)
    plane, score = Plane("p", flat, flat, flat, ["", ""]), Score(flat, flat, flat, ["", ""])
    told: dict[str, Any] = {"query": "q", "key": "k", "query_places": [0], "key_places": [0], "slider": "s"}
    with pytest.raises(ShapeError, match="3 planes"):
        turning([plane] * 2, score, steps=["0", "1"], **told)
    with pytest.raises(ShapeError, match="steps"):
        turning([plane] * 3, score, steps=["0"], **told)
