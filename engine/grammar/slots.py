"""What a sentence is put together from: noun phrases and fixed words, which can be said and recognised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.grammar import lexicon
from engine.grammar.words import WORDS

VOWELS = frozenset("aeiou")


@dataclass(frozen=True)
class Phrase:
    """A noun phrase: "the old farmer", "Anna"; without a determiner where the noun is a name."""

    noun: str
    determiner: str = ""
    adjective: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """The words as they are said."""
        return tuple(word for word in (self.determiner, self.adjective, self.noun) if word)


@dataclass(frozen=True)
class Noun:
    """A place for a noun phrase.

    Attributes:
        label: what it is called in the rules of a frame.
        nouns: what may stand there after a determiner.
        names: what may stand there without one.
        adjectives: what may stand before the noun.
        open: whether a word that the grammar does not know may stand there, too, and for a thing any other one.
    """

    label: str
    nouns: tuple[str, ...]
    names: tuple[str, ...] = ()
    adjectives: tuple[str, ...] = ()
    open: bool = True

    def matches(self, words: Sequence[str], start: int) -> Iterator[tuple[int, Phrase]]:
        """Find every phrase that begins at a word: where it ends, and what it is."""
        rest = words[start : start + 3]
        if rest and (rest[0] in self.names or (self.names and self._may_be_new(rest[0]))):
            yield start + 1, Phrase(rest[0])
        if not rest or rest[0] not in lexicon.DETERMINERS:
            return
        if len(rest) > 1 and self._may_be(rest[1]):
            yield start + 2, Phrase(rest[1], rest[0])
        if len(rest) > 2 and rest[1] in self.adjectives and self._may_be(rest[2]):
            yield start + 3, Phrase(rest[2], rest[0], rest[1])

    def _may_be(self, word: str) -> bool:
        return word in self.nouns or self._may_be_new(word) or (self.open and not self.names and word in _THINGS)

    def _may_be_new(self, word: str) -> bool:
        return self.open and word not in _KNOWN and word[:1].isalpha()


@dataclass(frozen=True)
class Say:
    """A place for fixed words.

    Attributes:
        label: what it is called in the rules of a frame; its last word stands for it.
        options: what may be said, each one word or several.
    """

    label: str
    options: tuple[str, ...]

    def matches(self, words: Sequence[str], start: int) -> Iterator[tuple[int, str]]:
        """Find every option that begins at a word: where it ends, and which it is."""
        for option in self.options:
            parts = option.split()
            if list(words[start : start + len(parts)]) == parts:
                yield start + len(parts), option


Slot = Noun | Say
Values = Mapping[str, Phrase | str]


def fill(slots: Sequence[Slot], words: Sequence[str], start: int = 0) -> Iterator[tuple[int, dict[str, Phrase | str]]]:
    """Find every way in which words fill some slots.

    Args:
        slots: one after the other.
        words: lower case.
        start: the first word.

    Yields:
        Where the slots end, and what each holds, by its label.
    """
    if not slots:
        yield start, {}
        return
    first, *others = slots
    for end, value in first.matches(words, start):
        for last, values in fill(others, words, end):
            yield last, {first.label: value, **values}


_KNOWN = frozenset(WORDS)
_THINGS = frozenset(
    lexicon.GIFTS + lexicon.CONTAINERS + lexicon.FITTED + lexicon.HITTING + lexicon.BREAKING + lexicon.PLACED
    + lexicon.ANIMALS + lexicon.HANDLED
)  # fmt: skip
