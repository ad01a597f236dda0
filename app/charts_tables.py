"""Tables of positions as maps in plotly: what is added to each word, how alike two positions are, T5's buckets.

Dimensions: P positions, C model width, T queries (rows), S keys (columns).
"""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from app import palette
from app.charts_axes import BAR_LENGTH, add_key, cells_pixels, empty_figure, literal, map_figure, tick_step
from app.charts_curves import plane
from app.charts_inputs import Floats, checked_shape, checked_values, isolated, shortened
from engine.errors import ShapeError

TOP = 92  # pixels above a map: its title, what its colours mean, their bar
LABEL_LENGTH = 14
LEAST_NUMBER = 15  # pixels of a cell, below which two digits cannot be read in it
MOST_BUCKET_LABELS = 5


def table_map(
    table: Floats,
    words: Sequence[str],
    *,
    title: str,
    reach: float | None = None,
    dark: bool = False,
    size: int = 460,
) -> go.Figure:
    """Draw a table of positions: one row for each position, one column for each dimension, neutral at 0.

    Args:
        table: (P, C).
        words: the sentence; its words name the first rows, drawn literally.
        title: one line above the map, drawn literally.
        reach: the colours go from minus this to this; None for the largest value. Larger ones get the last colour.
        dark: True on a dark page.
        size: height of the figure in pixels.

    Raises:
        ShapeError: the table has not two dimensions.
        CaptureError: a value is not a finite number.
    """
    table = _flat_table(table)
    if not table.size:
        return empty_figure(title, dark, size)
    largest = float(np.abs(table).max()) or 1.0
    reach = reach or largest
    meaning = "value" if reach >= largest else f"value; the largest is {largest:.2g}"
    figure = _named_rows(table, words, title, dark, size)
    _add_map(figure, table, reach, f"%{{y}}, dimension %{{x}}: %{{z:.3f}}<extra></extra>", meaning, dark)  # noqa: F541
    return figure


def similarity_map(
    similarity: Floats, words: Sequence[str], *, title: str, dark: bool = False, size: int = 460
) -> go.Figure:
    """Draw how alike each two positions are, from -1 (opposite) over 0 (nothing in common) to 1 (the same direction).

    Args:
        similarity: (P, P).
        words: the sentence; its words name the first rows, drawn literally.
        title: one line above the map, drawn literally.
        dark: True on a dark page.
        size: height of the figure in pixels.

    Raises:
        ShapeError: the map is not square.
        CaptureError: a value is not a finite number.
    """
    similarity = _flat_table(similarity)
    count = len(similarity)
    checked_shape("similarities", similarity.shape, (count, count), "positions", "(positions, positions)")
    if not count:
        return empty_figure(title, dark, size)
    figure = _named_rows(similarity, words, title, dark, size, x_title="position")
    figure.layout.yaxis.update(scaleanchor="x", constrain="domain", constraintoward="top")
    figure.layout.xaxis.update(constrain="domain", constraintoward="left")
    _add_map(figure, similarity, 1.0, "%{y} and %{x}: %{z:.3f}<extra></extra>", "cosine similarity", dark)
    return figure


def bucket_map(
    buckets: NDArray[np.integer],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    count: int,
    title: str,
    dark: bool = False,
    size: int = 460,
    width: int | None = None,
) -> go.Figure:
    """Draw which bucket each query and key fall into, with its number where there is room.

    Args:
        buckets: (T, S), from 0 to count - 1.
        queries, keys: T and S labels, drawn literally.
        count: how many buckets there are.
        title: one line above the map, drawn literally.
        dark: True on a dark page.
        size: height of the figure in pixels.
        width: the least width it will be shown at; None where that is more than its height.

    Raises:
        ShapeError: the labels do not fit the buckets.
    """
    numbers, _ = checked_values(np.asarray(buckets, dtype=np.float32), queries, keys, None)
    if not numbers.size:
        return empty_figure(title, dark, size)
    figure = map_figure(queries, keys, title=title, dark=dark, size=size, width=width)
    colours = palette.SCALE_DARK if dark else palette.SCALE_LIGHT
    readable = cells_pixels(size, width) / max(numbers.shape) >= LEAST_NUMBER
    figure.add_heatmap(
        z=numbers,
        zmin=0,
        zmax=count - 1,
        colorscale=[list(stop) for stop in colours],
        showscale=False,
        xgap=1,
        ygap=1,
        texttemplate="%{z:d}" if readable else None,
        textfont={"size": 11},
        hovertemplate="%{y} → %{x}: bucket %{z:d}<extra></extra>",
    )
    ticks = np.unique(np.linspace(0, count - 1, min(count, MOST_BUCKET_LABELS)).round().astype(int))
    add_key(figure, colours, (0, count - 1), meaning="bucket", tickvals=ticks.tolist())
    return figure


def _flat_table(values: Floats) -> Floats:
    values = np.asarray(values)
    if values.ndim != 2:
        raise ShapeError(f"A map is drawn of rows and columns, but this has shape {values.shape}.")
    rows, columns = ([str(index) for index in range(length)] for length in values.shape)
    return checked_values(values, rows, columns, None)[0]


def _named_rows(
    values: Floats, words: Sequence[str], title: str, dark: bool, size: int, x_title: str = "dimension"
) -> go.Figure:
    """Return an empty map whose first rows are called by the words of the sentence, the others by their numbers."""
    rows, columns = values.shape
    figure = plane(title, x_title, "position (tokens)", dark=dark, size=size)
    figure.layout.margin.t = TOP
    step = tick_step(rows, size - TOP - 50, 17)
    shown = list(range(0, rows, step))
    names = [
        f"{row} {literal(isolated(shortened(words[row], LABEL_LENGTH)))}" if row < len(words) else str(row)
        for row in shown
    ]
    figure.layout.yaxis.update(
        tickvals=shown, ticktext=names, range=[rows - 0.5, -0.5], showgrid=False, tickmode="array", ticklabelstandoff=4
    )
    figure.layout.xaxis.update(range=[-0.5, columns - 0.5], showgrid=False, nticks=9)
    return figure


def _add_map(figure: go.Figure, values: Floats, reach: float, hover: str, meaning: str, dark: bool) -> None:
    colours = palette.DIVERGING_DARK if dark else palette.DIVERGING_LIGHT
    figure.layout.title.subtitle = {"text": literal(meaning), "font": {"size": 12}}
    figure.add_heatmap(
        z=values.astype(np.float32),
        zmin=-reach,
        zmax=reach,
        colorscale=[list(stop) for stop in colours],
        hovertemplate=hover,
        colorbar={
            "orientation": "h",
            "thickness": 8,
            "outlinewidth": 0,
            "tickfont": {"size": 12},
            "tickvals": [-reach, 0, reach],
            "ticktext": [f"{tick:.2g}".replace("-", "−") for tick in (-reach, 0, reach)],
            "ticklabeloverflow": "allow",
            "lenmode": "pixels",
            "len": BAR_LENGTH,
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "xpad": 34,
            "y": 1 - 58 / figure.layout.height,
            "yref": "container",
            "yanchor": "top",
            "ypad": 0,
        },
    )
