"""Which reasons the grammar knows for a typed sentence whose own reason it does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from app.answer import parsed
from engine.grammar import REASON_FRAMES, Frame, lexicon
from engine.grammar.frames import noun_of
from engine.grammar.slots import Phrase, Say, Values, fill

FIRST_TIME = ("a", "an", "every")  # determiners
OFFERED = 2  # reasons of each person or thing


@dataclass(frozen=True)
class Offer:
    """Reasons that would fit, and of whom they speak.

    Attributes:
        who: as in a sentence: "the shopkeeper"; empty where the pronoun can mean only one, whatever the reason.
        reasons: in the form that the typed sentence asks for: "was generous".
    """

    who: str
    reasons: tuple[str, ...]


def offers(words: Sequence[str]) -> tuple[Offer, ...]:
    """Find reasons that the grammar knows after the beginning of a sentence, for each of the two it may speak of.

    Args:
        words: of the sentence as typed.

    Returns:
        One for each, in the order in which the sentence names them; none where the beginning is not known either.
    """
    lower = [word.lower() for word in words]
    for frame, end, values in _begun(lower):
        form = _form(str(values["pronoun"]), lower[end:])
        sides = [label for label in values if label in ("A", "B")]
        made = [_offer(frame, side, words[:end], values, form) for side in sides]
        if all(offer.reasons for offer in made):
            return tuple(made)
    return ()


def _begun(words: Sequence[str]) -> Iterator[tuple[Frame, int, Values]]:
    """Find every frame that a sentence begins with, up to the pronoun; a comma may stand before the reason."""
    for frame, pause in product(REASON_FRAMES, ((), (Say("pause", (",",)),))):
        for template in frame.templates:
            for end, values in fill((*template, *pause, *frame.tail[:2]), words):
                yield frame, end, values


def _offer(frame: Frame, side: str, begun: Sequence[str], values: Values, form: Callable[[str], str]) -> Offer:
    said: list[str] = []
    decided = ""
    for reason in map(form, frame.of_a if side == "A" else frame.of_b):
        sentence = parsed(" ".join((*begun, reason)))
        if sentence is not None and sentence.decided is not None:
            said.append(reason)
            decided = sentence.decided
        if len(said) == OFFERED:
            break
    return Offer(_person(begun, values, side) if decided == "reason" else "", tuple(said))


def _person(begun: Sequence[str], values: Values, side: str) -> str:
    """Name who stands at a side as the sentence does, but for the second time: "a cook" is "the cook" by now."""
    noun, phrase = noun_of(values, side), values[side]
    typed = next((word for word in begun if word.lower() == noun), noun)
    first = phrase.determiner if isinstance(phrase, Phrase) else ""
    return f"{'the' if first in FIRST_TIME else first} {typed}".strip()


def _form(pronoun: str, rest: Sequence[str]) -> Callable[[str], str]:
    """Choose the form of reasons by the pronoun, and their tense by the word that was typed after it."""
    presents = {now for verb in lexicon.PRESENT.values() for now in (verb, lexicon.for_they(verb))}
    is_now = bool(rest) and rest[0] in presents

    def form(reason: str) -> str:
        told = lexicon.present(reason) if is_now else reason
        return lexicon.for_they(told) if pronoun == "they" else told

    return form
