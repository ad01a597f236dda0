"""Curves and bars in plotly, drawn as SVG: a page with many WebGL charts loses some of them.

Dimensions: N points on the horizontal axis.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from app import palette
from app.charts_axes import CLEAR, ink, literal
from app.charts_inputs import Floats, Numbers, checked_shape
from engine.errors import CaptureError

GRID_LIGHT, GRID_DARK = "#E3E8EA", "#2A3338"
LEGEND_LINE = 26  # pixels
SHADES = (9, 14, 7, 12)  # of the sequential scale: apart from each other and from the page


@dataclass(frozen=True)
class Line:
    """One curve.

    Attributes:
        name: what it is, for the legend and the hover; drawn literally.
        values: N numbers; NaN leaves a gap.
        role: "accent" for what matters, "before" for what it is compared with, or a number for one of several alike.
        steps: whether the value holds until the next point, rather than sloping there.
        dash: how the line is drawn.
    """

    name: str
    values: Numbers
    role: Literal["accent", "before"] | int = "accent"
    steps: bool = False
    dash: Literal["solid", "dash", "dot"] = "solid"


@dataclass(frozen=True)
class Level:
    """A line across the whole chart at one height, with a name."""

    name: str
    height: float


def curves(
    x: Numbers,
    lines: Sequence[Line],
    *,
    x_title: str,
    y_title: str,
    title: str = "",
    levels: Sequence[Level] = (),
    log: bool = False,
    dark: bool = False,
    size: int = 340,
    number: str = ".3f",
) -> go.Figure:
    """Draw curves over one axis, named in a legend where there are several.

    Args:
        x: N numbers, rising.
        lines: what to draw, the last on top.
        x_title, y_title: what the axes count, with the unit.
        title: one line above, drawn literally.
        levels: heights to be marked, with names.
        log: whether the vertical axis is logarithmic; all values must then be above 0.
        dark: True on a dark page.
        size: height of the figure in pixels.
        number: how the hover writes values.

    Raises:
        ShapeError: a line has another number of points than the axis.
        CaptureError: a value is infinite, or not above 0 on a logarithmic axis.
    """
    for line in lines:
        checked_shape(f"values of “{line.name}”", np.shape(line.values), np.shape(x), "the axis", "(points)")
        _checked_range(line, log)
    figure = plane(title, x_title, y_title, dark=dark, size=size, legend=len(lines) if len(lines) > 1 else 0)
    if log:
        figure.layout.yaxis.update(type="log", dtick=1, exponentformat="none", separatethousands=True)
    for line in lines:
        figure.add_scatter(
            x=x,
            y=np.asarray(line.values, dtype=np.float32),
            mode="lines",
            name=literal(line.name),
            line={"color": line_colour(line.role, dark), "width": 2.5, "dash": line.dash}
            | ({"shape": "hvh"} if line.steps else {}),
            hovertemplate=f"%{{x}}: %{{y:{number}}}" + f"<extra>{literal(line.name)}</extra>",
        )
    for level in levels:
        _add_level(figure, level, x, log, dark)
    return figure


def bars(
    labels: Sequence[str],
    values: Floats,
    *,
    x_title: str,
    y_title: str,
    title: str = "",
    selected: int | None = None,
    dark: bool = False,
    size: int = 340,
) -> go.Figure:
    """Draw one bar for each label, with its value above where there is room; the selected one in the accent colour.

    Args:
        labels: N texts, drawn literally.
        values: N numbers, 0 or more.
        x_title, y_title: what the axes count, with the unit.
        title: one line above, drawn literally.
        selected: which bar is picked.
        dark: True on a dark page.
        size: height of the figure in pixels.

    Raises:
        ShapeError: there are more labels than values, or fewer.
    """
    values = np.asarray(values, dtype=np.float64)
    checked_shape("values", values.shape, (len(labels),), "the labels", "(bars)")
    figure = plane(title, x_title, y_title, dark=dark, size=size)
    colours = [line_colour("accent" if index == selected else "before", dark) for index in range(len(labels))]
    figure.add_bar(
        x=list(range(len(labels))),
        y=values,
        marker={"color": colours},
        text=[f"{value:.3g}" for value in values] if len(labels) <= 8 else None,
        textposition="outside",
        cliponaxis=False,
        hovertemplate=f"{literal(x_title)} %{{x}}: %{{y:.4g}}<extra></extra>",
    )
    step = max(1, -(-len(labels) // 16))
    figure.update_xaxes(
        tickvals=list(range(0, len(labels), step)),
        ticktext=[literal(label) for label in labels[::step]],
        showgrid=False,
    )
    return figure


def plane(title: str, x_title: str, y_title: str, *, dark: bool, size: int, legend: int = 0) -> go.Figure:
    """Return an empty chart with both axes named, a quiet grid, and room for its title and so many names of lines."""
    above = (36 if title else 10) + LEGEND_LINE * -(-legend // 2)  # two names on a line, where the chart is narrow
    axis: dict[str, Any] = {
        "gridcolor": GRID_DARK if dark else GRID_LIGHT,
        "zeroline": False,
        "automargin": True,
        "ticks": "",
        "tickfont": {"size": 13},
    }
    return go.Figure(
        layout={
            "template": "none",
            "height": size,
            "margin": {"l": 8, "r": 16, "t": above, "b": 8},
            "paper_bgcolor": CLEAR,
            "plot_bgcolor": CLEAR,
            "font": {"size": 13, "color": ink(dark)},
            "title": {
                **{"text": literal(title), "font": {"size": 16}, "x": 0, "xref": "container", "y": 1},
                **{"yref": "container", "yanchor": "top", "pad": {"t": 8, "l": 8}},
            },
            "showlegend": legend > 0,
            "legend": {
                **{"orientation": "h", "x": 0, "xref": "paper", "y": 1, "yanchor": "bottom", "font": {"size": 13}},
                **{"bgcolor": CLEAR, "itemclick": False, "itemdoubleclick": False},
            },
            "hoverlabel": {
                "font": {"size": 15, "color": ink(dark)},
                "bgcolor": palette.PAGE_DARK if dark else palette.PAGE_LIGHT,
            },
            "xaxis": axis | {"title": {"text": literal(x_title), "font": {"size": 14}, "standoff": 8}},
            "yaxis": axis | {"title": {"text": literal(y_title), "font": {"size": 14}, "standoff": 8}},
        }
    )


def line_colour(role: Literal["accent", "before"] | int, dark: bool) -> str:
    """Return the colour of a curve or a bar."""
    if role == "accent":
        return palette.ACCENT_DARK if dark else palette.ACCENT_LIGHT
    if role == "before":
        return palette.BEFORE_DARK if dark else palette.BEFORE_LIGHT
    scale = palette.SCALE_DARK if dark else palette.SCALE_LIGHT
    return scale[SHADES[int(role) % len(SHADES)]][1]


def _checked_range(line: Line, log: bool) -> None:
    values = np.asarray(line.values)
    present = values[~np.isnan(values)]
    if np.isinf(present).any() or (log and (present <= 0).any()):
        least = "a finite number above 0" if log else "a finite number"
        raise CaptureError(f"“{line.name}” holds a value that is not {least}, so it cannot be drawn.")


def _add_level(figure: go.Figure, level: Level, x: Numbers, log: bool, dark: bool) -> None:
    colour = palette.SOFT_INK_DARK if dark else palette.SOFT_INK_LIGHT
    figure.add_scatter(
        x=[x[0], x[-1]],
        y=[level.height, level.height],
        mode="lines",
        line={"color": colour, "width": 1.5, "dash": "dash"},
        hoverinfo="skip",
        showlegend=False,
    )
    figure.add_annotation(
        text=literal(level.name),
        x=0,
        xref="x domain",
        y=np.log10(level.height) if log else level.height,
        xanchor="left",
        xshift=8,
        yanchor="bottom",
        showarrow=False,
        font={"color": colour, "size": 14},
    )
