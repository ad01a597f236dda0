"""Drawing sentences at random, from one of three splits that share no pair of nouns."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from engine.grammar import lexicon
from engine.grammar.frames import (
    AGREEMENT,
    EVERYDAY,
    FRAMES,
    PAUSE,
    REASON_FRAMES,
    REPETITION,
    Frame,
    Side,
    agreeing,
    is_many,
    noun_of,
)
from engine.grammar.parsing import joined
from engine.grammar.sentences import Sentence
from engine.grammar.slots import VOWELS, Noun, Phrase, Say, Slot
from engine.grammar.words import WORDS

Split = Literal["training", "development", "test"]
HELD_OUT = frozenset({("customer", "shopkeeper")})  # in the test split, whatever the hash says

# How often what happens.
NO_REASON, FOLLOW_UP, STOP, COMMA, OTHER_CONJUNCTION = 0.1, 0.5, 0.5, 0.12, 0.15
ADJECTIVE, NEW_WORD, NAME = 0.12, 0.08, 0.2
GENDERED = 0.15  # of the people who are not named are women, men, girls, boys, and so on
FITS_BOTH = 3  # times as often as one that fits only one of the two is a pronoun that fits both
SHARES = (2.0, 1.5, 1.5, 1.5, *(1.0,) * (len(REASON_FRAMES) - 4), 1.2, 1.2, 0.8)  # of the frames; giving counts most


def sentences(split: Split, seed: int, *, frame: str = "", reason: bool = False) -> Iterator[Sentence]:
    """Draw sentences without end.

    Args:
        split: no pair of nouns, such as shopkeeper and customer, is in two of them.
        seed: decides them all.
        frame: the only kind of sentence; empty for all kinds.
        reason: only those whose pronoun is decided by a reason, without a follow-up.

    Yields:
        Sentences with their gold labels. In the training split some nouns are made up.
    """
    rng = random.Random(f"{split} {seed} {frame}")
    frames = [one for one in FRAMES if frame in ("", one.name)]
    shares = [SHARES[FRAMES.index(one)] for one in frames]
    while True:
        chosen = rng.choices(frames, shares)[0]
        sentence = _one_of(chosen, split, rng)
        if not reason or (sentence.decided == "reason" and sentence.answer is None):
            yield sentence


def split_of(one: str, other: str) -> Split:
    """Say which split a pair of nouns belongs to; their order makes no difference."""
    pair = tuple(sorted((one, other)))
    number = zlib.crc32("|".join(pair).encode()) % 10
    if pair in HELD_OUT or number == 0:
        return "test"
    return "development" if number == 1 else "training"


def _one_of(frame: Frame, split: Split, rng: random.Random) -> Sentence:
    if frame is AGREEMENT:
        return _stopped(_agreement(split, rng), rng)
    if frame is REPETITION:
        return _stopped(_repetition(split, rng), rng)
    number = rng.randrange(len(frame.templates))
    slots = frame.templates[number]
    values = _filled(slots, split, rng, ("A", "O") if frame is EVERYDAY else ("A", "B"))
    if frame in REASON_FRAMES and rng.random() >= NO_REASON:
        slots = (*slots, *_reason(frame, values, rng))
    sentence = frame.assemble(number, values, slots)
    return _one_of(frame, split, rng) if sentence is None else _stopped(sentence, rng)


def _stopped(sentence: Sentence, rng: random.Random) -> Sentence:
    return replace(sentence, words=(*sentence.words, ".")) if rng.random() < STOP else sentence


def _filled(slots: Sequence[Slot], split: Split, rng: random.Random, pair: tuple[str, str]) -> dict[str, Phrase | str]:
    """Fill slots so that the two nouns of `pair` belong to a split."""
    while True:
        values: dict[str, Phrase | str] = {
            slot.label: phrase(slot, rng) if isinstance(slot, Noun) else rng.choice(slot.options) for slot in slots
        }
        one, other = (noun_of(values, label) for label in pair)
        if one != other and split_of(one, other) == split:
            break
    if split == "training" and rng.random() < NEW_WORD:
        slot = rng.choice([slot for slot in slots if isinstance(slot, Noun)])
        values[slot.label] = _made_up(slot, rng)
    return values


def phrase(slot: Noun, rng: random.Random) -> Phrase:
    """Draw a noun phrase."""
    if slot.names and rng.random() < NAME:
        return Phrase(rng.choice(slot.names))
    adjective = rng.choice(slot.adjectives) if slot.adjectives and rng.random() < ADJECTIVE else ""
    nouns = slot.nouns
    if slot.names:
        nouns = _GENDERED if rng.random() < GENDERED else lexicon.ROLES
    return _determined(rng.choice(nouns), adjective, rng)


def _determined(noun: str, adjective: str, rng: random.Random) -> Phrase:
    if is_many(noun) or rng.random() < 0.6:
        return Phrase(noun, "the", adjective)
    if rng.random() < 0.7:
        return Phrase(noun, "an" if (adjective or noun)[0] in VOWELS else "a", adjective)
    return Phrase(noun, rng.choice(("this", "that", "every", *lexicon.POSSESSIVES)), adjective)


def _made_up(slot: Noun, rng: random.Random) -> Phrase:
    """Make up a word that nobody has met, so that spelled words are nothing new to a model."""
    syllables = ["".join((rng.choice("bdfghklmnprstvwz"), rng.choice("aeiou"))) for _ in range(rng.randint(2, 3))]
    word = "".join(syllables) + rng.choice(("", "n", "r", "k"))
    if word in _KNOWN:
        return _made_up(slot, rng)
    if slot.names and rng.random() < 0.5:
        return Phrase(word.capitalize())
    return _determined(word, "", rng)


def _reason(frame: Frame, values: dict[str, Phrase | str], rng: random.Random) -> tuple[Slot, ...]:
    """Add a reason, and maybe what follows from it; return the slots that say it."""
    pronoun, side, told = _meant(frame, values, rng)
    reason = rng.choice(frame.of_a if told == "A" else frame.of_b)
    if str(values["V"]).split()[0] in _NOW:
        reason = lexicon.present(reason)
    if pronoun == "they":
        reason = lexicon.for_they(reason)
    conjunction = rng.choice(lexicon.CONJUNCTIONS[1:]) if rng.random() < OTHER_CONJUNCTION else "because"
    values |= {"pause": ",", "conjunction": conjunction, "pronoun": pronoun, "reason": reason}
    tail = (PAUSE, *frame.tail) if rng.random() < COMMA else frame.tail
    if rng.random() >= FOLLOW_UP:
        return tail
    named = values[side]
    if isinstance(named, Phrase) and named.determiner:
        named = Phrase(named.noun, "the")
    outcome = rng.choice(frame.follow_up[-1].options) if isinstance(frame.follow_up[-1], Say) else ""
    values |= {",": ",", "so": "so", "answer": named, "outcome": outcome}
    return (*tail, *frame.follow_up)


def _meant(frame: Frame, values: Mapping[str, Phrase | str], rng: random.Random) -> tuple[str, Side, Side]:
    """Draw a pronoun, then whom of those that it fits it means, and whom the reason speaks of.

    In this order: where the pronoun fits both, neither is likelier than the other before the reason is read. Where it
    fits one, gender decides, whatever the reason says.
    """
    sides: tuple[Side, Side] = ("A", "B")
    if not frame.person:
        side: Side = rng.choice(sides)
        return "it", side, side
    fits = {side: lexicon.pronouns_of(noun_of(values, side)) for side in sides}
    possible = sorted(fits["A"] | fits["B"])
    both = fits["A"] & fits["B"]
    shares = [(0.15 if one == "they" else 0.425) * (FITS_BOTH if one in both else 1) for one in possible]
    pronoun = rng.choices(possible, shares)[0]
    fitting = [side for side in sides if pronoun in fits[side]]
    side = rng.choice(fitting)
    return pronoun, side, side if len(fitting) == 2 else rng.choice(sides)


def _agreement(split: Split, rng: random.Random) -> Sentence:
    slots = AGREEMENT.templates[0]
    values = _filled(slots, split, rng, ("A", "B"))
    values["V"] = rng.choice(agreeing(is_many(noun_of(values, "A"))))
    if values["V"] in _SEEM:
        values["state"] = rng.choice(lexicon.THING_ADJECTIVES[:4])
    sentence = AGREEMENT.assemble(0, values, slots)
    return _agreement(split, rng) if sentence is None else sentence


def _repetition(split: Split, rng: random.Random) -> Sentence:
    """Say something of an animal, and the same again with one thing changed."""
    slots = REPETITION.templates[0]
    first = _filled(slots, split, rng, ("A", "B"))
    second, slot = dict(first), rng.choice((slots[0], slots[1], slots[3], slots[3]))
    second[slot.label] = phrase(slot, rng) if isinstance(slot, Noun) else rng.choice(slot.options)
    one, two = REPETITION.assemble(0, first, slots), REPETITION.assemble(0, second, slots)
    return _repetition(split, rng) if one is None or two is None else joined(one, two)


_KNOWN = frozenset(WORDS)
_GENDERED = lexicon.WOMEN + lexicon.MEN
_SEEM = frozenset({"looks", "seems", "look", "seem"})
_NOW = frozenset(
    [now for pairs in (lexicon.GIVE, lexicon.GET, lexicon.THANK, lexicon.HELP, lexicon.SCOLD, lexicon.PRAISE,
                       lexicon.CALL, lexicon.BREAK) for _, now in pairs] + ["does", "doesn't"]
)  # fmt: skip
