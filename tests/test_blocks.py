"""The parts of a transformer: norms, feed-forward layers and attention, against PyTorch's and against the formulas.

B batch, H heads, G key-value heads, T queries, S keys, D head width, C model width.
"""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine import Site, attend, recording
from engine.blocks import Attention, FeedForward, GatedFeedForward, LayerNorm, Reading, RMSNorm
from engine.config import Config
from engine.masks import Mask, Visibility
from engine.positions import Positions
from tests.small_transformers import close, lively, normal, small

SITE = Site("encoder", 0)
BOTH = [torch.float32, torch.float64]


def everything(x: Tensor, **more: Any) -> Reading:
    """What a layer is told where positions play no part."""
    return Reading(torch.arange(x.shape[1])[None], Positions(), **more)


def heads_of(x: Tensor, width: int) -> Tensor:
    """(B, T, H·D) to (B, H, T, D)."""
    return x.view(*x.shape[:2], -1, width).permute(0, 2, 1, 3)


@torch.no_grad()
def attended(attention: Attention, x: Tensor, reading: Reading | None = None) -> tuple[Tensor, Tensor]:
    """The output of an attention layer, (B, T, C), and its weights, (B, H, T, S)."""
    with recording() as recorder:
        output = attention(x, reading or everything(x))
    return output, recorder.recorded[attention.site].call.weights()


def twin(attention: Attention, config: Config) -> nn.MultiheadAttention:
    """PyTorch's module with the same numbers."""
    dtype = attention.q.weight.dtype
    module = nn.MultiheadAttention(config.width, config.heads, bias=config.bias, batch_first=True, dtype=dtype).eval()
    parts = (attention.q, attention.k, attention.v)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        module.out_proj.weight.copy_(attention.out.weight)
        if config.bias:
            module.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
            module.out_proj.bias.copy_(attention.out.bias)
    return module


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("width", [1, 7, 16])
@pytest.mark.parametrize("epsilon", [1e-5, 1e-12, 0.5])
@pytest.mark.parametrize(("ours", "theirs"), [(LayerNorm, nn.LayerNorm), (RMSNorm, nn.RMSNorm)])
def test_norms_are_pytorchs(ours: Any, theirs: Any, width: int, epsilon: float, dtype: torch.dtype):
    """With a scale and shift of their own, also where the width is 1 or odd and the numbers are far from 0."""
    norm = lively(ours(width, epsilon), dtype=dtype)
    other = theirs(width, eps=epsilon, dtype=dtype)
    other.load_state_dict(norm.state_dict())
    for shifted in (0.0, 10.0):
        x = 3 * normal(2, 5, width, dtype=dtype) + shifted
        close(norm(x), other(x))


@pytest.mark.parametrize(("ours", "theirs"), [(LayerNorm, nn.LayerNorm), (RMSNorm, nn.RMSNorm)])
def test_norms_of_bfloat16_are_pytorchs_up_to_its_last_digit(ours: Any, theirs: Any):
    """The statistics are taken in float32; summed in bfloat16, 768 numbers would be off by far more."""
    norm = lively(ours(768), dtype=torch.bfloat16)
    other = theirs(768, eps=1e-5, dtype=torch.bfloat16)
    other.load_state_dict(norm.state_dict())
    x = (3 * normal(4, 5, 768) + 2).bfloat16()
    assert norm(x).dtype == torch.bfloat16
    torch.testing.assert_close(norm(x), other(x), rtol=2**-7, atol=2**-7)


def test_a_normed_token_has_mean_0_and_variance_1_or_root_mean_square_1():
    x = 5 * normal(3, 4, 32) + 7
    layer, rms = LayerNorm(32, 0.0).double()(x), RMSNorm(32, 0.0).double()(x)
    close(layer.mean(dim=-1), torch.zeros(3, 4).double())
    close(layer.var(dim=-1, correction=0), torch.ones(3, 4).double())
    close(rms.square().mean(dim=-1), torch.ones(3, 4).double())
    close(rms * x.square().mean(dim=-1, keepdim=True).sqrt(), x)


