"""Reading by words: every different word of a sentence is one token with a number of its own.

For models that have not learned any vocabulary yet: what their tokens mean does not matter, only which are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import _notices
from engine._words import is_blank, replace_unreadable, split_words, writes_spaces
from engine.errors import TextError
from engine.tokens import Prompt, Token, Word


@dataclass(frozen=True)
class _Piece:
    """A token to be: a word, or a single character where a script writes no spaces between words."""

    text: str
    start: int
    word: int | None


def number_words(text: str, vocabulary: int, limit: int | None = None) -> Prompt:
    """Give each different word of a text a number, in order of appearance.

    Punctuation marks are words of their own; "The" and "the" are two different ones. Text that writes no spaces
    between words is read by characters.

    Args:
        text: the text as typed.
        vocabulary: how many different words there can be.
        limit: the most tokens that are kept; None for no limit.

    Returns:
        What a model gets, without special tokens; ids count from 0.

    Raises:
        TextError: there is nothing to read, or there are more different words than the vocabulary holds.
    """
    if is_blank(text):
        raise TextError("Type a sentence first: there is nothing to read yet.")
    clean, codes = replace_unreadable(text)
    words = split_words(clean)
    pieces = _pieces(clean, words)
    kept = pieces if limit is None else pieces[:limit]
    numbers: dict[str, int] = {}
    for piece in kept:
        numbers.setdefault(piece.text, len(numbers))
    if len(numbers) > vocabulary:
        raise TextError(
            f"This text has {len(numbers):,} different words, and the vocabulary holds {vocabulary:,}: "
            "shorten the text or choose a larger vocabulary."
        )
    tokens = tuple(_token(piece, numbers[piece.text], words) for piece in kept)
    notices = _said(clean, codes, len(pieces), [piece.text for piece in kept])
    return Prompt(clean, None, tokens, words, notices, len(pieces), limit)


def _pieces(text: str, words: tuple[Word, ...]) -> list[_Piece]:
    if writes_spaces(text):
        return [_Piece(word.text, word.start, number) for number, word in enumerate(words)]
    return [_Piece(sign, place, None) for place, sign in enumerate(text) if not is_blank(sign)]


def _token(piece: _Piece, number: int, words: tuple[Word, ...]) -> Token:
    end = piece.start + len(piece.text)
    return Token(piece.text, piece.text, number, piece.word, False, piece.start, end, word_text=piece.text)


def _said(text: str, codes: tuple[str, ...], total: int, kept: list[str]) -> tuple[str, ...]:
    """Say what happened to the text on its way."""
    said = [_notices.replaced(codes)] if codes else []
    if _notices.reads_right_to_left(text):
        said.append(_notices.RIGHT_TO_LEFT)
    if not writes_spaces(text):
        said.append("This script writes no spaces between words, so each character is read by itself.")
    if total > len(kept):
        said.append(_notices.cut(total, len(kept), kept[-1:]))
    return tuple(said)
