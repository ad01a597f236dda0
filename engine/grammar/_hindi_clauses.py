"""Clauses and how they are said: first in English, word by word, then in Hindi, each word with its partner.

English    subject · does not · verb · receiver · thing · place · every day · because … is …
Hindi      subject · हर दिन · place · receiver को · thing · नहीं · verb है · क्योंकि … है
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from engine.grammar._hindi_forms import Adjective, Gender, Inflected, Noun, Verb, with_s
from engine.grammar._hindi_lexicon import POSTPOSITIONS, REGULAR, Role

Words = list[tuple[str, int | None]]  # Hindi words, each with the place of its partner among the English ones
Pronoun = Literal["he", "she", "they"]


@dataclass(frozen=True)
class Phrase:
    """A noun with what stands in front of it.

    Attributes:
        noun: in both languages.
        plural: whether there are several.
        article: "the", "a" or none; it has no partner.
        before: possessive or number, and adjectives, in order.
    """

    noun: Noun
    plural: bool = False
    article: Literal["the", "a", ""] = "the"
    before: tuple[Adjective, ...] = ()


@dataclass(frozen=True)
class Person:
    """Somebody in a sentence, who is a man or a woman only once that has been decided."""

    role: Role
    gender: Gender
    plural: bool = False
    article: Literal["the", "a", ""] = "the"
    before: tuple[Adjective, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether the English words leave open if this is a man or a woman; several are men by default."""
        return self.role.is_open and not self.plural

    @property
    def phrase(self) -> Phrase:
        """The words for this person."""
        return Phrase(self.role.noun(self.gender), self.plural, self.article, self.before)

    def as_(self, gender: Gender) -> Person:
        """Decide between man and woman."""
        return replace(self, gender=gender)


@dataclass(frozen=True)
class Group:
    """Who does it: one phrase, or two joined by "and", or a pronoun that stands for itself."""

    people: tuple[Person, ...]
    pronoun: Pronoun | None = None

    @property
    def plural(self) -> bool:
        """Whether verbs agree with several."""
        return len(self.people) > 1 or self.people[0].plural

    @property
    def gender(self) -> Gender:
        """The gender that verbs agree with: feminine only where all are."""
        return "f" if all(person.gender == "f" for person in self.people) else "m"

    @property
    def is_open(self) -> bool:
        """Whether "she" could turn a man into a woman."""
        return not self.plural and self.people[0].is_open and self.pronoun is None


@dataclass(frozen=True)
class Reason:
    """A clause with because: who is how."""

    pronoun: Pronoun
    gender: Gender
    state: Adjective
    negated: bool = False
    comma: bool = False


@dataclass(frozen=True)
class Clause:
    """One sentence before it is said.

    Attributes:
        subject: who does it.
        verb: what; None where somebody only is somehow or somewhere.
        state: how somebody is, where there is no verb.
        thing: what it is done to.
        other: the person it is done to, who receives the thing, or from whom it comes.
        link: what is between verb and person in English: nothing, "to" behind the thing, or "from".
        place: where, with its preposition.
        place_last: whether Hindi has the place behind the thing, where that is where the thing ends up.
        bare_goal: whether the place is where somebody goes, without a postposition in Hindi.
        negation: "not", or the contraction "n't", or nothing.
        daily: whether it happens every day.
        reason: why.
        stop: whether a full stop ends it.
    """

    subject: Group
    verb: Verb | None
    thing: Phrase | None = None
    other: Person | None = None
    link: Literal["", "to", "from"] = ""
    place: tuple[str, Phrase] | None = None
    place_last: bool = False
    bare_goal: bool = False
    negation: Literal["", "not", "n't"] = ""
    daily: bool = False
    reason: Reason | None = None
    stop: bool = False
    state: Adjective | None = None


@dataclass(frozen=True)
class _Spoken:
    """A phrase after it was said in English: what inflects in Hindi, and where each English word is."""

    phrase: Phrase
    parts: tuple[tuple[Inflected, int], ...]

    def hindi(self, oblique: bool = False) -> Words:
        noun = self.phrase.noun
        forms = ((part.form(noun.gender, self.phrase.plural, oblique), place) for part, place in self.parts)
        return [(word, place) for form, place in forms for word in form.split()]


class Draft:
    """An English sentence as it grows, and the Hindi words that belong to it."""

    def __init__(self) -> None:
        self.english: list[str] = []
        self.hindi: Words = []

    def say(self, *words: str) -> int:
        """Add English words and tell where the last one is."""
        self.english += words
        return len(self.english) - 1

    def say_phrase(self, phrase: Phrase) -> _Spoken:
        """Add an English phrase, with "an" where the next word begins with a vowel."""
        noun = phrase.noun
        words = [*(word.english for word in phrase.before), str(noun.plural) if phrase.plural else noun.english]
        if phrase.article:
            self.say("an" if phrase.article == "a" and words[0][0] in "aeiouAEIOU" else phrase.article)
        places = [self.say(word) for word in words]
        return _Spoken(phrase, tuple(zip((*phrase.before, noun), places, strict=True)))

    def say_subject(self, group: Group) -> Words:
        """Add who does it, and give the Hindi for it."""
        if group.pronoun is not None:
            return [(_pronoun(group.pronoun), self.say(group.pronoun))]
        words: Words = []
        for number, person in enumerate(group.people):
            if number:
                words.append(("और", self.say("and")))
            words += self.say_phrase(person.phrase).hindi()
        return words


