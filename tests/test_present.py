"""A sentence in the past, said again in the present for the translator."""

import pytest

from engine.grammar import _hindi_lexicon as lexicon
from engine.grammar.hindi import WORDS
from engine.grammar.present import in_the_present, past


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "The shopkeeper gave the customer a discount because she was a regular",
            "The shopkeeper gives the customer a discount because she is a regular",
        ),
        ("The boys did not read because they were ill.", "The boys do not read because they are ill."),
        ("Anna and Tom didn't see the dog", "Anna and Tom don't see the dog"),
        ("The girl didn't see the boys", "The girl doesn't see the boys"),
        ("The poet explained the lesson, because he was kind", "The poet explains the lesson, because he is kind"),
        ("The  children  bought  apples !", "The  children  buy  apples !"),
        ("The girl read a book.", "The girl reads a book."),
    ],
)  # fmt: skip
def test_what_is_past_becomes_present_and_all_else_stays(before: str, after: str):
    assert in_the_present(before) == after
    assert in_the_present(after) is None


@pytest.mark.parametrize("text", ["", "She is happy", "The boys read the books", "<b>gave</b", "regular customer"])
def test_what_has_no_past_is_left_alone_and_signs_are_signs(text: str):
    found = in_the_present(text)
    assert found is None or found == "<b>gives</b"


def test_every_verb_has_a_past_that_leads_back_to_it():
    for verb in lexicon.VERBS:
        said = in_the_present(f"she {past(verb.english)} it")
        assert said is not None
        assert said.split()[1] in WORDS


@pytest.mark.parametrize(
    ("verb", "form"), [("thank", "thanked"), ("love", "loved"), ("cry", "cried"), ("stop", "stopped")]
)  # fmt: skip
def test_regular_verbs_are_spelled_right(verb: str, form: str):
    assert past(verb) == form
