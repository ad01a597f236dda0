"""A training in plotly: curves over its steps, and the maps of all heads of a layer.

While it runs, figures are drawn anew twice a second: axes stand still, and what a reader has zoomed into stays.

Dimensions: N points, H heads, T queries, S keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from app import palette
from app.charts_axes import CLEAR, ink, literal
from app.charts_curves import Level, Line, line_colour, plane
from app.charts_inputs import Bools, Floats, Numbers, checked_shape, checked_values

MARK_LIGHT, MARK_DARK = "#C2560C", "#F0A060"
"""What a head should look at: orange, which no weight has."""

FEW = 60  # numbers in the line of frames, five corners and a gap each, up to which it is thick
GAP = 0.03  # of the width, between two maps
LIFT = 8  # pixels, of a name above its level
MAP_TITLE = 34  # pixels
LINE = 18  # pixels, of a name above a map
MOST_LABELLED = 2  # maps side by side whose tokens are written at the axes


@dataclass(frozen=True)
class Band:
    """A stretch of heights across the whole chart, with a name: where a value means nothing."""

    name: str
    low: float
    high: float


@dataclass(frozen=True)
class Track:
    """Curves over the steps of a training, which may not be through yet.

    Attributes:
        steps: N numbers, rising.
        lines: what is drawn, the last on top.
        levels: heights to be marked, with names.
        last: the step that the axis ends at.
        at: the step that is looked at; None for none.
        names: how many names get room above, so that pictures beside each other have axes of one height.
        band: heights to be shaded, with a name; None for none.
    """

    steps: Numbers
    lines: Sequence[Line]
    levels: Sequence[Level] = ()
    last: int = 1
    at: int | None = None
    names: int = 0
    band: Band | None = None


def learning_curves(
    track: Track, *, title: str, y_title: str, top: float, number: str = ".2f", dark: bool = False, size: int = 260
) -> go.Figure:
    """Draw curves over the steps of a training, with a line and a dot at the step that is looked at.

    Args:
        track: the curves.
        title: one line above, drawn literally.
        y_title: what the vertical axis counts, with its unit.
        top: where that axis ends; it begins at 0.
        number: how the hover writes values.
        dark: True on a dark page.
        size: height of the figure in pixels.

    Raises:
        ShapeError: a line has another number of points than there are steps.
    """
    steps = np.asarray(track.steps)
    figure = plane(title, "step", y_title, dark=dark, size=size, legend=track.names)
    room = 0.02 * track.last
    figure.layout.xaxis.update(range=[-room, track.last + room], tickformat=",", nticks=6)
    figure.layout.yaxis.update(range=[-0.03 * top, 1.03 * top], nticks=6)
    figure.layout.uirevision = "same"
    if track.band is not None:
        _add_band(figure, track.band, track.last, dark)
    for level in track.levels:
        _add_level(figure, level, track.last, dark)
    if track.at is not None:
        colour = palette.SOFT_INK_DARK if dark else palette.SOFT_INK_LIGHT
        figure.add_vline(track.at, line={"color": colour, "width": 1.5, "dash": "dot"}, layer="below")
    for line in track.lines:
        values = np.asarray(line.values, dtype=np.float32)
        checked_shape(f"values of “{line.name}”", values.shape, steps.shape, "the steps", "(points)")
        _add_line(figure, line, steps, values, number, dark)
        if track.at is not None and line.role != "before":
            _add_dot(figure, line, steps, values, track.at, dark)
    return figure


def head_maps(
    weights: Floats,
    tokens: Sequence[str],
    *,
    visible: Bools | None = None,
    marked: Bools | None = None,
    title: str = "",
    names: Sequence[str] = (),
    dark: bool = False,
    size: int = 360,
) -> go.Figure:
    """Draw the maps of all heads of a layer side by side, from 0 to 100 %.

    Args:
        weights: (H, T, T), each from 0 to 1.
        tokens: T labels, drawn literally.
        visible: (T, T), False where the mask hides the key, which is drawn grey; None where all is visible.
        marked: (T, T), True where a head should look: framed in orange; None for nowhere.
        title: one line above, drawn literally.
        names: one for each head, drawn literally above its map, on one line or more; none for a single head.
        dark: True on a dark page.
        size: height of the figure in pixels.

    Raises:
        ShapeError: shapes differ.
        CaptureError: a weight is not a finite number.
    """
    lines = max((name.count("\n") + 1 for name in names), default=0)
    figure = go.Figure(layout=_frame(title, size, dark, lines))
    width = (1 - GAP * (len(weights) - 1)) / len(weights)
    for head, cells in enumerate(weights):
        checked, seen = checked_values(cells, tokens, tokens, visible)
        x, y = (f"{axis}{head + 1 if head else ''}" for axis in "xy")
        start = head * (width + GAP)
        labelled = len(weights) <= MOST_LABELLED
        across = _axis(tokens, labelled, y) | {"domain": [start, start + width], "range": [-0.5, len(tokens) - 0.5]}
        down = _axis(tokens, labelled and head == 0, x) | {"range": [len(tokens) - 0.5, -0.5], "scaleanchor": x}
        figure.update_layout({f"xaxis{x[1:]}": across, f"yaxis{y[1:]}": down | {"constraintoward": "top"}})
        _add_cells(figure, np.where(seen, checked, np.nan), x, y, dark)
        if marked is not None:
            _add_marks(figure, marked, x, y, dark)
        if names:
            figure.add_annotation(
                text="<br>".join(map(literal, names[head].split("\n"))), align="left",
                xref=f"{x} domain", yref="paper", x=0, y=1, xanchor="left", yanchor="bottom",
                showarrow=False, font={"size": 13},
            )  # fmt: skip
    return figure


def _add_cells(figure: go.Figure, cells: Floats, x: str, y: str, dark: bool) -> None:
    """Draw weights by colour, on grey where nothing may be seen."""
    hidden = palette.MASKED_DARK if dark else palette.MASKED_LIGHT
    place = {"x0": 0, "dx": 1, "y0": 0, "dy": 1, "xaxis": x, "yaxis": y, "showscale": False, "hoverongaps": False}
    figure.add_heatmap(
        z=np.isnan(cells).astype(np.uint8), zmin=0, zmax=1, colorscale=[[0, CLEAR], [1, hidden]],
        hovertemplate="%{y} may not see %{x}<extra></extra>", **place,
    )  # fmt: skip
    figure.add_heatmap(
        z=np.round(100 * cells.astype(np.float32), 1), zmin=0, zmax=100,
        colorscale=[list(stop) for stop in (palette.SCALE_DARK if dark else palette.SCALE_LIGHT)],
        hovertemplate="%{y} → %{x} %{z:.1f} %<extra></extra>", **place,
    )  # fmt: skip


def _frame(title: str, size: int, dark: bool, lines: int) -> dict[str, Any]:
    return {
        "template": "none",
        "height": size,
        "margin": {"l": 8, "r": 8, "t": MAP_TITLE + LINE * lines, "b": 8},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "uirevision": "same",
        "font": {"size": 13, "color": ink(dark)},
        "title": {
            **{"text": literal(title), "font": {"size": 16}, "x": 0, "xref": "container", "y": 1},
            **{"yref": "container", "yanchor": "top", "pad": {"t": 8, "l": 8}},
        },
        "hoverlabel": {
            "font": {"size": 15, "color": ink(dark)},
            "bgcolor": palette.PAGE_DARK if dark else palette.PAGE_LIGHT,
        },
    }


def _axis(tokens: Sequence[str], labelled: bool, anchor: str) -> dict[str, Any]:
    letters = max(map(len, tokens), default=0) == 1
    return {
        "type": "linear",
        "anchor": anchor,
        "tickmode": "array",
        "tickvals": list(range(len(tokens))),
        "ticktext": [literal(token) for token in tokens],
        "showticklabels": labelled,
        "tickfont": {"size": 10 if letters else 13},
        "tickangle": 0 if letters or anchor.startswith("x") else -45,
        "automargin": True,
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "constrain": "domain",
    }


def _add_marks(figure: go.Figure, marked: Bools, x: str, y: str, dark: bool) -> None:
    """Frame single cells; all frames are one line with gaps."""
    across: list[float | None] = []
    down: list[float | None] = []
    for row, column in zip(*np.nonzero(marked), strict=True):
        across += [column - 0.5, column + 0.5, column + 0.5, column - 0.5, column - 0.5, None]
        down += [row - 0.5, row - 0.5, row + 0.5, row + 0.5, row - 0.5, None]
    figure.add_scatter(
        x=across, y=down, mode="lines", xaxis=x, yaxis=y, hoverinfo="skip", showlegend=False,
        line={"color": MARK_DARK if dark else MARK_LIGHT, "width": 1.3 if len(across) > FEW else 2.5},
    )  # fmt: skip


def _add_line(figure: go.Figure, line: Line, steps: np.ndarray, values: np.ndarray, number: str, dark: bool) -> None:
    name = literal(line.name)
    figure.add_scatter(
        x=steps, y=values, mode="lines", name=name, showlegend=bool(name),
        line={"color": line_colour(line.role, dark), "width": 3 if line.role == "accent" else 2, "dash": line.dash},
        hovertemplate=f"step %{{x:,}}: %{{y:{number}}}<extra>{name}</extra>",
    )  # fmt: skip


def _add_dot(figure: go.Figure, line: Line, steps: np.ndarray, values: np.ndarray, at: int, dark: bool) -> None:
    place = int(np.searchsorted(steps, at, side="right")) - 1
    if place < 0:
        return
    figure.add_scatter(
        x=[at], y=[values[place]], mode="markers", hoverinfo="skip", showlegend=False, cliponaxis=False,
        marker={"color": line_colour(line.role, dark), "size": 10,
                "line": {"width": 1.5, "color": palette.PAGE_DARK if dark else palette.PAGE_LIGHT}},
    )  # fmt: skip


def _add_band(figure: go.Figure, band: Band, last: int, dark: bool) -> None:
    colour = palette.SOFT_INK_DARK if dark else palette.SOFT_INK_LIGHT
    figure.add_shape(
        type="rect", x0=0, x1=last, y0=band.low, y1=band.high, layer="below", line={"width": 0}, fillcolor=colour,
        opacity=0.2,
    )  # fmt: skip
    _add_name(figure, band.name, last, band.high, 2, colour, dark)


def _add_level(figure: go.Figure, level: Level, last: int, dark: bool) -> None:
    colour = palette.SOFT_INK_DARK if dark else palette.SOFT_INK_LIGHT
    figure.add_scatter(
        x=[0, last], y=[level.height, level.height], mode="lines", hoverinfo="skip", showlegend=False,
        line={"color": colour, "width": 1.5, "dash": "dash"},
    )  # fmt: skip
    _add_name(figure, level.name, last, level.height, LIFT, colour, dark)


def _add_name(figure: go.Figure, name: str, last: int, height: float, lift: int, colour: str, dark: bool) -> None:
    figure.add_annotation(
        text=literal(name), x=last, y=height, xanchor="right", yanchor="bottom", yshift=lift,
        bgcolor=palette.PAGE_DARK if dark else palette.PAGE_LIGHT, opacity=0.85, showarrow=False,
        font={"color": colour, "size": 13},
    )  # fmt: skip
