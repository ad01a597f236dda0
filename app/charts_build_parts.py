"""Pictures in plotly of what a transformer consists of: its parameters by part, and heads that share keys and values.

Dimensions: H query heads, G key-value heads, S keys.
"""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from app import palette
from app.charts_axes import CLEAR, TICK_LENGTH, ink, literal
from app.charts_curves import line_colour, plane
from app.charts_inputs import Bools, Floats, printable, shortened
from app.charts_matrix import heatmap
from engine.errors import ShapeError

GROUP_COLOURS = 4  # neighbours differ, and the fifth group begins anew
WIDEST_MARK, NARROWEST_MARK = 24, 4
ACROSS = 480  # pixels that a row of heads has at least
NUMBERED = 16  # heads, up to which each carries its number
ROW_HEIGHT = 200  # pixels of a map with one row
MOST_TICKS = 24
BAR_PITCH = 46  # pixels


def parts_bars(parts: Mapping[str, int], *, dark: bool = False) -> go.Figure:
    """Draw a bar for each part of a model, as long as it has parameters, under its name and number.

    Args:
        parts: names and numbers of parameters, drawn from top to bottom; names literally.
        dark: True on a dark page.
    """
    total, longest = sum(parts.values()) or 1, max(parts.values(), default=1)
    figure = plane("", "", "", dark=dark, size=16 + BAR_PITCH * max(len(parts), 1), legend=False)
    figure.add_bar(
        x=list(parts.values()),
        y=list(range(len(parts))),
        orientation="h",
        marker={"color": line_colour("accent", dark)},
        width=0.36,
        hovertemplate="%{x:,} parameters<extra></extra>",
    )
    for row, (name, count) in enumerate(parts.items()):
        figure.add_annotation(
            text=f"{literal(name)}: {count:,} · {_share(count / total)}", showarrow=False, x=0, y=row - 0.2,
            xanchor="left", yanchor="bottom", font={"size": 15},
        )  # fmt: skip
    figure.layout.margin.update(l=4, r=4)
    figure.layout.xaxis.update(visible=False, range=[0, longest], fixedrange=True)
    figure.layout.yaxis.update(visible=False, range=[len(parts) - 0.7, -0.85], fixedrange=True)
    return figure


def sharing(heads: int, groups: int, *, dark: bool = False) -> go.Figure:
    """Draw which query heads share which key-value head: H dots above, G below, one line from each.

    Args:
        heads: H.
        groups: G, a divisor of H.
        dark: True on a dark page.

    Raises:
        ShapeError: the heads cannot be shared evenly.
    """
    if heads < 1 or groups < 1 or heads % groups:
        raise ShapeError(f"{heads} heads cannot share {groups} key-value heads evenly.")
    size = heads // groups
    below = [(group + 0.5) * size - 0.5 for group in range(groups)]
    figure = _two_rows(heads, groups, dark)
    for shade in range(min(GROUP_COLOURS, groups)):
        mine = list(range(shade, groups, GROUP_COLOURS))
        x: list[float | None] = []
        for group in mine:
            for head in range(group * size, (group + 1) * size):
                x += [head, below[group], None]
        figure.add_scatter(
            x=x, y=[1, 0, None] * (len(x) // 3), mode="lines", hoverinfo="skip", showlegend=False,
            line={"color": line_colour(shade, dark), "width": 2 if heads <= 32 else 1.2},
        )  # fmt: skip
    _add_dots(figure, 1, list(range(heads)), [head // size for head in range(heads)], "query head", dark)
    _add_dots(figure, 0, below, list(range(groups)), "key-value head", dark)
    return figure


def cached_row(
    weights: Floats, query: str, keys: Sequence[str], visible: Bools, *, title: str, dark: bool = False
) -> go.Figure:
    """Draw the one row that is computed for a new word, over all words so far, each labelled, on a scale to 100 %.

    Args:
        weights: (1, S), each between 0 and 1.
        query: the new word, drawn literally.
        keys: S labels, drawn literally.
        visible: (1, S), False where the mask hides the key.
        title: one line above, drawn literally.
        dark: True on a dark page.
    """
    figure = heatmap(weights, [query], keys, visible=visible, title=title, row=0, unit=True, dark=dark, size=ROW_HEIGHT)
    step = -(-len(keys) // MOST_TICKS)
    figure.layout.xaxis2.update(
        tickvals=list(range(0, len(keys), step)),
        ticktext=[literal(shortened(printable(key), TICK_LENGTH)) for key in keys[::step]],
    )
    return figure


def _two_rows(heads: int, groups: int, dark: bool) -> go.Figure:
    edge = 0.7 if heads > 1 else 1.0
    figure = go.Figure(
        layout={
            "template": "none",
            "height": 210,
            "margin": {"l": 4, "r": 4, "t": 34, "b": 34},
            "paper_bgcolor": CLEAR,
            "plot_bgcolor": CLEAR,
            "font": {"size": 15, "color": ink(dark)},
            "showlegend": False,
            "xaxis": {"visible": False, "range": [-edge, heads - 1 + edge], "fixedrange": True},
            "yaxis": {"visible": False, "range": [-0.22, 1.22], "fixedrange": True},
            "hoverlabel": {
                "font": {"size": 15, "color": ink(dark)},
                "bgcolor": palette.PAGE_DARK if dark else palette.PAGE_LIGHT,
            },
        }
    )
    for y, anchor, count, name in ((1, "bottom", heads, "query head"), (0, "top", groups, "key-value head")):
        figure.add_annotation(
            text=f"{count} {name}{'s' * (count > 1)}", showarrow=False, xref="paper", yref="paper", x=0, y=y,
            xanchor="left", yanchor=anchor, yshift=6 if y else -6,
        )  # fmt: skip
    return figure


def _add_dots(figure: go.Figure, y: int, x: list[float], groups: list[int], name: str, dark: bool) -> None:
    heads = figure.layout.xaxis.range[1] - figure.layout.xaxis.range[0]
    mark = max(NARROWEST_MARK, min(WIDEST_MARK, int(0.72 * ACROSS / heads)))
    page = palette.PAGE_DARK if dark else palette.PAGE_LIGHT
    numbered = heads <= NUMBERED + 2
    figure.add_scatter(
        x=x,
        y=[y] * len(x),
        mode="markers+text" if numbered else "markers",
        text=list(range(len(x))) if numbered else None,
        textfont={"size": 13, "color": ink(dark)},
        marker={
            "size": mark,
            "symbol": "circle" if y else "square",
            "color": page if numbered else [line_colour(group % GROUP_COLOURS, dark) for group in groups],
            "line": {"color": [line_colour(group % GROUP_COLOURS, dark) for group in groups], "width": 2},
        },
        customdata=[[index, group] for index, group in enumerate(groups)],
        hovertemplate=name + " %{customdata[0]}" + (": reads key-value head %{customdata[1]}" if y else "")
        + "<extra></extra>",
        showlegend=False,
    )  # fmt: skip


def _share(share: float) -> str:
    percent = 100 * share
    return "<0.1 %" if 0 < percent < 0.05 else f"{percent:.1f} %"
