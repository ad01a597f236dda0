"""Every head of every layer in one picture, to choose from."""

from typing import Any, Literal

import numpy as np

from app.components.mount import Pick, PickCallback, component, mount
from app.components.payload import pooled_thumbnails, thumbnail_frame
from engine.errors import ShapeError

_grid = component("grid", "grid_drawing")


def grid(
    thumbs: np.ndarray,
    *,
    key: str,
    layer: int | None,
    head: int | None,
    colour: Literal["weights", "shade"] = "weights",
    scale: Literal["own", "unit"] = "own",
    log: bool = False,
    shade: np.ndarray | None = None,
    shade_title: str = "",
    shade_unit: str = "%",
    shade_range: tuple[float, float] | None = None,
    ranking: bool = True,
    first_layer: int = 0,
    max_height: int = 440,
    note: str = "",
    on_pick: PickCallback | None = None,
) -> Pick | None:
    """Draw the grid of heads: one row a layer, one column a head, numbered from 0.

    Args:
        thumbs: (L, H, P, Q), in [0, 1]; longer ones are max-pooled until the payload fits.
        key: the widget's key, unique on the page.
        layer: the row with the frame; None where no single head is shown, as for a mean.
        head: the column with the frame, or None. There is a frame only where both are given.
        colour: "weights" draws the thumbnails, "shade" one flat colour per head.
        scale: thumbnails each relative to its "own" largest weight, or all from 0 to 1 ("unit").
        log: colour by the logarithm over four decades (thumbnails only).
        shade: (L, H), one number per head, NaN where the head is masked there.
        shade_title: what the numbers are, for example "from she to customer".
        shade_unit: "%" shows 0.294 as 29.4 %; any other text follows the number, as in "2.31 bits".
        shade_range: the values at the two ends of the colour scale; (0, largest) where None.
        ranking: list the three largest of shade below the grid, whatever `colour` is.
        first_layer: number written beside the first row.
        max_height: of the picture, in CSS pixels; larger grids scroll inside.
        note: said below the grid while no head is pointed at, in place of the framed head and its number.
        on_pick: called with {"layer": l, "head": h}, counted from 0 within thumbs.

    Returns:
        The pick that caused this run of the script, or None.

    Raises:
        ShapeError: thumbs is not 4-D or is empty, or shade does not fit it.
    """
    array = np.asarray(thumbs)
    if array.ndim != 4 or 0 in array.shape:
        raise ShapeError(f"Thumbnails must be layers × heads × rows × columns, not {array.shape}.")
    if shade is not None and np.shape(shade) != array.shape[:2]:
        raise ShapeError(f"One number per head is needed, {array.shape[:2]}, not {np.shape(shade)}.")
    pooled = pooled_thumbnails(array)
    frame, largest = thumbnail_frame(pooled)
    data: dict[str, Any] = {
        "thumbs": frame,
        "largest": largest,
        "shape": list(pooled.shape),
        "firstLayer": first_layer,
        "maxHeight": max_height,
    }
    view = {
        "layer": layer,
        "head": head,
        "colour": colour if shade is not None else "weights",
        "scale": scale,
        "log": log,
        "shade": None if shade is None else _plain(shade),
        "shadeTitle": shade_title,
        "ranking": ranking,
        "note": note,
        "shadeUnit": shade_unit,
        "shadeRange": None if shade_range is None else [float(end) for end in shade_range],
    }
    layers, heads = array.shape[:2]
    limits = ({"layer": layers, "head": heads},)
    return mount(_grid, key=key, data=data, view=view, limits=limits, on_pick=on_pick)


def _plain(shade: np.ndarray) -> list[float | None]:
    """Flatten to JSON numbers: nine digits keep what is just below 1 from being 1, and NaN is not JSON."""
    values = np.asarray(shade, dtype=np.float64).ravel()
    return [float(f"{value:.9g}") if np.isfinite(value) else None for value in values]
