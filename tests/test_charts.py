"""Figures say exactly what the arrays hold, draw text literally and stay small."""

import re

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import palette
from app.charts import CONFIG, heatmap, mask_matrix, scores_figure
from app.charts_axes import literal, rectangles, shown_ticks, tick_step
from app.charts_inputs import isolated, shortened
from app.charts_scales import weight_scale
from engine.errors import CaptureError, ShapeError

HOSTILE = ["<s>", '<a href="https://x">k</a>', "<b>", "&lt;", "$x$", "%{x}", "the", "the", "שלום", "a\nb"]


def cells(figure: go.Figure) -> go.Heatmap:
    """The coloured trace: the one whose cells are numbers with gaps, drawn above the masked ones."""
    return next(trace for trace in figure.data if trace.type == "heatmap" and trace.z.dtype == np.float32)


def masked(figure: go.Figure) -> go.Heatmap:
    return next(trace for trace in figure.data if trace.type == "heatmap" and trace.z.dtype == np.uint8)


def scatters(figure: go.Figure) -> list[go.Scatter]:
    return [trace for trace in figure.data if trace.type == "scatter"]


def bar(figure: go.Figure) -> go.scatter.Marker:
    return next(trace.marker for trace in figure.data if trace.xaxis == "x2")


def test_cells_are_the_weights_in_percent_first_query_on_top():
    weights = np.array([[1, 0], [0.25, 0.75]], np.float32)
    figure = heatmap(weights, ["a", "b"], ["c", "d"], title="layer 5, head 8")
    np.testing.assert_array_equal(cells(figure).z, weights * 100)
    assert list(figure.layout.yaxis.range) == [1.5, -0.5]
    assert list(figure.layout.xaxis.range) == [-0.5, 1.5]
    assert figure.layout.xaxis2.title.text == "key (attended to)"
    assert figure.layout.yaxis2.title.text == "query (attends)"
    assert figure.layout.title.text == "layer 5, head 8"
    assert figure.layout.yaxis.scaleanchor == "x"


@pytest.mark.parametrize(
    ("share", "log", "written"),
    [
        (0.0, False, "%{z:.1f}"),
        (1e-6, False, "&lt;0.1"),
        (1e-6, True, "%{z:.3~g}"),
        (0.0005, False, "%{z:.1f}"),
        (0.9996, False, "&gt;99.9"),
        (0.9996, True, "&gt;99.9"),
        (1.0, False, "%{z:.1f}"),
    ],
)
def test_no_hover_rounds_to_an_end_that_a_weight_does_not_reach(share: float, log: bool, written: str):
    """Exactly one trace has the cell, in the colour of the same scale; the others let the hover through."""
    weights = np.array([[0.3, share], [0.5, 0.5]], np.float32)
    figure = heatmap(weights, ["a", "b"], ["c", "d"], log=log)
    found = [one for one in figure.data if one.type == "heatmap" and not np.isnan(one.z[0, 1])]
    assert [one.hovertemplate for one in found] == [f"%{{y}} → %{{x}} {written} %<extra></extra>"]
    np.testing.assert_array_equal(found[0].z[0, 1], weights[0, 1] * np.float32(100))
    assert {(one.zmin, one.zmax, one.colorscale) for one in figure.data if one.type == "heatmap"} == {
        (found[0].zmin, found[0].zmax, found[0].colorscale)
    }


def test_hover_names_query_key_and_percent():
    """Plotly puts the hidden axes' tick text for x and y, so that every cell is named by one template."""
    figure = heatmap(np.full((2, 2), 0.294, np.float32), ["she", "was"], ["the", "customer"])
    assert cells(figure).hovertemplate == "%{y} → %{x} %{z:.1f} %<extra></extra>"
    assert cells(figure).customdata is None
    assert cells(figure).text is None
    assert figure.layout.xaxis.tickmode == "array"
    assert list(figure.layout.xaxis.tickvals) == [0, 1]
    assert list(figure.layout.xaxis.ticktext) == ["the", "customer"]
    assert list(figure.layout.yaxis.ticktext) == ["she", "was"]


