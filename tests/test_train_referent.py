"""The task "who is she?": what it is measured on, what chance alone would get, and that it learns."""

import pytest

from engine.errors import TextError
from engine.grammar import parse
from engine.training.referent import Referent, held_out, opposite, strays


def test_every_measured_sentence_comes_with_both_reasons():
    """Two by two they differ in the reason alone, and mean one person each: no rule without the reason beats a half."""
    sentences = held_out().sentences
    assert len(sentences) == 144
    for one, other in zip(sentences[::2], sentences[1::2], strict=True):
        start = (one.pronoun or 0) + 1
        assert one.words[:start] == other.words[:start]
        assert one.words[start:] != other.words[start:]
        assert one.candidates == other.candidates
        assert {one.referent, other.referent} == set(one.candidates or ())
        assert one.decided == other.decided == "reason"


@pytest.mark.parametrize("rule", [min, max, lambda pair: pair[0], lambda pair: pair[1]])
def test_simple_rules_are_right_in_half(rule):
    sentences = held_out().sentences
    assert sum(rule(one.candidates or (0, 0)) == one.referent for one in sentences) / len(sentences) == 0.5


def test_an_untrained_model_answers_about_as_a_coin_does():
    """Within two standard deviations of a half, whatever the seed."""
    for seed in range(5):
        assert Referent(seed=seed).task().scores()["answer"] == pytest.approx(0.5, abs=strays(144))


@pytest.mark.parametrize(("count", "reach"), [(1, 1.0), (4, 0.5), (100, 0.1), (144, 1 / 12)])
def test_chance_strays_by_two_standard_deviations_of_a_fair_coin(count: int, reach: float):
    assert strays(count) == pytest.approx(reach)


@pytest.mark.parametrize(
    "text",
    [
        "The woman gave the boy a book because he was hungry.",
        "The man gave the nurse a book.",
        "The dog sat on the mat. The dog sat on the sofa.",
    ],
)
def test_only_a_reason_that_decides_can_be_turned_round(text: str):
    """In the first, gender decides; the others have no reason."""
    sentence = parse(text)
    assert sentence is not None
    with pytest.raises(TextError):
        opposite(sentence)


def test_the_opposite_keeps_tense_and_number():
    """What is said in the present stays there, and "they are" too."""
    now = parse("the baker gives the nurse a book because they are generous")
    assert now is not None
    words = opposite(now).words
    assert words[: words.index("they") + 1] == now.words[: now.words.index("they") + 1]
    assert not {"was", "is", "were"} & set(words[words.index("they") :])


def test_a_short_training_teaches_the_head_that_is_told():
    """Some steps on the sentences: the taught head rises, bit by bit the same twice."""
    one, other = (Referent().task() for _ in range(2))
    losses = [[task.step() for _ in range(8)] for task in (one, other)]
    assert losses[0] == losses[1]
    before = Referent().task().scores()
    after = one.scores()
    heads = {f"pronoun {layer}.{head}" for layer in range(3) for head in range(4)}
    assert set(after) == {"loss", "answer", "silenced"} | heads
    assert after["loss"] < before["loss"]
    assert one.maps().shape == (3, 4, *2 * (len(Referent().tokens),))
