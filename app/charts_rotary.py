"""Rotary positions as a moving picture: arrows that turn, played in the browser without asking the server.

Every frame is in the figure from the start; plotly plays them. Between two steps of the slider lie PARTS - 1 frames
that only turn the arrows: plotly's own transitions would let them shrink on the way, and their names fly about.

Dimensions: F steps of the slider, N = PARTS · (F - 1) + 1 frames.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from app import palette
from app.charts_axes import CLEAR, ink, literal
from app.charts_curves import GRID_DARK, GRID_LIGHT, line_colour
from app.charts_inputs import Floats, checked_shape, isolated, shortened
from engine.errors import ShapeError

SIZE, SIZE_ALONE = 740, 840  # pixels, of three planes beside each other and of one, which may stand on a telephone
# How far a plane goes to each side, down (with room for a name and a line of text) and up; arrows have length 1.
WIDE, LOW, HIGH = 1.85, -1.9, 1.5
APART = np.radians(34)  # the least angle between the labels of two arrows
LABEL = 1.14  # where labels stand, from the middle
WORD_LENGTH = 12
PARTS = 5  # frames from one step to the next
FRAME = 130  # milliseconds
_KEY_LIGHT, _KEY_DARK = "#A04B20", "#E39E64"  # orange: the only other colour that stays apart from the accent


@dataclass(frozen=True)
class Plane:
    """One pair of numbers of a query and a key, which is a plane where both are arrows of length 1.

    Attributes:
        title: which pair, and how fast it turns.
        q, k: by how much each has been turned, in radians from the right, counter-clockwise, (N,).
        between: the angle from k to q that is filled, within a full turn, (N,).
        said: what stands below it at each step, F texts.
    """

    title: str
    q: Floats
    k: Floats
    between: Floats
    said: Sequence[str]


@dataclass(frozen=True)
class Score:
    """How the score depends on the distance, and where it stands.

    Attributes:
        distances: (N,), rising.
        scores: at these distances, (N,).
        at: the distance in each frame, (N,).
        said: what stands at the moving dot at each step, F texts.
    """

    distances: Floats
    scores: Floats
    at: Floats
    said: Sequence[str]


def turning(
    planes: Sequence[Plane],
    score: Score,
    *,
    query: str,
    key: str,
    query_places: Sequence[int],
    key_places: Sequence[int],
    steps: Sequence[str],
    slider: str,
    dark: bool = False,
) -> go.Figure:
    """Draw planes with the two arrows in them, the score below, a slider, and a button that plays it.

    Args:
        planes: three of them, beside each other, or one, which is drawn larger.
        score: the curve below them.
        query, key: the two words, drawn literally.
        query_places, key_places: where each stands at each step, F numbers.
        steps: what each step of the slider is called, F texts.
        slider: what the slider changes.
        dark: True on a dark page.

    Raises:
        ShapeError: there are neither three planes nor one, or frames are missing.
    """
    if len(planes) not in (1, 3):
        raise ShapeError(f"There is room for 3 planes or for 1, not for {len(planes)}.")
    frames = PARTS * (len(steps) - 1) + 1
    for turns in (score.at, *(turns for plane in planes for turns in (plane.q, plane.k, plane.between))):
        checked_shape("turns", np.shape(turns), (frames,), "the steps", "(frames)")
    names = [
        (_arrow_label("q", query, query_place), _arrow_label("k", key, key_place))
        for query_place, key_place in zip(query_places, key_places, strict=True)
    ]
    figure = go.Figure(layout=_layout(planes, score, dark))
    _add_still(figure, len(planes), score, dark)
    still = len(figure.data)
    figure.add_traces(
        [look | trace for look, trace in zip(_looks(len(planes), dark), _moving(planes, score, 0, names), strict=True)]
    )
    moving = list(range(still, len(figure.data)))
    # As dicts: plotly checks a frame when it is made and again here, and there are many.
    figure.frames = [
        {"data": _moving(planes, score, frame, names), "name": str(frame), "traces": moving} for frame in range(frames)
    ]
    alone = len(planes) == 1
    figure.layout.updatemenus = [_buttons(alone, dark)]
    figure.layout.sliders = [_slider(steps, slider, alone, dark)]
    return figure


def _arrow_label(letter: str, word: str, place: int) -> str:
    return f"<b>{letter}</b> “{literal(isolated(shortened(word, WORD_LENGTH)))}”<br>position {place}"


def _moving(
    planes: Sequence[Plane], score: Score, frame: int, names: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return what one frame changes: in each plane the angle, the two arrows, and the words below; then the dot.

    Words change only where the slider has a step.
    """
    step, part = divmod(frame, PARTS)
    made: list[dict[str, Any]] = []
    for plane in planes:
        q, k = float(plane.q[frame]), float(plane.k[frame])
        label_q, label_k = _label_angles(q, k)
        said = {} if part else {"text": [literal(plane.said[step])]}
        texts = ({}, {}) if part else tuple({"text": ["", "", "", name]} for name in reversed(names[step]))
        made += [
            _wedge(k, float(plane.between[frame])),
            _arrow(k, label_k) | texts[0],
            _arrow(q, label_q) | texts[1],
            {"x": [0], "y": [LOW + 0.08]} | said,
        ]
    at = float(score.at[frame])
    height = float(np.interp(at, score.distances, score.scores))
    dot = {"x": [round(at, 3)], "y": [round(height, 3)]}
    return [*made, dot if part else dot | {"text": [literal(score.said[step])]}]


