"""One word's attention as bars, rankings as tables, entropy as words.

Altair draws text literally, so labels need no escaping here.

Dimensions: S keys.
"""

import json
import math
from collections.abc import Iterable, Sequence

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from app import palette
from app.charts_inputs import Bools, Floats, checked_shape, checked_values, isolated, printable, shortened
from app.phrases import SPACE, percent

LABEL_LENGTH = 20
ROW_HEIGHT, LEGEND_LINE, AXIS_HEIGHT = 24, 24, 48  # pixels; a row holds two bars
MOST_ON_ONE_LINE = 26  # letters of both names in the legend, beyond which they stand below each other


def comparison(
    before: ArrayLike,
    after: ArrayLike,
    labels: Sequence[str],
    *,
    before_name: str,
    after_name: str,
    masked_after: ArrayLike | None = None,
    top: int | None = None,
    floor: float = 0.0,
    dark: bool = False,
) -> alt.LayerChart:
    """Draw the chosen word's row before and after a change of mask: two bars per key, keys in sentence order.

    Args:
        before: (S,) weights, each between 0 and 1.
        after: (S,) weights.
        labels: S keys.
        before_name, after_name: what the legend calls the two rows; shown literally.
        masked_after: (S,), True where the key is hidden after the change; its bar is the word "masked".
        top: how many keys to keep, those with the largest weight in either row; None keeps all.
        floor: keys that stay below it in both rows are left out, from 0 to 1.
        dark: True on a dark page.

    Raises:
        ShapeError: the lengths differ.
        CaptureError: a weight is not a finite number.
    """
    masked = np.zeros(len(labels), dtype=np.bool_) if masked_after is None else np.asarray(masked_after, np.bool_)
    for what, array in (("weights before", before), ("weights after", after), ("masked flags", masked)):
        checked_shape(what, np.shape(array), (len(labels),), "the labels", "(keys)")
    pair, _ = checked_values(np.stack([before, after]), ["", ""], labels, np.stack([~np.zeros_like(masked), ~masked]))
    larger = np.where(masked, pair[0], pair.max(axis=0)) if len(labels) else np.zeros(0)
    kept = [position for position in _strongest(larger, top) if larger[position] >= floor]
    if not kept:
        return _no_data(dark)
    frame = _comparison_frame(pair, labels, masked, kept, (before_name, after_name))
    return _paired_bars(frame, labels, (before_name, after_name), dark)


def _strongest(weights: Floats, top: int | None) -> list[int]:
    """Return the positions of the `top` largest weights, back in sentence order."""
    order = np.argsort(-weights, kind="stable")[:top]
    return sorted(int(index) for index in order)


def _comparison_frame(
    pair: Floats, labels: Sequence[str], masked: Bools, kept: list[int], names: tuple[str, str]
) -> pd.DataFrame:
    rows = []
    for position in kept:
        for stage, name in enumerate(names):
            hidden = bool(stage == 1 and masked[position])
            share = 0.0 if hidden else float(pair[stage, position])
            rows.append(
                {
                    "position": position,
                    "key": printable(labels[position]),
                    "stage": stage,
                    "mask": printable(name),
                    "percent": share * 100,
                    "shown": "masked" if hidden else percent(share),
                    "weight": "masked" if hidden else _exact(share),
                    "hidden": hidden,
                }
            )
    return pd.DataFrame(rows)


def _exact(share: float) -> str:
    """Write a weight with four digits, unless they would say more than it is."""
    return percent(share) if 0.9999 < share < 1 else f"{share * 100:.4g}{SPACE}%"


