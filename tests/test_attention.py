"""The formula of attention: against closed forms, against itself written out, against PyTorch.

B batch, H heads, G key-value heads, T queries, S keys, D head width.
"""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from engine import attention
from engine.attention import Call, attend, attention_weights
from engine.errors import ShapeError
from engine.masks import Mask, Visibility
from engine.sites import Site

SITE = Site("decoder", 0)


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def coins(*shape: int, seed: int = 0) -> Tensor:
    """Booleans of which every row shows its first key at least."""
    seen = torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) > 0.5
    seen[..., 0] = True
    return seen


def naive(
    q: Tensor,
    k: Tensor,
    seen: Tensor | None = None,
    bias: Tensor | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """Softmax written out with exponentials, in float64, query head by query head."""
    q, k = q.double(), k.double().repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    scores = torch.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(q.shape[-1])
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    powers = scores.exp() if seen is None else scores.exp() * seen
    total = powers.sum(dim=-1, keepdim=True)
    if sinks is not None:
        total = total + sinks.double().exp()[:, None, None]
    return torch.where(total > 0, powers / total, 0.0)


def mixed(weights: Tensor, v: Tensor) -> Tensor:
    return weights @ v.double().repeat_interleave(weights.shape[1] // v.shape[1], dim=1)


def exact(actual: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("keys", [1, 2, 7])
def test_equal_scores_share_attention_evenly(keys: int):
    exact(
        attention_weights(normal(1, 2, 3, 4), torch.ones(1, 2, keys, 4).double()),
        torch.full((1, 2, 3, keys), 1 / keys, dtype=torch.float64),
    )


def test_two_keys_weigh_as_the_logistic_of_their_difference():
    q, k = torch.ones(1, 1, 1, 1), torch.tensor([[[[3.0], [1.0]]]])
    expected = torch.tensor([1.0, -1.0]).mul(2).sigmoid()
    torch.testing.assert_close(attention_weights(q, k)[0, 0, 0], expected, rtol=1e-6, atol=0)


def test_a_bias_by_distance_alone_is_the_softmax_of_minus_slope_times_distance():
    """ALiBi with nothing but position to go by: the slopes of 8 heads are 1/2, 1/4, … 1/256."""
    slopes = 2.0 ** -torch.arange(1, 9).double()
    place = torch.arange(6).double()
    distance = place[:, None] - place
    weights = attention_weights(
        normal(1, 8, 6, 4), torch.zeros(1, 8, 6, 4).double(), mask=Mask.causal(), bias=-slopes[:, None, None] * distance
    )
    for head, slope in enumerate(slopes):
        for t in range(6):
            exact(weights[0, head, t, : t + 1], torch.softmax(-slope * distance[t, : t + 1], dim=-1))


def test_scores_of_unit_variance_have_variance_d_and_1_once_divided():
    width = 64
    call = Call(normal(8, 4, 64, width), normal(8, 4, 64, width, seed=1), normal(1), Visibility(), scale=1.0)
    assert float(call.scores().var()) == pytest.approx(width, rel=0.03)
    assert float(replace(call, scale=width**-0.5).scores().var()) == pytest.approx(1.0, rel=0.03)


def test_the_scale_is_one_over_the_root_of_the_width_unless_said():
    q, k = normal(1, 2, 4, 16), normal(1, 2, 4, 16, seed=1)
    exact(attention_weights(q, k), torch.softmax(q @ k.mT / 4, dim=-1))
    exact(attention_weights(q, k, scale=1.0), torch.softmax(q @ k.mT, dim=-1))


@settings(deadline=None)
@given(
    groups=st.integers(1, 3),
    repeats=st.integers(1, 3),
    queries=st.integers(1, 6),
    keys=st.integers(1, 6),
    width=st.integers(1, 5),
    masked=st.sampled_from(["none", "causal", "some", "most"]),
    biased=st.booleans(),
    softcap=st.sampled_from([None, 0.5, 5.0]),
    sinks=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_weights_are_the_formula_for_every_shape_and_ingredient(
    groups: int,
    repeats: int,
    queries: int,
    keys: int,
    width: int,
    masked: str,
    biased: bool,
    softcap: float | None,
    sinks: bool,
    seed: int,
):
    """Rows sum to 1, to less with sinks, or are all zero; masked keys get exactly nothing; W V is the output."""
    heads = groups * repeats
    q, k = normal(2, heads, queries, width, seed=seed), normal(2, groups, keys, width, seed=seed + 1)
    v = normal(2, groups, keys, width, seed=seed + 2)
    mask: Any = {"none": None, "causal": Visibility(causal=True)}.get(masked)
    if masked in ("some", "most"):
        chance = torch.rand(2, 1, queries, keys, generator=torch.Generator().manual_seed(seed))
        mask = chance > (0.5 if masked == "some" else 0.9)
    extra: dict[str, Any] = {
        "bias": normal(1, heads, queries, keys, seed=seed + 3) if biased else None,
        "softcap": softcap,
        "sinks": normal(heads, seed=seed + 4) if sinks else None,
    }
    seen = mask.rows(torch.arange(queries), queries, keys) if isinstance(mask, Visibility) else mask
    weights = attention_weights(q, k, mask=mask, **extra)
    exact(weights, naive(q, k, seen, **extra), 1e-10)
    exact(attend(None, q, k, v, mask=mask, **extra), mixed(weights, v), 1e-10)
    shown = torch.ones_like(weights, dtype=torch.bool) if seen is None else seen.expand_as(weights)
    assert not weights[~shown].any()
    totals, sees = weights.sum(dim=-1), shown.any(dim=-1)
    assert not totals[~sees].any()
    if sinks:
        assert (totals[sees] < 1).all()
    else:
        exact(totals[sees], torch.ones_like(totals[sees]))


@pytest.mark.parametrize("groups", [1, 4, 8])
@pytest.mark.parametrize("masked", ["none", "causal", "boolean"])
@pytest.mark.parametrize("biased", [False, True])
def test_attend_is_pytorchs_attention_on_repeated_keys(groups: int, masked: str, biased: bool):
    """One group is multi-query attention, as many as heads is multi-head."""
    q, k, v = normal(2, 8, 6, 4), normal(2, groups, 6, 4, seed=1), normal(2, groups, 6, 4, seed=2)
    bias = normal(1, 8, 6, 6, seed=3) if biased else None
    seen = {"none": None, "causal": torch.ones(6, 6).tril().bool(), "boolean": coins(2, 1, 6, 6)}[masked]
    mask: Any = Mask.causal() if masked == "causal" else seen
    added = bias
    if seen is not None and bias is not None:
        added = bias.masked_fill(~seen, -math.inf)
    every_k, every_v = (tensor.repeat_interleave(8 // groups, dim=1) for tensor in (k, v))
    expected = F.scaled_dot_product_attention(q, every_k, every_v, attn_mask=seen if added is None else added)
    exact(attend(None, q, k, v, mask=mask, bias=bias), expected)
    exact(attention_weights(q, k, mask=mask, bias=bias), attention_weights(q, every_k, mask=mask, bias=bias))
    exact(mixed(attention_weights(q, k, mask=mask, bias=bias), v), expected)


def test_a_query_head_uses_the_key_head_of_its_group():
    """Heads 0 and 1 share keys 0, heads 2 and 3 share keys 1, in this order."""
    q, k = normal(1, 4, 5, 8), normal(1, 2, 5, 8, seed=1)
    weights = attention_weights(q, k)
    for head in range(4):
        exact(weights[:, head], torch.softmax(q[:, head] @ k[:, head // 2].mT / math.sqrt(8), dim=-1))


def test_few_queries_after_kept_keys_attend_as_the_last_rows_do():
    q, k, v = normal(1, 2, 6, 4), normal(1, 2, 6, 4, seed=1), normal(1, 2, 6, 4, seed=2)
    whole = attend(None, q, k, v, mask=Mask.causal())
    exact(attend(None, q[:, :, 4:], k, v, mask=Mask.causal()), whole[:, :, 4:])


def test_values_may_be_of_another_width():
    q, k, v = normal(1, 2, 3, 4), normal(1, 2, 5, 4, seed=1), normal(1, 2, 5, 7, seed=2)
    exact(attend(None, q, k, v), mixed(attention_weights(q, k), v))


def test_permuting_the_tokens_permutes_the_output():
    """Without positions and mask, attention does not know order."""
    x, order = normal(1, 2, 7, 4), torch.randperm(7, generator=torch.Generator().manual_seed(0))
    exact(attend(None, x[:, :, order], x[:, :, order], x[:, :, order]), attend(None, x, x, x)[:, :, order])


def test_identical_tokens_read_causally_give_1_over_t_plus_1():
    x = normal(1, 1, 1, 8).expand(1, 3, 9, 8)
    weights = attention_weights(x, x, mask=Mask.causal())
    exact(weights, (torch.ones(9, 9).double().tril() / torch.arange(1, 10).double()[:, None]).expand(1, 3, 9, 9))


@pytest.mark.parametrize(
    "extra", [{"softcap": 2.0}, {"sinks": normal(4, seed=9)}, {"softcap": 2.0, "sinks": normal(4, seed=9)}]
)
@pytest.mark.parametrize("budget", [1, 60, 200, 10_000])
def test_soft_caps_and_sinks_in_blocks_are_the_whole(
    monkeypatch: pytest.MonkeyPatch, extra: dict[str, Any], budget: int
):
    """A row is 2 · 4 · 7 = 56 scores: blocks of one row, of three, of all."""
    monkeypatch.setattr(attention, "BLOCK_SCORES", budget)
    q, k, v = normal(2, 4, 7, 4), normal(2, 2, 7, 4, seed=1), normal(2, 2, 7, 4, seed=2)
    bias, mask = normal(1, 4, 7, 7, seed=3), coins(2, 1, 7, 7)
    expected = mixed(naive(q, k, mask, bias, **extra), v)
    exact(attend(None, q, k, v, mask=mask, bias=bias, **extra), expected)


def test_a_soft_cap_bounds_the_ratio_of_two_weights():
    """Capped scores lie within ±c, so no weight is more than exp(2c) times another."""
    weights = attention_weights(100 * normal(1, 2, 4, 8), 100 * normal(1, 2, 6, 8, seed=1), softcap=1.5)
    assert float((weights.amax(-1) / weights.amin(-1)).max()) <= math.exp(3.0) * (1 + 1e-12)


def test_a_sink_as_strong_as_every_key_takes_its_share():
    """Zero scores and a zero sink: n keys and the sink get 1/(n + 1) each."""
    zeros = torch.zeros(1, 2, 3, 4).double()
    exact(attention_weights(zeros, zeros, sinks=torch.zeros(2)), torch.full((1, 2, 3, 3), 0.25).double())


@settings(deadline=None)
@given(st.lists(st.integers(0, 8), max_size=12), st.booleans(), st.booleans())
def test_chosen_rows_are_the_rows_of_the_whole(chosen: list[int], causal: bool, wide: bool):
    q, k = normal(1, 4, 9, 4), normal(1, 2, 9, 4, seed=1)
    bias = normal(1, 4, 9 if wide else 1, 9, seed=3)
    call = Call(q, k, k, Visibility(causal, coins(1, 4, 9 if wide else 1, 9)), 0.5, bias, 3.0, normal(4, seed=4))
    rows = torch.tensor(chosen, dtype=torch.long)
    exact(call.weights(rows), call.weights()[:, :, rows])
    exact(call.scores(rows), call.scores()[:, :, rows])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("extra", [{}, {"bias": True}, {"softcap": 2.0}, {"sinks": True}])
def test_a_query_that_sees_nothing_gets_zeros_and_never_nan(dtype: torch.dtype, extra: dict[str, Any]):
    q, k, v = (normal(2, 4, 5, 8, seed=seed).to(dtype) for seed in range(3))
    extra = {
        name: normal(*((1, 4, 5, 5) if name == "bias" else (4,))) if on is True else on for name, on in extra.items()
    }
    seen = coins(2, 1, 5, 5)
    seen[0, :, 2] = False
    weights, output = attention_weights(q, k, mask=seen, **extra), attend(None, q, k, v, mask=seen, **extra)
    assert weights.isfinite().all()
    assert output.isfinite().all()
    assert not weights[0, :, 2].any()
    assert not output[0, :, 2].any()
    assert weights[1, :, 2].any()


def test_padding_on_the_left_leaves_the_first_causal_rows_empty():
    """Six tokens, the first two padding: rows 0 and 1 see nothing, every other cell is finite."""
    real = torch.tensor([False, False, True, True, True, True])
    q, k, v = normal(1, 2, 6, 4), normal(1, 2, 6, 4, seed=1), normal(1, 2, 6, 4, seed=2)
    mask = Visibility(causal=True, tensor=real[None, None, None, :])
    weights = attention_weights(q, k, mask=mask)
    assert not weights[:, :, :2].any()
    assert not weights[..., :2].any()
    exact(weights[:, :, 2:].sum(dim=-1), torch.ones(1, 2, 4).double())
    exact(attend(None, q, k, v, mask=mask), mixed(weights, v))


def test_a_nan_in_a_query_is_shown_and_not_taken_for_a_mask():
    q, k = normal(1, 1, 3, 4), normal(1, 1, 3, 4, seed=1)
    q[0, 0, 1, 2] = math.nan
    weights = attention_weights(q, k, mask=Mask.bidirectional())
    assert weights[0, 0, 1].isnan().all()
    assert weights[0, 0, [0, 2]].isfinite().all()
    assert attention_weights(q, k, mask=torch.ones(3, 3).bool())[0, 0, 1].isnan().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_of_half_precision_are_computed_in_float32(dtype: torch.dtype):
    q, k = normal(1, 2, 6, 64).to(dtype), normal(1, 2, 6, 64, seed=1).to(dtype)
    weights = attention_weights(q, k)
    assert weights.dtype == torch.float32
    torch.testing.assert_close(weights.double(), naive(q, k), rtol=2e-6, atol=1e-7)


def test_scores_beyond_float16_do_not_overflow():
    """q·k is 300² · 64, far above float16's 65,504."""
    big = torch.full((1, 1, 2, 64), 300.0, dtype=torch.float16)
    assert torch.equal(attention_weights(big, big), torch.full((1, 1, 2, 2), 0.5))


@torch.no_grad()
@pytest.mark.parametrize("causal", [False, True])
def test_per_head_maps_are_those_of_pytorchs_module_and_not_their_average(causal: bool):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(16, 4, batch_first=True, dtype=torch.float64).eval()
    x = normal(2, 7, 16)
    hidden = torch.ones(7, 7).triu(1).bool() if causal else None
    output, expected = module(x, x, x, attn_mask=hidden, need_weights=True, average_attn_weights=False)
    q, k, v = (
        F.linear(x, weight, bias).unflatten(-1, (4, 4)).transpose(1, 2)  # (B, H, T, D)
        for weight, bias in zip(module.in_proj_weight.chunk(3), module.in_proj_bias.chunk(3), strict=True)
    )
    mask = Mask.causal() if causal else Mask.native()
    weights = attention_weights(q, k, mask=mask)
    exact(weights, expected)
    exact(module.out_proj(attend(None, q, k, v, mask=mask).transpose(1, 2).flatten(2)), output)
    assert float((weights[:, 0] - weights[:, 3]).abs().max()) > 0.01
    assert float((weights - weights.mean(dim=1, keepdim=True)).abs().max()) > 0.01


def test_padding_hides_its_columns_from_every_query():
    """Ids 5, 7, 0, 0: columns 2 and 3 are zero in all rows."""
    weights = attention_weights(
        normal(1, 2, 4, 8), normal(1, 2, 4, 8, seed=1), mask=torch.tensor([True, True, False, False])
    )
    assert not weights[..., 2:].any()
    exact(weights.sum(dim=-1), torch.ones(1, 2, 4).double())


@pytest.mark.parametrize("extra", [{}, {"bias": True}, {"sinks": True}])
def test_gradients_flow_through_attend_and_stay_finite_where_nothing_is_seen(extra: dict[str, bool]):
    ingredients: dict[str, Any] = {name: normal(1, 2, 4, 4) if name == "bias" else normal(2) for name in extra}
    q, k, v = (normal(1, 2, 4, 4, seed=seed).requires_grad_() for seed in range(3))
    seen = torch.ones(4, 4).tril(-1).bool()
    attend(None, q, k, v, mask=seen, **ingredients).square().sum().backward()
    for tensor in (q, k, v):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()
        assert tensor.grad.any()


@pytest.mark.parametrize(
    ("q", "k", "v"),
    [
        ((1, 4, 3, 8), (1, 4, 3, 7), (1, 4, 3, 8)),
        ((1, 4, 3, 8), (1, 3, 3, 8), (1, 3, 3, 8)),
        ((1, 4, 3, 8), (1, 4, 3, 8), (1, 4, 5, 8)),
        ((1, 4, 3, 8), (1, 4, 3, 8), (1, 2, 3, 8)),
        ((2, 4, 3, 8), (3, 4, 3, 8), (3, 4, 3, 8)),
        ((4, 3, 8), (4, 3, 8), (4, 3, 8)),
    ],
)
def test_tensors_that_do_not_fit_are_refused_with_their_shapes(
    q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]
):
    with pytest.raises(ShapeError) as refusal:
        attend(SITE, normal(*q), normal(*k), normal(*v))
    sentence = str(refusal.value)
    assert all(str(shape) in sentence for shape in (q, k, v))
    assert "key heads divide query heads" in sentence


@pytest.mark.parametrize("shape", [(3, 6), (2, 1, 3, 5), (1, 3, 3, 5), (1, 1, 1, 3, 5)])
def test_a_mask_or_bias_that_does_not_fit_is_refused_with_its_shape(shape: tuple[int, ...]):
    q, k = normal(1, 4, 3, 8), normal(1, 4, 5, 8)
    for what, given_ in (("mask", {"mask": torch.ones(shape).bool()}), ("bias", {"bias": torch.ones(shape)})):
        with pytest.raises(ShapeError) as refusal:
            attention_weights(q, k, **given_)  # type: ignore[arg-type]
        assert str(refusal.value) == f"A {what} of shape {shape} does not fit scores of shape (1, 4, 3, 5)."


def test_a_mask_of_numbers_is_refused():
    with pytest.raises(ShapeError, match="A mask holds booleans, True for visible"):
        attention_weights(normal(1, 1, 2, 4), normal(1, 1, 2, 4), mask=torch.zeros(2, 2))
