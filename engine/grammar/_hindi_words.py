"""All words of both languages, in every form that a sentence of this grammar can have."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from engine.grammar import _hindi_lexicon as lexicon
from engine.grammar._hindi_forms import UNKNOWN, Adjective, Gender, Noun, with_s

_ENGLISH_FUNCTION_WORDS = (
    "the a an and not do does don't doesn't is are because he she they his her their in on from to every day , ."
)
_HINDI_FUNCTION_WORDS = f"और नहीं है हैं क्योंकि वह वे में पर से को की हर दिन , । {UNKNOWN}"
_GENDERS: tuple[Gender, ...] = ("m", "f")
_STATES = (*lexicon.STATES, *lexicon.GIVING, *lexicon.RECEIVING)
_ADJECTIVES = (*lexicon.ADJECTIVES, *_STATES, lexicon.MINE, *lexicon.NUMBERS)
_PEOPLE = (*lexicon.ROLES, *lexicon.ANIMALS, *lexicon.NAMES)
_PLACES = (*lexicon.ROOMS, *lexicon.SURFACES, *lexicon.FURNITURE, *lexicon.CONTAINERS, lexicon.RIVER)


def _english() -> Iterator[str]:
    yield from _ENGLISH_FUNCTION_WORDS.split()
    for role in _PEOPLE:
        yield from (role.english, *([role.plural] if role.plural else []))
    for noun in (*lexicon.THINGS, *_PLACES):
        yield from (noun.english, *([noun.plural] if noun.plural else []))
    for verb in lexicon.VERBS:
        yield from (verb.english, with_s(verb.english))
    yield from (adjective.english for adjective in _ADJECTIVES)
    yield with_s(lexicon.REGULAR.english)


def _hindi() -> Iterator[str]:
    yield from _HINDI_FUNCTION_WORDS.split()
    for role in _PEOPLE:
        yield from _forms(role.noun("m"), one_only=role.plural is None) if role.male else ()
        # Several of an open role are men.
        yield from _forms(role.noun("f"), one_only=role.plural is None or role.is_open) if role.female else ()
    for thing in lexicon.THINGS:
        yield thing.hindi
        if thing.plural is not None:
            yield thing.form(thing.gender, plural=True, oblique=False)
    yield from (place.form(place.gender, plural=False, oblique=True) for place in _PLACES)
    for verb in lexicon.VERBS:
        yield from verb.before.split()
        yield from (verb.habitual(*case) for case in product(_GENDERS, (False, True), (False, True)))
    owners = (Adjective("", lexicon.OWN), Adjective("", lexicon.OTHERS))
    for adjective, gender, plural in product((*_ADJECTIVES, *owners), _GENDERS, (False, True)):
        yield from adjective.form(gender, plural, False).split()


def _forms(noun: Noun, one_only: bool) -> Iterator[str]:
    for plural in (False,) if one_only else (False, True):
        yield from (noun.form(noun.gender, plural, oblique) for oblique in (False, True))


ENGLISH = tuple(dict.fromkeys(_english()))
HINDI = tuple(word for word in dict.fromkeys(_hindi()) if word not in ENGLISH)
