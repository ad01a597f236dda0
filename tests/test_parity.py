"""Recorded attention against transformers' own: the same weights as eager, the same outputs as sdpa and eager.

Dimensions: B batch, H heads, T queries, S keys.
"""

import functools
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from engine import HuggingFaceModel, Mask, Prompt, Site
from engine.recording import Recorded
from tests.tiny_models import ENCODER, FAMILIES, LONG, RECORDED, SHORT, inputs, padded, stock, tiny

NAMES = [*sorted(RECORDED), "clip-text"]
PADDINGS = ("none", "right", "left")
RETURNED_AS = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}

every_family = pytest.mark.parametrize("name", NAMES)
every_padding = pytest.mark.parametrize("padding", PADDINGS)


def prompts_of(model: HuggingFaceModel, padding: str) -> tuple[list[Prompt], list[Prompt]]:
    """Two texts of different lengths, filled up on one side, or one alone; and what a decoder reads, if any."""
    texts, answers = ([LONG], [SHORT]) if padding == "none" else ([LONG, SHORT], ["a cat", "The house is wonderful."])
    side = "left" if padding == "left" else "right"
    targets = padded(model, answers, side) if "cross" in model.card.kinds else []
    return padded(model, texts, side), targets


@functools.cache
def recorded(name: str, padding: str) -> tuple[Tensor, dict[Site, Recorded], list[Prompt], list[Prompt]]:
    """One recorded pass: its main output, what was recorded, what was read."""
    model = tiny(name)
    prompts, targets = prompts_of(model, padding)
    outputs, sites, _ = model._forward(prompts, targets, Mask.native())
    return outputs.to_tuple()[0], sites, prompts, targets


@functools.cache
def expected(name: str, padding: str) -> tuple[Tensor, dict[Site, Tensor]]:
    """The same pass by transformers, eager: its main output, and the weights that it returns."""
    _, _, prompts, targets = recorded(name, padding)
    with torch.inference_mode():
        outputs = stock(name)(**inputs(tiny(name), prompts, targets), output_attentions=True, **uncached(name))
    weights: dict[Site, Tensor] = {}
    for kind in FAMILIES[name].kinds:
        returned = getattr(outputs, RETURNED_AS[kind] if targets else "attentions")
        weights |= {Site(kind, layer): held for layer, held in enumerate(returned)}  # type: ignore[arg-type]
    return outputs.to_tuple()[0], weights


def uncached(name: str) -> dict[str, Any]:
    return {} if FAMILIES[name].kinds == ENCODER or name == "clip-text" else {"use_cache": False}


def is_real(prompts: Sequence[Prompt]) -> Tensor:
    """Which queries are no padding, (B, T)."""
    return torch.tensor([prompt.real for prompt in prompts])


@every_padding
@every_family
def test_recorded_weights_are_those_that_eager_attention_returns(name: str, padding: str):
    _, sites, prompts, targets = recorded(name, padding)
    _, weights = expected(name, padding)
    assert sites.keys() == weights.keys()
    for site, held in sites.items():
        ours = held.call.weights()
        real = is_real(prompts if not targets or site.kind == "encoder" else targets)
        difference = (ours - weights[site]).abs().amax(dim=(1, 3))
        assert float(difference[real].max()) <= 1e-5, str(site)
        assert bool(ours.isfinite().all()), str(site)


@every_padding
@every_family
def test_a_query_that_sees_nothing_gets_zeros_and_every_other_row_sums_to_one(name: str, padding: str):
    """GPT-OSS is apart: its sinks take a share of every row and give nothing."""
    for site, held in recorded(name, padding)[1].items():
        sums, seen = held.call.weights().sum(dim=-1), held.call.visible()
        sees = torch.ones_like(sums, dtype=torch.bool) if seen is None else seen.any(dim=-1).expand_as(sums)
        assert bool((sums[~sees] == 0).all()), str(site)
        if held.call.sinks is None:
            torch.testing.assert_close(sums[sees], torch.ones_like(sums[sees]))
        else:
            assert bool((sums[sees] < 1).all()), str(site)


@every_padding
@every_family
def test_outputs_are_those_of_stock_eager_attention(name: str, padding: str):
    ours, _, prompts, targets = recorded(name, padding)
    real = is_real(targets or prompts)
    assert far_apart(ours[real], expected(name, padding)[0][real]) <= 1e-5


