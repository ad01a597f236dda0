"""The parallel Hindi side: forms and sentences written by hand, and rules of agreement and order on sentences drawn.

The rules below have a list of nouns and genders of their own and know nothing of how sentences are made.
"""

import unicodedata
from collections import Counter
from itertools import islice
from random import Random
from typing import get_args

import pytest

from engine.grammar import _hindi_lexicon as lexicon
from engine.grammar._hindi_clauses import Clause, said
from engine.grammar._hindi_forms import Adjective, with_s
from engine.grammar.hindi import HELD_OUT, KNOWN, UNKNOWN, WORDS, Pair, Split, pair, pairs, split_of
from tests.hindi_clauses import CLAUSES
from tests.hindi_sentences import BOTH, DIRECT, EXAMPLES, FEMININE, MASCULINE, MEN, OBLIQUE, WOMEN, Example, listed

MARKERS = {"को", "से", "की", "पर", "में"}
# Adjectives and possessives that agree, by their stem.
AGREE = listed("बड़ छोट पुरान बूढ़ अच्छ सस्त महँग नील हर पील काल लंब ठंड मीठ भूख मेर अपन उसक")
IRREGULAR = {"नया": "ma", "नए": "me", "नई": "f"}
MANY = {with_s(role.english) for role in lexicon.ROLES + lexicon.ANIMALS} | {"men", "women", "children", "they"}

DOES = {"do", "does", "don't", "doesn't"}.union(*((verb.english, with_s(verb.english)) for verb in lexicon.VERBS))
DRAWN = list(islice(pairs("train", 3), 1500)) + list(islice(pairs("test", 3), 500))
BE = {"is", "are"}
# The others say how or where somebody is.
DEEDS = [one for one in DRAWN if not BE & set(" ".join(one.english).split(" because ")[0].split())]
MET = [one for one in DEEDS if UNKNOWN not in one.hindi]


def main_of(words: tuple[str, ...]) -> list[str]:
    """Cut off the reason and the stop."""
    end = words.index("क्योंकि") if "क्योंकि" in words else len(words)
    return [word for word in words[:end] if word not in {"।", ","}]


def english_subject(one: Pair) -> list[str]:
    """Give the English words before the verb: those of who does it."""
    return list(one.english[: min(place for place, word in enumerate(one.english) if word in DOES | BE)])


def number_of(one: Pair) -> bool:
    """Say whether several do it, by the English alone."""
    subject = english_subject(one)
    return "and" in subject or bool(MANY & set(subject))


def genders_of(one: Pair) -> set[str]:
    """Say which genders the Hindi verb may have, by the Hindi nouns of the subject."""
    last = len(english_subject(one))
    nouns = [word for word, at in zip(one.hindi, one.alignment, strict=True) if at is not None and at < last]
    if nouns[0] in {"वह", "वे"}:
        return {"he": {"m"}, "she": {"f"}, "they": {"m"}}[one.english[0]]
    known = [word for word in nouns if word in {*MEN, *WOMEN, *BOTH}]
    if any(word in MEN for word in known) or (number_of(one) and any(word in BOTH for word in known)):
        return {"m"}
    return {"f"} if all(word in WOMEN for word in known) else {"m", "f"}


@pytest.mark.parametrize(
    ("example", "clause"), list(zip(EXAMPLES, CLAUSES, strict=True)), ids=[example.english for example in EXAMPLES]
)
def test_sentences_written_by_hand_come_out_word_for_word(example: Example, clause: Clause):
    draft = said(clause)
    assert " ".join(draft.english) == example.english
    assert " ".join(word for word, _ in draft.hindi) == example.hindi
    partners = ["-" if place is None else draft.english[place] for _, place in draft.hindi]
    assert " ".join(partners) == example.partners


