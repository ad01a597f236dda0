"""What is drawn of a trace: every choice against numbers worked out by hand, then against the engine."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from app.examples import examples
from app.shown import EXACT_THUMBNAILS, between, can_see, groups, resting_share, shown, thumbnails
from app.view import View
from engine import HuggingFaceModel, Mask, Prompt, Token, Trace
from engine.sites import Site
from engine.tokens import Group
from engine.trace import Returned

# [CLS] shop ##keeper she [SEP]
SHOPKEEPER = (
    Token("[CLS]", "[CLS]", 0, None, True, None, None),
    Token("shop", "shop", 1, 0, False, 0, 4, word_text="shopkeeper"),
    Token("keeper", "##keeper", 2, 0, False, 4, 10, word_text="shopkeeper"),
    Token("she", "she", 3, 1, False, 11, 14),
    Token("[SEP]", "[SEP]", 4, None, True, None, None),
)
WEIGHTS = torch.tensor(
    [
        [0.2, 0.2, 0.2, 0.2, 0.2],
        [0.5, 0.0, 0.1, 0.1, 0.3],
        [0.1, 0.2, 0.1, 0.3, 0.3],
        [0.3, 0.1, 0.2, 0.3, 0.1],
        [1.0, 0.0, 0.0, 0.0, 0.0],
    ]
)
WORDS = View(layer=0, head=0)
TOKENS = replace(WORDS, unit="tokens")


def traced(minilm: HuggingFaceModel, weights: torch.Tensor, tokens: Sequence[Token] = SHOPKEEPER) -> Trace:
    """Make a trace with the weights given, (L, H, T, T), as of a model that returned them itself."""
    prompt = Prompt("shopkeeper she", None, tuple(tokens), (), (), len(tokens), None)
    sites = {Site("encoder", number): Returned(layer[None]) for number, layer in enumerate(weights)}
    return Trace(minilm.card, prompt, None, Mask.native(), sites, 0.0)


@pytest.fixture(scope="session")
def one(minilm: HuggingFaceModel) -> Trace:
    """One layer, one head."""
    return traced(minilm, WEIGHTS[None, None])


@pytest.fixture(scope="session")
def four(minilm: HuggingFaceModel) -> Trace:
    """Two layers of two heads that look at one token each: key 0, 1, 2 and 3."""
    looks = torch.stack([torch.eye(5)[key].expand(5, 5) for key in range(4)])
    return traced(minilm, looks.reshape(2, 2, 5, 5))


@pytest.fixture(scope="session")
def opening(minilm: HuggingFaceModel) -> Trace:
    """MiniLM reading the opening sentence."""
    return minilm.run(examples()[0].sentence)


def labels(made: Sequence[Group]) -> list[str]:
    return [group.text for group in made]


def test_words_join_pieces_and_hide_special_tokens():
    assert labels(groups(SHOPKEEPER, WORDS)) == ["shopkeeper", "she"]
    assert [group.indices for group in groups(SHOPKEEPER, WORDS)] == [(1, 2), (3,)]


def test_tokens_stand_alone_and_special_ones_come_when_asked_for():
    assert labels(groups(SHOPKEEPER, TOKENS)) == ["shop", "keeper", "she"]
    assert labels(groups(SHOPKEEPER, replace(TOKENS, specials=True))) == ["[CLS]", "shop", "keeper", "she", "[SEP]"]


def test_rescaling_leaves_special_tokens_out_even_where_they_were_asked_for():
    assert labels(groups(SHOPKEEPER, replace(WORDS, specials=True, renormalise=True))) == ["shopkeeper", "she"]


def test_special_tokens_are_shown_where_there_is_nothing_else():
    """An empty picture would say less."""
    assert labels(groups((SHOPKEEPER[0], SHOPKEEPER[4]), WORDS)) == ["[CLS]", "[SEP]"]


def test_a_words_row_is_the_mean_of_its_pieces_and_its_column_the_sum(one: Trace):
    """shopkeeper → shopkeeper: the mean of 0.0 + 0.1 and 0.2 + 0.1; shopkeeper → she: the mean of 0.1 and 0.3."""
    made = shown(one, WORDS, "encoder")
    assert made.weights == pytest.approx(np.array([[0.2, 0.2], [0.3, 0.3]]))
    assert made.remarks == ("shopkeeper is 2 tokens: attention from it is averaged, attention to it added up",)


def test_tokens_are_the_models_own_numbers(one: Trace):
    made = shown(one, replace(TOKENS, specials=True), "encoder")
    assert np.array_equal(made.weights, WEIGHTS.numpy())
    assert made.remarks == ()
    assert made.hidden_share == pytest.approx(np.zeros(5))


def test_what_goes_to_hidden_tokens_is_counted(one: Trace):
    """shop gives [CLS] 0.5 and [SEP] 0.3, keeper 0.1 and 0.3, she 0.3 and 0.1."""
    assert shown(one, TOKENS, "encoder").hidden_share == pytest.approx(np.array([0.8, 0.4, 0.4]))
    assert shown(one, WORDS, "encoder").hidden_share == pytest.approx(np.array([0.6, 0.4]))


def test_rescaled_rows_keep_their_proportions_and_sum_to_one(one: Trace):
    """she: 0.3 and 0.3 of 0.6; the hidden share is still told."""
    made = shown(one, replace(WORDS, renormalise=True), "encoder")
    assert made.weights == pytest.approx(np.array([[0.5, 0.5], [0.5, 0.5]]))
    assert made.hidden_share == pytest.approx(np.array([0.6, 0.4]))
    assert made.remarks[-1] == "rescaled: each row's shown weights sum to 100 %"


def test_a_row_with_everything_hidden_stays_zero_when_rescaled(minilm: HuggingFaceModel):
    """Nothing over nothing is drawn as nothing, never as NaN."""
    parked = torch.zeros(1, 1, 5, 5)
    parked[..., 0] = 1
    made = shown(traced(minilm, parked), replace(WORDS, renormalise=True), "encoder")
    assert np.array_equal(made.weights, np.zeros((2, 2), dtype=np.float32))
    assert made.hidden_share == pytest.approx(np.ones(2))


def test_a_mean_is_over_the_heads_of_the_layer_or_over_all(four: Trace):
    """Heads look at keys 0 and 1 in layer 0, at 2 and 3 in layer 1."""
    layer = shown(four, replace(TOKENS, specials=True, average="layer", layer=1), "encoder")
    every = shown(four, replace(TOKENS, specials=True, average="all"), "encoder")
    assert np.array_equal(layer.weights, [[0, 0, 0.5, 0.5, 0]] * 5)
    assert np.array_equal(every.weights, [[0.25, 0.25, 0.25, 0.25, 0]] * 5)
    assert layer.remarks == ("mean of 2 heads",)
    assert every.remarks == ("mean of all 2 × 2 heads",)


def test_in_a_mean_a_key_is_masked_only_where_no_head_sees_it(four: Trace):
    """One head's mask is not the layer's."""
    tokens = replace(TOKENS, specials=True)
    assert shown(four, tokens, "encoder").visible[0].tolist() == [True, False, False, False, False]
    layer = shown(four, replace(tokens, average="layer"), "encoder")
    assert layer.visible[0].tolist() == [True, True, False, False, False]
    every = shown(four, replace(tokens, average="all"), "encoder")
    assert every.visible[0].tolist() == [True, True, True, True, False]


def test_a_word_is_visible_where_one_of_its_pieces_is(four: Trace):
    """Head 1 sees token 1 alone, which is half of shopkeeper."""
    assert shown(four, replace(WORDS, head=1), "encoder").visible.tolist() == [[True, False], [True, False]]


def test_between_says_for_every_head_what_one_word_gives_another(four: Trace, one: Trace):
    """(L, H), the query's pieces averaged, the key's summed."""
    shopkeeper, she = groups(SHOPKEEPER, WORDS)
    assert np.array_equal(between(four, "encoder", she, shopkeeper), [[0, 1], [1, 0]])
    assert np.array_equal(between(four, "encoder", she, she), [[0, 0], [0, 1]])
    assert between(one, "encoder", shopkeeper, she) == pytest.approx(np.array([[0.2]]))


def test_between_is_rescaled_as_the_map_is(one: Trace):
    """she: 0.3 of the 0.6 that go to the two words; and a row of nothing stays nothing."""
    shopkeeper, she = groups(SHOPKEEPER, WORDS)
    assert between(one, "encoder", she, shopkeeper, (shopkeeper, she)) == pytest.approx(np.array([[0.5]]))
    made = shown(one, replace(WORDS, renormalise=True), "encoder")
    assert between(one, "encoder", shopkeeper, she, made.keys)[0, 0] == pytest.approx(made.weights[0, 1])
    end = Group("[SEP]", (4,), True, None)
    assert np.array_equal(between(one, "encoder", end, she, (shopkeeper, she)), [[0.0]])


def test_one_head_that_may_look_is_enough(four: Trace):
    """Each head sees one key, 0 to 3; nobody sees the last."""
    shopkeeper, she = groups(SHOPKEEPER, WORDS)
    assert can_see(four, "encoder", she, shopkeeper)
    assert not can_see(four, "encoder", she, Group("[SEP]", (4,), True, None))


def test_a_head_rests_on_special_tokens_or_on_the_first(one: Trace, minilm: HuggingFaceModel):
    """The mean over all queries of what [CLS] and [SEP] get; without any, of what the first token gets."""
    share, where = resting_share(one, WORDS, "encoder")
    assert share == pytest.approx((0.4 + 0.8 + 0.4 + 0.4 + 1.0) / 5)
    assert where == "[CLS] and [SEP]"
    bare = [replace(token, special=False) for token in SHOPKEEPER]
    share, where = resting_share(traced(minilm, WEIGHTS[None, None], bare), WORDS, "encoder")
    assert share == pytest.approx((0.2 + 0.5 + 0.1 + 0.3 + 1.0) / 5)
    assert where == "the first token, [CLS]"


def test_thumbnails_of_short_sentences_are_the_maps_themselves(opening: Trace):
    """Every head's thumbnail is what is drawn large when it is picked."""
    small = thumbnails(opening, WORDS, "encoder")
    assert small.shape == (6, 12, 12, 12)
    for layer, head in ((0, 0), (5, 8), (3, 1)):
        large = shown(opening, replace(WORDS, layer=layer, head=head), "encoder")
        assert small[layer, head] == pytest.approx(large.weights, abs=1e-6)
    rescaled = replace(WORDS, renormalise=True, layer=3, head=1)
    large = shown(opening, rescaled, "encoder")
    assert thumbnails(opening, rescaled, "encoder")[3, 1] == pytest.approx(large.weights, abs=1e-6)