@every_padding
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("gemma2", "gpt-oss")])
def test_outputs_are_those_of_stock_sdpa_attention(name: str, padding: str):
    """Gemma 2 and GPT-OSS are left out: transformers' sdpa knows neither soft caps nor sinks."""
    ours, _, prompts, targets = recorded(name, padding)
    with torch.inference_mode():
        theirs = stock(name, "sdpa")(**inputs(tiny(name), prompts, targets), **uncached(name)).to_tuple()[0]
    real = is_real(targets or prompts)
    assert far_apart(ours[real], theirs[real]) <= 1e-6


@every_padding
@every_family
def test_recording_changes_no_output(name: str, padding: str):
    ours, _, prompts, targets = recorded(name, padding)
    with torch.inference_mode():
        unrecorded = tiny(name).module(**inputs(tiny(name), prompts, targets), **uncached(name)).to_tuple()[0]
    real = is_real(targets or prompts)
    assert torch.equal(unrecorded[real], ours[real])


def far_apart(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference relative to the largest output, where that is above 1."""
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1))


@every_family
def test_the_card_says_how_the_family_attends(name: str):
    card = tiny(name).card
    assert (card.backend, card.reason, card.missing, card.unexpected) == ("sdpa", "", (), ())
    assert card.kinds == FAMILIES[name].kinds
    assert card.layers == (3 if name in ("modernbert", "gemma2", "gemma3", "gpt-oss") else 2)


@every_family
def test_shown_weights_times_v_are_what_the_kernel_returned(name: str):
    model = tiny(name)
    (prompt,), targets = prompts_of(model, "none")
    audit = model.run_prompt(prompt, targets[0] if targets else None).audit()
    assert audit.passed
    assert audit.relative is not None
    assert audit.relative <= 1e-5


@every_family
def test_tiny_models_attend_far_from_evenly(name: str):
    """Otherwise these tests would prove little: nearly even weights agree under almost any fault."""
    sites = recorded(name, "none")[1].values()
    largest = torch.cat([held.call.weights().amax(dim=-1).flatten() * held.keys for held in sites])
    assert float(largest.mean()) > 2


@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("bert", (None, None)),
        ("llama", (None, None)),
        ("qwen2", (None, None)),
        ("mistral", (4, 4)),
        ("gemma2", (4, None, 4)),
        ("gemma3", (4, None, 4)),
        ("gpt-oss", (4, None, 4)),
        ("modernbert", (None, 5, None)),
    ],
)
def test_the_card_counts_the_keys_that_each_layers_window_shows(name: str, windows: tuple[int | None, ...]):
    """Mistral's 4 are four keys, the query itself among them; ModernBERT's 4 are two on either side and itself."""
    model = tiny(name)
    assert model.card.windows == windows
    trace = model.run(LONG)
    assert len(trace.tokens) > 6
    for layer, window in enumerate(windows):
        widest = trace.visible(layer, 0).sum(dim=-1).max()
        assert widest == (window or len(trace.tokens))


def test_grouped_heads_are_listed_with_the_keys_they_share():
    """Llama with 8 query heads on 2 key-value heads: heads 0 to 3 share one."""
    model = tiny("llama")
    assert (model.card.heads, model.card.kv_heads) == (8, 2)
    trace = model.run(LONG)
    assert trace.weights(0).shape[0] == 8
    keys = [trace.parts(0, head)["k"] for head in range(8)]
    assert all(torch.equal(keys[0], key) for key in keys[:4])
    assert all(torch.equal(keys[4], key) for key in keys[4:])
    assert not torch.equal(keys[0], keys[4])


@every_family
def test_one_heads_weights_are_its_share_of_its_layers_weights(name: str):
    model = tiny(name)
    (prompt,), targets = prompts_of(model, "none")
    trace = model.run_prompt(prompt, targets[0] if targets else None)
    for kind in trace.kinds:
        whole = trace.weights(1, kind=kind)
        alone = torch.stack([trace.weights(1, head, kind) for head in range(trace.heads(kind))])
        torch.testing.assert_close(alone, whole, rtol=1e-5, atol=1e-6)
        rows = trace.weights(1, 1, kind, rows=slice(1, 3), cols=slice(0, 2))
        torch.testing.assert_close(rows, whole[1, 1:3, :2], rtol=1e-5, atol=1e-6)
