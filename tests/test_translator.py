"""The translator: what it is told while training, how it is measured, and what the one in assets/ can do.

B sentences, T tokens of the Hindi, S' tokens of the English.
"""

import math
from dataclasses import replace
from itertools import islice
from typing import cast

import pytest
import torch
from torch import nn

from engine.grammar.hindi import UNKNOWN, WORDS, Pair, pairs
from engine.presets import build
from engine.spelling import BEGIN, END, PAD
from engine.trained import card_of, module_of
from engine.training import translator
from engine.training.translator import (
    ALIGNMENT,
    CONFIG,
    RECIPE,
    RECIPES,
    STEPS,
    VOCABULARY,
    alignment,
    batch_of,
    exact_match,
    loss_of,
    same_position,
    translate,
)
from engine.transformer import EncoderDecoder
from tests.hindi_sentences import EXAMPLES

BOOK = Pair(("the", "girl", "reads", "a", "book"), ("लड़की", "किताब", "पढ़ती", "है"), (1, 4, 2, None))
NAME = Pair(("Zo", "reads"), (UNKNOWN, "पढ़ता", "है"), (0, 1, None))
SMALL = replace(CONFIG, width=16, heads=2, feed_forward=16)


def untrained() -> EncoderDecoder:
    """Make a small translator with random weights."""
    return cast(EncoderDecoder, build(EncoderDecoder, SMALL, seed=0))


def across(model: EncoderDecoder) -> list[nn.Parameter]:
    """Give the weights that make the queries of each layer's attention across, (C, C) each."""
    return [weight for name, weight in model.named_parameters() if name.endswith("cross.q.weight")]


def even() -> EncoderDecoder:
    """Make one whose attention across is spread evenly over the English tokens."""
    model = untrained()
    with torch.no_grad():
        for weight in across(model):
            weight.zero_()
    return model


@pytest.fixture(scope="module")
def shipped() -> EncoderDecoder:
    """Load the translator in assets/."""
    module = module_of(card_of("translator-en-hi"))
    assert isinstance(module, EncoderDecoder)
    return module


def test_a_row_carries_the_alignment_of_the_word_that_it_says():
    """[BOS] says लड़की, which is girl; the row of पढ़ती says है, which has no partner."""
    batch = batch_of([BOOK])
    assert batch.english.tolist() == [[BEGIN, *(VOCABULARY.ids(word)[0] for word in BOOK.english), END]]
    written = [VOCABULARY.ids(word)[0] for word in BOOK.hindi]
    assert batch.hindi.tolist() == [[BEGIN, *written]]
    assert batch.labels.tolist() == [[*written, END]]
    told = {row: columns.nonzero().flatten().tolist() for row, columns in enumerate(batch.gold[0])}
    assert told == {0: [2], 1: [5], 2: [3], 3: [], 4: []}


def test_a_spelled_word_is_all_of_its_bytes():
    batch = batch_of([NAME])
    assert batch.english.shape == (1, 5)
    told = {row: columns.nonzero().flatten().tolist() for row, columns in enumerate(batch.gold[0])}
    assert told == {0: [1, 2], 1: [3], 2: [], 3: []}


def test_sentences_side_by_side_are_padded_and_padding_is_told_nothing():
    batch = batch_of([NAME, BOOK])
    assert batch.english.shape == batch.real.shape == (2, 7)
    assert batch.real.sum(dim=1).tolist() == [5, 7]
    assert batch.labels[0].tolist()[-1] == PAD
    assert not (batch.gold & ~batch.real[:, None]).any()


def test_even_attention_costs_the_logarithm_of_the_number_of_tokens():
    """−log of 1/7 on each partner, times the factor; nothing without guidance."""
    model, batch = even(), batch_of([BOOK])
    with torch.no_grad():
        plain, guided = loss_of(model, batch, 0.0), loss_of(model, batch, 0.3)
    assert float(guided - plain) == pytest.approx(0.3 * math.log(7), rel=1e-4)


def test_only_the_named_head_is_told():
    """The alignment's loss alone moves the queries of one head."""
    model, batch = untrained(), batch_of([BOOK])
    difference = loss_of(model, batch, 1.0, (1, 1)) - loss_of(model, batch, 0.0)
    difference.backward()
    gradient = across(model)[1].grad
    assert gradient is not None
    first, second = gradient.unflatten(0, (2, 8)).abs().amax(dim=(1, 2))
    assert first < 1e-6 < 1e-4 < second


def test_even_attention_is_never_right_and_gives_every_token_the_same():
    """The first of equal weights is that of [BOS], which is nobody's partner."""
    right, mass = alignment(even(), [BOOK, BOOK])
    assert right.tolist() == [[0.0, 0.0]] * 2
    torch.testing.assert_close(mass, torch.full((2, 2), 1 / 7))


def test_the_same_place_is_the_right_one_where_word_order_is_the_same():
    assert same_position([BOOK]) == pytest.approx(1 / 3)  # पढ़ती and reads are both the third word
    assert same_position([NAME]) == 1.0


