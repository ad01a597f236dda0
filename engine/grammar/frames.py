"""The kinds of sentences: who stands where, which verbs fit, and which reasons speak of whom.

In every frame with a reason A is who gives, helps, scolds or hits, and B the other: "A gave B a book because she was
generous" speaks of A, "... because she was a regular" of B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from engine.grammar import lexicon as words
from engine.grammar.sentences import Line, Sentence
from engine.grammar.slots import Noun, Phrase, Say, Slot, Values

Side = Literal["A", "B"]


@dataclass(frozen=True)
class Frame:
    """A kind of sentence.

    Attributes:
        name: what it is called.
        topic: what it is about.
        templates: its word orders, each a row of slots; the verb's slot is "V".
        subject: the label of the verb's subject.
        objects: for each template the label of the verb's object; empty for none.
        of_a, of_b: reasons, in the past, that speak of A and of B; empty where no reason follows.
        person: whether A and B are people, so that she, he or they may stand for them; else "it".
    """

    name: str
    topic: str
    templates: tuple[tuple[Slot, ...], ...]
    subject: str
    objects: tuple[str, ...]
    of_a: tuple[str, ...] = ()
    of_b: tuple[str, ...] = ()
    person: bool = True

    @cached_property
    def points(self) -> dict[str, Side]:
        """For every reason, in all its forms, whom it speaks of."""
        sides: tuple[tuple[Side, tuple[str, ...]], ...] = (("A", self.of_a), ("B", self.of_b))
        return {form: side for side, reasons in sides for reason in reasons for form in _forms(reason)}

    @cached_property
    def tail(self) -> tuple[Slot, ...]:
        """The slots of the reason; a comma may stand before them, see PAUSE."""
        pronouns = words.PRONOUNS[:3] if self.person else words.PRONOUNS[3:]
        return Say("conjunction", words.CONJUNCTIONS), Say("pronoun", pronouns), Say("reason", tuple(self.points))

    @cached_property
    def follow_up(self) -> tuple[Slot, ...]:
        """The slots of what follows from it: ", so the customer smiled"."""
        pair = [slot for slot in self.templates[0] if isinstance(slot, Noun) and slot.label in ("A", "B")]
        nouns = tuple(dict.fromkeys(noun for slot in pair for noun in slot.nouns))
        outcomes = words.OUTCOMES if self.person else words.THING_OUTCOMES
        return Say(",", (",",)), Say("so", ("so",)), Noun("answer", nouns, pair[0].names), Say("outcome", outcomes)

    def resolve(self, values: Values) -> tuple[Side, Literal["reason", "gender"]] | None:
        """Say whom the pronoun means, and what decides; None where it can mean neither."""
        pronoun = str(values["pronoun"])
        sides: tuple[Side, ...] = ("A", "B")
        fit = [side for side in sides if not self.person or pronoun in words.pronouns_of(noun_of(values, side))]
        if not fit:
            return None
        return (fit[0], "gender") if len(fit) == 1 else (self.points[str(values["reason"])], "reason")

    def assemble(self, template: int, values: Values, slots: Sequence[Slot]) -> Sentence | None:
        """Put a sentence together.

        Args:
            template: which of the frame's word orders.
            values: what each slot holds, by its label.
            slots: all that are said, in order.

        Returns:
            The sentence with its gold labels; None where the pronoun can mean nobody.
        """
        line = Line()
        for slot in slots:
            line.say(slot.label, values[slot.label])
        line.link("subject", "V", self.subject)
        if self.objects[template]:
            line.link("object", "V", self.objects[template])
        for label in ("A", "B", "O"):
            if label in line.at:
                line.link("verb", label, "V")
        if "reason" not in line.at:
            return Sentence(tuple(line.words), self.name, self.topic, line.links())
        resolved = self.resolve(values)
        if resolved is None:
            return None
        side, decided = resolved
        line.link("pronoun", "pronoun", side)
        line.link("reason", "pronoun", "reason")
        if str(values["reason"]).endswith(" it") and "O" in line.at:
            line.link("pronoun", "reason", "O")
        return Sentence(
            tuple(line.words), self.name, self.topic, line.links(), line.at["pronoun"], line.at[side],
            (line.at["A"], line.at["B"]), line.at["reason"], line.at.get("answer"), decided,
        )  # fmt: skip


def noun_of(values: Values, label: str) -> str:
    """Name the noun of a phrase."""
    phrase = values[label]
    return phrase.noun if isinstance(phrase, Phrase) else phrase


def _forms(reason: str) -> tuple[str, ...]:
    now = words.present(reason)
    return tuple(dict.fromkeys((reason, now, words.for_they(reason), words.for_they(now))))


def verbs(pairs: Sequence[tuple[str, str]]) -> Say:
    """Make the slot of a verb, past and present."""
    return Say("V", tuple(form for pair in pairs for form in pair))


def _person(label: str) -> Noun:
    return Noun(label, words.PEOPLE, words.HER_NAMES + words.HIS_NAMES, words.PEOPLE_ADJECTIVES)


def _thing(label: str, nouns: tuple[str, ...]) -> Noun:
    return Noun(label, nouns, (), words.THING_ADJECTIVES)


_A, _B, _O = _person("A"), _person("B"), _thing("O", words.GIFTS)
FITS = ("did not fit", "does not fit", "didn't fit", "doesn't fit")
PAUSE = Say("pause", (",",))
_TO, _FROM, _FOR = Say("to", ("to",)), Say("from", ("from",)), Say("for", ("for",))
_GIVER, _RECEIVER = words.OF_GIVER, words.OF_RECEIVER

REASON_FRAMES: tuple[Frame, ...] = (
    Frame("A gave B O", "giving", ((_A, verbs(words.GIVE), _B, _O),), "A", ("O",), _GIVER, _RECEIVER),
    Frame("A gave O to B", "giving", ((_A, verbs(words.GIVE), _O, _TO, _B),), "A", ("O",), _GIVER, _RECEIVER),
    Frame("B got O from A", "giving", ((_B, verbs(words.GET), _O, _FROM, _A),), "B", ("O",), _GIVER, _RECEIVER),
    Frame(
        "B thanked A", "thanking", ((_B, verbs(words.THANK), _A), (_B, verbs(words.THANK), _A, _FOR, _O)), "B",
        ("A", "A"), words.OF_HELPFUL, words.OF_THANKFUL,
    ),
    Frame("A helped B", "helping", ((_A, verbs(words.HELP), _B),), "A", ("B",), words.OF_HELPER, words.OF_HELPED),
    Frame("A scolded B", "scolding", ((_A, verbs(words.SCOLD), _B),), "A", ("B",), words.OF_ANGRY, words.OF_GUILTY),
    Frame("A praised B", "praising", ((_A, verbs(words.PRAISE), _B),), "A", ("B",), words.OF_PLEASED, words.OF_GOOD),
    Frame("A called B", "calling", ((_A, verbs(words.CALL), _B),), "A", ("B",), words.OF_CALLER, words.OF_CALLED),
    Frame(
        "A did not fit into B", "fitting",
        ((_thing("A", words.FITTED), Say("V", FITS), Say("into", words.INTO),
          _thing("B", words.CONTAINERS)),),
        "A", ("",), words.OF_TOO_LARGE, words.OF_TOO_SMALL, person=False,
    ),
    Frame(
        "A broke B", "breaking", ((_thing("A", words.HITTING), verbs(words.BREAK), _thing("B", words.BREAKING)),), "A",
        ("B",), words.OF_HARD, words.OF_FRAGILE, person=False,
    ),
)  # fmt: skip

_ONE, _MANY = ("is", "was", "looks", "seems"), ("are", "were", "look", "seem")
_PLACED = words.PLACED + tuple(map(words.plural, words.PLACED))
_NEAR = words.NEAR + tuple(map(words.plural, words.NEAR))
_PLURALS = frozenset(_PLACED + _NEAR) - frozenset(words.PLACED + words.NEAR)
AGREEMENT = Frame(
    "N near N is", "where things are",
    ((_thing("A", _PLACED), Say("between", words.BETWEEN), _thing("B", _NEAR), Say("V", _ONE + _MANY),
      Say("state", words.STATES)),),
    "A", ("",),
)  # fmt: skip
REPETITION = Frame(
    "N sat on N. N sat on N", "animals",
    ((_thing("A", words.ANIMALS), verbs(words.REST), Say("place", words.PLACES), _thing("B", words.SPOTS)),),
    "A", ("",),
)  # fmt: skip
EVERYDAY = Frame(
    "A saw O", "everyday",
    ((_A, verbs(words.HANDLE), _thing("O", words.HANDLED)),
     (_A, verbs(words.HANDLE), _thing("O", words.HANDLED), Say("adverb", words.ADVERBS))),
    "A", ("O", "O"),
)  # fmt: skip
FRAMES: tuple[Frame, ...] = (*REASON_FRAMES, AGREEMENT, REPETITION, EVERYDAY)


def is_many(noun: str) -> bool:
    """Say whether a noun of the frame about where things are is a plural."""
    return noun in _PLURALS


def agreeing(many: bool) -> tuple[str, ...]:
    """Give the verbs that agree with one thing, or with many."""
    return _MANY if many else _ONE
