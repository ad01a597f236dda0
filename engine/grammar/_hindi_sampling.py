"""Drawing clauses at random such that every one has exactly one translation.

English leaves open whether a teacher is a man. A clause is drawn only where "she" or "her" can mean but one person in
it, or where it makes no difference to the Hindi which of them it means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import Literal

from engine.grammar import _hindi_lexicon as lexicon
from engine.grammar._hindi_clauses import Clause, Group, Person, Phrase, Pronoun, Reason
from engine.grammar._hindi_forms import UNKNOWN, Adjective, Gender, Noun, Verb
from engine.grammar._hindi_lexicon import Role
from engine.grammar._hindi_words import ENGLISH

_STATES = (*lexicon.STATES, *lexicon.GIVING, *lexicon.RECEIVING)
PRONOUNS: dict[Pronoun, Person] = {
    "he": Person(Role("he", None, "वह", None), "m"),
    "she": Person(Role("she", None, None, "वह"), "f"),
    "they": Person(Role("they", "they", "वे", None), "m", plural=True),
}
_WOMEN = tuple(role for role in lexicon.ROLES if role.male is None and role.plural is not None)
_SINGLE_WOMEN = tuple(role for role in (*lexicon.ROLES, *lexicon.NAMES) if role.male is None)
_OPEN = tuple(role for role in lexicon.ROLES if role.is_open)
# Nobody sells out of kindness.
_TELLING = tuple(verb for verb in (*lexicon.HANDING, *lexicon.HANDING_TO) if verb.english not in ("sell", "return"))
_GENDERS: tuple[Gender, ...] = ("m", "f")
_CONSONANTS, _VOWELS = "bcdfghjklmnprstvwz", "aeiou"


def clause(random: Random) -> Clause:
    """Draw a clause of any kind."""
    kinds = (_doing, _meeting, _handing, _being, _putting, _moving, _stating)
    drawn = random.choices(kinds, (34, 12, 40, 6, 3, 3, 2))[0](random)
    if drawn.verb is not None and drawn.subject.people[0].role.kind == "person":
        if random.random() < (0.85 if _leaves_open(drawn) else 0.25):
            drawn = _with_reason(random, drawn)
        if random.random() < 0.25:
            drawn = _with_owner(random, drawn)
    drawn = replace(drawn, stop=random.random() < 0.5)
    # Several women who don't do it have a form of their own (-तीं): often enough to be learned.
    rare = drawn.subject.plural and drawn.subject.gender == "f"
    if random.random() < (0.5 if rare else 0.22):
        return replace(drawn, negation="n't" if random.random() < 0.25 else "not")
    return replace(drawn, daily=drawn.verb is not None and random.random() < 0.06)


def objects_of(verb: Verb) -> tuple[str, ...]:
    """List the English words for what a verb of the lexicon is done to, in the singular."""
    if verb.takes:
        return tuple(thing.english for thing in lexicon.THINGS if verb.fits(thing))
    return tuple(role.english for role in (*lexicon.ROLES, *lexicon.ANIMALS, *lexicon.NAMES))


def is_riddle(drawn: Clause) -> bool:
    """Say whether nothing but the reason tells which of two people is "she"."""
    return drawn.reason is not None and drawn.reason.pronoun == "she" and _leaves_open(drawn)


def _doing(random: Random) -> Clause:
    verb = random.choice(lexicon.DOING)
    subject = _subject(random, animals=verb.english in lexicon.ANIMALS_DO.split())
    drawn = Clause(subject, verb, _thing(random, verb))
    if verb in (lexicon.BUY, lexicon.TAKE) and random.random() < 0.2:
        return replace(drawn, other=_person(random), link="from")
    if verb in (lexicon.BUY, lexicon.BRING, lexicon.TAKE):
        place = ("from", _place(random, lexicon.ROOMS))
        return replace(drawn, place=place) if random.random() < 0.4 else drawn
    if random.random() < 0.05:
        return Clause(subject, lexicon.BORROW, _thing(random, lexicon.BORROW), _person(random), "from")
    return replace(drawn, place=_somewhere(random)) if random.random() < 0.2 else drawn


def _meeting(random: Random) -> Clause:
    verb = random.choice(lexicon.MEETING)
    subject = _subject(random, animals=verb.english in lexicon.ANIMALS_DO.split())
    other = _animal(random) if verb.english != "thank" and random.random() < 0.15 else _person(random)
    if other.role == subject.people[0].role:
        return _meeting(random)
    return Clause(subject, verb, other=other, place=_somewhere(random) if random.random() < 0.12 else None)


def _handing(random: Random) -> Clause:
    subject, other = _subject(random), _person(random)
    if random.random() < 0.55:  # often enough to learn what only a reason tells
        giver, other = (_of(random, random.choice(_OPEN)) for _ in range(2))
        subject = Group((giver,))
    if other.role == subject.people[0].role:
        return _handing(random)
    if random.random() < 0.15:
        verb = random.choice(lexicon.HANDING_TO)
        return Clause(subject, verb, _thing(random, verb), other, "to")
    verb = random.choices(lexicon.HANDING, (3, 2, 2, 1, 1, 1, 1))[0]
    return Clause(subject, verb, _thing(random, verb), other, random.choice(("", "to")))


def _being(random: Random) -> Clause:
    verb = random.choice(lexicon.BEING)
    subject = _subject(random, animals=verb.english in lexicon.ANIMALS_DO.split())
    if verb.takes:
        rooms = [room for room in (*lexicon.ROOMS, lexicon.RIVER) if verb.fits(room)]
        return Clause(subject, verb, place=("in", _place(random, rooms)))
    return Clause(subject, verb, place=_somewhere(random) if random.random() < 0.6 else None)


def _putting(random: Random) -> Clause:
    verb = lexicon.PUT
    preposition, places = random.choice((("on", lexicon.FURNITURE), ("in", lexicon.CONTAINERS)))
    place, thing = _place(random, places), _thing(random, verb)
    if place.noun.english == thing.noun.english:
        return _putting(random)
    return Clause(_subject(random), verb, thing, place=(preposition, place), place_last=True)


def _moving(random: Random) -> Clause:
    goals = [room for room in lexicon.ROOMS if room.english in lexicon.GOALS.split()]
    if random.random() < 0.6:
        return Clause(_subject(random), lexicon.GO, place=("to", _place(random, goals)), bare_goal=True)
    return Clause(_subject(random), lexicon.COME, place=("from", _place(random, lexicon.ROOMS)))


def _stating(random: Random) -> Clause:
    subject = _subject(random)
    if random.random() < 0.3:
        return Clause(subject, None, place=_somewhere(random))
    return Clause(subject, None, state=random.choice(_STATES))


def _subject(random: Random, animals: bool = False) -> Group:
    kind = random.random()
    if animals and kind < 0.12:
        return Group((_animal(random),))
    if kind < 0.27:
        pronoun: Pronoun = random.choices(("he", "she", "they"), (2, 2, 1))[0]
        return Group((PRONOUNS[pronoun],), pronoun)
    if kind < 0.31:
        role = random.choice(_WOMEN)
        return Group((Person(role, "f", True, "the", _adjectives(random, role.noun("f"), 0.18)),))
    first = _person(random)
    if kind > 0.88:
        second = _person(random)
        # Two women have a plural of their own (-ती हैं), one man among them makes it a man's.
        if kind > 0.94:
            first, second = (_of(random, random.choice(_SINGLE_WOMEN)) for _ in range(2))
        if second.role != first.role and not first.plural and not second.plural:
            return Group((first, second))
    return Group((first,))


def _person(random: Random) -> Person:
    kind = random.random()
    if kind < 0.05:
        made_up = Role(_made_up(random), None, UNKNOWN, UNKNOWN, is_name=random.random() < 0.7)
        return Person(made_up, "m", article="" if made_up.is_name else random.choice(("the", "a")))
    if kind < 0.3:
        return _of(random, random.choice(lexicon.NAMES))
    return _of(random, random.choice(lexicon.ROLES))


def _animal(random: Random) -> Person:
    return _of(random, random.choice(lexicon.ANIMALS))


def _of(random: Random, role: Role) -> Person:
    """Draw the words around a role: an article, "my" or a number, and an adjective."""
    gender: Gender = "m" if role.male else "f"
    plural = role.plural is not None and random.random() < 0.25
    if role.is_name:
        return Person(role, gender, article="")
    before = _adjectives(random, role.noun(gender), 0.18)
    if random.random() < 0.08:
        return Person(role, gender, plural, "", (lexicon.MINE, *before))
    if plural and random.random() < 0.2:
        return Person(role, gender, plural, "", (random.choice(lexicon.NUMBERS), *before))
    return Person(role, gender, plural, _article(random, counted=role.plural is not None, plural=plural), before)


def _thing(random: Random, verb: Verb) -> Phrase:
    noun = random.choice(_things_for(verb))
    if random.random() < 0.04:
        noun = Noun(_made_up(random), None, UNKNOWN, "m", noun.kind)
        return Phrase(noun, article=random.choice(("the", "a")), before=_adjectives(random, noun, 0.25))
    plural = noun.plural is not None and random.random() < 0.22
    before = _adjectives(random, noun, 0.25)
    if plural and random.random() < 0.2:
        return Phrase(noun, plural, "", (random.choice(lexicon.NUMBERS), *before))
    # A discount is given one at a time, yet there are no two of them here.
    counted = noun.plural is not None or noun.kind == "favour"
    return Phrase(noun, plural, _article(random, counted, plural), before)


def _place(random: Random, places: Sequence[Noun]) -> Phrase:
    article: Literal["the", "a"] = "a" if random.random() < 0.15 else "the"
    noun = random.choice(places)
    return Phrase(noun, article=article, before=_adjectives(random, noun, 0.15))


def _somewhere(random: Random) -> tuple[str, Phrase]:
    if random.random() < 0.75:
        return "in", _place(random, lexicon.ROOMS)
    return "on", _place(random, lexicon.SURFACES)


def _adjectives(random: Random, noun: Noun, share: float) -> tuple[Adjective, ...]:
    fitting = _adjectives_for(noun)
    return (random.choice(fitting),) if fitting and random.random() < share else ()


@lru_cache(maxsize=64)
def _things_for(verb: Verb) -> tuple[Noun, ...]:
    return tuple(thing for thing in lexicon.THINGS if verb.fits(thing))


@lru_cache(maxsize=512)
def _adjectives_for(noun: Noun) -> tuple[Adjective, ...]:
    return tuple(adjective for adjective in lexicon.ADJECTIVES if adjective.fits(noun))


def _article(random: Random, counted: bool, plural: bool) -> Literal["the", "a", ""]:
    if plural or not counted:
        return "" if random.random() < 0.4 else "the"
    return "a" if random.random() < 0.45 else "the"


def _made_up(random: Random) -> str:
    """Make up a word that nobody knows."""
    while True:
        letters = [random.choice(_VOWELS if place % 2 else _CONSONANTS) for place in range(random.randint(3, 8))]
        word = "".join(letters[random.randint(0, 1) :])
        if word not in ENGLISH:
            return word.capitalize() if random.random() < 0.5 else word


def _with_reason(random: Random, drawn: Clause) -> Clause:
    """Say why, where it is clear who is meant; else leave the clause as it is."""
    others = () if drawn.other is None or drawn.other.role.kind == "animal" else (Group((drawn.other,)),)
    groups = (drawn.subject, *others)
    about = random.randrange(len(groups))
    meant = groups[about]
    riddle = _leaves_open(drawn)
    gender: Gender = random.choices(_GENDERS, (1, 2 if riddle else 1))[0] if meant.is_open else meant.gender
    state = random.choice((lexicon.GIVING, lexicon.RECEIVING)[about] if riddle else _STATES)
    pronoun: Pronoun = "they" if meant.plural else "she" if gender == "f" else "he"
    rival = next((group for group in groups if group is not meant and _may_mean(pronoun, group)), None)
    if rival is not None and not _is_settled(drawn, about, state):
        same = meant.gender == rival.gender if pronoun == "they" else pronoun == "he"
        if not same and (meant.is_open or rival.is_open or pronoun == "they"):
            return drawn
    negated = random.random() < 0.15 and not riddle  # one who is not rich receives
    reason = Reason(pronoun, gender, state, negated, random.random() < 0.1)
    if about == 0:
        people = tuple(person.as_(gender) for person in meant.people) if meant.is_open else meant.people
        return replace(drawn, subject=replace(meant, people=people), reason=reason)
    return replace(drawn, other=meant.people[0].as_(gender), reason=reason)


def _may_mean(pronoun: Pronoun, group: Group) -> bool:
    """Say whether a pronoun could mean somebody."""
    if group.plural or pronoun == "they":
        return group.plural and pronoun == "they"
    return group.is_open or (group.gender == "f") == (pronoun == "she")


def _leaves_open(drawn: Clause) -> bool:
    """Say whether "she" could be either of two people, as where a teacher gives a student something."""
    return drawn.verb in _TELLING and drawn.subject.is_open and drawn.other is not None and drawn.other.is_open


def _is_settled(drawn: Clause, about: int, state: Adjective) -> bool:
    """Say whether the reason itself tells who is meant: who gives is generous, who receives is hungry."""
    return drawn.verb in _TELLING and state in (lexicon.GIVING, lexicon.RECEIVING)[about]


def _with_owner(random: Random, drawn: Clause) -> Clause:
    """Say whose the thing is: mine, the subject's own, or, where nobody else is there, some other person's."""
    if drawn.thing is None or drawn.thing.noun.kind == "favour" or drawn.thing.before[:1] in _NUMBERED:
        return drawn
    subject, gender = drawn.subject, drawn.subject.gender
    owned = replace(drawn.thing, article="")
    if random.random() < 0.3:
        return replace(drawn, thing=replace(owned, before=(lexicon.MINE, *owned.before)))
    if subject.is_open and drawn.other is None and drawn.reason is None:
        gender = random.choice(("m", "f"))  # here "her" is what tells that the teacher is a woman
        subject = replace(subject, people=(subject.people[0].as_(gender),))
    own: Pronoun = "they" if subject.plural else "she" if gender == "f" else "he"
    if drawn.other is not None and (subject.is_open or _may_mean(own, Group((drawn.other,)))):
        return drawn
    word, hindi = _POSSESSIVES[own], lexicon.OWN
    if drawn.other is None and not drawn.subject.is_open and random.random() < 0.4:
        word, hindi = random.choice([other for other in ("his", "her") if other != word]), lexicon.OTHERS
    return replace(drawn, subject=subject, thing=replace(owned, before=(Adjective(word, hindi), *owned.before)))


_POSSESSIVES: dict[Pronoun, str] = {"he": "his", "she": "her", "they": "their"}
_NUMBERED = tuple((number,) for number in lexicon.NUMBERS)
