"""What every chart and every export asks of its arrays, and what it does to text before showing it.

Dimensions: T queries (rows), S keys (columns).
"""

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.errors import CaptureError, ShapeError

Floats = NDArray[np.floating]
Numbers = NDArray[np.floating] | NDArray[np.integer]
Bools = NDArray[np.bool_]

# Control characters cannot stand in SVG or a spreadsheet cell; each has a picture of its own in Unicode.
_CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}

_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN", "RLE", "RLO", "RLI"})


def checked_values(
    values: Floats, queries: Sequence[str], keys: Sequence[str], visible: Bools | None
) -> tuple[Floats, Bools]:
    """Check one map against its labels and its mask.

    Args:
        values: weights or scores, (T, S).
        queries: T labels.
        keys: S labels.
        visible: (T, S), True where the query may see the key; None when nothing is masked.

    Returns:
        The values in their own precision and the mask as booleans, both (T, S).

    Raises:
        ShapeError: two of the shapes differ.
        CaptureError: a visible cell is not a finite number.
    """
    expected = (len(queries), len(keys))
    values = np.asarray(values)
    values = values if np.issubdtype(values.dtype, np.floating) else values.astype(np.float64)
    checked_shape("values", values.shape, expected, "the labels", "(queries, keys)")
    seen = checked_mask(visible, expected)
    broken = np.argwhere(seen & ~np.isfinite(values))
    if len(broken):
        row, column = (int(index) for index in broken[0])
        raise CaptureError(
            f"The cell of query {row} and key {column} holds {values[row, column]}, which is not a finite "
            "number, so this map cannot be shown. A half-precision model may have overflowed: try float32."
        )
    return values, seen


def checked_mask(visible: Bools | None, expected: tuple[int, int]) -> Bools:
    """Return the mask as booleans of the expected shape, all True for None; ShapeError where it differs."""
    if visible is None:
        return np.ones(expected, dtype=np.bool_)
    seen = np.asarray(visible).astype(np.bool_)
    checked_shape("mask", seen.shape, expected, "the labels", "(queries, keys)")
    return seen


def checked_shape(what: str, found: tuple[int, ...], expected: tuple[int, ...], against: str, axes: str) -> None:
    """Raise a ShapeError that names both shapes unless they are equal."""
    if found != expected:
        raise ShapeError(f"The {what} have shape {found}, but {against} ask for {expected} {axes}.")


def checked_index(what: str, index: int | None, length: int) -> None:
    """Raise a ShapeError unless index is None or one of 0 … length - 1."""
    if index is not None and not 0 <= index < length:
        raise ShapeError(f"There is no {what} {index}: this map has {length}, counted from 0.")


def printable(text: str) -> str:
    """Return the text with each control character replaced by its picture: a line feed becomes ␊."""
    return text.translate(_CONTROL_PICTURES)


def shortened(text: str, limit: int) -> str:
    """Cut text to at most `limit` characters with …, never between a letter and the marks it carries."""
    if len(text) <= limit:
        return text
    cut = max(limit - 1, 1)
    while cut > 1 and _joins(text[cut - 1], text[cut]):
        cut -= 1
    return text[:cut] + "…"


def _joins(left: str, right: str) -> bool:
    """Return whether two characters belong to one letter: a mark on its base, or either side of a joiner."""
    return unicodedata.category(right).startswith("M") or "\u200d" in (left, right)


def isolated(text: str) -> str:
    """Wrap right-to-left text in Unicode isolates, so that it cannot turn round the words beside it."""
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text):
        return f"\u2068{text}\u2069"
    return text