def test_a_translation_ends_at_its_end_and_padding_does_not_change_it():
    model = untrained()
    alone = [translate(model, [words], longest=6)[0] for words in (BOOK.english, NAME.english)]
    assert translate(model, [BOOK.english, NAME.english], longest=6) == alone
    assert all(len(words) <= 6 for words in alone)


def test_training_is_the_same_to_the_last_bit_for_the_same_seed():
    recipe = replace(RECIPE, config=SMALL, steps=3)
    first, again, other = (recipe.trained(seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_training_tells_how_it_goes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(translator, "REPORTED", 1)
    told: list[str] = []
    steps = list(islice(translator.train(untrained(), 0, told.append), 2))
    assert steps == [1, 2]
    assert [line.split(":")[0] for line in told] == [f"translator, step {step} of {STEPS}" for step in steps]


def test_the_model_is_small_and_its_card_says_what_it_learned():
    card = card_of("translator-en-hi")
    assert sum(parameter.numel() for parameter in module_of(card).parameters()) < 350_000
    assert (card.config, card.words, card.steps, card.seed) == (CONFIG, WORDS, RECIPE.steps, RECIPE.seed)
    assert card.heads == {"alignment": ALIGNMENT}
    assert "told" in card.taught
    assert "no translator for use" in card.untaught


def test_the_card_has_the_scores_that_were_asked_for():
    """Translations right to the last word, and the taught head beside an untaught one and what knows nothing."""
    scores, unguided = (card_of(recipe.id).scores for recipe in RECIPES)
    assert scores["exact_match"] >= 0.97
    assert scores["alignment"] >= 0.97
    assert scores["riddles"] >= 0.9
    assert unguided["alignment"] < scores["alignment"]
    assert scores["random_weights"]["exact_match"] == 0
    assert max(scores["random_weights"]["alignment"], scores["same_position"]) < 0.5


def test_sentences_never_met_are_translated_and_the_taught_head_points_at_their_words(shipped: EncoderDecoder):
    test = list(islice(pairs("test", 11), 400))
    right, mass = alignment(shipped, test)
    assert exact_match(shipped, test) >= 0.95
    assert right[ALIGNMENT] >= 0.97
    assert mass[ALIGNMENT] >= 0.95


def test_sentences_written_by_hand_are_translated_to_the_last_word(shipped: EncoderDecoder):
    written = translate(shipped, [example.english.split() for example in EXAMPLES])
    assert [" ".join(words) for words in written] == [example.hindi for example in EXAMPLES]


@pytest.mark.parametrize(("reason", "verb"), [("a regular", "देता"), ("generous", "देती")])
def test_the_reason_decides_whether_the_shopkeeper_is_a_woman(shipped: EncoderDecoder, reason: str, verb: str):
    """A customer who is a regular is "she", and the shopkeeper's verb stays masculine; a generous shopkeeper's not."""
    text = f"the shopkeeper gives the customer a discount because she is {reason}"
    (words,) = translate(shipped, [text.split()])
    assert words[4] == verb


def test_a_riddle_is_told_by_its_reason_alone():
    """Said of others, the same reason leaves two readings, and the Hindi differs between them."""
    for one in islice(translator.riddles("train"), 200):
        assert "she" in one.english[one.english.index("because") :]
        assert not {"her", "his"} & set(one.english)
        assert "not" not in one.english[one.english.index("because") :]


def test_the_unguided_one_differs_in_nothing_but_what_it_is_told():
    guided, unguided = RECIPES
    assert (guided.make, guided.config, guided.seed, guided.steps) == (
        unguided.make, unguided.config, unguided.seed, unguided.steps,
    )  # fmt: skip
    assert guided.taught
    assert not unguided.taught
    first, other = (cast(EncoderDecoder, replace(one, config=SMALL, steps=2).trained()) for one in RECIPES)
    moved = [not torch.equal(one, two) for one, two in zip(across(first), across(other), strict=True)]
    assert moved[ALIGNMENT[0]]


def test_capital_letters_and_a_full_stop_make_no_difference(shipped: EncoderDecoder):
    plain, capital, stopped = translate(
        shipped, [text.split() for text in ("asha reads a book", "Asha reads a Book", "asha reads a book .")]
    )
    assert plain == capital
    assert stopped == (*plain, "।")


def test_a_name_that_was_never_met_leaves_the_rest_as_it_is(shipped: EncoderDecoder):
    (words,) = translate(shipped, [("the", "girl", "gives", "Zubin", "a", "book")])
    assert words == ("लड़की", UNKNOWN, "को", "किताब", "देती", "है")


def test_a_letter_may_be_typed_in_one_sign_or_in_two():
    """ज़ is one sign or ज with a dot under it; both are the word that is known."""
    assert VOCABULARY.ids("मेज\u093c") == VOCABULARY.ids("मे\u095b")
    assert len(VOCABULARY.ids("मे\u095b")) == 1