@pytest.mark.parametrize(
    "forms",
    [
        "लड़का लड़के लड़के लड़कों", "बच्चा बच्चे बच्चे बच्चों", "राजा राजा राजा राजाओं", "आदमी आदमी आदमी आदमियों",
        "भाई भाई भाई भाइयों", "छात्र छात्र छात्र छात्रों", "कवि कवि कवि कवियों", "हाथी हाथी हाथी हाथियों",
        "दोस्त दोस्त दोस्त दोस्तों", "कुत्ता कुत्ते कुत्ते कुत्तों", "लड़की लड़की लड़कियाँ लड़कियों", "औरत औरत औरतें औरतों",
        "बहन बहन बहनें बहनों", "रानी रानी रानियाँ रानियों", "गाय गाय गायें गायों", "नर्स नर्स नर्सें नर्सों",
    ],
)  # fmt: skip
def test_people_and_animals_decline(forms: str):
    """Direct, oblique, direct plural, oblique plural."""
    nouns = [role.noun("m" if role.male else "f") for role in (*lexicon.ROLES, *lexicon.ANIMALS)]
    noun = next(noun for noun in nouns if noun.hindi == forms.split()[0])
    cases = [(False, False), (False, True), (True, False), (True, True)]
    assert [noun.form(noun.gender, plural, oblique) for plural, oblique in cases] == forms.split()


@pytest.mark.parametrize(
    "forms",
    [
        "किताब किताबें", "चिट्ठी चिट्ठियाँ", "कविता कविताएँ", "गाना गाने", "सेब सेब", "केला केले", "आलू आलू", "अंडा अंडे",
        "मेज़ मेज़ें", "चाबी चाबियाँ", "चाकू चाकू", "छाता छाते", "जूता जूते", "घर घर", "खिलौना खिलौने", "साड़ी साड़ियाँ",
    ],
)  # fmt: skip
def test_things_have_their_plural(forms: str):
    noun = next(thing for thing in lexicon.THINGS if thing.hindi == forms.split()[0])
    assert [noun.form(noun.gender, plural, False) for plural in (False, True)] == forms.split()


def test_nouns_have_the_gender_that_is_listed_here():
    for thing in (*lexicon.THINGS, *lexicon.ROOMS, *lexicon.SURFACES, *lexicon.FURNITURE, lexicon.RIVER):
        form = thing.form(thing.gender, False, thing.kind == "place")
        assert form in (FEMININE if thing.gender == "f" else MASCULINE), thing
    for role in (*lexicon.ROLES, *lexicon.ANIMALS, *lexicon.NAMES):
        assert role.male is None or role.male in (BOTH if role.male == role.female else MEN)
        assert role.female is None or role.female in (BOTH if role.male == role.female else WOMEN)


@pytest.mark.parametrize(
    ("hindi", "forms"),
    [
        ("बड़ा", "बड़ा बड़े बड़ी"),
        ("नया", "नया नए नई"),
        ("थका हुआ", "थका हुआ थके हुए थकी हुई"),
        ("लाल", "लाल लाल लाल"),
        ("भारी", "भारी भारी भारी"),
        ("उसका", "उसका उसके उसकी"),
    ],
)
def test_adjectives_agree(hindi: str, forms: str):
    one = Adjective("", hindi)
    assert " ".join([one.form("m", False, False), one.form("m", True, False), one.form("f", False, False)]) == forms
    assert one.form("m", False, True) == one.form("m", True, True) == one.form("m", True, False)
    assert one.form("f", True, True) == one.form("f", False, False)


def test_the_verb_ends_as_its_subject_asks():
    """-ता for one man, -ती for women, -ते for several; after नहीं, which has no हैं, -तीं for several women."""
    met = Counter[str]()
    for one in MET:
        words, many = main_of(one.hindi), number_of(one)
        negated = "नहीं" in words
        participle = words[-1] if negated else words[-2]
        endings = {"m": "ते", "f": "तीं" if negated else "ती"} if many else {"m": "ता", "f": "ती"}
        allowed = [endings[gender] for gender in genders_of(one)]
        assert participle.endswith(tuple(allowed)), one
        if not negated:
            assert words[-1] == ("हैं" if many else "है"), one
        met[participle[-2:]] += 1
    assert {"ता", "ती", "ते"} <= set(met)


