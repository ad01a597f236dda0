"""The clauses behind the sentences in hindi_sentences.py, in the same order."""

from typing import Any

from engine.grammar import _hindi_lexicon as lexicon
from engine.grammar._hindi_clauses import Clause, Group, Person, Phrase, Reason
from engine.grammar._hindi_forms import Adjective, Noun, Verb
from engine.grammar._hindi_sampling import PRONOUNS


def article_of(words: list[str]) -> tuple[Any, list[str]]:
    """Part the article from the words behind it."""
    if words[0] in {"the", "a", "an"}:
        return words[0][:1].replace("t", "the"), words[1:]
    return "", words


def noun_of(word: str) -> tuple[Any, bool]:
    """Find a noun or role by its English singular or plural."""
    places = (*lexicon.ROOMS, *lexicon.SURFACES, *lexicon.FURNITURE)
    nouns: tuple[Any, ...] = (*lexicon.ROLES, *lexicon.NAMES, *lexicon.ANIMALS, *lexicon.THINGS, *places)
    for noun in nouns:
        if word in (noun.english, noun.plural):
            return noun, word == noun.plural
    raise LookupError(word)


def adjective_of(word: str, noun: Noun, owner: str) -> Adjective:
    """Find what stands in front of a noun."""
    if word in {"his", "her"}:
        return Adjective(word, owner)
    if word == "my":
        return lexicon.MINE
    return next(one for one in lexicon.ADJECTIVES if one.english == word and one.fits(noun))


def phrase(text: str, owner: str = "") -> Phrase:
    """Make a phrase for a thing."""
    article, words = article_of(text.split())
    noun, plural = noun_of(words[-1])
    return Phrase(noun, plural, article, tuple(adjective_of(word, noun, owner) for word in words[:-1]))


def person(text: str, woman: bool = False) -> Person:
    """Make somebody."""
    article, words = article_of(text.split())
    role, plural = noun_of(words[-1])
    gender: Any = "f" if woman or role.male is None else "m"
    before = tuple(adjective_of(word, role.noun(gender), "") for word in words[:-1])
    return Person(role, gender, plural, article, before)


def group(text: str, woman: bool = False) -> Group:
    """Make who does it."""
    if text in PRONOUNS:
        pronoun: Any = text
        return Group((PRONOUNS[pronoun],), pronoun)
    return Group(tuple(person(one, woman) for one in text.split(" and ")))


def because(pronoun: Any, state: str, negated: bool = False) -> Reason:
    """Make a reason."""
    states = (*lexicon.STATES, *lexicon.GIVING, *lexicon.RECEIVING)
    found = next(one for one in states if one.english == state)
    return Reason(pronoun, "f" if pronoun == "she" else "m", found, negated)


def verb(name: str, among: tuple[Verb, ...]) -> Verb:
    """Find a verb."""
    return next(one for one in among if one.english == name)


def do(name: str, subject: str, thing: str, woman: bool = False, owner: str = "", **more: Any) -> Clause:
    """Make a clause of somebody who does something to a thing."""
    return Clause(group(subject, woman), verb(name, lexicon.DOING), phrase(thing, owner), **more)


def meet(name: str, subject: str, other: str, **more: Any) -> Clause:
    """Make a clause of somebody who does something to somebody."""
    return Clause(group(subject), verb(name, lexicon.MEETING), other=person(other), **more)


def hand(name: str, subject: str, other: str, thing: str, woman: str = "", **more: Any) -> Clause:
    """Make a clause of somebody who gives somebody something; `woman` is which of the two is one."""
    giver, receiver = group(subject, woman == subject), person(other, woman == other)
    return Clause(giver, verb(name, lexicon.HANDING), phrase(thing), receiver, **more)


def be(name: str, subject: str, preposition: str, place: str) -> Clause:
    """Make a clause of somebody who does something somewhere."""
    return Clause(group(subject), verb(name, lexicon.BEING), place=(preposition, phrase(place)))


SHOPKEEPER = ("give", "the shopkeeper", "the customer", "a discount")
CLAUSES = (
    do("read", "the girl", "a book"),
    do("read", "the boy", "a book"),
    do("eat", "the boy", "the apple", negation="not"),
    do("eat", "the boy", "the apple", negation="n't", stop=True),
    do("read", "the boys", "the books"),
    do("read", "the girls", "the books", negation="not"),
    hand("give", "the teacher", "the student", "a book"),
    hand("give", "the teacher", "the student", "a book", link="to"),
    meet("see", "the girl", "the boy"),
    meet("see", "the boy", "the girl"),
    meet("know", "the woman", "the boys"),
    hand("give", "the girl", "the boy", "an apple", reason=because("he", "hungry")),
    hand("give", "the boy", "the girl", "an apple", link="to", reason=because("she", "hungry")),
    do("read", "the teacher", "a book", woman=True, reason=because("she", "tired")),
    do("read", "the teacher", "a book", reason=because("he", "tired", negated=True), stop=True),
    hand(*SHOPKEEPER, woman="the shopkeeper", reason=because("she", "generous")),
    hand(*SHOPKEEPER, woman="the customer", reason=because("she", "regular")),
    be("sleep", "the child", "in", "the room"),
    be("play", "the children", "in", "a garden"),
    be("sit", "the cat", "on", "the floor"),
    do("buy", "she", "a shirt", place=("from", phrase("the shop"))),
    do("take", "he", "mangoes", other=person("the farmer"), link="from"),
    Clause(group("asha"), lexicon.PUT, phrase("the cup"), place=("on", phrase("the table")), place_last=True),
    Clause(group("ravi"), lexicon.GO, place=("to", phrase("the school")), bare_goal=True, daily=True),
    do("drink", "ravi and asha", "tea"),
    do("drink", "asha and meera", "tea"),
    do("read", "the girl", "her book", owner=lexicon.OWN),
    do("read", "the girl", "his book", owner=lexicon.OTHERS),
    meet("help", "the man", "the woman"),
    meet("fear", "the dog", "the horse"),
    do("close", "the king", "the door", negation="not"),
    meet("call", "the queen", "the king"),
    do("open", "the old man", "a green box"),
    hand("lend", "my brother", "the driver", "a bicycle"),
    meet("trust", "they", "the doctor", negation="not", reason=because("he", "lazy")),
    Clause(group("the girl"), None, state=because("she", "hungry").state),
    Clause(group("the boys"), None, state=because("they", "tired").state, negation="not", stop=True),
    Clause(group("the women"), None, place=("in", phrase("the garden"))),
)
