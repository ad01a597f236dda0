"""The frame of a plotly map: axes with one tick per token, literal text, colour bar, hatch, outline.

Every map has two pairs of axes on top of each other. The hidden pair carries the cells and one tick per
token: plotly looks the hovered cell up there, so the hover is exact and costs one label per token, not one
per cell. The visible pair carries the ticks that fit.

Dimensions: T queries (rows), S keys (columns).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from app import palette
from app.charts_inputs import Bools, isolated, printable, shortened

CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "modeBarButtons": [["zoom2d", "resetScale2d", "toImage"]],
    "toImageButtonOptions": {"format": "png", "filename": "attention", "scale": 2},
    "scrollZoom": False,
}
"""What to hand to `st.plotly_chart(figure, config=CONFIG, theme=None)`: zoom, reset, PNG and nothing else."""

CLEAR = "rgba(0,0,0,0)"
SMALL = 400
TICK_FONT = 13
TICK_LENGTH = 14
TICK_LENGTH_SMALL = 9
BAR_LENGTH = 200
FINE = 46  # tokens beyond which cells are too small for lines between them
AXIS_LETTER = 6.3  # pixels, of an axis title on average
MOST_HATCHES = 1000
_STEPS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_ENDINGS = {2: "nd", 3: "rd"}


def literal(text: str) -> str:
    """Return text that plotly draws character for character: no tags, no entities, no LaTeX."""
    escaped = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("$", "&#36;")


def ink(dark: bool) -> str:
    """Return the colour of text."""
    return palette.INK_DARK if dark else palette.INK_LIGHT


def tick_step(count: int, pixels: int, pitch: int) -> int:
    """Return the smallest round step at which `count` ticks, `pitch` pixels apart, fit into `pixels`."""
    fitting = max(pixels // pitch, 1)
    return next((step for step in _STEPS if count <= step * fitting), -(-count // fitting))


def shown_ticks(count: int, step: int, selected: int | None) -> list[int]:
    """Return the positions that get a label: every step-th, and the selected one, clear of its neighbours."""
    positions = list(range(0, count, step))
    if selected is None or selected in positions:
        return positions
    return sorted([position for position in positions if abs(position - selected) > 0.6 * step] + [selected])


def map_figure(
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str,
    dark: bool,
    size: int,
    width: int | None = None,
    row: int | None = None,
    column: int | None = None,
) -> go.Figure:
    """Return an empty map of T rows and S columns, first query on top, with titles, ticks and hover names.

    Args:
        queries: T labels, top to bottom.
        keys: S labels, left to right.
        title: one line above the map, drawn literally.
        dark: True on a dark page.
        size: height of the whole figure in pixels; small maps go without axis titles.
        width: the least width it will be shown at; None where that is more than its height.
        row, column: the selected query and key, which are labelled even where ticks are thinned.
    """
    small, pixels = size < SMALL, cells_pixels(size, width)
    x, x_names = _axis_pair(keys, "" if small else "key (attended to)", pixels, 17, column)
    y, y_names = _axis_pair(queries, "" if small else "query (attends)", pixels, 15, row)
    across, down = [-0.5, len(keys) - 0.5], [len(queries) - 0.5, -0.5]
    square = {"scaleanchor": "x"} if len(queries) <= 4 * len(keys) <= 16 * len(queries) else {}
    # Handed over whole: update_layout looks each of these up one by one, which takes ten times as long.
    layout = {
        "template": "none",
        "height": size,
        "margin": {"l": 8, "r": 8, "t": (44 if small else 94) if title else 12, "b": 8},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"size": TICK_FONT, "color": ink(dark)},
        "title": _title(title),
        "hoverlabel": {"font": {"size": 15, "color": ink(dark)}, "align": "left", "bgcolor": _page(dark)},
        "legend": {
            **{"orientation": "h", "x": 1, "xref": "container", "xanchor": "right"},
            **({"y": 1, "yanchor": "bottom"} if small else {"y": 0, "yref": "container", "yanchor": "bottom"}),
        },
        "xaxis": x_names | {"range": across},
        "yaxis": y_names | {"range": down, "constraintoward": "top"} | square,
        "xaxis2": x | {"range": across, "matches": "x", "overlaying": "x", "tickangle": -45, "side": "bottom"},
        "yaxis2": y | {"range": down, "constraintoward": "top", "matches": "y", "overlaying": "y", "side": "left"},
    }
    return go.Figure(layout=layout)


def cells_pixels(size: int, width: int | None) -> int:
    """Return the pixels that the cells of a map have on its shorter side, beside titles, labels and bar."""
    small = size < SMALL
    down = size - (110 if small else 196)
    across = down if width is None else width - (84 if small else 104)
    return max(min(down, across), 60)


def _title(text: str) -> dict[str, Any]:
    place = {"x": 0, "xref": "container", "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 10, "l": 8}}
    return place | {"text": literal(text), "font": {"size": 16}}


def _page(dark: bool) -> str:
    return palette.PAGE_DARK if dark else palette.PAGE_LIGHT


def _axis_pair(
    labels: Sequence[str], title: str, pixels: int, pitch: int, selected: int | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the visible axis, thinned and shortened, and the hidden one, which names all for the hover."""
    step = tick_step(len(labels), pixels, pitch)
    positions = shown_ticks(len(labels), step, selected)
    limit = TICK_LENGTH if title else TICK_LENGTH_SMALL
    ticks = [literal(shortened(printable(labels[position]), limit)) for position in positions]
    texts = [f"<b>{tick}</b>" if at == selected else tick for at, tick in zip(positions, ticks, strict=True)]
    ordinal = f"{step}{_ENDINGS.get(step, 'th')}"
    note = f"{title}, every {ordinal} labelled" if title and step > 1 else title
    if len(note) * AXIS_LETTER > pixels:
        note = title
    bare = {
        "type": "linear",
        "tickmode": "array",
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "constrain": "domain",
    }
    names = {
        "tickvals": list(range(len(labels))),
        "ticktext": [literal(isolated(label)) for label in labels],
        "showticklabels": False,
    }
    shown = {
        "tickvals": positions,
        "ticktext": texts,
        "ticks": "outside" if step > 1 else "",
        "ticklen": 4,
        "tickcolor": "#8a9297",
        "ticklabelstandoff": 3,
        "automargin": True,
        "title": {"text": note, "font": {"size": 14}, "standoff": 10},
    }
    return bare | shown, bare | names


