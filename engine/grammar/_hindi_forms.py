"""How Hindi words change: nouns and adjectives by gender, number and case, verbs by gender and number.

Two cases are enough here: direct, and oblique in front of a postposition (को, में, पर, से, की). All verbs are in the
present habitual, which is regular for every verb of the lexicon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Gender = Literal["m", "f"]
UNKNOWN = "…"  # what stands in Hindi for an English word that is not in the lexicon

# Endings and what becomes of them; the first that fits. A letter of its own (ई) counts like its sign (ी).
_MANY_FEMININE = (("ी", "ियाँ"), ("ई", "इयाँ"), ("ा", "ाएँ"))
_MANY_OBLIQUE = (("ी", "ियों"), ("ई", "इयों"), ("ि", "ियों"), ("ू", "ुओं"), ("ा", "ाओं"))
_AGREEING = (("या", "ई", "ए"), ("आ", "ई", "ए"), ("ा", "ी", "े"))  # as listed, feminine, other masculine


class Inflected(Protocol):
    """A word with a form for every gender, number and case."""

    def form(self, gender: Gender, plural: bool, oblique: bool) -> str:
        """Give one of its forms; words that are two in Hindi are parted by a space."""


@dataclass(frozen=True)
class Noun:
    """A noun in both languages.

    Attributes:
        english: the singular.
        plural: the English plural; None for what is not counted.
        hindi: the direct singular.
        gender: of the Hindi noun.
        kind: what it is, so that verbs and adjectives can ask for it.
        declines: whether a masculine in -ा becomes -े; kings and names do not.
    """

    english: str
    plural: str | None
    hindi: str
    gender: Gender
    kind: str = ""
    declines: bool = True

    def form(self, gender: Gender, plural: bool, oblique: bool) -> str:
        """Give the noun's own form; its gender is its own too."""
        if self.hindi == UNKNOWN:
            return UNKNOWN
        steady = self.gender == "f" or not (self.hindi.endswith("ा") and self.declines)
        if not plural:
            return self.hindi if steady or not oblique else _changed(self.hindi, (("ा", "े"),), "")
        if not steady:
            return self.hindi[:-1] + ("ों" if oblique else "े")
        if oblique:
            return _changed(self.hindi, _MANY_OBLIQUE, "ों")
        return self.hindi if self.gender == "m" else _changed(self.hindi, _MANY_FEMININE, "ें")


@dataclass(frozen=True)
class Adjective:
    """An adjective, possessive or numeral in both languages.

    Attributes:
        english: its one form.
        hindi: the masculine direct singular; one that does not end in -ा never changes.
        goes_with: the nouns and kinds of noun that it goes with, parted by spaces.
    """

    english: str
    hindi: str
    goes_with: str = ""

    def form(self, gender: Gender, plural: bool, oblique: bool) -> str:
        """Agree with a noun: -ा, -े or -ी."""
        return " ".join(_agreeing(word, gender, plural or oblique) for word in self.hindi.split())

    def fits(self, noun: Noun) -> bool:
        """Say whether it goes with a noun."""
        return not {noun.english, noun.kind}.isdisjoint(self.goes_with.split())


@dataclass(frozen=True)
class Verb:
    """A verb in both languages.

    Attributes:
        english: its base form.
        stem: the Hindi verb without -ना.
        before: the noun or adjective of a verb that is two words in Hindi, such as बंद in बंद करना; else empty.
        takes: the things it is done to, as names and kinds parted by spaces.
        postposition: what marks the person it is done to.
    """

    english: str
    stem: str
    before: str = ""
    takes: str = ""
    postposition: str = "को"

    def habitual(self, gender: Gender, plural: bool, alone: bool) -> str:
        """Give the habitual form; `alone`, with no हैं after it, a feminine plural takes over the nasal."""
        if gender == "m":
            return self.stem + ("ते" if plural else "ता")
        return self.stem + ("तीं" if plural and alone else "ती")

    def fits(self, thing: Noun) -> bool:
        """Say whether a thing is one of those that this is done to."""
        return not {thing.english, thing.kind}.isdisjoint(self.takes.split())


def with_s(word: str) -> str:
    """Add the English -s of a plural or of he, she and it."""
    if word.endswith(("s", "x", "z", "ch", "sh", "o")):
        return word + "es"
    return word[:-1] + "ies" if word.endswith("y") and word[-2] not in "aeiou" else word + "s"


def _changed(word: str, endings: tuple[tuple[str, str], ...], otherwise: str) -> str:
    for old, new in endings:
        if word.endswith(old):
            return word.removesuffix(old) + new
    return word + otherwise


def _agreeing(word: str, gender: Gender, changed: bool) -> str:
    for listed, feminine, other in _AGREEING:
        if word.endswith(listed):
            stem = word.removesuffix(listed)
            return stem + feminine if gender == "f" else stem + other if changed else word
    return word
