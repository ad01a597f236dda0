"""Maps as files: a tidy table for spreadsheets and pandas, and JSON for programs.

A spreadsheet runs a cell that begins with =, +, - or @ as a formula, and tokens are text from anywhere. In
the CSV such a text gets one apostrophe in front, and `readable` takes it off again; no other text is
changed. JSON needs no such care and holds every text as it is.

Dimensions: T queries (rows), S keys (columns).
"""

import csv
import io
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

from app.charts_inputs import Bools, Floats, checked_values
from engine.errors import CaptureError, ShapeError

Meta = Mapping[str, str | int | float | bool | None]

_FORMULA_STARTS = frozenset("=+-@＝＋－＠")
_QUOTES = frozenset("'\"`´‘’‚“”„")


def csv_of(
    weights: Floats,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    visible: Bools | None = None,
    positions: bool = True,
    meta: Meta | None = None,
) -> str:
    """Write a map as a table with one line per cell (RFC 4180), first query first.

    Columns: query_position, query, key_position, key, weight, masked (0 or 1), then one column per entry of
    `meta`, the same on every line, so that several exports can be stacked and told apart. Positions count
    from 0 and keep equal words apart. Weights have 9 digits (17 in double precision), which give back the
    number.

    Args:
        weights: (T, S) weights or scores; a masked cell may be infinite and is then left empty.
        queries: T labels.
        keys: S labels.
        visible: (T, S), False where the mask hides the key; None when nothing is masked.
        positions: False leaves out the two position columns.
        meta: names and values such as model, layer, head, mask.

    Raises:
        ShapeError: shapes differ, or a name in `meta` is also one of the columns.
        CaptureError: a visible cell is not a finite number.
    """
    weights, seen = checked_values(weights, queries, keys, visible)
    header = ["query_position", "query", "key_position", "key", "weight", "masked"]
    clash = sorted(set(header) & set(meta or {}))
    if clash:
        raise ShapeError(f"The table already has a column called {clash[0]}: give this entry another name.")
    extra = [_cell(value) for value in (meta or {}).values()]
    left, right = ([_cell(label) for label in labels] for labels in (queries, keys))
    numbers, hidden = _digits(weights), (~seen).astype(int).tolist()
    sheet = io.StringIO(newline="")
    writer = csv.writer(sheet, lineterminator="\r\n")
    skipped = () if positions else (0, 2)
    writer.writerow(_without([*header, *(_cell(name) for name in meta or {})], skipped))
    for row, query in enumerate(left):
        writer.writerows(
            _without([row, query, column, key, numbers[row][column], hidden[row][column], *extra], skipped)
            for column, key in enumerate(right)
        )
    return sheet.getvalue()


def rows_csv(header: Sequence[str], rows: Iterable[Sequence[str | int | float | None]]) -> str:
    """Write any table as CSV (RFC 4180); numbers as they are, None as an empty cell."""
    sheet = io.StringIO(newline="")
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow([_cell(name) for name in header])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return sheet.getvalue()


def json_of(
    weights: Floats,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    visible: Bools | None = None,
    meta: Meta | None = None,
) -> str:
    """Write a map as JSON: meta, queries and keys (position, text), weights as rows, masked as rows or null.

    Args:
        weights: (T, S) weights or scores; a masked cell may be infinite and is then null.
        queries: T labels.
        keys: S labels.
        visible: (T, S), False where the mask hides the key; None when nothing is masked.
        meta: names and values such as model, layer, head, mask.

    Raises:
        ShapeError: shapes differ.
        CaptureError: a visible cell, or a number in `meta`, is not finite.
    """
    weights, seen = checked_values(weights, queries, keys, visible)
    content = {
        "meta": dict(meta or {}),
        "queries": [{"position": at, "text": text} for at, text in enumerate(queries)],
        "keys": [{"position": at, "text": text} for at, text in enumerate(keys)],
        "weights": [[float(digits) if digits else None for digits in row] for row in _digits(weights)],
        "masked": None if visible is None else (~seen).tolist(),
    }
    try:
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise CaptureError("One of the described values is not a finite number and has no JSON.") from error


def file_bytes(text: str, *, spreadsheet: bool = False) -> bytes:
    """Encode an export as UTF-8; a CSV needs the mark in front by which Excel knows Hindi from Latin-1.

    Args:
        text: what `csv_of` or `json_of` returned.
        spreadsheet: True for CSV; JSON must not have the mark.
    """
    return text.encode("utf-8-sig" if spreadsheet else "utf-8", errors="backslashreplace")


def readable(cell: str) -> str:
    """Return the text that `csv_of` wrote as this cell, without the apostrophe before a formula."""
    return cell[1:] if cell.startswith("'") and _looks_like_formula(cell[1:]) else cell


def _cell(value: str | int | float | bool | None) -> str:
    """Return a cell's text; numbers are left alone, for a spreadsheet reads -1.5 as the number it is."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    return f"'{value}" if _looks_like_formula(value) else value


def _looks_like_formula(text: str) -> bool:
    """Return whether a spreadsheet might run this text; spaces, quotes and invisible signs are no shield."""
    if text.startswith(("\t", "\r", "\n")):
        return True
    for character in text:
        if character in _FORMULA_STARTS:
            return True
        if character not in _QUOTES and not character.isspace() and unicodedata.category(character)[0] != "C":
            return False
    return False


def _without(cells: Sequence[object], skipped: Sequence[int]) -> list[object]:
    return [cell for at, cell in enumerate(cells) if at not in skipped]


def _digits(weights: Floats) -> list[list[str]]:
    """Return every number with the digits that give it back in its own precision; "" for an infinite one."""
    digits = 9 if weights.dtype.itemsize <= 4 else 17
    return [[f"{value:.{digits}g}" if isfinite(value) else "" for value in row] for row in weights.tolist()]
