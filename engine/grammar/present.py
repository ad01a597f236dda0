"""English in the past, said again in the present: what the translator reads.

    The shopkeeper gave the customer a discount because she was a regular
    The shopkeeper gives the customer a discount because she is a regular

Only what can be said word by word is said again: was and were, did not, and the verbs of the translator's lexicon.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine._words import split_words
from engine.grammar import _hindi_lexicon as lexicon
from engine.grammar._hindi_forms import with_s

_IRREGULAR = """
    buy bought, bring brought, take took, go went, come came, read read, write wrote, sing sang, hear heard, see saw,
    eat ate, drink drank, cut cut, make made, sell sold, choose chose, break broke, throw threw, wear wore, hide hid,
    forget forgot, know knew, teach taught, understand understood, wake woke, meet met, give gave, send sent, lend lent,
    tell told, sleep slept, run ran, sit sat, swim swam, put put, show showed
"""
_BE = {"was": "is", "were": "are"}
_DO = {"did": ("does", "do"), "didn't": ("doesn't", "don't")}
_HELPING = frozenset({*_DO, "do", "don't", "does", "doesn't"})  # after these a verb is in its base form


def past(verb: str) -> str:
    """Give the past of a verb of the lexicon by its base form."""
    return _PASTS.get(verb) or _regular(verb)


def in_the_present(text: str) -> str | None:
    """Say a text again in the present, its other words and signs as they were.

    Returns:
        The text, or None where nothing in it is in the past.
    """
    words = split_words(text)
    plain = [word.text.lower() for word in words]
    said, done = [], 0
    for number, word in enumerate(words):
        form = _present(plain, number)
        if form is not None and form != plain[number]:
            said += [text[done : word.start], form]
            done = word.end
    return "".join([*said, text[done:]]) if said else None


def _present(words: Sequence[str], at: int) -> str | None:
    """Give one word's form in the present; None for a word that stays."""
    word = words[at]
    if word in _BE:
        return _BE[word]
    many = _is_many(words, at)
    if word in _DO:
        return _DO[word][many]
    if word not in _BASES or any(before in _HELPING for before in words[max(0, at - 2) : at]):
        return None
    return _BASES[word] if many else with_s(_BASES[word])


def _is_many(words: Sequence[str], at: int) -> bool:
    """Say whether what a verb belongs to is several: by the words before it in its own clause."""
    start = max((place + 1 for place in range(at) if words[place] in ("because", ",", ".")), default=0)
    before = words[start:at]
    return bool(before) and ("and" in before or before[-1] == "they" or before[-1] in _PLURALS)


def _regular(verb: str) -> str:
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}ped" if verb == "stop" else f"{verb}ed"


_PASTS: dict[str, str] = dict(pair.split() for pair in _IRREGULAR.split(","))
_BASES = {past(verb.english): verb.english for verb in lexicon.VERBS}
_PEOPLE = (*lexicon.ROLES, *lexicon.ANIMALS)
_PLURALS = frozenset(role.plural for role in _PEOPLE if role.plural is not None)