def _looks(planes: int, dark: bool) -> list[dict[str, Any]]:
    """Return what never changes about the moving traces, in their order."""
    accent, plain = line_colour("accent", dark), {"hoverinfo": "skip", "showlegend": False, "cliponaxis": False}
    words = plain | {"mode": "text", "textposition": "middle center", "textfont": {"size": 14, "color": ink(dark)}}
    wedge = plain | {"mode": "lines", "line": {"width": 0}, "fill": "toself"}
    wedge["fillcolor"] = "rgba(92,198,214,0.22)" if dark else "rgba(15,110,132,0.16)"
    made: list[dict[str, Any]] = []
    for number in range(1, planes + 1):
        axes = {"type": "scatter", "xaxis": f"x{number}", "yaxis": f"y{number}"}
        arrows = [_arrow_look(_KEY_DARK if dark else _KEY_LIGHT, 4.5), _arrow_look(accent, 2.5)]
        made += [look | axes for look in (wedge, *(plain | arrow for arrow in arrows), words)]
    dot = {"mode": "markers+text", "marker": {"size": 12, "color": accent}, "textposition": "top right"}
    return [*made, words | dot | {"type": "scatter", "xaxis": f"x{planes + 1}", "yaxis": f"y{planes + 1}"}]


def _label_angles(q: float, k: float) -> tuple[float, float]:
    """Give the angles at which the two labels stand: with their arrows, but never on top of each other."""
    between = (q - k + np.pi) % (2 * np.pi) - np.pi
    missing = max(APART - abs(between), 0) / 2
    turn = missing if between >= 0 else -missing
    return q + turn, k - turn


def _arrow(angle: float, label: float) -> dict[str, Any]:
    """Return an arrow from the middle, with a place for its name beyond its tip."""
    across, up = np.cos(label), np.sin(label)
    side = "right" if across > 0.35 else "left" if across < -0.35 else "center"
    height = "top" if up > 0.5 else "bottom" if up < -0.5 else "middle"
    return {
        "x": [0, round(np.cos(angle), 3), None, round(LABEL * across, 3)],
        "y": [0, round(np.sin(angle), 3), None, round(LABEL * up, 3)],
        "textposition": f"{height} {side}",
    }


def _arrow_look(colour: str, width: float) -> dict[str, Any]:
    return {
        "mode": "lines+markers+text",
        "line": {"color": colour, "width": width},
        "marker": {
            "symbol": ["circle", "arrow", "circle", "circle"],
            "size": [5, 11 + 1.6 * width, 0, 0],
            "angleref": "previous",
            "color": colour,
            "opacity": 1,
            "line": {"width": 0},
        },
        "textfont": {"size": 14, "color": colour},
    }


def _wedge(k: float, between: float) -> dict[str, Any]:
    """Return the angle from the key to the query."""
    angles = k + np.linspace(0, between, 2 + int(abs(between) / np.radians(12)))
    return {
        "x": [0, *np.cos(angles).round(3).tolist(), 0],
        "y": [0, *np.sin(angles).round(3).tolist(), 0],
    }


def _add_still(figure: go.Figure, planes: int, score: Score, dark: bool) -> None:
    """Add what never moves: the circles that the tips run on, where both began, and the curve of the score."""
    soft = line_colour("before", dark)
    circle = np.linspace(0, 2 * np.pi, 73)
    for number in range(1, planes + 1):
        axes = {"xaxis": f"x{number}", "yaxis": f"y{number}", "hoverinfo": "skip", "showlegend": False}
        figure.add_scatter(
            x=np.cos(circle).round(4).tolist(), y=np.sin(circle).round(4).tolist(), mode="lines",
            line={"color": soft, "width": 1}, **axes,
        )  # fmt: skip
        figure.add_scatter(x=[0, 1], y=[0, 0], mode="lines", line={"color": soft, "width": 1.5, "dash": "dot"}, **axes)
    figure.add_scatter(
        x=np.asarray(score.distances).tolist(), y=np.asarray(score.scores).round(4).tolist(), mode="lines",
        line={"color": soft, "width": 2}, xaxis=f"x{planes + 1}", yaxis=f"y{planes + 1}", showlegend=False,
        hovertemplate="distance %{x}: %{y:.2f}<extra></extra>",
    )  # fmt: skip