def test_equal_words_keep_their_own_rows_and_columns():
    words = ["the", "cat", "sat", "on", "the", "mat", "the", "end"]
    figure = heatmap(np.eye(8), words, words)
    assert cells(figure).z.shape == (8, 8)
    assert list(figure.layout.xaxis2.tickvals) == list(range(8))
    assert list(figure.layout.xaxis2.ticktext) == words
    assert figure.layout.xaxis.type == figure.layout.xaxis2.type == "linear"


def test_labels_are_literal():
    """No tag, entity or dollar sign of a label reaches plotly's own markup."""
    figure = heatmap(np.zeros((10, 10)), HOSTILE, HOSTILE, title="<i>$5$</i>")
    texts = [*figure.layout.xaxis.ticktext, *figure.layout.yaxis2.ticktext, figure.layout.title.text]
    assert not [text for text in texts if re.search(r"[<>$\n]", text)]
    assert figure.layout.xaxis.ticktext[:5] == (
        "&lt;s&gt;", '&lt;a href="https://x"&gt;k&lt;/a&gt;', "&lt;b&gt;", "&amp;lt;", "&#36;x&#36;",
    )  # fmt: skip
    assert figure.layout.xaxis.ticktext[8] == "\u2068שלום\u2069"
    assert figure.layout.xaxis2.ticktext[9] == "a␊b"


def test_long_labels_are_short_on_the_axis_and_whole_on_hover():
    word = "Donaudampfschifffahrt"
    figure = heatmap(np.ones((1, 1)), [word], [word])
    assert figure.layout.xaxis2.ticktext == ("Donaudampfsch…",)
    assert figure.layout.xaxis.ticktext == (word,)


@given(st.text(), st.integers(2, 30))
def test_shortening_never_lengthens_and_keeps_short_text(text, limit):
    assert len(shortened(text, limit)) <= limit
    assert len(text) > limit or shortened(text, limit) == text


def test_shortening_does_not_tear_a_letter_from_its_marks():
    assert shortened("पोस्ट ऑफिस", 4) == "पो…"


def test_only_right_to_left_text_is_isolated():
    assert isolated("abc") == "abc"
    assert isolated("سلام") == "\u2068سلام\u2069"


def test_masked_cells_are_gaps_above_a_layer_of_their_own():
    visible = np.tri(3, dtype=bool)
    figure = heatmap(np.full((3, 3), 0.5), list("abc"), list("abc"), visible=visible)
    np.testing.assert_array_equal(np.isnan(cells(figure).z), ~visible)
    np.testing.assert_array_equal(masked(figure).z, ~visible)
    assert cells(figure).hoverongaps is False
    assert masked(figure).hovertemplate == "%{y} → %{x} masked<extra></extra>"
    assert masked(figure).colorscale[1][1] == palette.MASKED_LIGHT
    hatch = next(trace for trace in scatters(figure) if trace.fillpattern.shape)
    assert (hatch.name, hatch.hoverinfo) == ("masked", "skip")


def test_unmasked_map_has_no_masked_layer():
    figure = heatmap(np.ones((1, 1)), ["a"], ["a"])
    assert [trace.type for trace in figure.data] == ["heatmap", "scatter"]


def test_fully_masked_map_is_drawn_without_a_number():
    figure = heatmap(np.full((2, 2), np.nan), list("ab"), list("ab"), visible=np.zeros((2, 2), bool), log=True)
    assert np.isnan(cells(figure).z).all()
    assert bar(figure).colorbar.ticktext[-1] == "100\u202f%"


