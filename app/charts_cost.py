"""Cost against length, both axes logarithmic: a cost that grows with the square is a line twice as steep.

Dimensions: N lengths.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import plotly.graph_objects as go

from app import palette
from app.charts_axes import ink, literal
from app.charts_curves import line_colour, plane
from app.charts_inputs import checked_shape
from app.cost_units import BINARY, PREFIXES, flop_text, time_text
from app.phrases import SPACE
from engine.errors import CaptureError

Unit = Literal["FLOP", "B", "s"]
Role = Literal["accent", "total", "before"] | int
Dash = Literal["solid", "dash", "dot", "dashdot"]
MARK_LINE = 20  # pixels, for the name of one mark
LEAST_TICKS, MOST_TICKS = 3, 7
TIMES = {-9: "1 ns", -6: "1 µs", -5: "10 µs", -4: "100 µs", -3: "1 ms", -2: "10 ms", -1: "100 ms", 0: "1 s", 1: "10 s",
         2: "100 s"}  # fmt: skip
ROOM = 1.6  # times the largest value, and the least divided by it: the ends of the vertical axis


@dataclass(frozen=True)
class Series:
    """One curve, or some points.

    Attributes:
        name: what it is, for the legend and the hover; drawn literally.
        lengths: tokens, rising, (N,).
        values: above 0, or None for a gap, (N,).
        texts: the exact values with their unit, for the hover, (N,).
        role: "accent" for what matters, "total" for the sum, "before" for what matters least, or a number for others.
        dash: how the line is drawn.
        points: whether single points are drawn instead of a line.
    """

    name: str
    lengths: Sequence[int]
    values: Sequence[float | None]
    texts: Sequence[str]
    role: Role = "accent"
    dash: Dash = "solid"
    points: bool = False


@dataclass(frozen=True)
class Mark:
    """A length with a name, drawn as an upright line; `main` is the one that the reader has chosen."""

    name: str
    tokens: int
    main: bool = False


def cost_curves(
    series: Sequence[Series],
    *,
    unit: Unit,
    title: str,
    y_title: str,
    x_title: str = "length of the text (tokens)",
    marks: Sequence[Mark] = (),
    dark: bool = False,
    size: int = 520,
) -> go.Figure:
    """Draw costs against length.

    Args:
        series: what to draw, the last on top.
        unit: what the values count, which decides the ticks: FLOP in thousands, bytes in 1,024s, seconds in tens.
        title: one line above, drawn literally.
        y_title, x_title: what the axes count, with the unit.
        marks: lengths to be marked; names literally.
        dark: True on a dark page.
        size: height of the figure in pixels.

    Raises:
        ShapeError: a series has more lengths than values, or fewer.
        CaptureError: a value or a length is not a finite number above 0.
    """
    for drawn in series:
        _checked(drawn)
    present = [value for drawn in series for value in drawn.values if value is not None] or [1.0, 10.0]
    lengths = [length for drawn in series for length in drawn.lengths] or [1, 10]
    low, high, left, right = min(present) / ROOM, max(present) * ROOM, min(lengths), max(lengths)
    figure = plane(title, x_title, y_title, dark=dark, size=size)
    figure.layout.margin.update(t=(38 if title else 10) + MARK_LINE * len(marks), r=20)
    figure.layout.xaxis.update(type="log", range=_padded(left, right), **_length_ticks(left, right))
    figure.layout.yaxis.update(type="log", range=[math.log10(low), math.log10(high)], **_ticks(unit, low, high))
    figure.layout.showlegend = True
    figure.layout.legend.update(y=0, yref="container", yanchor="bottom", traceorder="normal")
    for row, (mark, anchor) in reversed(list(enumerate(_in_rows(marks, left, right)))):
        _add_mark(figure, mark, row, anchor, dark)
    for drawn in series:
        _add_series(figure, drawn, dark)
    return figure


def _padded(left: float, right: float) -> list[float]:
    """Give the ends of the axis a little more room than its values need."""
    start, end = math.log10(left), math.log10(right)
    room = 0.02 * (end - start) or 0.3
    return [start - room, end + room]


def _length_ticks(left: int, right: int) -> dict[str, Any]:
    """Name every power of ten; where few would be seen, powers of two."""
    if right / left > 100:
        ticks = [10**power for power in range(math.ceil(math.log10(left)), math.floor(math.log10(right)) + 1)]
    else:
        ticks = [2**power for power in range(math.ceil(math.log2(left)), math.floor(math.log2(right)) + 1)]
    return {"tickmode": "array", "tickvals": ticks, "ticktext": [_short(tick) for tick in ticks], "tickangle": 0}


def _short(tick: int) -> str:
    """Write a power of ten short enough for a telephone: "100k"; a power of two in full."""
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if tick >= size and tick % size == 0:
            return f"{tick // size}{letter}"
    return f"{tick:,}"


def _ticks(unit: Unit, low: float, high: float) -> dict[str, Any]:
    """Name a few round values between the ends: rounder ones where they are enough."""
    inside: dict[float, str] = {}
    for named in _round(unit):
        inside = {value: name for value, name in named.items() if low <= value <= high}
        if len(inside) >= LEAST_TICKS:
            break
    kept = list(inside)[:: -(-len(inside) // MOST_TICKS)] if inside else []
    return {"tickmode": "array", "tickvals": kept, "ticktext": [inside[value] for value in kept]}


def _round(unit: Unit) -> Iterator[dict[float, str]]:
    """Give round values with their names, ever more of them."""
    if unit == "B":
        for step in (10, 2, 1):  # each tick 1,024 times the last, or four times, or twice
            yield {2.0**power: _binary(power) for power in range(0, 10 * len(BINARY), step)}
    elif unit == "s":
        yield {10.0**power: name.replace(" ", SPACE) for power, name in TIMES.items()}
        yield {digit * 10.0**power: time_text(digit * 10.0**power) for power in TIMES for digit in (1, 2, 5)}
    else:
        yield {1000.0**step: f"1{SPACE}{prefix}FLOP" for step, prefix in enumerate(PREFIXES)}
        powers = range(3 * len(PREFIXES))
        yield {10.0**power: flop_text(10**power) for power in powers}
        yield {digit * 10.0**power: flop_text(digit * 10**power) for power in powers for digit in (1, 2, 5)}


def _in_rows(marks: Sequence[Mark], left: int, right: int) -> list[tuple[Mark, str]]:
    """Order names from the lowest row up, so that none stands in the way of another's line.

    Names in the right half end at their line, names in the left half begin there.
    """
    half = math.sqrt(left * right)
    ending = sorted((mark for mark in marks if mark.tokens > half), key=lambda mark: mark.tokens)
    beginning = sorted((mark for mark in marks if mark.tokens <= half), key=lambda mark: -mark.tokens)
    return [*((mark, "right") for mark in ending), *((mark, "left") for mark in beginning)]


def _binary(power: int) -> str:
    """Write 2 to some power as bytes: "64 MiB"."""
    return f"{2 ** (power % 10)}{SPACE}{BINARY[power // 10]}"


def _add_series(figure: go.Figure, drawn: Series, dark: bool) -> None:
    colour = ink(dark) if drawn.role == "total" else line_colour(drawn.role, dark)
    name = literal(drawn.name)
    looks: dict[str, Any] = (
        {"mode": "markers", "marker": {"color": colour, "size": 10, "line": {"width": 1.5, "color": _page(dark)}}}
        if drawn.points
        else {"mode": "lines", "line": {"color": colour, "width": _thickness(drawn), "dash": drawn.dash}}
    )
    figure.add_scatter(
        x=list(drawn.lengths),
        y=list(drawn.values),
        name=name,
        text=[literal(text) for text in drawn.texts],
        hovertemplate=f"%{{x:,}} tokens: %{{text}}<extra>{name}</extra>",
        **looks,
    )


def _thickness(drawn: Series) -> float:
    return 3.5 if drawn.role == "accent" else 1.8 if drawn.role == "total" else 2.4


def _add_mark(figure: go.Figure, mark: Mark, row: int, anchor: str, dark: bool) -> None:
    soft = palette.SOFT_INK_DARK if dark else palette.SOFT_INK_LIGHT
    colour = line_colour("accent", dark) if mark.main else soft
    figure.add_shape(
        type="line", x0=mark.tokens, x1=mark.tokens, yref="paper", y0=0, y1=1, layer="below",
        line={"color": colour, "width": 2 if mark.main else 1.4, "dash": "solid" if mark.main else "dot"},
    )  # fmt: skip
    figure.add_annotation(
        text=f"{literal(mark.name)}: {mark.tokens:,}",
        x=math.log10(mark.tokens),
        y=1,
        yref="paper",
        ax=0,
        ay=-MARK_LINE * row - 8,
        showarrow=True,
        arrowhead=0,
        arrowwidth=1,
        arrowcolor=colour,
        xanchor=anchor,
        yanchor="bottom",
        bgcolor=_page(dark),
        borderpad=1,
        font={"size": 14, "color": colour},
    )


def _page(dark: bool) -> str:
    return palette.PAGE_DARK if dark else palette.PAGE_LIGHT


def _checked(drawn: Series) -> None:
    name = f"“{drawn.name}”"
    for what, held in (("values", drawn.values), ("texts", drawn.texts)):
        checked_shape(f"{what} of {name}", (len(held),), (len(drawn.lengths),), "its lengths", "(lengths)")
    numbers = [*drawn.lengths, *(value for value in drawn.values if value is not None)]
    if any(not (0 < number < math.inf) for number in numbers):
        raise CaptureError(f"{name} holds a value that is not a finite number above 0, so it cannot be drawn.")
