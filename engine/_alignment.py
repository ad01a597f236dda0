"""Where in the typed text each piece of a tokenizer comes from.

Fast tokenizers say so, roughly; for the others the pieces are followed through the text. A span counts
Python characters; None means that nothing was typed for the piece.
"""

import unicodedata
from bisect import bisect_left
from collections.abc import Sequence

from engine._pieces import join_characters
from engine._words import Span, split_words, starts_pretoken

# How far a piece may lie behind the one before it: what unknown pieces and dropped characters may take up.
_REACH = 200


def tidy(contents: Sequence[bytes], offsets: Sequence[Span], text: str) -> list[Span | None]:
    """Correct the offsets of a fast tokenizer.

    A space put in by the tokenizer has no span, a typed one always has; pieces that were given one span
    together get their own characters; leading white space is left out.

    Args:
        contents: what each piece stands for, in bytes.
        offsets: each piece's (start, end) as the tokenizer gives it.
        text: the text as typed.
    """
    spans: list[Span | None] = list(offsets)
    first = 0
    while first < len(spans):
        start, end = offsets[first]
        last = first + 1
        while last < len(spans) and offsets[last] == offsets[first]:
            last += 1
        if end > start and last - first > 1:
            spans[first:last] = _shared(contents[first:last], offsets[first], text)
        first = last
    typed = [_typed_span(data, span, text) for data, span in zip(contents, spans, strict=True)]
    return [_without_lead(span, text) for span in typed]


def follow(
    contents: Sequence[bytes], unknown: Sequence[bool], starting: Sequence[bool], text: str
) -> list[Span | None]:
    """Find pieces in the text in order, for tokenizers that tell no offsets.

    Letter case, width, accents and signs that the tokenizer dropped do not matter.

    Args:
        contents: what each piece stands for, in bytes.
        unknown: which pieces stand for text outside the vocabulary.
        starting: which pieces can only begin a word.
        text: the text as typed.
    """
    path = _Path(text)
    spans: list[Span | None] = [None] * len(contents)
    for members, unit in join_characters(contents):
        if unknown[members[0]]:
            path.lose(members)
        elif not unit.strip():
            place = path.space(len(unit), spans)
            for index in members:
                spans[index] = place
        else:
            found = path.find(unit.strip(), starting[members[0]])
            if found is None:
                path.lose(members)
                continue
            path.settle(found, spans)
            own = _shared([contents[index] for index in members], found, text)
            for index, span in zip(members, own, strict=True):
                spans[index] = span
    path.settle((len(text), len(text)), spans)
    return [_without_lead(span, text) for span in spans]


class _Path:
    """How far the pieces have been followed through a text, and which of them are lost so far."""

    def __init__(self, text: str) -> None:
        self._text = text
        parts = [_folded(character) for character in text]
        # The text as a tokenizer might compare it: no spaces, no case, no composition.
        self._folded = "".join(parts)
        # For each character of that, the position it was typed at.
        self._origin = [position for position, part in enumerate(parts) for _ in part]
        self._reached = 0  # in the folded text
        self._settled = 0  # in the typed text
        self._lost: list[list[int]] = []

    def lose(self, members: list[int]) -> None:
        """Leave pieces behind that cannot be found; the next one found tells where they must be."""
        self._lost.append(members)

    def find(self, piece: str, starting: bool) -> Span | None:
        """Find a piece at or after what has been read."""
        wanted = _folded(piece)
        last = min(self._reached + _REACH, len(self._folded))
        for index in range(self._reached, last if wanted else 0):
            position = self._origin[index]
            if index > self._reached and starting and not starts_pretoken(self._text, position):
                continue
            end = _match(wanted, self._folded, index)
            if end is not None:
                self._reached = end
                return position, self._origin[end - 1] + 1
        return None

    def space(self, size: int, spans: list[Span | None]) -> Span | None:
        """Read the white space that comes next: after the lost word, if pieces are lost."""
        start = self._settled
        if self._lost:
            while start < len(self._text) and self._text[start].isspace():
                start += 1
            while start < len(self._text) and not self._text[start].isspace():
                start += 1
        end = start
        while end < min(start + size, len(self._text)) and self._text[end].isspace():
            end += 1
        if end == start:
            return None
        self.settle((start, end), spans)
        self._reached = max(self._reached, bisect_left(self._origin, end))
        return start, end

    def settle(self, found: Span, spans: list[Span | None]) -> None:
        """Place the lost pieces before what was found: a word each, a character each, or all together."""
        gap = (self._settled, found[0])
        for members, span in zip(self._lost, _places(self._text, gap, len(self._lost)), strict=False):
            for index in members:
                spans[index] = span
        self._lost = []
        self._settled = found[1]


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(character for character in plain if not character.isspace())


def _match(wanted: str, folded: str, index: int) -> int | None:
    if folded[index] != wanted[0]:
        return None
    for character in wanted:
        while index < len(folded) and folded[index] != character:
            if unicodedata.category(folded[index]) not in ("Mn", "Cf"):
                return None
            index += 1
        if index == len(folded):
            return None
        index += 1
    return index


def _places(text: str, gap: Span, count: int) -> list[Span]:
    """Divide a gap in the text among so many pieces; nothing if it is blank."""
    start, end = gap
    words = [(word.start + start, word.end + start) for word in split_words(text[start:end])]
    characters = [(i, i + 1) for i in range(start, end) if not text[i].isspace()]
    for places in (words, characters):
        if len(places) == count:
            return places
    return [(words[0][0], words[-1][1])] * count if words else []


def _shared(contents: Sequence[bytes], span: Span, text: str) -> list[Span | None]:
    """Divide one span among its pieces, if their bytes are those of the typed text; else all keep it."""
    start, end = span
    data = b"".join(contents)
    typed = text[start:end].encode()
    lead = len(data) - len(data.lstrip(b" ")) - (len(typed) - len(typed.lstrip(b" ")))
    if data.lstrip(b" ") != typed.lstrip(b" "):
        return [span] * len(contents)
    owner = [start + i for i, character in enumerate(text[start:end]) for _ in character.encode()]
    spans: list[Span | None] = []
    position = -lead
    for piece in contents:
        held = owner[max(position, 0) : max(position + len(piece), 0)]
        spans.append((held[0], held[-1] + 1) if held else None)
        position += len(piece)
    return spans


def _typed_span(data: bytes, span: Span | None, text: str) -> Span | None:
    """Return the span if it holds what the piece says: white space for white space, else something."""
    if span is None:
        return None
    start, end = span
    if not _is_space(data):
        return span if end > start else None
    if end > start:
        return span if text[start:end].isspace() else None
    size = len(data.decode("utf-8", "replace"))
    # Byte-level tokenizers that trim offsets leave the place where the white space ended.
    before = text[max(start - size, 0) : start]
    return (start - size, start) if size and len(before) == size and before.isspace() else None


def _is_space(data: bytes) -> bool:
    return not data.strip() or data.decode("utf-8", "replace").isspace()


def _without_lead(span: Span | None, text: str) -> Span | None:
    if span is None:
        return None
    start, end = span
    typed = text[start:end].lstrip()
    return (end - len(typed), end) if typed else span
