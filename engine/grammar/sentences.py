"""A sentence with its gold labels, and how its words are put in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from engine.grammar.slots import Phrase

Relation = Literal["pronoun", "reason", "determiner", "subject", "object", "verb", "repetition"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
TOPICS = (
    "giving", "thanking", "helping", "scolding", "praising", "calling", "fitting", "breaking", "where things are",
    "animals", "everyday",
)  # fmt: skip

# Words that come again in every sentence, so that their repetition says nothing.
FUNCTION = frozenset(
    """
    the a an this that every my our his her their . , to from for with into in inside on near under behind by beside
    because since as so
    was is were are had has have she he they it not did does very too of
    """.split()
)


@dataclass(frozen=True)
class Link:
    """One gold label: the word at `source` belongs to the word at `target`; both count from 0."""

    relation: Relation
    source: int
    target: int


@dataclass(frozen=True)
class Sentence:
    """Words, and what they are to each other; positions count words from 0.

    Attributes:
        words: lower case, punctuation apart.
        frame: the kind of sentence.
        topic: what it is about, one of TOPICS.
        links: all gold labels.
        pronoun: where the pronoun of the reason stands; None without a reason.
        referent: the noun that it means.
        candidates: the two nouns that might be meant: the one who gives or acts first, then the other.
        reason_end: the last word of the reason.
        answer: where the referent is named once more after "so"; None where it is not.
        decided: what decides: the "reason", or the "gender" where only one of the two fits the pronoun.
    """

    words: tuple[str, ...]
    frame: str
    topic: str
    links: tuple[Link, ...]
    pronoun: int | None = None
    referent: int | None = None
    candidates: tuple[int, int] | None = None
    reason_end: int | None = None
    answer: int | None = None
    decided: Literal["", "reason", "gender"] = ""

    @property
    def other(self) -> int | None:
        """The one of the two candidates that is not meant; None without a reason."""
        return next((place for place in self.candidates or () if place != self.referent), None)

    @property
    def text(self) -> str:
        """The sentence as it is typed."""
        return " ".join(self.words).replace(" .", ".").replace(" ,", ",")


class Line:
    """Puts words in a row and keeps where they stand.

    Attributes:
        words: those said so far.
        at: for each label the place of its last word.
    """

    def __init__(self) -> None:
        self.words: list[str] = []
        self.at: dict[str, int] = {}
        self._links: list[Link] = []

    def say(self, label: str, value: Phrase | str) -> None:
        """Say a noun phrase or fixed words; a determiner belongs to its noun."""
        words = value.words if isinstance(value, Phrase) else tuple(value.split())
        self.words += words
        self.at[label] = len(self.words) - 1
        if isinstance(value, Phrase) and value.determiner:
            self._links.append(Link("determiner", len(self.words) - len(words), len(self.words) - 1))

    def link(self, relation: Relation, source: str, target: str) -> None:
        """Say that one label's word belongs to another's."""
        self._links.append(Link(relation, self.at[source], self.at[target]))

    def links(self) -> tuple[Link, ...]:
        """Give all labels, with those of words that were said before."""
        return (*self._links, *repetitions(self.words))


def repetitions(words: Sequence[str]) -> tuple[Link, ...]:
    """Link every word that carries meaning to where it was said last."""
    last: dict[str, int] = {}
    found = []
    for place, word in enumerate(words):
        if word in last and word not in FUNCTION:
            found.append(Link("repetition", place, last[word]))
        last[word] = place
    return tuple(found)