def said(clause: Clause) -> Draft:
    """Say a clause in both languages."""
    draft = Draft()
    if clause.verb is None:
        _say_state(draft, clause)
    else:
        _say_deed(draft, clause, clause.verb)
    if clause.reason is not None:
        _say_reason(draft, clause.reason)
    if clause.stop:
        draft.hindi.append(("।", draft.say(".")))
    return draft


def _say_deed(draft: Draft, clause: Clause, verb: Verb) -> None:
    """Say who does what."""
    subject = draft.say_subject(clause.subject)
    no = _say_negation(draft, clause)
    plain = clause.negation or clause.subject.plural
    at = draft.say(verb.english if plain else with_s(verb.english))
    person, thing = _say_objects(draft, clause, verb)
    place = _say_place(draft, clause)
    daily: Words = []
    if clause.daily:
        daily = [("हर", draft.say("every")), ("दिन", draft.say("day"))]
    early, late = ([], place) if clause.place_last else (place, [])
    draft.hindi += subject + daily + early + person + thing + late + _predicate(clause.subject, verb, at, no)


def _say_state(draft: Draft, clause: Clause) -> None:
    """Say how or where somebody is."""
    group = clause.subject
    draft.hindi += draft.say_subject(group)
    be = draft.say("are" if group.plural else "is")
    no: Words = [("नहीं", draft.say("not"))] if clause.negation else []
    if clause.state is not None:
        draft.hindi += _say_adjective(draft, clause.state, group.gender, group.plural)
    draft.hindi += [*_say_place(draft, clause), *no, ("हैं" if group.plural else "है", be)]


def _say_place(draft: Draft, clause: Clause) -> Words:
    """Add the place, and give the Hindi for it."""
    if clause.place is None:
        return []
    preposition, phrase = clause.place
    at = draft.say(preposition)
    marker: Words = [] if clause.bare_goal else [(POSTPOSITIONS[preposition], at)]
    return draft.say_phrase(phrase).hindi(oblique=True) + marker


def _say_negation(draft: Draft, clause: Clause) -> Words:
    if not clause.negation:
        return []
    does = "do" if clause.subject.plural else "does"
    if clause.negation == "n't":
        return [("नहीं", draft.say(f"{does}n't"))]
    return [("नहीं", draft.say(does, "not"))]


def _say_objects(draft: Draft, clause: Clause, verb: Verb) -> tuple[Words, Words]:
    """Add person and thing in their English order, and give the Hindi for each."""
    person: Words = []
    thing: Words = []
    if clause.link and clause.thing is not None:
        thing = draft.say_phrase(clause.thing).hindi()
    if clause.other is not None:
        # Only "from" is a word of its own in both languages; को and what a verb governs have no partner.
        at = draft.say(clause.link) if clause.link else None
        marker = ("से", at) if clause.link == "from" else (verb.postposition, None)
        person = [*draft.say_phrase(clause.other.phrase).hindi(oblique=True), marker]
    if not clause.link and clause.thing is not None:
        thing = draft.say_phrase(clause.thing).hindi()
    return person, thing


def _predicate(group: Group, verb: Verb, at: int, no: Words) -> Words:
    """Say the Hindi verb; after नहीं the present has no है."""
    words: Words = [(verb.before, at)] if verb.before else []
    words += [*no, (verb.habitual(group.gender, group.plural, alone=bool(no)), at)]
    return words if no else [*words, ("हैं" if group.plural else "है", None)]


def _say_reason(draft: Draft, reason: Reason) -> None:
    plural = reason.pronoun == "they"
    if reason.comma:
        draft.hindi.append((",", draft.say(",")))
    draft.hindi.append(("क्योंकि", draft.say("because")))
    draft.hindi.append((_pronoun(reason.pronoun), draft.say(reason.pronoun)))
    be = draft.say("are" if plural else "is")
    no: Words = [("नहीं", draft.say("not"))] if reason.negated else []
    state = _say_adjective(draft, reason.state, reason.gender, plural)
    draft.hindi += [*state, *no, ("हैं" if plural else "है", be)]


def _say_adjective(draft: Draft, state: Adjective, gender: Gender, plural: bool) -> Words:
    """Say how somebody is, or that somebody is a regular."""
    if state is REGULAR:
        at = draft.say(with_s(state.english)) if plural else draft.say("a", state.english)
    else:
        at = draft.say(state.english)
    return [(word, at) for word in state.form(gender, plural, False).split()]


def _pronoun(pronoun: Pronoun) -> str:
    return "वे" if pronoun == "they" else "वह"