@pytest.mark.parametrize(
    ("options", "title", "last"),
    [
        ({"unit": True}, "weight, 0 to 100 %", "100\u202f%"),
        ({}, "weight, 0 to the map’s largest", "60.0\u202f%"),
        ({"row": 0}, "weight, 0 to the largest in row “a”; other rows may exceed it", "≥ 50.0\u202f%"),
        ({"row": 1}, "weight, 0 to the largest in row “&lt;b&gt;”", "60.0\u202f%"),
        (
            {"row": 0, "log": True},
            "logarithmic, up to the largest in row “a”; other rows may exceed it",
            "≥ 50.0\u202f%",
        ),
    ],
)
def test_bar_says_where_the_scale_ends(options, title, last):
    """And whose largest weight that is, its word as it was typed."""
    figure = heatmap(np.array([[0.5, 0.5], [0.4, 0.6]]), ["a", "<b>"], list("ab"), **options)
    assert figure.layout.title.subtitle.text == title
    assert bar(figure).colorbar.ticktext[-1] == last
    assert cells(figure).zmax == pytest.approx(float(last.strip("≥ \u202f%")))


def test_log_scale_bends_the_colours_and_leaves_the_weights():
    """A weight one decade below the top of four lies at three quarters of the scale."""
    weights = np.array([[1, 0.1]], np.float32)
    figure = heatmap(weights, ["q"], ["a", "b"], log=True)
    np.testing.assert_array_equal(cells(figure).z, weights * 100)
    stops = {round(position, 12): colour for position, colour in cells(figure).colorscale}
    assert stops[0.1].lower() == palette.SCALE_LIGHT[12][1].lower()
    assert stops[0.0001].lower() == palette.SCALE_LIGHT[0][1].lower()
    assert list(bar(figure).colorbar.ticktext) == ["≤ 0.01 %", "100\u202f%"]
    assert list(bar(figure).colorbar.tickvals) == [-4, 0]


def test_selected_row_and_column_are_outlined_and_named():
    figure = heatmap(np.eye(3), list("abc"), list("abc"), row=1, column=2)
    accent = [shape for shape in figure.layout.shapes if shape.line.color == palette.ACCENT_LIGHT]
    assert [(s.x0, s.x1, s.y0, s.y1) for s in accent] == [(-0.5, 2.5, 0.5, 1.5), (1.5, 2.5, -0.5, 2.5)]
    assert figure.layout.yaxis2.ticktext == ("a", "<b>b</b>", "c")


@pytest.mark.parametrize(("count", "step"), [(15, 1), (45, 2), (120, 5)])
def test_ticks_thin_out_and_say_so_while_the_hover_names_all(count, step):
    words = [f"w{index}" for index in range(count)]
    figure = heatmap(np.zeros((count, count)), words, words)
    assert list(figure.layout.yaxis2.tickvals) == list(range(0, count, step))
    assert len(figure.layout.yaxis.ticktext) == count
    note = "" if step == 1 else f", every {step}{'nd' if step == 2 else 'th'} labelled"
    assert figure.layout.yaxis2.title.text == "query (attends)" + note


def test_selected_tick_is_labelled_clear_of_its_neighbours():
    assert shown_ticks(50, 10, 27) == [0, 10, 20, 27, 40]
    assert shown_ticks(6, 2, 3) == [0, 3]
    assert shown_ticks(3, 1, 1) == [0, 1, 2]


@given(st.integers(1, 5000), st.integers(60, 2000))
def test_ticks_fit_at_every_length(count, pixels):
    assert -(-count // tick_step(count, pixels, 15)) * 15 <= pixels


def test_map_of_128_tokens_stays_small():
    words = [f"word{index}" for index in range(128)]
    visible = np.tri(128, dtype=bool)
    weights = np.where(visible, np.random.default_rng(0).random((128, 128)), 0)
    weights /= weights.sum(axis=1, keepdims=True)
    size = len(heatmap(weights, words, words, visible=visible, log=True, row=3, column=2).to_json())
    assert size < 155_000


def test_checkered_mask_stays_small():
    """A mask of single cells is grey without strokes: an outline for each would be larger than the map."""
    words = ["word"] * 128
    visible = np.indices((128, 128)).sum(axis=0) % 2 == 0
    assert len(heatmap(np.ones((128, 128)), words, words, visible=visible).to_json()) < 150_000


@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=6))
def test_rectangles_cover_each_cell_once(pattern):
    wanted = np.array(pattern)
    drawn = np.zeros_like(wanted, dtype=int)
    for top, bottom, left, right in rectangles(wanted):
        drawn[top:bottom, left:right] += 1
    np.testing.assert_array_equal(drawn, wanted)


