"""What order does to attention: claims about a small layer under every scheme of positions.

H heads, T queries, S keys, C model width.
"""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.attention import attend, attention_weights
from engine.errors import ShapeError
from engine.masks import Mask
from engine.order import ScoreParts, SmallAttention, drawn, noticed, parts_of, shifted
from engine.positions import ALiBi, Learned, Positions, RelativeBuckets, Sinusoidal, alibi_bias, alibi_slopes
from engine.rotary import Rotary, YaRN

WIDTH, HEADS = 32, 4
IDS = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])
ORDER = torch.tensor([5, 0, 7, 2, 1, 6, 3, 4])
SCHEMES: dict[str, Positions] = {
    "none": Positions(),
    "sinusoidal": Sinusoidal(WIDTH),
    "learned": drawn(Learned(64, WIDTH)),
    "rotary": Rotary(WIDTH // HEADS),
    "yarn": Rotary(WIDTH // HEADS, scaling=YaRN(4.0, 16)),
    "alibi": ALiBi(HEADS),
    "relative": drawn(RelativeBuckets(HEADS)),
}
RELATIVE = ("none", "rotary", "yarn", "alibi", "relative")
ABSOLUTE = ("sinusoidal", "learned")


def layer(scheme: str, causal: bool = False, seed: int = 0) -> SmallAttention:
    return SmallAttention(WIDTH, HEADS, SCHEMES[scheme], causal, seed)


@given(st.permutations(range(8)), st.integers(0, 1000))
@settings(deadline=None)
def test_without_positions_a_shuffle_goes_unnoticed(order: list[int], seed: int) -> None:
    """No positions, no mask: permuting the words permutes the outputs, to rounding."""
    assert float(noticed(layer("none", seed=seed), IDS, torch.tensor(order)).max()) < 1e-13


def test_the_causal_mask_lets_order_leak_in() -> None:
    """No positions, but each word sees only what came before: a shuffle changes what that is."""
    moved = noticed(layer("none", causal=True), IDS, ORDER)
    assert float(moved.max()) > 0.1


def test_of_identical_words_each_gets_an_equal_share_of_the_past() -> None:
    """No positions, causal, one word repeated: row t is 1/(t+1), so even then t can be told (Gu et al. 2025)."""
    weights = parts_of(layer("none", causal=True), torch.full((12,), 7)).weights
    expected = torch.ones(12, 12, dtype=torch.float64).tril() / torch.arange(1, 13)[:, None]
    torch.testing.assert_close(weights, expected.expand(HEADS, -1, -1), rtol=1e-14, atol=0)


@pytest.mark.parametrize("scheme", [name for name in SCHEMES if name != "none"])
@pytest.mark.parametrize("causal", [False, True])
def test_every_scheme_notices_a_shuffle(scheme: str, causal: bool) -> None:
    """With positions the same words in another order give other outputs."""
    assert float(noticed(layer(scheme, causal), IDS, ORDER).max()) > 0.01


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_order_that_is_kept_moves_nothing(scheme: str) -> None:
    """The identity is no shuffle, and a move by nothing no move."""
    assert float(noticed(layer(scheme), IDS, torch.arange(8)).max()) == 0
    assert float(shifted(layer(scheme), IDS, 0).max()) == 0


@pytest.mark.parametrize("scheme", RELATIVE)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("by", [1, 50, 1000])
def test_relative_schemes_do_not_notice_a_shift(scheme: str, causal: bool, by: int) -> None:
    """Rotary, ALiBi, T5's buckets and none know distances only: to rounding nothing moves."""
    assert float(shifted(layer(scheme, causal), IDS, by).max()) < 1e-11


@pytest.mark.parametrize("scheme", ABSOLUTE)
@pytest.mark.parametrize("causal", [False, True])
def test_absolute_schemes_notice_a_shift(scheme: str, causal: bool) -> None:
    """Sinusoidal and learned vectors are of the place itself, so the same sentence later is another input."""
    assert float(shifted(layer(scheme, causal), IDS, 50).max()) > 0.01


def test_learned_positions_cannot_be_shifted_beyond_their_end() -> None:
    """Eight words from place 57 would need place 64 of 64."""
    assert shifted(layer("learned"), IDS, 56).shape == (8,)
    with pytest.raises(ShapeError, match="no position 64"):
        shifted(layer("learned"), IDS, 57)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("first", [0, 9])
def test_content_and_position_add_up_to_the_scores(scheme: str, causal: bool, first: int) -> None:
    """Content is the layer without positions, whatever the scheme, and does not depend on the place."""
    parts = parts_of(layer(scheme, causal), IDS, first)
    torch.testing.assert_close(parts.content + parts.position, parts.scores, rtol=0, atol=1e-14)
    assert parts.content.equal(parts_of(layer("none"), IDS).scores)
    assert parts.content.shape == (HEADS, 8, 8)
    assert bool((parts.position != 0).any()) == (scheme != "none")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("causal", [False, True])
def test_weights_are_those_of_the_visible_formula(scheme: str, causal: bool) -> None:
    """Rows are the softmax of the scores over the visible keys, the ones `attention_weights` gives."""
    parts = parts_of(layer(scheme, causal), IDS)
    expected = parts.scores.masked_fill(~parts.visible, -math.inf).softmax(dim=-1)
    torch.testing.assert_close(parts.weights, expected, rtol=0, atol=1e-14)
    assert parts.visible.equal(torch.ones(8, 8).tril().bool() if causal else torch.ones(8, 8).bool())
    call = layer(scheme, causal).call(IDS)
    again = attention_weights(call.q, call.k, bias=call.bias, mask=Mask.causal() if causal else None)
    assert parts.weights.equal(again[0])


@pytest.mark.parametrize("scheme", ABSOLUTE)
@pytest.mark.parametrize("first", [0, 9])
def test_the_terms_of_added_positions_add_up(scheme: str, first: int) -> None:
    """(word + place) · (word + place): word-place, place-word and place-place make the part of position."""
    parts = parts_of(layer(scheme), IDS, first)
    terms = [parts.word_position, parts.position_word, parts.position_position]
    total = torch.stack([term for term in terms if term is not None])
    assert len(total) == 3
    torch.testing.assert_close(total.sum(dim=0), parts.position, rtol=0, atol=1e-12)


def test_place_with_place_does_not_depend_on_the_words() -> None:
    """Other words, same third term; the first term follows the query's word, the second the key's."""
    here, there = parts_of(layer("sinusoidal"), IDS), parts_of(layer("sinusoidal"), IDS.roll(1))
    assert here.position_position is not None
    assert there.position_position is not None
    assert here.word_position is not None
    assert here.position_word is not None
    assert here.position_position.equal(there.position_position)
    swapped = IDS.clone()
    swapped[0] = 50
    other = parts_of(layer("sinusoidal"), swapped)
    assert other.word_position is not None
    assert other.position_word is not None
    torch.testing.assert_close(other.word_position[:, 1:], here.word_position[:, 1:])
    torch.testing.assert_close(other.position_word[..., 1:], here.position_word[..., 1:])
    assert not other.word_position[:, 0].allclose(here.word_position[:, 0])


@pytest.mark.parametrize("scheme", RELATIVE)
def test_only_added_positions_have_cross_terms(scheme: str) -> None:
    """Elsewhere there is nothing to multiply out."""
    parts = parts_of(layer(scheme), IDS)
    assert parts.word_position is parts.position_word is parts.position_position is None


def test_the_part_of_position_under_alibi_is_its_bias() -> None:
    """-slope · distance, whatever the words."""
    where = torch.arange(8)[None]
    expected = alibi_bias(alibi_slopes(HEADS), where, where)[0].double()
    torch.testing.assert_close(parts_of(layer("alibi"), IDS).position, expected, rtol=0, atol=1e-12)


def test_scores_of_content_have_unit_variance() -> None:
    """Unit-variance queries and keys have products of variance D, divided by √D of 1."""
    content = parts_of(SmallAttention(64, 4, Positions()), torch.arange(200)).content
    assert float(content.var()) == pytest.approx(1, abs=0.1)
    assert float(content.mean()) == pytest.approx(0, abs=0.1)


def test_the_seed_is_the_layer() -> None:
    """The same seed gives the same scores, another seed others; the positions have no say in the words' weights."""
    assert parts_of(layer("rotary"), IDS).scores.equal(parts_of(layer("rotary"), IDS).scores)
    assert not parts_of(layer("none", seed=1), IDS).scores.allclose(parts_of(layer("none"), IDS).scores)
    tables = [drawn(Learned(5, 4), seed).state_dict()["table.weight"] for seed in (0, 0, 1)]
    assert tables[0].equal(tables[1])
    assert not tables[0].equal(tables[2])


def test_the_output_is_that_of_attend() -> None:
    """The layer's outputs come from the same function as every model's."""
    call = layer("alibi", causal=True).call(IDS)
    torch.testing.assert_close(call.output(), attend(None, call.q, call.k, call.v, bias=call.bias, mask=Mask.causal()))


def test_one_word_attends_to_itself() -> None:
    """A single word has a single weight, 1, under every scheme, and cannot be shuffled."""
    for scheme in SCHEMES:
        parts: ScoreParts = parts_of(layer(scheme, causal=True), IDS[:1])
        assert parts.weights.tolist() == [[[1.0]]] * HEADS
        assert noticed(layer(scheme), IDS[:1], torch.tensor([0])).tolist() == [0.0]


def test_gradients_are_not_kept() -> None:
    """Learned tables are parameters; pictures of them are not."""
    parts = parts_of(layer("learned"), IDS)
    assert not parts.scores.requires_grad
    assert not parts.position.requires_grad
    assert not noticed(layer("relative"), IDS, ORDER).requires_grad


def test_misfits_are_refused() -> None:
    """Words that are none, an order that is none, positions for other layers."""
    small = layer("none")
    with pytest.raises(ShapeError, match=r"30 .* 4 heads"):
        replace(small, width=30)
    with pytest.raises(ShapeError, match="0 to 999; 1000 is none"):
        parts_of(small, torch.tensor([1000]))
    with pytest.raises(ShapeError, match="0 to 999; -2 is none"):
        parts_of(small, torch.tensor([5, -2]))
    for shape in ((0,), (2, 2)):
        with pytest.raises(ShapeError, match="one row"):
            parts_of(small, torch.zeros(shape, dtype=torch.long))
    for order in (ORDER[:7], torch.zeros(8, dtype=torch.long), ORDER + 1):
        with pytest.raises(ShapeError, match="each of 8 words once"):
            noticed(small, IDS, order)
    with pytest.raises(ShapeError, match="for 2 heads; the layer has 4"):
        parts_of(replace(small, positions=ALiBi(2)), IDS)
    with pytest.raises(ShapeError, match="width 16"):
        parts_of(replace(small, positions=Sinusoidal(16)), IDS)


def test_a_shuffle_moves_each_word_as_written_out() -> None:
    """Word by word: find the word in the shuffled sentence and compare the two outputs."""
    chosen = layer("rotary")
    before, after = (chosen.call(ids).output()[0].transpose(0, 1).flatten(1) for ids in (IDS, IDS[ORDER]))
    longest = max(float(vector.norm()) for vector in before)
    expected: list[Tensor] = [(after[ORDER.tolist().index(t)] - before[t]).norm() / longest for t in range(8)]
    torch.testing.assert_close(noticed(chosen, IDS, ORDER), torch.stack(expected))
