"""Rotary positions: against closed forms, against transformers' Llama and GPT-J and its six ways of going further.

B batch, H heads, T tokens, D head width.
"""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj_rotation
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as llama_rotation

from engine.errors import ShapeError
from engine.rotary import (
    DynamicNTK,
    Layout,
    Linear,
    Llama3,
    NTKAware,
    Rotary,
    Scaling,
    YaRN,
    rotary_frequencies,
    rotate,
    wavelengths,
)

LAYOUTS: tuple[Layout, ...] = ("half", "interleaved")
SCALINGS = (
    Scaling(),
    Linear(4.0),
    NTKAware(4.0),
    DynamicNTK(4.0, 16),
    YaRN(4.0, 64),
    Llama3(8.0, 64),
)
SHAPES = [(64, 10_000.0), (128, 500_000.0), (8, 100.0), (2, 10_000.0)]  # width, base


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def places(length: int, first: int = 0) -> Tensor:
    return torch.arange(first, first + length)[None]


def config_of(kind: str, width: int, base: float, longest: int = 2048, **numbers: Any) -> LlamaConfig:
    rope = {"rope_type": kind, "rope_theta": base, **numbers}
    return LlamaConfig(
        hidden_size=2 * width,
        num_attention_heads=2,
        head_dim=width,
        max_position_embeddings=longest,
        rope_parameters=rope,
    )


def official(kind: str, width: int, base: float, length: int | None = None, **numbers: Any) -> tuple[Tensor, float]:
    """What transformers computes: frequencies and attention factor."""
    return ROPE_INIT_FUNCTIONS[kind](config_of(kind, width, base, **numbers), torch.device("cpu"), seq_len=length)


def agree(scaling: Scaling, expected: tuple[Tensor, float], width: int, base: float, length: int | None = None) -> None:
    torch.testing.assert_close(scaling.frequencies(width, base, length), expected[0], rtol=1e-6, atol=0)
    assert scaling.attention_factor == pytest.approx(expected[1], rel=1e-9)


def test_frequencies_fall_from_one_radian() -> None:
    """θᵢ = base^(-2i/D); a full turn takes 2π/θ positions."""
    expected = torch.tensor([10_000.0 ** (-2 * i / 8) for i in range(4)])
    torch.testing.assert_close(rotary_frequencies(8), expected, rtol=1e-6, atol=0)
    torch.testing.assert_close(wavelengths(rotary_frequencies(8)), 2 * math.pi / expected, rtol=1e-6, atol=0)
    assert rotary_frequencies(2).tolist() == [1.0]


def test_one_pair_turns_as_in_the_plane() -> None:
    """With D = 2 position 3 turns (1, 0) to (cos 3, sin 3), in both layouts."""
    for layout in LAYOUTS:
        turned = Rotary(2, layout=layout).turn(torch.tensor([[[[1.0, 0.0]]]]), places(1, 3))
        torch.testing.assert_close(turned[0, 0, 0], torch.tensor([math.cos(3), math.sin(3)]))


@given(
    t=st.integers(0, 3000),
    s=st.integers(0, 3000),
    shift=st.integers(0, 100_000),
    pairs=st.integers(1, 16),
    layout=st.sampled_from(LAYOUTS),
    scaling=st.sampled_from([scaling for scaling in SCALINGS if not scaling.follows_length]),
)
@settings(deadline=None)
def test_products_depend_on_the_difference_only(
    t: int, s: int, shift: int, pairs: int, layout: Layout, scaling: Scaling
) -> None:
    """⟨R(t) q, R(s) k⟩ = ⟨R(t+n) q, R(s+n) k⟩ = ⟨q, R(s-t) k⟩, under every fixed scaling."""
    width = 2 * pairs
    q, k = normal(1, 1, 1, width, seed=1, dtype=torch.float64), normal(1, 1, 1, width, seed=2, dtype=torch.float64)
    rotary = Rotary(width, layout=layout, scaling=scaling)
    here = (rotary.turn(q, places(1, t)) * rotary.turn(k, places(1, s))).sum()
    there = (rotary.turn(q, places(1, t + shift)) * rotary.turn(k, places(1, s + shift))).sum()
    torch.testing.assert_close(here, there, rtol=0, atol=1e-8)
    apart = (rotary.turn(q, places(1, 0)) * rotary.turn(k, places(1, s - t))).sum()
    torch.testing.assert_close(here, apart, rtol=0, atol=1e-8)