@pytest.mark.parametrize("norm", [LayerNorm(8), RMSNorm(8)])
def test_a_token_of_zeros_stays_finite(norm: nn.Module):
    assert not norm(torch.zeros(1, 2, 8)).any()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("activation", "bend"),
    [("relu", F.relu), ("gelu", F.gelu), ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"))],
)
def test_a_feed_forward_layer_widens_bends_and_narrows(activation: Any, bend: Any, bias: bool):
    layer, x = lively(FeedForward(small(activation=activation, bias=bias))), normal(2, 3, 16)
    inside = x @ layer.widen.weight.T + (layer.widen.bias if bias else 0)
    close(layer(x), bend(inside) @ layer.narrow.weight.T + (layer.narrow.bias if bias else 0))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("activation", "bend"),
    [("swiglu", F.silu), ("geglu", F.gelu), ("geglu_tanh", lambda x: F.gelu(x, approximate="tanh"))],
)
def test_a_gated_layer_bends_its_gate_and_not_what_passes_through(activation: Any, bend: Any, bias: bool):
    layer, x = lively(GatedFeedForward(small(activation=activation, bias=bias))), normal(2, 3, 16)
    gate = x @ layer.gate.weight.T + (layer.gate.bias if bias else 0)
    passed = x @ layer.widen.weight.T + (layer.widen.bias if bias else 0)
    close(layer(x), (bend(gate) * passed) @ layer.narrow.weight.T + (layer.narrow.bias if bias else 0))


def test_the_two_gelus_differ():
    """GPT-2's approximation is not BERT's own: a model run with the wrong one is off in the fourth digit."""
    exact, tanh = FeedForward(small()), FeedForward(small(activation="gelu_tanh"))
    x = torch.linspace(-4, 4, 100)
    assert 1e-4 < float((exact.bend(x) - tanh.bend(x)).detach().abs().max()) < 1e-3


@torch.no_grad()
@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [1, 3, 5])
def test_attention_is_pytorchs_multihead_attention(
    heads: int, causal: bool, padded: bool, bias: bool, dtype: torch.dtype
):
    """Outputs, and the map of every head as recorded, with a key padding mask and causally, at an odd width."""
    config = small(width=15, heads=heads, bias=bias)
    attention = lively(Attention(config, SITE), dtype=dtype)
    x = normal(3, 6, 15, dtype=dtype)
    real = torch.arange(6) < torch.tensor([[6], [4], [1]]) if padded else None
    visibility = Visibility(causal, None if real is None else real[:, None, None])
    output, weights = attended(attention, x, everything(x, visibility=visibility))
    expected, expected_weights = twin(attention, config)(
        x,
        x,
        x,
        key_padding_mask=None if real is None else ~real,
        attn_mask=torch.ones(6, 6).triu(1).bool() if causal else None,
        need_weights=True,
        average_attn_weights=False,
    )
    close(output, expected)
    close(weights, expected_weights)
    if heads > 1:
        assert float((weights[:, 0] - weights[:, -1]).abs().max()) > 0.05


@torch.no_grad()
def test_cross_attention_takes_queries_from_the_text_and_keys_and_values_from_the_memory():
    config = small()
    attention = lively(Attention(config, Site("cross", 0)))
    x, memory = normal(2, 3, 16), normal(2, 7, 16, seed=1)
    output, weights = attended(attention, x, everything(x, memory=memory))
    expected, expected_weights = twin(attention, config)(x, memory, memory, average_attn_weights=False)
    close(output, expected)
    close(weights, expected_weights)
    assert weights.shape == (2, 4, 3, 7)


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("masked", ["causal", "boolean", "numbers"])
def test_attend_is_pytorchs_own_grouped_attention(masked: str, groups: int, dtype: torch.dtype):
    """Masks of numbers, minus infinity among them, are a bias here."""
    q, k, v = (normal(2, n, 5, 6, seed=seed, dtype=dtype) for seed, n in enumerate((4, groups, groups)))
    seen = normal(2, 1, 5, 5, seed=3) > -0.5
    seen[..., 0] = True
    numbers = normal(1, 4, 5, 5, seed=4, dtype=dtype).expand(2, 4, 5, 5).masked_fill(~seen, -math.inf)
    given: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "causal": ({"mask": Mask.causal()}, {"is_causal": True}),
        "boolean": ({"mask": seen}, {"attn_mask": seen}),
        "numbers": ({"bias": numbers}, {"attn_mask": numbers}),
    }
    ours, theirs = given[masked]
    close(attend(None, q, k, v, **ours), F.scaled_dot_product_attention(q, k, v, **theirs, enable_gqa=True))