def test_the_auxiliary_is_last_and_negation_stands_right_before_the_verb():
    for one in DEEDS:
        words = main_of(one.hindi)
        assert Counter(words)["नहीं"] + sum(word in {"है", "हैं"} for word in words) == 1, one
        if "नहीं" in words:
            assert words[-2] == "नहीं", one
            assert words[-1].endswith(("ता", "ती", "ते", "तीं")), one
        else:
            assert words[-1] in {"है", "हैं"}, one


def test_how_somebody_is_agrees_and_keeps_its_verb():
    """भूखा, भूखी or भूखे; and unlike after a verb, है stands after नहीं as well."""
    agreeing = listed("भूख प्यास थक अकेल अच्छ बूढ़")
    states = [one for one in DRAWN if one not in DEEDS and UNKNOWN not in one.hindi]
    met = Counter[str]()
    for one in states:
        words, many = main_of(one.hindi), number_of(one)
        assert words[-1] == ("हैं" if many else "है"), one
        assert ("नहीं" in words) == (words[-2] == "नहीं") == ("not" in one.english), one
        for word in words:
            if word[:-1] in agreeing and one.alignment[one.hindi.index(word)] == len(one.english) - 1:
                endings = {"m": "े" if many else "ा", "f": "ी"}
                assert word[-1] in [endings[gender] for gender in genders_of(one)], one
                met[word[-1]] += 1
    assert len(met) >= 2


def test_postpositions_follow_oblique_forms_and_nothing_else_does():
    """Forms that are oblique only stand before a marker, forms that are direct only never do."""
    met = Counter[bool]()
    for one in MET:
        for word, following in zip(one.hindi, (*one.hindi[1:], ""), strict=True):
            if word in DIRECT or word in OBLIQUE:
                assert (following in MARKERS) == (word in OBLIQUE), one
                met[following in MARKERS] += 1
    assert min(met[False], met[True]) > 50


def test_what_is_done_to_a_person_is_marked_and_what_is_done_to_a_thing_is_not():
    """को, से, की or पर after everybody but who does it; nothing after the thing."""
    for one in MET:
        words, subject = main_of(one.hindi), len(english_subject(one))
        for at, word in enumerate(words):
            place = one.alignment[at]
            if place is None or place < subject or word == "ग्राहक":
                continue
            if word in {*MEN, *WOMEN, *BOTH} or word in OBLIQUE:
                assert words[at + 1] in MARKERS, one
            elif word in {*MASCULINE, *FEMININE} and words[at + 1] in {"को", "की"}:
                raise AssertionError(one)


def test_adjectives_in_sentences_agree_with_their_nouns():
    """-ा before a masculine in the direct singular, -े before its other forms, -ी before a feminine."""
    seen = Counter[str]()
    for one in MET:
        words = main_of(one.hindi)
        for place, word in enumerate(words[:-1]):
            stem, ending = word[:-1], IRREGULAR.get(word, {"ा": "ma", "े": "me", "ी": "f"}.get(word[-1], ""))
            if (stem not in AGREE and word not in IRREGULAR) or not ending:
                continue
            rest = words[place + 1 :]
            noun = next(w for w in rest if w in {*MEN, *WOMEN, *BOTH, *MASCULINE, *FEMININE} or w.endswith(("ों", "ओं")))
            if noun in BOTH or noun.endswith(("ों", "ओं")):
                continue
            if noun in WOMEN or noun in FEMININE:
                assert ending == "f", one
            elif rest[rest.index(noun) + 1] in MARKERS:
                assert ending == "me", one
            else:
                assert ending in {"ma", "me"}, one
            seen[ending] += 1
    assert min(seen[ending] for ending in ("ma", "me", "f")) > 20


