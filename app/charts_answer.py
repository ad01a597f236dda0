"""What silencing each head alone costs the right answer, as bars.

Dimensions: L layers, H heads.
"""

import altair as alt
import numpy as np
import pandas as pd

from app import palette
from app.charts_inputs import Floats
from engine.errors import CaptureError, ShapeError

ROW_HEIGHT = 25  # pixels
WIDTH = 420
LEAST_REACH = 5.0  # points; bars of nothing should not look like much


def cost_frame(costs: Floats, shown: tuple[int, int] | None) -> pd.DataFrame:
    """Put what each head costs into a table.

    Args:
        costs: points of a hundred that the right answer loses without each head, (L, H); below 0 where it gains.
        shown: the head that the page shows, (layer, head); None for none.

    Returns:
        A row for each head: its name, its cost, where its number stands, the number, and whether it is shown.
    """
    frame = pd.DataFrame([(layer, head) for layer, head in np.ndindex(costs.shape)], columns=["layer", "head"])
    frame["name"] = [f"L{layer} H{head}" for layer, head in zip(frame["layer"], frame["head"], strict=True)]
    frame["cost"] = np.asarray(costs, dtype=float).ravel()
    frame["end"] = frame["cost"].clip(lower=0)
    frame["text"] = [_points(cost) for cost in frame["cost"]]
    frame["is_shown"] = [(layer, head) == shown for layer, head in zip(frame["layer"], frame["head"], strict=True)]
    return frame


def head_costs(costs: Floats, shown: tuple[int, int] | None, *, dark: bool = False) -> alt.LayerChart:
    """Draw one bar per head, the shown one in the accent colour.

    Args:
        costs, shown: as for `cost_frame`.
        dark: True on a dark page.

    Raises:
        ShapeError: there are not layers and heads.
        CaptureError: a number is not finite.
    """
    if np.ndim(costs) != 2:
        raise ShapeError(f"The costs have shape {np.shape(costs)}, but there is one for each layer and head.")
    if not np.isfinite(costs).all():
        raise CaptureError("What a head costs is not a finite number, so it cannot be drawn.")
    ink = palette.INK_DARK if dark else palette.INK_LIGHT
    accent, other = (palette.ACCENT_DARK, palette.BEFORE_DARK) if dark else (palette.ACCENT_LIGHT, palette.BEFORE_LIGHT)
    frame = cost_frame(costs, shown)
    names = alt.Axis(title=None, labelFontSize=14, labelColor=ink, ticks=False, domain=False, labelPadding=8)
    points = alt.Axis(
        title="points lost by the right answer", titleFontSize=14, titleColor=ink, titleFontWeight="normal",
        labelFontSize=13, labelColor=ink, grid=False, domain=False, tickCount=5,
    )  # fmt: skip
    low, high = min(0.0, float(frame["cost"].min()) * 1.25), max(LEAST_REACH, float(frame["cost"].max()) * 1.2)
    base = alt.Chart(frame, width=WIDTH, height=len(frame) * ROW_HEIGHT).encode(
        y=alt.Y("name:N", sort=frame["name"].tolist(), axis=names, scale=alt.Scale(paddingInner=0.25)),
        x=alt.X("cost:Q", axis=points, scale=alt.Scale(domain=[low, high], nice=False)),
        tooltip=[alt.Tooltip("name:N", title="silenced"), alt.Tooltip("text:N", title="points lost")],
    )
    bars = base.mark_bar(cornerRadiusEnd=2).encode(
        color=alt.condition("datum.is_shown", alt.value(accent), alt.value(other))
    )
    # To the right of bars that point left as well: on their other side stand the names.
    texts = base.mark_text(align="left", dx=4, fontSize=13, color=ink).encode(text="text:N", x="end:Q")
    made: alt.LayerChart = alt.LayerChart(layer=[bars, texts])
    plain: alt.LayerChart = made.configure(background="transparent").configure_view(stroke=None)
    return plain


def _points(cost: float) -> str:
    return "0" if abs(cost) < 0.05 else f"{cost:.1f}".replace("-", "−")