def test_thumbnails_of_long_sentences_are_pooled(minilm: HuggingFaceModel):
    """Beyond 128 tokens 48 pixels a side, each the largest weight of its block."""
    trace = minilm.run("at " * (EXACT_THUMBNAILS - 1))
    assert len(trace.tokens) == EXACT_THUMBNAILS + 1
    small = thumbnails(trace, WORDS, "encoder")
    assert small.shape == (6, 12, 48, 48)
    assert small[5, 8].max() == pytest.approx(float(trace.weights(5, 8).max()), abs=1e-6)


@given(
    st.sampled_from(["words", "tokens"]),
    st.booleans(),
    st.sampled_from(["head", "layer", "all"]),
    st.integers(0, 5),
    st.integers(0, 11),
)
def test_what_is_shown_and_what_is_hidden_is_everything(
    opening: Trace, unit: str, specials: bool, average: str, layer: int, head: int
):
    """Whatever is chosen, a row and its hidden share sum to 1."""
    view = View(unit=unit, specials=specials, average=average, layer=layer, head=head)
    made = shown(opening, view, "encoder")
    assert made.weights.sum(axis=1) + made.hidden_share == pytest.approx(1, abs=1e-5)
    assert made.weights.min() >= 0


def test_a_masked_pair_is_marked_and_weighs_nothing(minilm: HuggingFaceModel):
    """GPT-style: above the diagonal nothing is visible and nothing weighs."""
    trace = minilm.run(examples()[0].sentence, mask=Mask.causal())
    made = shown(trace, WORDS, "encoder")
    assert np.array_equal(made.visible, np.tri(12, dtype=bool))
    assert made.weights[~made.visible].max() == 0