def _paired_bars(frame: pd.DataFrame, labels: Sequence[str], names: tuple[str, str], dark: bool) -> alt.LayerChart:
    ink = palette.INK_DARK if dark else palette.INK_LIGHT
    soft = palette.SOFT_INK_DARK if dark else palette.SOFT_INK_LIGHT
    colours = [palette.BEFORE_DARK, palette.ACCENT_DARK] if dark else [palette.BEFORE_LIGHT, palette.ACCENT_LIGHT]
    shown = [isolated(shortened(printable(label), LABEL_LENGTH)) for label in labels]
    words = alt.Axis(
        labelExpr=_lookup(shown),
        labelFontSize=14,
        labelColor=ink,
        title=None,
        ticks=False,
        domain=False,
        labelPadding=8,
        labelLimit=260,
        labelOverlap=False,
    )
    percents = alt.Axis(
        labelExpr="datum.label + ' %'",
        labelFontSize=13,
        labelColor=ink,
        grid=False,
        tickCount=5,
        title="attention weight",
        titleFontSize=14,
        titleColor=ink,
        titleFontWeight="normal",
        domain=False,
    )
    legend = alt.Legend(
        labelExpr=_lookup([printable(name) for name in names]),
        title=None,
        orient="top",
        labelFontSize=14,
        labelColor=ink,
        labelLimit=400,
        symbolType="square",
        direction="horizontal" if len("".join(names)) <= MOST_ON_ONE_LINE else "vertical",
    )
    # The order is spelt out: a chart that is redrawn with other words keeps the order it had otherwise.
    order = sorted(set(frame["position"].tolist()))
    lines = 1 if legend.direction == "horizontal" else 2
    base = alt.Chart(frame, height=len(order) * ROW_HEIGHT + lines * LEGEND_LINE + AXIS_HEIGHT).encode(
        y=alt.Y("position:O", sort=order, axis=words, scale=alt.Scale(domain=order, paddingInner=0.08)),
        yOffset=alt.YOffset("stage:O", sort=[0, 1]),
        x=alt.X("percent:Q", axis=percents, scale=alt.Scale(domainMin=0)),
        tooltip=[alt.Tooltip("key:N"), alt.Tooltip("mask:N"), alt.Tooltip("weight:N")],
    )
    bars = base.mark_bar(cornerRadiusEnd=2).encode(
        color=alt.Color("stage:O", scale=alt.Scale(domain=[0, 1], range=colours), legend=legend)
    )
    text = base.mark_text(align="left", dx=4, fontSize=11).encode(
        text="shown:N", color=alt.condition("datum.hidden", alt.value(soft), alt.value(ink))
    )
    return _plain(alt.LayerChart(layer=[bars, text]))


def _lookup(texts: Sequence[str]) -> str:
    """Return the Vega expression that turns a position into its text, quoted so that no text is ever code."""
    return f"{json.dumps(list(texts))}[datum.value]"


def _no_data(dark: bool) -> alt.LayerChart:
    ink = palette.INK_DARK if dark else palette.INK_LIGHT
    text = alt.Chart(pd.DataFrame({"text": ["no data"]})).mark_text(fontSize=16, color=ink).encode(text="text:N")
    return _plain(alt.LayerChart(layer=[text]))


def _plain(chart: alt.LayerChart) -> alt.LayerChart:
    plain: alt.LayerChart = chart.configure(background="transparent").configure_view(stroke=None)
    return plain


def ranking_frame(values: Iterable[tuple[int, int, float]]) -> pd.DataFrame:
    """Rank heads by the weight they give.

    Args:
        values: (layer, head, weight) triples, counted from 0, weights between 0 and 1.

    Returns:
        A table of layer, head and "weight %", largest first; equal weights in the order of layer and head.
    """
    ranked = sorted(values, key=lambda value: (-value[2], value[0], value[1]))
    columns = {"layer": "int64", "head": "int64", "weight %": "float64"}
    frame = pd.DataFrame([(layer, head, weight * 100) for layer, head, weight in ranked], columns=list(columns))
    return frame.astype(columns)


def entropy_text(bits: float) -> str:
    """Return an entropy in both units and as a count: "2.00 bits (1.39 nats), as spread out as over 4 equal tokens"."""
    bits = abs(bits)  # of a single token it is minus zero
    count = round(2**bits)
    spread = f"as spread out as over {count:,} equal tokens" if count > 1 else "as good as all on one token"
    return f"{bits:.2f} bits ({bits * math.log(2):.2f} nats), {spread}"