@given(first=st.integers(0, 100_000), pairs=st.integers(1, 32), layout=st.sampled_from(LAYOUTS))
@settings(deadline=None)
def test_lengths_stay(first: int, pairs: int, layout: Layout) -> None:
    """A turn changes no norm, neither of a head nor of a pair."""
    x = normal(1, 2, 3, 2 * pairs)
    turned = Rotary(2 * pairs, layout=layout).turn(x, places(3, first))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))


def test_at_the_first_position_nothing_turns() -> None:
    """Position 0 is the angle 0."""
    x = normal(1, 2, 1, 8)
    for layout in LAYOUTS:
        assert Rotary(8, layout=layout).turn(x, places(1)).equal(x)


def test_both_layouts_are_one_up_to_a_reordering() -> None:
    """Put i and i + D/2 side by side, turn interleaved, put them back: that is the half layout."""
    x, where = normal(2, 3, 7, 12), places(7)
    order = torch.arange(12).view(2, 6).T.flatten()  # 0, 6, 1, 7, …
    interleaved = Rotary(12, layout="interleaved").turn(x[..., order], where)
    torch.testing.assert_close(interleaved, Rotary(12).turn(x, where)[..., order], rtol=0, atol=1e-6)


def test_the_half_layout_is_that_of_llama() -> None:
    """Queries and keys turned by transformers' Llama with its own cosines and sines."""
    q, k, where = normal(2, 4, 50, 16), normal(2, 2, 50, 16, seed=1), places(50, 5)
    cos, sin = LlamaRotaryEmbedding(config_of("default", 16, 10_000.0))(q, where)
    rotary = Rotary(16)
    for own, expected in zip(
        (rotary.turn(q, where), rotary.turn(k, where)), llama_rotation(q, k, cos, sin), strict=True
    ):
        torch.testing.assert_close(own, expected, rtol=0, atol=1e-6)


def test_the_interleaved_layout_is_that_of_gptj() -> None:
    """GPT-J keeps tokens before heads, so it is given the transposed queries."""
    q, where = normal(2, 4, 50, 16), places(50)
    angles = Rotary(16).angles(where)
    expected = gptj_rotation(q.transpose(1, 2), angles.sin(), angles.cos()).transpose(1, 2)
    torch.testing.assert_close(Rotary(16, layout="interleaved").turn(q, where), expected, rtol=0, atol=1e-6)