def add_key(
    figure: go.Figure,
    colours: palette.Scale | None,
    bounds: tuple[float, float] = (0, 1),
    *,
    meaning: str = "",
    **bar: Any,
) -> None:
    """Add the visible axes and, where colours are given, a colour bar whose ends need not be the cells' own.

    What the colours mean stands below the figure's title.
    Plotly draws axes and bars only for a trace: this one has no points.
    """
    marker = {"color": [bounds[0]], "cmin": bounds[0], "cmax": bounds[1], "showscale": False}
    if colours is not None:
        figure.layout.title.subtitle = {"text": meaning, "font": {"size": 12}}
        # On top, below its meaning: at the side it would take a quarter of a narrow column from the map.
        frame = {
            "orientation": "h",
            "thickness": 8,
            "outlinewidth": 0,
            "tickfont": {"size": 12},
            "tickangle": 0,
            "ticklabeloverflow": "allow",  # else a label at the end goes missing while the figure finds its width
            "lenmode": "pixels",
            "len": BAR_LENGTH,
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "xpad": 34,
            "y": 1 - 60 / figure.layout.height,
            "yref": "container",
            "yanchor": "top",
            "ypad": 0,
        }
        marker |= {"colorscale": [list(stop) for stop in colours], "showscale": True, "colorbar": frame | bar}
    figure.add_scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker=marker,
        xaxis="x2",
        yaxis="y2",
        hoverinfo="skip",
        showlegend=False,
    )


