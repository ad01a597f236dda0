"""Reading a typed sentence by the grammar: which frame it is, and so what its gold labels are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from engine._words import split_words
from engine.grammar.frames import FRAMES, PAUSE, REASON_FRAMES, REPETITION, Frame, noun_of
from engine.grammar.sentences import Link, Sentence, repetitions
from engine.grammar.slots import Slot, fill


def parse(text: str) -> Sentence | None:
    """Find out what a typed sentence is by the grammar.

    Letter case makes no difference; a full stop may close it. Where a noun is asked for, a word that the grammar does
    not know will do.

    Args:
        text: as typed.

    Returns:
        The sentence with its gold labels; None where no frame fits, or where it fits with two meanings.
    """
    words = [word.text.lower() for word in split_words(text)]
    bare = words[:-1] if words[-1:] == ["."] else words
    found = list(dict.fromkeys(_readings(bare, words)))
    return found[0] if len({sentence.referent for sentence in found}) == 1 else None


def _readings(bare: Sequence[str], words: Sequence[str]) -> Iterator[Sentence]:
    """Find every reading of a sentence without its full stop, and give it the stop back."""
    for frame in FRAMES:
        for template, slots in _rows(frame):
            for end, values in fill(slots, bare):
                if end != len(bare):
                    continue
                if "answer" in values and noun_of(values, "answer") not in (noun_of(values, "A"), noun_of(values, "B")):
                    continue
                sentence = frame.assemble(template, values, slots)
                if sentence is not None:
                    yield _closed(sentence, words)
    yield from _twice(bare, words)


def _rows(frame: Frame) -> Iterator[tuple[int, tuple[Slot, ...]]]:
    tails: tuple[tuple[Slot, ...], ...] = ((),)
    if frame in REASON_FRAMES:
        reasons = (frame.tail, (*frame.tail, *frame.follow_up))
        tails = ((), *reasons, *((PAUSE, *reason) for reason in reasons))
    for (number, template), tail in product(enumerate(frame.templates), tails):
        yield number, (*template, *tail)


def _twice(bare: Sequence[str], words: Sequence[str]) -> Iterator[Sentence]:
    """Find two sentences about animals, one after the other."""
    slots = REPETITION.templates[0]
    for middle, first in fill(slots, bare):
        if bare[middle : middle + 1] != ["."]:
            continue
        for end, second in fill(slots, bare, middle + 1):
            one, two = REPETITION.assemble(0, first, slots), REPETITION.assemble(0, second, slots)
            if end == len(bare) and one is not None and two is not None:
                yield _closed(joined(one, two), words)


def joined(one: Sentence, two: Sentence) -> Sentence:
    """Put two sentences one after the other, with a full stop between them."""
    shift = len(one.words) + 1
    words = (*one.words, ".", *two.words)
    moved = [Link(link.relation, link.source + shift, link.target + shift) for link in two.links]
    kept = [link for link in (*one.links, *moved) if link.relation != "repetition"]
    return Sentence(words, one.frame, one.topic, (*kept, *repetitions(words)))


def _closed(sentence: Sentence, words: Sequence[str]) -> Sentence:
    return replace(sentence, words=tuple(words))