@torch.no_grad()
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("causal", [False, True])
def test_grouped_attention_is_multi_head_with_repeated_key_and_value_matrices(groups: int, causal: bool):
    """G = H is multi-head itself, G = 1 multi-query; heads 0 and 1 share the first of two groups."""
    grouped = lively(Attention(small(kv_heads=groups), SITE))
    every = Attention(small(), SITE).double()
    state = grouped.state_dict()
    for name in ("k.weight", "k.bias", "v.weight", "v.bias"):
        state[name] = state[name].unflatten(0, (groups, 4)).repeat_interleave(4 // groups, dim=0).flatten(0, 1)
    every.load_state_dict(state)
    x = normal(2, 5, 16)
    reading = everything(x, visibility=Visibility(causal))
    for ours, expected in zip(attended(grouped, x, reading), attended(every, x, reading), strict=True):
        close(ours, expected)
    assert grouped.k.weight.shape == grouped.v.weight.shape == (groups * 4, 16)


@torch.no_grad()
def test_a_layer_of_groups_is_pytorchs_attention_on_repeated_keys():
    attention, x = lively(Attention(small(kv_heads=2), SITE)), normal(2, 5, 16)
    q, k, v = (heads_of(part(x), 4) for part in (attention.q, attention.k, attention.v))
    k, v = k[:, [0, 0, 1, 1]], v[:, [0, 0, 1, 1]]
    mixed = F.scaled_dot_product_attention(q, k, v)
    close(attention(x, everything(x)), attention.out(mixed.permute(0, 2, 1, 3).reshape(2, 5, 16)))


@torch.no_grad()
@pytest.mark.parametrize(
    "changes",
    [{"softcap": 0.7}, {"scale": 0.9}, {"qk_norm": True}, {"qk_norm": True, "scale": 2.0, "softcap": 1.5}],
)
@pytest.mark.parametrize("groups", [2, 4])
def test_soft_cap_scale_and_normed_queries_and_keys_are_the_formula(changes: dict[str, Any], groups: int):
    """softmax(c · tanh(q k scale / c)), q and k divided by their root mean square where they are normed; v never."""
    config = small(kv_heads=groups, epsilon=0.1, **changes)
    attention, x = lively(Attention(config, SITE)), normal(2, 5, 16)
    q, k, v = (heads_of(part(x), 4) for part in (attention.q, attention.k, attention.v))
    if config.qk_norm:
        q = q / (q.square().mean(dim=-1, keepdim=True) + 0.1).sqrt() * attention.q_norm.get_parameter("weight")
        k = k / (k.square().mean(dim=-1, keepdim=True) + 0.1).sqrt() * attention.k_norm.get_parameter("weight")
    k, v = k.repeat_interleave(4 // groups, dim=1), v.repeat_interleave(4 // groups, dim=1)
    scores = q @ k.mT * (0.5 if config.scale is None else config.scale)
    if config.softcap is not None:
        scores = config.softcap * torch.tanh(scores / config.softcap)
    weights = torch.softmax(scores, dim=-1)
    output, recorded = attended(attention, x)
    close(recorded, weights)
    close(output, attention.out((weights @ v).permute(0, 2, 1, 3).reshape(2, 5, 16)))


@torch.no_grad()
def test_queries_and_keys_of_unit_variance_have_scores_of_variance_1_and_d_without_the_scale():
    """Matrices that only move numbers about hand unit variance on: D = 64."""
    for scale, expected in ((None, 1.0), (1.0, 64.0)):
        attention = Attention(small(width=256, heads=4, bias=False, scale=scale), SITE).double()
        attention.q.weight.copy_(torch.eye(256))
        attention.k.weight.copy_(torch.eye(256).roll(1, dims=0))
        x = normal(4, 128, 256)
        with recording() as recorder:
            attention(x, everything(x))
        assert float(recorder.recorded[SITE].call.scores().var()) == pytest.approx(expected, rel=0.05)


@torch.no_grad()
@pytest.mark.parametrize(("width", "heads", "head_width"), [(15, 4, 3), (8, 3, 16), (16, 1, 1), (1, 1, 1), (5, 7, 2)])
def test_heads_may_be_wider_or_narrower_than_their_share(width: int, heads: int, head_width: int):
    attention = lively(Attention(small(width=width, heads=heads, head_width=head_width), SITE))
    x = normal(2, 3, width)
    output, weights = attended(attention, x)
    q, k, v = (heads_of(part(x), head_width) for part in (attention.q, attention.k, attention.v))
    assert weights.shape == (2, heads, 3, 3)
    mixed = F.scaled_dot_product_attention(q, k, v).permute(0, 2, 1, 3).reshape(2, 3, heads * head_width)
    close(output, attention.out(mixed))