def add_flat(figure: go.Figure, cells: Bools, colour: str, hover: str, *, gap: int, first_row: int = 0) -> None:
    """Add one flat colour where `cells` is True, clear elsewhere: one byte per cell, one hover template."""
    figure.add_heatmap(
        z=cells.astype(np.uint8),
        x0=0,
        dx=1,
        y0=first_row,
        dy=1,
        zmin=0,
        zmax=1,
        showscale=False,
        xgap=gap,
        ygap=gap,
        colorscale=[[0, CLEAR], [1, colour]],
        hovertemplate=hover + "<extra></extra>",
    )


def add_hatch(figure: go.Figure, cells: Bools, *, dark: bool, name: str | None) -> None:
    """Add diagonal strokes over the cells that are True; a name goes into the legend."""
    boxes = rectangles(cells)
    if not boxes or len(boxes) > MOST_HATCHES:
        return
    x: list[float | None] = []
    y: list[float | None] = []
    for top, bottom, left, right in boxes:
        x += [left - 0.5, right - 0.5, right - 0.5, left - 0.5, None]
        y += [top - 0.5, top - 0.5, bottom - 0.5, bottom - 0.5, None]
    stroke = palette.HATCH_DARK if dark else palette.HATCH_LIGHT
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines",
        line={"width": 0},
        fill="toself",
        hoverinfo="skip",
        showlegend=name is not None,
        name=name,
        fillcolor=palette.MASKED_DARK if dark else palette.MASKED_LIGHT,
        fillpattern={"shape": "/", "fgcolor": stroke, "bgcolor": CLEAR, "size": 7, "solidity": 0.18},
    )


def rectangles(cells: Bools) -> list[tuple[int, int, int, int]]:
    """Cover the True cells by (top, bottom, left, right) boxes, ends excluded; equal rows share one."""
    boxes: list[tuple[int, int, int, int]] = []
    growing: dict[tuple[int, int], int] = {}
    framed = np.pad(cells, ((0, 1), (1, 1)))  # the row added below ends all boxes
    edges = np.diff(framed.astype(np.int8), axis=1)
    for index, edge in enumerate(edges):
        runs = set(zip(np.flatnonzero(edge == 1).tolist(), np.flatnonzero(edge == -1).tolist(), strict=True))
        for run in [run for run in growing if run not in runs]:
            boxes.append((growing.pop(run), index, *run))
        for run in sorted(runs):
            growing.setdefault(run, index)
    return boxes


def add_outline(figure: go.Figure, shape: tuple[int, int], row: int | None, column: int | None, dark: bool) -> None:
    """Frame the selected row and column of a (T, S) map in the accent colour, on one of the page's."""
    rows, columns = shape
    fine = max(shape) > FINE
    accent = {"color": palette.ACCENT_DARK if dark else palette.ACCENT_LIGHT, "width": 1 if fine else 2.5}
    halo = {"color": _page(dark), "width": 2 if fine else 5}
    for line in (halo, accent):
        if row is not None:
            figure.add_shape(x0=-0.5, x1=columns - 0.5, y0=row - 0.5, y1=row + 0.5, line=line)
        if column is not None:
            figure.add_shape(x0=column - 0.5, x1=column + 0.5, y0=-0.5, y1=rows - 0.5, line=line)


def empty_figure(title: str, dark: bool, size: int) -> go.Figure:
    """Return a figure that says "no data" instead of showing bare axes."""
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=min(size, 240),
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        font={"size": TICK_FONT, "color": ink(dark)},
        title=_title(title),
        margin={"l": 8, "r": 8, "t": 44, "b": 8},
        xaxis={"visible": False},
        yaxis={"visible": False},
    )
    figure.add_annotation(text="no data", showarrow=False, font={"size": 16}, xref="paper", yref="paper", x=0.5, y=0.5)
    return figure