def test_figures_are_transparent_and_legible_on_both_pages():
    for dark, ink in ((False, palette.INK_LIGHT), (True, palette.INK_DARK)):
        layout = heatmap(np.ones((1, 1)), ["a"], ["a"], dark=dark).layout
        assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0,0,0,0)"
        assert layout.font.color == ink
        assert layout.font.size >= 13
        assert layout.title.font.size == 16


def test_no_data_is_said_in_words():
    for figure in (
        heatmap(np.zeros((0, 3)), [], list("abc")),
        mask_matrix(np.zeros((0, 0), bool), [], []),
        scores_figure(np.zeros((2, 0)), None, list("ab"), []),
    ):
        assert [note.text for note in figure.layout.annotations] == ["no data"]


def test_shapes_that_differ_are_both_named():
    square = np.zeros((2, 2))
    with pytest.raises(ShapeError, match=r"\(2, 2\).*\(3, 2\)"):
        heatmap(square, list("abc"), list("ab"))
    with pytest.raises(ShapeError, match=r"\(3, 3\).*\(2, 2\)"):
        heatmap(square, list("ab"), list("ab"), visible=np.ones((3, 3), bool))
    with pytest.raises(ShapeError, match=r"\(1,\).*\(2,\)"):
        mask_matrix(np.ones((2, 2), bool), list("ab"), list("ab"), padding=[True])


@pytest.mark.parametrize("choice", [{"row": 2}, {"column": -1}])
def test_selection_outside_the_map_is_refused(choice):
    with pytest.raises(ShapeError, match="counted from 0"):
        heatmap(np.zeros((2, 2)), list("ab"), list("ab"), **choice)


def test_not_a_number_is_refused_where_it_shows_and_ignored_where_masked():
    weights = np.array([[0.5, np.nan]])
    with pytest.raises(CaptureError, match="query 0 and key 1 holds nan"):
        heatmap(weights, ["q"], ["a", "b"])
    heatmap(weights, ["q"], ["a", "b"], visible=np.array([[True, False]]))


def test_toolbar_is_zoom_reset_and_picture():
    assert CONFIG["modeBarButtons"] == [["zoom2d", "resetScale2d", "toImage"]]
    assert CONFIG["displaylogo"] is False


def test_plotly_markup_is_the_only_thing_escaped():
    assert literal("a & b") == "a &amp; b"
    assert literal("naïve? ✓ %{x}") == "naïve? ✓ %{x}"


def test_mask_matrix_says_who_may_see_whom():
    visible = np.tri(3, dtype=bool)
    figure = mask_matrix(visible, list("abc"), list("abc"), title="GPT-style")
    np.testing.assert_array_equal(np.isnan(cells(figure).z), ~visible)
    assert cells(figure).hovertemplate == "%{y} may see %{x}<extra></extra>"
    assert masked(figure).hovertemplate == "%{y} may not see %{x}<extra></extra>"
    assert figure.layout.height == 260


def test_padded_rows_are_grey_whatever_they_might_see():
    """They lie in a trace of their own at the rows' own place, so that the hover can say why."""
    padding = [False, True, True]
    figure = mask_matrix(np.ones((3, 3), bool), list("abp"), list("abp"), padding=padding)
    np.testing.assert_array_equal(np.isnan(cells(figure).z).all(axis=1), padding)
    assert masked(figure).z[1:].all()
    block = next(trace for trace in figure.data if trace.hovertemplate == "%{y} is padding<extra></extra>")
    assert (block.y0, block.z.shape) == (1, (2, 3))
    assert not [trace for trace in scatters(figure) if trace.fillpattern.shape]


def test_scores_are_neutral_at_zero():
    figure = scores_figure(np.array([[-3.0, 1.0]]), None, ["q"], ["a", "b"])
    assert (cells(figure).zmin, cells(figure).zmax) == (-3, 3)
    assert cells(figure).colorscale[5] == (0.5, palette.DIVERGING_LIGHT[5][1])


