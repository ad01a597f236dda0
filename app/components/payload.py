"""Arrays as the browser gets them: one-column frames that arrive there as typed arrays.

T queries, S keys, L layers, H heads, P × Q pixels of one thumbnail.
"""

from typing import TypedDict

import numpy as np
import pandas as pd

from engine.errors import ShapeError

MAX_CELLS = 2048 * 2048
"""The most cells one map may send: 8 MB of 16-bit weights."""

MAX_THUMBNAIL_BYTES = 400_000
"""The most one grid may send, about as many as it has pixels; longer thumbnails are max-pooled until they fit."""


class Chip(TypedDict):
    """One token as the ribbon shows it."""

    text: str
    hover: str
    special: bool
    padding: bool


class ChipMarks(Chip, total=False):
    """Marks a chip may carry besides: the same word as the chip before it, written by the model, never met by it."""

    glued: bool
    generated: bool
    unmet: bool


def quantised(weights: np.ndarray) -> np.ndarray:
    """Round weights to 16 bits over 0 to 1.

    Args:
        weights: any shape, values in [0, 1]; what lies outside is clipped, NaN becomes 0.

    Returns:
        uint16 of the same shape; value / 65535 is within 7.7e-6 of the weight, and 0 or 1 only where the weight is:
        else it is one step away from them, within 1.6e-5.
    """
    finite = np.clip(np.nan_to_num(np.asarray(weights, dtype=np.float32), nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    steps = np.rint(finite * np.float32(65535))
    return np.where((finite > 0) & (finite < 1), np.clip(steps, 1, 65534), steps).astype(np.uint16)


def weight_frame(weights: np.ndarray) -> pd.DataFrame:
    """Pack a (T, S) map into one column of 16-bit numbers, row after row."""
    return pd.DataFrame({"weight": quantised(weights).ravel()})


def visible_frame(visible: np.ndarray) -> pd.DataFrame:
    """Pack a boolean (T, S) map into one column of bytes, eight cells each, first cell highest."""
    return pd.DataFrame({"bits": np.packbits(np.asarray(visible, dtype=bool).ravel())})


def checked_map(weights: np.ndarray, visible: np.ndarray | None, rows: int, columns: int) -> np.ndarray:
    """Return the map as an array after checking that labels, weights and visibility agree.

    Raises:
        ShapeError: the shapes disagree, or the map is larger than `MAX_CELLS`.
    """
    array = np.asarray(weights)
    if array.shape != (rows, columns):
        raise ShapeError(f"The map is {array.shape}, but there are {rows} queries and {columns} keys.")
    if visible is not None and np.shape(visible) != array.shape:
        raise ShapeError(f"Visibility is {np.shape(visible)}, but the map is {array.shape}.")
    if array.size > MAX_CELLS:
        raise ShapeError(
            f"A map of {rows} × {columns} tokens is {2 * array.size / 1e6:.0f} MB, more than the "
            f"{2 * MAX_CELLS / 1e6:.0f} MB a page can take: choose a range of rows and columns."
        )
    return array


def pooled_thumbnails(thumbs: np.ndarray) -> np.ndarray:
    """Max-pool thumbnails (L, H, P, Q) by two until all of them fit `MAX_THUMBNAIL_BYTES`.

    Pooling keeps the largest weight of each block: a single bright cell never vanishes, as it would
    by leaving rows out.
    """
    while thumbs.size > MAX_THUMBNAIL_BYTES and max(thumbs.shape[2:]) > 1:
        thumbs = _halved(_halved(thumbs, axis=2), axis=3)
    return thumbs


def _halved(thumbs: np.ndarray, axis: int) -> np.ndarray:
    even = [slice(None)] * thumbs.ndim
    odd = [slice(None)] * thumbs.ndim
    even[axis], odd[axis] = slice(0, None, 2), slice(1, None, 2)
    left, right = thumbs[tuple(even)], thumbs[tuple(odd)]
    if left.shape[axis] > right.shape[axis]:
        last = [slice(None)] * thumbs.ndim
        last[axis] = slice(-1, None)
        right = np.concatenate([right, thumbs[tuple(last)]], axis=axis)
    return np.maximum(left, right)


def thumbnail_frame(thumbs: np.ndarray) -> tuple[pd.DataFrame, list[float]]:
    """Pack thumbnails (L, H, P, Q) into bytes, each relative to its own largest value.

    The byte is the square root of the relative value, so that a colour scale over four decades still
    has steps: value = largest * (byte / 255)².

    Returns:
        One column of bytes, and the largest value of each of the L * H cells.
    """
    cells = np.nan_to_num(np.asarray(thumbs, dtype=np.float32)).clip(0.0, None)
    largest = cells.reshape(cells.shape[0] * cells.shape[1], -1).max(axis=1)
    safe = np.where(largest > 0, largest, 1).reshape(*cells.shape[:2], 1, 1)
    roots = np.rint(np.sqrt(cells / safe) * 255).astype(np.uint8)
    return pd.DataFrame({"byte": roots.ravel()}), [round(float(value), 6) for value in largest]
