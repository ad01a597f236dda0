"""English sentences with their Hindi translations, word by word, right by construction.

    english      the   girl  does  not  read   the   book  because  she  is  hungry
    hindi        लड़की  किताब  नहीं  पढ़ती  क्योंकि  वह  भूखी  है
    alignment    girl  book  not   read  because  she  hungry  is

Everything is in the present habitual: पढ़ती है. What is done to a person is marked with को (or the से, की or पर that the
verb asks for), what is done to a thing is not marked. After नहीं the है of the verb is left out, as is usual, and a
feminine plural takes over its nasal: लड़कियाँ नहीं पढ़तीं. A teacher or a friend is a man unless "she" or "her" says
otherwise. There is no ने, since there is no past, and nobody is addressed with the polite plural.

को, the है of a habitual verb, and what a verb asks for have no partner in English; in "she is hungry" है is "is".
English articles have no partner in Hindi. A word that is not in the lexicon becomes "…".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Literal

from engine.grammar import _hindi_lexicon as lexicon
from engine.grammar._hindi_clauses import said
from engine.grammar._hindi_forms import UNKNOWN
from engine.grammar._hindi_sampling import clause, is_riddle, objects_of
from engine.grammar._hindi_words import ENGLISH, HINDI

__all__ = ["HELD_OUT", "KNOWN", "UNKNOWN", "WORDS", "Pair", "Split", "pair", "pairs", "split_of"]

Split = Literal["train", "development", "test"]
WORDS = (*ENGLISH, *HINDI)

# Pairs of verb and object that are always, or never, in training.
KNOWN = (("read", "book"), ("give", "book"), ("give", "discount"), ("see", "boy"))
HELD_OUT = (("eat", "apple"), ("give", "flower"))
_MANY = 5  # objects that a verb must have before some of them are held out
_SHARES: tuple[Split, ...] = ("test", "development")  # a tenth each


@dataclass(frozen=True)
class Pair:
    """A sentence in English and in Hindi.

    Attributes:
        english: its words and marks, in small letters but for words that are not in the lexicon.
        hindi: those of its translation.
        alignment: for each Hindi word the place of the English word that it translates, from 0; None for none.
        action: the English verb and what it is done to, in their base forms; None where there is no such pair, or where
            a word of it is not in the lexicon.
        riddle: whether nothing but the reason tells which of two people is "she", and so what the Hindi is.
    """

    english: tuple[str, ...]
    hindi: tuple[str, ...]
    alignment: tuple[int | None, ...]
    action: tuple[str, str] | None = None
    riddle: bool = False


def pair(random: Random) -> Pair:
    """Draw a sentence and its translation, of any split."""
    drawn = clause(random)
    draft = said(drawn)
    about = drawn.thing.noun.english if drawn.thing else drawn.other.role.english if drawn.other else None
    action = (drawn.verb.english, about) if drawn.verb and about in ENGLISH else None
    hindi, alignment = zip(*draft.hindi, strict=True)
    return Pair(tuple(draft.english), hindi, alignment, action, is_riddle(drawn))


def pairs(split: Split, seed: int) -> Iterator[Pair]:
    """Draw sentences of one split without end; the same seed gives the same ones."""
    random = Random(f"{split} {seed}")
    for _ in count():
        drawn = pair(random)
        if split_of(drawn) == split:
            yield drawn


def split_of(pair: Pair) -> Split:
    """Say which split a sentence belongs to, by its verb and the verb's object alone."""
    return _split_of_action(pair.action)


def _split_of_action(action: tuple[str, str] | None) -> Split:
    if action is None or action in KNOWN:
        return "train"
    if action in HELD_OUT:
        return "test"
    if _OBJECTS[action[0]] < _MANY:
        return "train"
    share = hashlib.sha256(" ".join(action).encode()).digest()[0] % 10
    return _SHARES[share] if share < len(_SHARES) else "train"


_OBJECTS = {
    verb.english: len(objects_of(verb))
    for verb in (*lexicon.MEETING, *lexicon.DOING, lexicon.PUT, lexicon.BORROW, *lexicon.HANDING, *lexicon.HANDING_TO)
}
