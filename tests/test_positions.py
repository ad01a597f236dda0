"""Positions that are added or biased: against closed forms, against transformers' T5 and BLOOM.

B batch, H heads, T queries, S keys, C model width.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import T5Config
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention

from engine.attention import attention_weights
from engine.errors import ShapeError
from engine.positions import (
    ALiBi,
    Learned,
    Positions,
    RelativeBuckets,
    Sinusoidal,
    alibi_bias,
    alibi_slopes,
    relative_buckets,
    sinusoidal_table,
)
from engine.rotary import Rotary


def places(length: int, first: int = 0) -> Tensor:
    return torch.arange(first, first + length)[None]


def test_without_positions_nothing_changes() -> None:
    """All three doors of the base class let everything through, and there is no end."""
    x, none = torch.randn(2, 3, 4), Positions()
    assert none.add(x, places(3)) is x
    assert none.turn(x[:, None], places(3)).equal(x[:, None])
    assert none.bias(places(3), places(3)) is None
    assert none.limit is None
    assert none.enters == "nowhere"


@pytest.mark.parametrize(
    ("positions", "door"),
    [
        (Sinusoidal(8), "add"),
        (Learned(9, 8), "add"),
        (Rotary(8), "turn"),
        (ALiBi(2), "bias"),
        (RelativeBuckets(2), "bias"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_each_scheme_uses_exactly_one_door(positions: Positions, door: str) -> None:
    """The door that `enters` names is the one that is overridden, the other two are the base's."""
    named = {"input": "add", "queries and keys": "turn", "scores": "bias"}
    assert named[positions.enters] == door
    overridden = {name for name in named.values() if getattr(type(positions), name) is not getattr(Positions, name)}
    assert overridden == {door}


def test_only_learned_numbers_are_parameters_or_state() -> None:
    """Sines, slopes and angles are computed; tables that are learned count length × width and buckets × heads."""
    for computed in (Sinusoidal(8), ALiBi(4), Rotary(8)):
        assert not computed.state_dict()
        assert not list(computed.parameters())
    assert sum(numbers.numel() for numbers in Learned(9, 8).parameters()) == 9 * 8
    assert sum(numbers.numel() for numbers in RelativeBuckets(4, buckets=32).parameters()) == 32 * 4


@pytest.mark.parametrize("positions", [Sinusoidal(8), Learned(9, 8)], ids=lambda value: value.name)
@pytest.mark.parametrize("wrong", [(2, 3, 6), (2, 4, 8), (2, 2, 8)], ids=str)
def test_vectors_that_do_not_fit_are_refused(positions: Positions, wrong: tuple[int, int, int]) -> None:
    """Another width, or another number of places than words, is named and not broadcast."""
    with pytest.raises(ShapeError, match=r"width 6|4 tokens|2 tokens"):
        positions.add(torch.zeros(wrong), places(3))


def test_a_single_place_is_not_spread_over_a_sentence() -> None:
    """One place for five words would broadcast silently; places for three of two sentences would not."""
    with pytest.raises(ShapeError, match="5 tokens"):
        Sinusoidal(4).add(torch.zeros(1, 5, 4), places(1))
    with pytest.raises(ShapeError, match="2 sentences"):
        Sinusoidal(4).add(torch.zeros(2, 5, 4), places(5).expand(3, -1))


@pytest.mark.parametrize("positions", [Sinusoidal(8), Learned(9, 8)], ids=lambda value: value.name)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
def test_word_vectors_keep_their_precision(positions: Positions, dtype: torch.dtype) -> None:
    """The sum is taken in float32 at least and comes back as the words came, to their own rounding."""
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    added = positions.add(x, places(5))
    assert added.dtype == dtype
    precise = torch.promote_types(dtype, torch.float32)
    table = positions.add(torch.zeros(1, 5, 8, dtype=precise), places(5))
    assert added.equal((x.to(precise) + table).to(dtype))


