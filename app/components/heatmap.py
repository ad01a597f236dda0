"""One head's map on a canvas, for inputs too long for plotly."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from app.components.mount import Pick, PickCallback, component, mount
from app.components.payload import checked_map, visible_frame, weight_frame

_heatmap = component("heatmap", "heatmap_drawing")


def heatmap_canvas(
    weights: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    visible: np.ndarray | None = None,
    *,
    key: str,
    row: int | None = None,
    column: int | None = None,
    scale: Literal["map", "row", "unit"] = "map",
    log: bool = False,
    row_title: str = "attends",
    column_title: str = "attended to",
    label: str = "attention weights",
    height: int = 480,
    group: str = "",
    on_pick: PickCallback | None = None,
) -> Pick | None:
    """Draw the map: query down, key across, first token top left.

    The wheel or a pinch zooms, dragging pans, a double click or "whole map" goes back. Hover text is
    read from the weights themselves, also where several share a pixel and their largest is drawn.

    Args:
        weights: (T, S), in [0, 1].
        queries: T labels.
        keys: S labels.
        visible: boolean (T, S), False where the query may not see the key; None where all is seen.
        key: the widget's key, unique on the page.
        row: the query with an outline, or None.
        column: the key with an outline, or None.
        scale: colours run from 0 to the "map"'s largest weight, each "row"'s largest, or 1 ("unit").
        log: colour by the logarithm over four decades.
        row_title: title of the vertical axis.
        column_title: title of the horizontal axis.
        label: what is shown, for screen readers, for example "layer 5, head 8".
        height: of the whole piece at most, in CSS pixels.
        group: pieces with the same group follow each other's hover.
        on_pick: called with {"row": t, "column": s}.

    Returns:
        The pick that caused this run of the script, or None.

    Raises:
        ShapeError: shapes disagree, or the map is too large to send.
    """
    array = checked_map(weights, visible, len(queries), len(keys))
    data: dict[str, Any] = {
        "weights": weight_frame(array),
        "queries": list(queries),
        "keys": list(keys),
        "rowTitle": row_title,
        "columnTitle": column_title,
        "height": height,
        "group": group,
    }
    if visible is not None:
        data["visible"] = visible_frame(visible)
    view = {"row": row, "column": column, "scale": scale, "log": log, "label": label}
    limits = ({"row": array.shape[0], "column": array.shape[1]},)
    return mount(_heatmap, key=key, data=data, view=view, limits=limits, on_pick=on_pick)