def test_each_sentence_may_have_places_of_its_own() -> None:
    """Places (B, T) turn sentence by sentence, as left padding needs."""
    x, own = normal(2, 3, 4, 8), torch.tensor([[0, 1, 2, 3], [0, 0, 0, 1]])
    together = Rotary(8).turn(x, own)
    for row in range(2):
        torch.testing.assert_close(together[row : row + 1], Rotary(8).turn(x[row : row + 1], own[row : row + 1]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_half_precision_turns_by_exact_angles(dtype: torch.dtype, layout: Layout) -> None:
    """Far out, where half precision no longer knows the position, only the result is rounded."""
    x, where = normal(1, 2, 4, 8).to(dtype), places(4, 4001)
    rotary = Rotary(8, layout=layout, scaling=YaRN(4.0, 64))
    turned = rotary.turn(x, where)
    assert turned.dtype == dtype
    assert turned.equal(rotary.turn(x.float(), where).to(dtype))


@pytest.mark.parametrize("scaling", SCALINGS, ids=lambda scaling: scaling.name)
def test_shapes_can_be_had_without_numbers(scaling: Scaling) -> None:
    """On the meta device every scaling gives the shape alone."""
    turned = Rotary(8, scaling=scaling).turn(torch.zeros(2, 3, 5, 8, device="meta"), places(5).to("meta"))
    assert turned.shape == (2, 3, 5, 8)
    assert turned.is_meta


def test_no_tokens_are_no_trouble() -> None:
    """An empty sentence stays empty, also where the frequencies follow the length."""
    for scaling in SCALINGS:
        assert Rotary(8, scaling=scaling).turn(torch.zeros(1, 2, 0, 8), places(0)).shape == (1, 2, 0, 8)


def test_misfits_are_refused() -> None:
    """An odd width, another width, too few angles, places for other tokens: each is named."""
    for odd in (7, 0, -2):
        with pytest.raises(ShapeError, match=f"is {odd}"):
            Rotary(odd)
    with pytest.raises(ShapeError, match="8, not 6"):
        Rotary(8).turn(torch.zeros(1, 1, 2, 6), places(2))
    with pytest.raises(ShapeError, match="3 angles"):
        rotate(torch.zeros(1, 8), torch.zeros(1, 3))
    with pytest.raises(ShapeError, match="2 tokens"):
        Rotary(8).turn(torch.zeros(1, 1, 2, 8), places(1))
    with pytest.raises(ShapeError, match="base"):
        Rotary(8, base=1.0)
    with pytest.raises(ShapeError, match="spiral"):
        Rotary(8, layout="spiral")  # type: ignore[arg-type]


@pytest.mark.parametrize(("width", "base"), SHAPES)
@pytest.mark.parametrize("factor", [1.0, 2.0, 7.5])
def test_linear_interpolation_is_that_of_transformers(width: int, base: float, factor: float) -> None:
    """All frequencies divided by the factor, so position factor · t turns as t did in training."""
    agree(Linear(factor), official("linear", width, base, factor=factor), width, base)
    squeezed, plain = Rotary(width, base, scaling=Linear(factor)), Rotary(width, base)
    where = torch.tensor([[0.0, 1.0, 5.0]])
    torch.testing.assert_close(squeezed.angles(factor * where), plain.angles(where))


@pytest.mark.parametrize(("width", "base"), SHAPES[:3])
@pytest.mark.parametrize("factor", [2.0, 7.5])
@pytest.mark.parametrize("length", [None, 1, 2048, 2049, 5000, 20_000])
def test_dynamic_ntk_is_that_of_transformers(width: int, base: float, factor: float, length: int | None) -> None:
    """Below the trained length as trained, above it a base that grows with the text."""
    scaling = DynamicNTK(factor, 2048)
    agree(scaling, official("dynamic", width, base, length, factor=factor), width, base, length)
    if length is None or length <= 2048:
        assert scaling.frequencies(width, base, length).equal(rotary_frequencies(width, base))


def test_dynamic_ntk_follows_the_longest_place() -> None:
    """A sentence that reaches beyond the trained length is turned as one of that length, wherever it starts."""
    x, scaling = normal(1, 2, 4, 8), DynamicNTK(2.0, 16)
    turned = Rotary(8, scaling=scaling).turn(x, places(4, 36))
    angles = places(4, 36)[..., None] * scaling.frequencies(8, 10_000.0, 40)
    torch.testing.assert_close(turned, rotate(x, angles))


YARNS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"truncate": False}, {"truncate": False}),
    ({"fast": 16.0, "slow": 2.0}, {"beta_fast": 16.0, "beta_slow": 2.0}),
    ({"fast": 4.0, "slow": 4.0, "truncate": False}, {"beta_fast": 4.0, "beta_slow": 4.0, "truncate": False}),
    ({"attention": 1.3}, {"attention_factor": 1.3}),
    ({"magnitude": 0.7, "magnitude_all": 1.1}, {"mscale": 0.7, "mscale_all_dim": 1.1}),
    ({"magnitude": 1.0, "magnitude_all": 1.0}, {"mscale": 1.0, "mscale_all_dim": 1.0}),
    ({"magnitude": 0.7}, {"mscale": 0.7}),
]