@pytest.mark.parametrize("positions", [Sinusoidal(8), Learned(9, 8)], ids=lambda value: value.name)
def test_each_sentence_may_have_places_of_its_own(positions: Positions) -> None:
    """Places (B, T) are looked up sentence by sentence, as left padding needs."""
    x, own = torch.randn(2, 4, 8), torch.tensor([[0, 1, 2, 3], [0, 0, 0, 1]])
    together = positions.add(x, own)
    for row in range(2):
        torch.testing.assert_close(together[row : row + 1], positions.add(x[row : row + 1], own[row : row + 1]))


@pytest.mark.parametrize(
    "positions", [Sinusoidal(8), Learned(9, 8), ALiBi(2), RelativeBuckets(2)], ids=lambda value: value.name
)
def test_shapes_can_be_had_without_numbers(positions: Positions) -> None:
    """On the meta device every door gives the shape alone."""
    positions, where = positions.to("meta"), places(5).to("meta")
    if positions.enters == "input":
        assert positions.add(torch.zeros(2, 5, 8, device="meta"), where).shape == (2, 5, 8)
    else:
        bias = positions.bias(where, places(7).to("meta"))
        assert bias is not None
        assert bias.shape == (1, 2, 5, 7)
        assert bias.is_meta


def test_sinusoidal_columns_are_sines_and_cosines() -> None:
    """Column 2i is sin(t / 10000^(2i/C)), column 2i + 1 its cosine (3.5 of the paper), written out in float64."""
    table = sinusoidal_table(50, 6)
    for t in (0, 1, 7, 49):
        for i in range(3):
            angle = t / 10_000 ** (2 * i / 6)
            assert float(table[t, 2 * i]) == pytest.approx(math.sin(angle), abs=1e-5)
            assert float(table[t, 2 * i + 1]) == pytest.approx(math.cos(angle), abs=1e-5)


@given(length=st.integers(1, 200), pairs=st.integers(1, 32), base=st.floats(2.0, 1e6))
def test_sine_and_cosine_of_a_pair_make_one(length: int, pairs: int, base: float) -> None:
    """sin² + cos² = 1 in every pair, so every position's vector is as long: √(C/2)."""
    table = sinusoidal_table(length, 2 * pairs, base)
    ones = table.unflatten(1, (pairs, 2)).square().sum(dim=-1)
    torch.testing.assert_close(ones, torch.ones(length, pairs))


def test_products_of_sinusoidal_vectors_depend_on_the_distance_only() -> None:
    """PE·PEᵀ is constant along its diagonals: Σ cos((t - s) θ)."""
    table = sinusoidal_table(60, 32)
    products = table @ table.T
    for distance in range(-59, 60):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-4, rtol=0)


@pytest.mark.parametrize("width", [1, 3, 7])
def test_an_odd_width_ends_on_a_sine_alone(width: int) -> None:
    """The frequencies are those of the odd width; the last cosine is missing."""
    table = sinusoidal_table(9, width)
    assert table.shape == (9, width)
    steps = torch.arange(0, width, 2) / width
    torch.testing.assert_close(table[:, ::2], (torch.arange(9.0)[:, None] / 10_000.0**steps).sin())
    assert Sinusoidal(width).add(torch.zeros(1, 9, width), places(9))[0].equal(table)


def test_the_first_position_is_zeros_and_ones() -> None:
    """A table of one position is sin 0 and cos 0; one of none is empty."""
    assert sinusoidal_table(1, 4).tolist() == [[0.0, 1.0, 0.0, 1.0]]
    assert sinusoidal_table(0, 4).shape == (0, 4)


def test_impossible_sizes_are_refused() -> None:
    """No width, no heads, no positions: each is named."""
    for wrong in (lambda: sinusoidal_table(3, 0), lambda: Sinusoidal(0), lambda: ALiBi(0), lambda: RelativeBuckets(0)):
        with pytest.raises(ShapeError, match="is 0"):
            wrong()
    with pytest.raises(ShapeError, match="-1"):
        sinusoidal_table(-1, 4)
    with pytest.raises(ShapeError, match="is 0"):
        Learned(0, 4)


