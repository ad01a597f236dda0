"""The charts of a training: axes stand still while curves grow, and maps hold what they are given."""

import numpy as np
import pytest

from app.charts_curves import Level, Line
from app.charts_train import Track, head_maps, learning_curves
from engine import ShapeError


def test_curves_keep_their_axes_while_they_grow():
    short, long = (
        learning_curves(
            Track(np.arange(count), [Line("a", np.ones(count))], [Level("chance", 0.5)], last=400, at=0),
            title="t", y_title="y", top=1.0,
        )
        for count in (1, 300)
    )  # fmt: skip
    assert short.layout.xaxis.range == long.layout.xaxis.range
    assert short.layout.yaxis.range == long.layout.yaxis.range
    assert short.layout.uirevision == long.layout.uirevision == "same"
    with pytest.raises(ShapeError, match="“a”"):
        learning_curves(Track(np.arange(3), [Line("a", np.ones(2))]), title="t", y_title="y", top=1.0)


def test_maps_hold_the_weights_grey_the_hidden_and_frame_the_marked():
    weights = np.tril(np.full((2, 3, 3), 0.25))
    visible = np.tri(3, dtype=np.bool_)
    marked = np.zeros((3, 3), dtype=np.bool_)
    marked[2, 1] = True
    figure = head_maps(weights, ["<b>", "$x$", "c"], visible=visible, marked=marked, names=["p", "q"], title="<i>")
    hidden, cells, frame = figure.data[:3]
    assert np.asarray(cells.z)[visible].tolist() == [25.0] * 6
    assert np.asarray(hidden.z).astype(bool).tolist() == (~visible).tolist()
    assert (min(frame.x[:5]), max(frame.x[:5]), min(frame.y[:5]), max(frame.y[:5])) == (0.5, 1.5, 1.5, 2.5)
    assert figure.layout.title.text == "&lt;i&gt;"
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt;", "&#36;x&#36;", "c")
    with pytest.raises(ShapeError):
        head_maps(weights, ["a"])
