"""Maps of queries against keys in plotly: weights, masks, scores.

Dimensions: T queries (rows), S keys (columns).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from app import palette
from app.charts_axes import (
    FINE,
    add_flat,
    add_hatch,
    add_key,
    add_outline,
    cells_pixels,
    empty_figure,
    map_figure,
    rectangles,
)
from app.charts_inputs import Bools, Floats, checked_index, checked_mask, checked_shape, checked_values
from app.charts_scales import weight_scale
from app.phrases import LEAST_PERCENT

LEAST_INFINITY = 11  # pixels of a cell, below which −∞ cannot be read in it


def heatmap(
    weights: Floats,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    visible: Bools | None = None,
    title: str = "",
    dark: bool = False,
    log: bool = False,
    unit: bool = False,
    floor: float = 0.0,
    row: int | None = None,
    column: int | None = None,
    size: int = 560,
    width: int | None = None,
) -> go.Figure:
    """Draw attention weights, one square per query and key.

    Args:
        weights: (T, S), each between 0 and 1.
        queries: T labels, shown literally from top to bottom.
        keys: S labels, shown literally from left to right.
        visible: (T, S), False where the mask hides the key: hatched, never coloured as zero.
        title: one line that names layer and head.
        dark: True on a dark page.
        log: colour by the logarithm, over the four decades below the top of the scale.
        unit: the scale ends at 100 %; otherwise at the largest weight of the selected row, or of the map.
        floor: weights below it, from 0 to 1, get the colour of 0; their hover stays exact.
        row, column: the selected query and key, outlined.
        size: height of the figure in pixels.
        width: the least width it will be shown at, in pixels; None where that is more than its height.

    Raises:
        ShapeError: shapes differ, or row or column lies outside the map.
        CaptureError: a visible weight is not a finite number.
    """
    weights, seen = checked_values(weights, queries, keys, visible)
    checked_index("row", row, len(queries))
    checked_index("column", column, len(keys))
    if not weights.size:
        return empty_figure(title, dark, size)
    percent = np.where(seen, weights.astype(np.float32) * 100, np.nan).astype(np.float32)
    word = "" if row is None else queries[row]
    scale = weight_scale(percent, unit=unit, row=row, log=log, floor=floor * 100, word=word)
    colours = palette.SCALE_DARK if dark else palette.SCALE_LIGHT
    figure = map_figure(queries, keys, title=title, dark=dark, size=size, width=width, row=row, column=column)
    gap = _gap(weights)
    if not seen.all():
        _add_masked(figure, seen, "%{y} → %{x} masked", dark=dark, gap=gap)
    for cells, number in _by_wording(percent, log):
        _add_cells(figure, cells, (0, scale.top), scale.stops(colours), f"%{{y}} → %{{x}} {number} %", gap)
    add_outline(figure, weights.shape, row, column, dark)
    add_key(figure, colours, scale.bounds, **scale.bar())
    return figure


def mask_matrix(
    visible: Bools,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str = "",
    dark: bool = False,
    padding: Sequence[bool] | None = None,
    row: int | None = None,
    size: int = 260,
    width: int | None = None,
) -> go.Figure:
    """Draw which key each query may see: one colour for visible, hatched grey for hidden.

    Args:
        visible: (T, S), True where the query may see the key.
        queries: T labels, shown literally from top to bottom.
        keys: S labels, shown literally from left to right.
        title: the mask's name.
        dark: True on a dark page.
        padding: T flags, True where the query is padding; such rows are greyed throughout.
        row: the selected query, outlined.
        size: height of the figure in pixels.
        width: the least width it will be shown at, in pixels; None where that is more than its height.

    Raises:
        ShapeError: shapes differ, or row lies outside the map.
    """
    seen = checked_mask(visible, (len(queries), len(keys)))
    padded = np.zeros(len(queries), dtype=np.bool_) if padding is None else np.asarray(padding, dtype=np.bool_)
    checked_shape("padding flags", padded.shape, (len(queries),), "the labels", "(queries)")
    checked_index("row", row, len(queries))
    if not seen.size:
        return empty_figure(title, dark, size)
    figure = map_figure(queries, keys, title=title, dark=dark, size=size, width=width, row=row)
    gap = _gap(seen)
    shown = seen & ~padded[:, None]
    colour = palette.VISIBLE_DARK if dark else palette.VISIBLE_LIGHT
    _add_masked(figure, shown, "%{y} may not see %{x}", dark=dark, gap=gap, hatch=False)
    add_hatch(figure, ~seen & ~padded[:, None], dark=dark, name=None)
    cells = np.where(shown, 1, np.nan).astype(np.float32)
    _add_cells(figure, cells, (0, 1), [[0, colour], [1, colour]], "%{y} may see %{x}", gap)
    for first, last, _, _ in rectangles(padded[:, None]):
        nothing = np.zeros((last - first, len(keys)), dtype=np.bool_)
        add_flat(figure, nothing, colour, "%{y} is padding", gap=gap, first_row=first)
    add_outline(figure, seen.shape, row, None, dark)
    add_key(figure, None)
    return figure


def scores_figure(
    scores: Floats,
    visible: Bools | None,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    dark: bool = False,
    stage: Literal["before", "after"] = "before",
    title: str = "",
    meaning: str = "score q · k / √D",
    row: int | None = None,
    reach: float | None = None,
    size: int = 460,
    width: int | None = None,
) -> go.Figure:
    """Draw the scaled scores that go into the softmax, on a scale that is neutral at 0.

    Args:
        scores: (T, S), q · k / √d with any bias, before the mask.
        visible: (T, S), False where the mask hides the key; None when nothing is masked.
        queries: T labels, shown literally from top to bottom.
        keys: S labels, shown literally from left to right.
        dark: True on a dark page.
        stage: "before" the mask every score is shown; "after" it masked cells are −∞.
        title: one line that names layer and head.
        meaning: what a cell holds, where it is a part of the score.
        row: the selected query, outlined.
        reach: the scale goes from minus this to this, so that two figures can share one; None for the largest
            score that is shown.
        size: height of the figure in pixels.
        width: the least width it will be shown at, in pixels; None where that is more than its height.

    Raises:
        ShapeError: shapes differ, or row lies outside the map.
        CaptureError: a shown score is not a finite number.
    """
    shape = (len(queries), len(keys))
    seen = checked_mask(visible, shape) if stage == "after" else np.ones(shape, dtype=np.bool_)
    scores, seen = checked_values(scores, queries, keys, seen)
    checked_index("row", row, len(queries))
    if not scores.size:
        return empty_figure(title, dark, size)
    shown = np.where(seen, scores, np.nan).astype(np.float32)
    reach = reach or float(np.abs(scores[seen]).max(initial=0)) or 1.0
    figure = map_figure(queries, keys, title=title, dark=dark, size=size, width=width, row=row)
    gap = _gap(scores)
    if not seen.all():
        _add_infinities(figure, seen, cells_pixels(size, width) / max(shape), gap, dark)
    colours = palette.DIVERGING_DARK if dark else palette.DIVERGING_LIGHT
    stops: list[list[float | str]] = [[place, colour] for place, colour in colours]
    _add_cells(figure, shown, (-reach, reach), stops, "%{y} · %{x} %{z:.3f}", gap)
    add_outline(figure, shape, row, None, dark)
    ticks = [-reach, 0, reach]
    add_key(
        figure,
        colours,
        (-reach, reach),
        tickvals=ticks,
        ticktext=[f"{tick:.3g}".replace("-", "−") for tick in ticks],
        meaning=meaning,
    )
    return figure


def _by_wording(percent: Floats, log: bool) -> list[tuple[NDArray[np.float32], str]]:
    """Part cells by how their hover writes them: what one decimal would round to 0 or to 100 is put in words.

    Returns:
        Maps of the same shape, NaN elsewhere, each with the number in its hover; the first has most cells.
    """
    tiny = (percent > 0) & (percent < LEAST_PERCENT) & (not log)  # on that scale every digit is shown
    nearly = (percent >= 100 - LEAST_PERCENT) & (percent < 100)
    parts = [(~tiny & ~nearly, "%{z:.3~g}" if log else "%{z:.1f}"), (tiny, "&lt;0.1"), (nearly, "&gt;99.9")]
    return [
        (np.where(part, percent, np.nan).astype(np.float32), number)
        for at, (part, number) in enumerate(parts)
        if at == 0 or part.any()
    ]


def _add_infinities(figure: go.Figure, seen: Bools, cell: float, gap: int, dark: bool) -> None:
    """Draw masked scores as −∞: written where a cell has room for it, in so many pixels, hatched elsewhere."""
    writes = cell >= LEAST_INFINITY
    _add_masked(figure, seen, "%{y} · %{x} −∞ (masked)", dark=dark, gap=gap, hatch=not writes)
    if writes:
        _write_infinities(figure, ~seen, min(10.0, round(cell / 1.55, 1)), dark)


def _gap(cells: np.ndarray) -> int:
    """Return the pixels between cells: small maps are easier to count with a line between them."""
    return 1 if max(cells.shape) <= FINE else 0


def _add_cells(
    figure: go.Figure,
    cells: NDArray[np.float32],
    bounds: tuple[float, float],
    stops: list[list[float | str]],
    hover: str,
    gap: int,
) -> None:
    """Draw cells by colour; NaN leaves a gap that shows, and names, whatever was drawn below."""
    figure.add_heatmap(
        z=cells,
        zmin=bounds[0],
        zmax=bounds[1],
        colorscale=stops,
        showscale=False,
        hoverongaps=False,
        xgap=gap,
        ygap=gap,
        hovertemplate=hover + "<extra></extra>",
    )


def _add_masked(figure: go.Figure, seen: Bools, hover: str, *, dark: bool, gap: int, hatch: bool = True) -> None:
    """Draw the hidden cells below the others, whose gaps there let the hover fall through."""
    add_flat(figure, ~seen, palette.MASKED_DARK if dark else palette.MASKED_LIGHT, hover, gap=gap)
    if hatch:
        add_hatch(figure, ~seen, dark=dark, name="masked")


def _write_infinities(figure: go.Figure, masked: Bools, size: float, dark: bool) -> None:
    rows, columns = np.nonzero(masked)
    figure.add_scatter(
        x=columns.tolist(),
        y=rows.tolist(),
        mode="text",
        text="−∞",
        hoverinfo="skip",
        showlegend=False,
        textfont={"size": size, "color": palette.SOFT_INK_DARK if dark else palette.SOFT_INK_LIGHT},
    )
