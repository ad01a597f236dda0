"""The sentence as large words: point at one and see what it attends to."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from app.components.mount import Pick, PickCallback, component, mount
from app.components.payload import Chip, checked_map, visible_frame, weight_frame

_ribbon = component("ribbon", "ribbon_words", "ribbon_drawing")


def ribbon(
    queries: Sequence[Chip],
    keys: Sequence[Chip] | None,
    weights: np.ndarray,
    *,
    key: str,
    pinned: int | None = None,
    partner: int | None = None,
    direction: Literal["to", "by"] = "to",
    scale: Literal["row", "unit"] = "row",
    log: bool = False,
    threshold: float = 0.0,
    visible: np.ndarray | None = None,
    labels: tuple[str, str] = ("attends", "attended to"),
    group: str = "",
    on_pick: PickCallback | None = None,
) -> Pick | None:
    """Draw the token ribbon.

    Pointing at a chip (or reaching it with the arrow keys) shades all chips at once in the browser;
    nothing is sent. Otherwise the pinned chip's row is shown. A click pins, a click with shift or alt,
    a long press, or a click on one of the strongest names the partner.

    Args:
        queries: the T tokens that attend; Chip keys `glued`, `generated` and `unmet` are optional.
        keys: the S tokens attended to, or None for self-attention, which is drawn as one line.
        weights: (T, S), in [0, 1].
        key: the widget's key, unique on the page.
        pinned: index of the chip whose weights are shown when none is pointed at: a query where
            direction is "to", a key where it is "by".
        partner: index of a chip on the other side, drawn with a second outline.
        direction: "to" shades weights[i, :], what i attends to; "by" weights[:, i], what attends to i.
        scale: "row" shades relative to the largest weight shown, "unit" from 0 to 1.
        log: shade by the logarithm over four decades.
        threshold: weights below it are neither shaded nor listed.
        visible: boolean (T, S), False where the query may not see the key; None where all is seen.
        labels: names of the two lines when keys are given.
        group: pieces with the same group follow each other's hover.
        on_pick: called with {"pin": i} or {"partner": j}; axes as for pinned and partner.

    Returns:
        The pick that caused this run of the script, or None.

    Raises:
        ShapeError: weights or visible do not fit the chips.
    """
    others = queries if keys is None else keys
    array = checked_map(weights, visible, len(queries), len(others))
    data: dict[str, Any] = {
        "queries": [_sent(chip) for chip in queries],
        "keys": None if keys is None else [_sent(chip) for chip in keys],
        "weights": weight_frame(array),
        "labels": list(labels),
        "group": group,
    }
    if visible is not None:
        data["visible"] = visible_frame(visible)
    view = {
        "pinned": pinned,
        "partner": partner,
        "direction": direction,
        "scale": scale,
        "log": log,
        "threshold": float(threshold),
    }
    sources, targets = array.shape if direction == "to" else array.shape[::-1]
    limits = ({"pin": sources}, {"partner": targets})
    return mount(_ribbon, key=key, data=data, view=view, limits=limits, on_pick=on_pick)


def _sent(chip: Chip) -> dict[str, object]:
    """Leave out marks that are not set: in a long text they would be a third of the words' payload."""
    return {name: value for name, value in chip.items() if value is not False}