def test_learned_positions_are_rows_of_a_table() -> None:
    """Word t gets row t, wherever the sentence begins."""
    learned = Learned(9, 8)
    torch.testing.assert_close(learned.add(torch.zeros(1, 3, 8), places(3, first=6)), learned.table.weight[None, 6:9])
    assert learned.limit == 9


@pytest.mark.parametrize(("first", "wrong"), [(7, 9), (-1, -1)])
def test_beyond_the_last_learned_position_both_numbers_are_named(first: int, wrong: int) -> None:
    """The message says which position was asked for and how many there are."""
    with pytest.raises(ShapeError, match=rf"no position {wrong}: .* 9 positions, 0 to 8"):
        Learned(9, 8).add(torch.zeros(1, 3, 8), places(3, first))


def test_no_words_need_no_learned_positions() -> None:
    """An empty sentence passes the check of the table's end."""
    assert Learned(9, 8).add(torch.zeros(1, 0, 8), places(0)).shape == (1, 0, 8)


def test_eight_heads_halve_their_slopes() -> None:
    """1/2, 1/4, … 1/256, exactly."""
    assert alibi_slopes(8).tolist() == [2.0**-power for power in range(1, 9)]


@pytest.mark.parametrize("heads", [1, 2, 4, 16, 32])
def test_slopes_of_a_power_of_two_are_a_geometric_series(heads: int) -> None:
    """2^(-8(i+1)/n), ending on 1/256 for any power of two."""
    expected = torch.tensor([2 ** (-8 * (head + 1) / heads) for head in range(heads)])
    torch.testing.assert_close(alibi_slopes(heads), expected, rtol=1e-7, atol=0)
    assert float(alibi_slopes(heads)[-1]) == 1 / 256


def test_other_head_counts_take_every_other_slope_of_the_next_power() -> None:
    """Twelve heads: the eight of eight, then the first, third, fifth and seventh of sixteen; three and five alike."""
    sixteen = [2 ** (-(head + 1) / 2) for head in range(16)]
    assert alibi_slopes(12).tolist() == pytest.approx([2.0**-n for n in range(1, 9)] + sixteen[0:8:2], rel=1e-7)
    assert alibi_slopes(3).tolist() == [1 / 16, 1 / 256, 1 / 4]
    assert alibi_slopes(5).tolist() == [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2]


@pytest.mark.parametrize("heads", [1, 3, 5, 7, 8, 12, 16, 25, 40])
def test_slopes_are_those_of_bloom(heads: int) -> None:
    """BLOOM's alibi is slope · position, so its column 1 is the slopes."""
    bloom = build_alibi_tensor(torch.ones(1, 4), heads, torch.float32)[:, 0, 1]
    torch.testing.assert_close(alibi_slopes(heads), bloom, rtol=1e-6, atol=0)


@given(heads=st.integers(1, 100))
def test_every_head_has_a_slope_of_its_own(heads: int) -> None:
    """As many different slopes as heads, all between 0 and 1."""
    slopes = alibi_slopes(heads)
    assert slopes.unique().numel() == heads
    assert float(slopes.min()) > 0
    assert float(slopes.max()) < 1


def test_alibi_costs_its_slope_per_word_of_distance() -> None:
    """-slope · |t - s|, both ways, zero on the diagonal, wherever the places begin."""
    bias = alibi_bias(torch.tensor([0.5, 0.25]), torch.tensor([[5, 6]]), torch.tensor([[4, 5, 6]]))
    expected = torch.tensor([[[-0.5, 0.0, -0.5], [-1.0, -0.5, 0.0]], [[-0.25, 0.0, -0.25], [-0.5, -0.25, 0.0]]])
    assert bias.equal(expected[None])
    assert not torch.signbit(bias[0, 0, 0, 1])  # drawn as 0, not as -0