def test_mask_turns_scores_into_minus_infinity_only_after_it():
    scores, visible = np.arange(4.0).reshape(2, 2), np.tri(2, dtype=bool)
    before = scores_figure(scores, visible, list("ab"), list("ab"))
    np.testing.assert_array_equal(cells(before).z, scores)
    after = scores_figure(scores, visible, list("ab"), list("ab"), stage="after")
    np.testing.assert_array_equal(np.isnan(cells(after).z), ~visible)
    assert masked(after).hovertemplate == "%{y} · %{x} −∞ (masked)<extra></extra>"
    written = next(trace for trace in scatters(after) if trace.mode == "text")
    assert (written.text, list(written.x), list(written.y)) == ("−∞", [1], [0])


def test_weights_below_the_floor_get_the_colour_of_nothing_and_keep_their_number() -> None:
    figure = heatmap(np.array([[0.04, 0.96]]), ["a"], ["b", "c"], floor=0.05)
    cells = next(trace for trace in figure.data if trace.z is not None and np.nanmax(np.asarray(trace.z)) > 90)
    np.testing.assert_allclose(np.asarray(cells.z)[0], [4, 96], rtol=1e-6)
    stops = [(place, colour) for place, colour in cells.colorscale]
    nothing = stops[0][1]
    assert all(colour == nothing for place, colour in stops if place < 0.05)
    assert [colour for place, colour in stops if place > 0.1 and colour == nothing] == []


def test_two_figures_of_scores_can_share_a_scale_and_outline_a_row() -> None:
    first, second = (
        scores_figure(np.array([[top, 1.0], [0.0, -1.0]]), None, list("ab"), list("ab"), reach=4.0, row=1)
        for top in (4.0, 2.0)
    )
    assert cells(first).zmax == cells(second).zmax == 4
    assert list(bar(second).colorbar.ticktext) == ["−4", "0", "4"]
    assert {(shape.y0, shape.y1) for shape in second.layout.shapes} == {(0.5, 1.5)}
    with pytest.raises(ShapeError, match="no row 2"):
        scores_figure(np.zeros((2, 2)), None, list("ab"), list("ab"), row=2)


def test_a_narrow_map_labels_fewer_tokens_and_keeps_its_title_whole() -> None:
    """The title is given up to what fits: first the note on thinned labels goes."""
    words = [f"w{index}" for index in range(15)]
    wide, narrow = (heatmap(np.zeros((15, 15)), words, words, size=560, width=width) for width in (None, 277))
    assert list(wide.layout.xaxis2.tickvals) == list(range(15))
    assert list(narrow.layout.xaxis2.tickvals) == list(range(0, 15, 2))
    assert narrow.layout.xaxis2.title.text == "key (attended to)"


def test_infinities_are_written_only_where_they_can_be_read() -> None:
    def written(count: int, width: int | None = None) -> list[go.Scatter]:
        hidden = np.zeros((count, count), bool)
        names = ["w"] * count
        figure = scores_figure(np.ones((count, count)), hidden, names, names, stage="after", width=width)
        return [trace for trace in scatters(figure) if trace.mode == "text"]

    assert written(15)[0].textfont.size == 10
    assert written(15, 277)[0].textfont.size < 8
    assert not written(16, 277)


def test_a_third_is_spelt_as_one() -> None:
    words = ["w"] * 60
    assert heatmap(np.zeros((60, 60)), words, words).layout.yaxis2.title.text.endswith("every 3rd labelled")


def test_a_row_of_next_to_nothing_does_not_set_the_scale():
    """Its noise would be drawn dark, and all other rows would saturate."""
    percent = np.array([[99.0, 1.0], [2e-5, 1e-6]])
    noise = weight_scale(percent, unit=False, row=1, log=False, word="end")
    assert (noise.whose, noise.clipped) == ("the map’s largest", False)
    assert weight_scale(percent, unit=False, row=0, log=False, word="she").whose == "the largest in row “she”"
    assert weight_scale(np.full((2, 2), 1e-5), unit=False, row=0, log=False, word="she").whose.endswith("“she”")
