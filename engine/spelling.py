"""Reading with a fixed list of words: each word one token, and what is not in the list spelled by its bytes.

So a small model meets whole words where it has learned them and loses nothing where it has not. Letter case makes no
difference to a listed word, nor whether its accents and dots are letters or signs of their own; a spelled one keeps
both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import normalize

from engine import _notices
from engine._groups import Group
from engine._pieces import readable
from engine._words import Word, is_blank, replace_unreadable, split_words
from engine.errors import ModelError, TextError
from engine.tokens import Prompt, Token

PAD, BEGIN, END, MASK = range(4)
SPECIALS = ("[PAD]", "[BOS]", "[EOS]", "[MASK]")
BYTES = len(SPECIALS)  # the id of byte 0
FIRST_WORD = BYTES + 256


@dataclass(frozen=True)
class _Piece:
    """A token to be: its id, what a reader sees, its word and its place in the text."""

    id: int
    text: str
    word: int
    start: int
    end: int


class Vocabulary:
    """The words that a small model knows, and the bytes with which it spells all others.

    Ids: 0 to 3 are [PAD], [BOS], [EOS] and [MASK], then come 256 bytes, then the words.

    Attributes:
        words: the known words, in the order of their ids.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._numbers = {_key(word): FIRST_WORD + place for place, word in enumerate(self.words)}
        if len(self._numbers) < len(self.words):
            raise ModelError("A vocabulary lists a word twice.")

    def __len__(self) -> int:
        return FIRST_WORD + len(self.words)

    def __contains__(self, word: str) -> bool:
        return _key(word) in self._numbers

    def ids(self, word: str) -> list[int]:
        """Give the ids of one word: a single one where it is known, else one for each byte."""
        if word == SPECIALS[MASK]:
            return [MASK]
        known = self._numbers.get(_key(word))
        return [BYTES + byte for byte in word.encode()] if known is None else [known]

    def text(self, id: int) -> str:
        """Say what a reader sees of one id."""
        if id < BYTES:
            return SPECIALS[id]
        return readable(bytes([id - BYTES])) if id < FIRST_WORD else self.words[id - FIRST_WORD]

    def is_spelled(self, id: int) -> bool:
        """Say whether an id is a byte of a word that is not in the list."""
        return BYTES <= id < FIRST_WORD

    def read(self, text: str, limit: int | None = None, *, ends: bool = True) -> Prompt:
        """Turn a text into what a model gets: [BOS], its words, and [EOS].

        Args:
            text: the text as typed; a typed [MASK] is a hidden word.
            limit: the most tokens that are kept, special ones included; None for no limit.
            ends: whether [EOS] closes the text; a model that is to write on reads it open.

        Raises:
            TextError: there is nothing to read, or the limit leaves no room for text.
        """
        if is_blank(text):
            raise TextError("Type a sentence first: there is nothing to read yet.")
        clean, codes = replace_unreadable(text)
        words = split_words(clean, whole=_masks(clean))
        pieces = [piece for number, word in enumerate(words) for piece in self._pieces(word, number)]
        around = 2 if ends else 1
        if limit is not None and limit <= around:
            raise TextError(f"{limit} tokens leave no room for text.")
        kept = pieces if limit is None else pieces[: limit - around]
        tokens = [special(BEGIN), *(self._token(piece, words) for piece in kept), *([special(END)] if ends else [])]
        notices = self._said(clean, codes, words, (len(pieces) + around, len(tokens)), kept)
        return Prompt(clean, None, tuple(tokens), words, notices, len(pieces) + around, limit)

    def _pieces(self, word: Word, number: int) -> list[_Piece]:
        if word.text in self or word.text == SPECIALS[MASK]:
            (id,) = self.ids(word.text)
            return [_Piece(id, self.text(id), number, word.start, word.end)]
        return [
            _Piece(BYTES + byte, readable(bytes([byte])), number, word.start + place, word.start + place + 1)
            for place, sign in enumerate(word.text)
            for byte in sign.encode()
        ]

    def _token(self, piece: _Piece, words: Sequence[Word]) -> Token:
        return Token(
            piece.text, piece.text, piece.id, piece.word, False, piece.start, piece.end,
            word_text=words[piece.word].text, unmet=self.is_spelled(piece.id),
        )  # fmt: skip

    def _said(
        self, text: str, codes: Sequence[str], words: Sequence[Word], counts: tuple[int, int], kept: Sequence[_Piece]
    ) -> tuple[str, ...]:
        said = [_notices.replaced(codes)] if codes else []
        spelled = dict.fromkeys(words[piece.word].text for piece in kept if self.is_spelled(piece.id))
        if spelled:
            said.append(_notices.unmet(spelled))
        if _notices.reads_right_to_left(text):
            said.append(_notices.RIGHT_TO_LEFT)
        total, have = counts
        if total > have:
            said.append(_notices.cut(total, have, [words[piece.word].text for piece in kept[-1:]]))
        return tuple(said)


def special(id: int, *, generated: bool = False) -> Token:
    """Make the token of one of the special ids."""
    return Token(SPECIALS[id], SPECIALS[id], id, None, True, None, None, generated=generated)


def is_unmet(group: Group, tokens: Sequence[Token]) -> bool:
    """Say whether a word on an axis is spelled because the model has never met it."""
    return any(tokens[index].unmet for index in group.indices)


def _key(word: str) -> str:
    """Give the form under which a word is listed: in small letters, and one for all ways to write the same letter."""
    return normalize("NFC", word.lower())


def _masks(text: str) -> tuple[tuple[int, int], ...]:
    """Find every typed [MASK]."""
    name, start = SPECIALS[MASK], 0
    spans: list[tuple[int, int]] = []
    while (found := text.find(name, start)) >= 0:
        start = found + len(name)
        spans.append((found, start))
    return tuple(spans)