def test_the_parts_stand_in_the_order_of_hindi():
    """Who, then where, then whom, then what, then the verb; but a thing stands before the place where it is put."""
    met = Counter[str]()
    for one in MET:
        words = main_of(one.hindi)
        first = one.alignment[0]
        assert first is not None
        assert first < len(english_subject(one)), one
        markers = {marker: words.index(marker) for marker in ("को", "में") if marker in words}
        things = [at for at, word in enumerate(words[:-1]) if word in {*MASCULINE, *FEMININE}]
        things = [at for at in things if words[at + 1] not in MARKERS]
        put = bool({"put", "puts"} & set(one.english))
        for marker, place in markers.items():
            later = not (put and marker == "में")
            assert all((at > place) == later for at in things), one
            met[f"{marker} {later}"] += 1
    assert set(met) == {"को True", "में True", "में False"}


def test_of_the_small_words_only_those_that_mean_something_have_partners():
    silent = {"the", "a", "an", "do", "does", "to"}
    for one in DRAWN:
        assert len(one.hindi) == len(one.alignment)
        partners = {place for place in one.alignment if place is not None}
        left = {one.english[place] for place in set(range(len(one.english))) - partners}
        assert left <= silent, one
        assert not silent & {one.english[place] for place in partners}, one
        for word, place in zip(one.hindi, one.alignment, strict=True):
            if word in {"है", "हैं"}:
                assert place is None or one.english[place] in {"is", "are"}, one
            elif place is None:
                assert word in MARKERS - {"में"}, one


def test_pronouns_and_reasons_agree_with_who_is_meant():
    """A woman is she, her adjective ends in -ी, and somebody in the sentence is a woman."""
    endings = {"he": ("ा", "आ"), "she": ("ी", "ई"), "they": ("े", "ी", "ए", "ई")}
    for one in MET:
        if "because" not in one.english:
            continue
        at = one.english.index("because")
        pronoun, words = one.english[at + 1], one.hindi[one.hindi.index("क्योंकि") + 1 :]
        assert words[0] == ("वे" if pronoun == "they" else "वह")
        state = words[1]
        if state[:-1] in {"भूख", "प्यास", "थक", "अकेल", "अच्छ", "बूढ़"}:
            assert state.endswith(endings[pronoun]), one
        if pronoun == "she":
            people = {*main_of(one.hindi)}
            assert people & {*WOMEN, *BOTH} or "she" in one.english[:at], one


def test_the_splits_share_no_pair_of_verb_and_object():
    actions = {split: {one.action for one in islice(pairs(split, 7), 800)} for split in get_args(Split)}
    assert not actions["train"] & actions["test"]
    assert not actions["train"] & actions["development"]
    assert not actions["development"] & actions["test"]
    assert None not in actions["test"] | actions["development"]
    assert len(actions["test"]) > 50


def test_classroom_sentences_are_known_or_held_out_as_listed():
    for action in KNOWN:
        assert split_of(Pair((), (), (), action)) == "train"
    for action in HELD_OUT:
        assert split_of(Pair((), (), (), action)) == "test"


def test_every_word_is_met_in_training():
    """In a quarter of the sentences that training draws; a word never met would be a word never learned."""
    random, met = Random(0), Counter[str]()
    for _ in range(40_000):
        drawn = pair(random)
        if split_of(drawn) == "train":
            met.update({*drawn.english, *drawn.hindi})
    assert [word for word in WORDS if not met[word]] == []


def test_the_same_seed_draws_the_same_sentences():
    first, again, other = (list(islice(pairs("train", seed), 50)) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_words_are_written_as_a_keyboard_writes_them():
    """Each once, in small letters, composed as Unicode prescribes."""
    assert len(set(WORDS)) == len(WORDS)
    assert all(word == word.lower() == unicodedata.normalize("NFC", word) for word in WORDS)


def test_what_is_not_in_the_lexicon_becomes_dots():
    unknown = [one for one in DRAWN if UNKNOWN in one.hindi]
    assert len(unknown) > 50
    for one in unknown:
        dots = [one.english[at] for at, word in zip(one.alignment, one.hindi, strict=True) if word == UNKNOWN and at]
        assert not set(dots) & set(WORDS)