def _layout(planes: Sequence[Plane], score: Score, dark: bool) -> dict[str, Any]:
    bare = {"visible": False, "fixedrange": True, "constrain": "domain"}
    alone = len(planes) == 1
    columns = ((0, 1),) if alone else ((0, 0.32), (0.34, 0.66), (0.68, 1))
    bottom, top = (0.32, 0.19) if alone else (0.37, 0.25)  # of the planes, and of the curve below them
    layout: dict[str, Any] = {
        "template": "none",
        "height": SIZE_ALONE if alone else SIZE,
        "margin": {"l": 64, "r": 28, "t": 184 if alone else 128, "b": 48},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"size": 13, "color": ink(dark)},
        "hoverlabel": {
            "font": {"size": 15, "color": ink(dark)}, "bgcolor": palette.PAGE_DARK if dark else palette.PAGE_LIGHT,
        },
    }  # fmt: skip
    titles = [_heading("The score: the sum over all pairs", 0.5, top + 0.02)]
    for number, (plane, (left, right)) in enumerate(zip(planes, columns, strict=True), start=1):
        layout[f"xaxis{number}"] = bare | {"domain": [left, right], "anchor": f"y{number}", "range": [-WIDE, WIDE]}
        layout[f"yaxis{number}"] = bare | {
            "domain": [bottom, 1], "anchor": f"x{number}", "scaleanchor": f"x{number}", "range": [LOW, HIGH],
        } | ({"constraintoward": "top"} if alone else {})  # fmt: skip
        titles.append(_heading(plane.title, (left + right) / 2, 1))
    axis = {
        "gridcolor": GRID_DARK if dark else GRID_LIGHT, "zeroline": False, "fixedrange": True, "tickfont": {"size": 13},
    }  # fmt: skip
    scores = np.asarray(score.scores)
    low, high = float(scores.min()), float(scores.max())
    room = 0.35 * (high - low or 1)
    number = len(planes) + 1
    layout[f"xaxis{number}"] = axis | {
        "domain": [0, 1], "anchor": f"y{number}",
        "title": {"text": "distance between the two words (tokens)", "standoff": 6},
        "range": [float(score.distances[0]) - 0.5, float(score.distances[-1]) + 0.5],
    }  # fmt: skip
    layout[f"yaxis{number}"] = axis | {
        "domain": [0, top], "anchor": f"x{number}", "title": {"text": "q · k"}, "nticks": 4,
        "range": [low - room / 3, high + room],
    }  # fmt: skip
    return layout | {"annotations": titles}


def _heading(text: str, middle: float, height: float) -> dict[str, Any]:
    return {
        "text": literal(text), "x": middle, "y": height, "xref": "paper", "yref": "paper", "xanchor": "center",
        "yanchor": "bottom", "showarrow": False, "font": {"size": 15}, "yshift": 4,
    }  # fmt: skip


def _buttons(alone: bool, dark: bool) -> dict[str, Any]:
    play = {
        "frame": {"duration": FRAME, "redraw": False}, "transition": {"duration": 0}, "fromcurrent": True,
        "mode": "immediate",
    }  # fmt: skip
    stop = {"frame": {"duration": 0, "redraw": False}, "mode": "immediate", "transition": {"duration": 0}}
    return {
        "type": "buttons", "direction": "left", "showactive": False,
        "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom",
        "pad": {"b": 130 if alone else 66, "l": 0}, "font": {"size": 15, "color": ink(dark)},
        "bgcolor": palette.PAGE_DARK if dark else palette.PAGE_LIGHT, "bordercolor": line_colour("accent", dark),
        "buttons": [
            {"label": "▶ Play", "method": "animate", "args": [None, play]},
            {"label": "Pause", "method": "animate", "args": [[None], stop]},
        ],
    }  # fmt: skip


def _slider(steps: Sequence[str], name: str, alone: bool, dark: bool) -> dict[str, Any]:
    go_to = {"frame": {"duration": 0, "redraw": False}, "transition": {"duration": 0}, "mode": "immediate"}
    return {
        "active": 0, "x": 0 if alone else 0.19, "len": 1 if alone else 0.81, "y": 1, "yanchor": "bottom",
        "pad": {"t": 0, "b": 38},
        "currentvalue": {"prefix": f"{literal(name)} ", "font": {"size": 15, "color": ink(dark)}, "xanchor": "left"},
        "bgcolor": GRID_DARK if dark else GRID_LIGHT, "activebgcolor": line_colour("accent", dark),
        "bordercolor": line_colour("before", dark), "tickcolor": line_colour("before", dark),
        "font": {"size": 13, "color": ink(dark)}, "minorticklen": 3, "ticklen": 5,
        "steps": [
            {"label": literal(label), "method": "animate", "args": [[str(PARTS * step)], go_to]}
            for step, label in enumerate(steps)
        ],
    }  # fmt: skip