@pytest.mark.parametrize(("width", "base"), SHAPES)
@pytest.mark.parametrize("factor", [1.0, 4.0, 40.0])
@pytest.mark.parametrize(("ours", "theirs"), YARNS, ids=[str(ours) for ours, _ in YARNS])
def test_yarn_is_that_of_transformers(
    width: int, base: float, factor: float, ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    """Frequencies and attention factor, for several trained lengths and every option."""
    for trained in (16, 512, 4096):
        expected = official("yarn", width, base, factor=factor, original_max_position_embeddings=trained, **theirs)
        agree(YaRN(factor, trained, **ours), expected, width, base)


def test_yarn_sharpens_scores_by_the_square_of_its_factor() -> None:
    """Cosine and sine carry 0.1 · ln(factor) + 1, so a product of query and key carries its square."""
    yarn = YaRN(4.0, 64)
    assert yarn.attention_factor == pytest.approx(0.1 * math.log(4) + 1)
    x = normal(1, 1, 3, 8)
    lengths = Rotary(8, scaling=yarn).turn(x, places(3)).square().sum(dim=-1)
    torch.testing.assert_close(lengths, yarn.attention_factor**2 * x.square().sum(dim=-1))


def test_yarn_keeps_fast_pairs_and_slows_slow_ones() -> None:
    """The first pair turns as trained, the last 4 times slower, and none in between lies outside of these."""
    ratio = rotary_frequencies(64) / YaRN(4.0, 1024).frequencies(64, 10_000.0)
    assert float(ratio[0]) == 1
    assert float(ratio[-1]) == pytest.approx(4)
    assert bool((ratio.diff() >= -1e-6).all())


@pytest.mark.parametrize(("width", "base"), SHAPES)
@pytest.mark.parametrize(("factor", "low", "high"), [(8.0, 1.0, 4.0), (32.0, 1.0, 4.0), (2.0, 0.5, 20.0)])
def test_llama_3_is_that_of_transformers(width: int, base: float, factor: float, low: float, high: float) -> None:
    """Three bands, by how often a pair came round in training."""
    for trained in (64, 8192):
        numbers: dict[str, Any] = {
            "low_freq_factor": low,
            "high_freq_factor": high,
            "original_max_position_embeddings": trained,
        }
        agree(
            Llama3(factor, trained, low, high), official("llama3", width, base, factor=factor, **numbers), width, base
        )


def test_llama_3_agrees_at_the_published_values() -> None:
    """Llama 3.1: D 128, base 500,000, factor 8, 8192 tokens: 29 pairs stay, 29 slow down fully."""
    ratio = rotary_frequencies(128, 500_000.0) / Llama3(8.0, 8192).frequencies(128, 500_000.0)
    turns = 8192 / wavelengths(rotary_frequencies(128, 500_000.0))
    torch.testing.assert_close(ratio[turns >= 4], torch.ones(int((turns >= 4).sum())))
    torch.testing.assert_close(ratio[turns <= 1], torch.full((int((turns <= 1).sum()),), 8.0))
    assert (int((turns >= 4).sum()), int((turns <= 1).sum())) == (29, 29)


@pytest.mark.parametrize(("width", "base"), SHAPES[:3])
@pytest.mark.parametrize("factor", [1.0, 2.0, 8.0])
def test_ntk_aware_stretches_the_longest_wave_and_leaves_the_shortest(width: int, base: float, factor: float) -> None:
    """base · factor^(D/(D-2)): pair i is stretched by factor^(2i/(D-2)), from 1 to exactly the factor."""
    stretched = wavelengths(NTKAware(factor).frequencies(width, base)) / wavelengths(rotary_frequencies(width, base))
    pairs = torch.arange(width // 2)
    torch.testing.assert_close(stretched, factor ** (2 * pairs / (width - 2)), rtol=1e-5, atol=0)
    assert float(stretched[0]) == 1
    assert float(stretched[-1]) == pytest.approx(factor, rel=1e-5)
    expected = base * factor ** (width / (width - 2))
    torch.testing.assert_close(NTKAware(factor).frequencies(width, base), rotary_frequencies(width, expected))


@pytest.mark.parametrize("scaling", [NTKAware(4.0), DynamicNTK(4.0, 16)], ids=lambda scaling: scaling.name)
def test_a_single_pair_has_no_base_to_enlarge(scaling: Scaling) -> None:
    """With D = 2 the exponent D/(D-2) has no value and the base no say: the pair turns as trained."""
    assert scaling.frequencies(2, 10_000.0, 64).tolist() == [1.0]


@pytest.mark.parametrize("scaling", SCALINGS, ids=lambda scaling: scaling.name)
def test_no_scaling_speeds_a_pair_up(scaling: Scaling) -> None:
    """Whatever a scaling does, no pair turns faster than in training."""
    assert bool((scaling.frequencies(64, 10_000.0, 4096) <= rotary_frequencies(64) * (1 + 1e-6)).all())


def test_scalings_are_values() -> None:
    """Equal numbers are equal scalings, fit for a cache."""
    assert YaRN(4.0, 64) == YaRN(4.0, 64)
    assert len({Linear(2.0), Linear(2.0), NTKAware(2.0), Scaling()}) == 3


def test_impossible_scalings_are_refused() -> None:
    """A factor that is none, no trained length, borders in the wrong order."""
    for factor in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ShapeError, match="factor above 0"):
            Linear(factor)
    with pytest.raises(ShapeError, match="is 0"):
        DynamicNTK(2.0, 0)
    with pytest.raises(ShapeError, match=r"1\.0 against 2\.0"):
        YaRN(2.0, 64, fast=1.0, slow=2.0)
    with pytest.raises(ShapeError, match=r"4\.0 and 4\.0"):
        Llama3(2.0, 64, low=4.0, high=4.0)