def test_with_equal_content_alibi_is_the_softmax_of_the_distance() -> None:
    """The row is softmax(-slope · distance) whatever the width: the bias is not divided by √D."""
    for width in (4, 64):
        q, k = torch.ones(1, 8, 6, width), torch.ones(1, 8, 6, width)
        weights = attention_weights(q, k, bias=ALiBi(8).bias(places(6), places(6)))
        distances = (torch.arange(6)[:, None] - torch.arange(6)).abs()
        for head in range(8):
            expected = torch.softmax(-(2.0 ** -(head + 1)) * distances, dim=-1)
            torch.testing.assert_close(weights[0, head], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("positions", [ALiBi(3), RelativeBuckets(3)], ids=lambda value: value.name)
def test_biases_depend_on_the_distance_only(positions: Positions) -> None:
    """Moved by 1000 places they are the same numbers, and sentences may have places of their own."""
    bias = positions.bias(places(5), places(7))
    moved = positions.bias(places(5, 1000), places(7, 1000))
    assert bias is not None
    assert moved is not None
    assert bias.equal(moved)
    both = positions.bias(torch.cat([places(5), places(5, 3)]), torch.cat([places(7), places(7, 3)]))
    assert both is not None
    assert both.shape == (2, 3, 5, 7)
    assert both[0].equal(both[1])
    assert both[:1].equal(bias)


SIZES = [(32, 128), (32, 100), (33, 129), (7, 20), (4, 3), (5, 50), (64, 1000), (13, 37)]


@pytest.mark.parametrize(("buckets", "furthest"), SIZES)
@pytest.mark.parametrize("both_ways", [True, False])
def test_buckets_are_those_of_t5(buckets: int, furthest: int, both_ways: bool) -> None:
    """Every distance up to 1500 either way, odd sizes included, lies in the bucket where T5 puts it."""
    distances = torch.arange(-1500, 1501)
    expected = T5Attention._relative_position_bucket(distances, both_ways, buckets, furthest)
    assert relative_buckets(distances, buckets, furthest, both_ways).equal(expected)


@given(st.integers(4, 70), st.integers(40, 2000), st.booleans())
def test_farther_keys_never_have_nearer_buckets(buckets: int, furthest: int, both_ways: bool) -> None:
    """Buckets rise with distance, stay in range, and from the furthest distance on are one."""
    past = relative_buckets(-torch.arange(3000), buckets, furthest, both_ways)
    assert bool((past.diff() >= 0).all())
    assert int(past.min()) == 0
    assert int(past.max()) == (buckets // 2 if both_ways else buckets) - 1
    assert past[furthest:].unique().numel() == 1
    future = relative_buckets(torch.arange(1, 3000), buckets, furthest, both_ways)
    assert future.equal(past[1:] + buckets // 2 if both_ways else torch.zeros_like(future))


@pytest.mark.parametrize("decoder", [False, True])
def test_the_bias_is_that_of_t5(decoder: bool) -> None:
    """With T5's own table, its encoder's and decoder's biases come out, exactly."""
    config = T5Config(num_heads=4, d_model=16, d_kv=4, is_decoder=decoder)
    t5 = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    torch.nn.init.normal_(t5.relative_attention_bias.weight)
    own = RelativeBuckets(4, both_ways=not decoder)
    own.load_state_dict({"table.weight": t5.relative_attention_bias.weight})
    assert own.bias(places(150), places(150)).equal(t5.compute_bias(150, 150))


@pytest.mark.parametrize(
    ("buckets", "furthest", "both_ways", "named"),
    [(3, 128, True, "3 buckets"), (1, 128, False, "1 buckets"), (32, 8, True, "is 8"), (32, 16, False, "above 16")],
)
def test_too_few_buckets_are_refused(buckets: int, furthest: int, both_ways: bool, named: str) -> None:
    """The formula would divide by zero; it is refused when the scheme is made, too."""
    with pytest.raises(ShapeError, match=named):
        relative_buckets(torch.arange(3), buckets, furthest, both_ways)
    with pytest.raises(ShapeError, match=named):
        RelativeBuckets(2, buckets, furthest, both_ways)
