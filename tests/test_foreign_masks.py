"""Masks that a model was not trained with: the same as transformers' eager attention under that mask.

Dimensions: B batch, H heads, T queries, S keys.
"""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from engine import Mask, MaskError, Prompt, Site
from engine.recording import Recorded
from tests.tiny_models import LONG, SHORT, inputs, padded, stock, tiny

SIDES = ("none", "right", "left")
every_side = pytest.mark.parametrize("side", SIDES)


def prompts_of(name: str, side: str) -> list[Prompt]:
    return padded(tiny(name), [LONG] if side == "none" else [LONG, SHORT], "left" if side == "left" else "right")


def real_keys(prompts: Sequence[Prompt]) -> Tensor:
    """True for what is no padding, (B, S)."""
    return torch.tensor([prompt.real for prompt in prompts])


def run(name: str, prompts: Sequence[Prompt], mask: Mask) -> tuple[Tensor, dict[Site, Recorded]]:
    outputs, recorded, _ = tiny(name)._forward(prompts, [], mask)
    return outputs.to_tuple()[0], recorded


def run_stock(name: str, prompts: Sequence[Prompt], visible: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
    """Run transformers' eager attention under a mask of zeros and lowest values, (B, H or 1, T, S)."""
    model = stock(name)
    given: dict[str, Any] = inputs(tiny(name), prompts)
    given["attention_mask"] = torch.zeros(visible.shape).masked_fill(~visible, torch.finfo(torch.float32).min)
    if tiny(name).card.style == "GPT-style":
        given["use_cache"] = False
        # Otherwise OPT would count positions out of the mask, which no longer has one number per token.
        given["position_ids"] = (real_keys(prompts).long().cumsum(dim=1) - 1).clamp(min=0)
    with torch.inference_mode():
        outputs = model(**given, output_attentions=True)
    return outputs.to_tuple()[0], outputs.attentions


def assert_same(name: str, prompts: Sequence[Prompt], mask: Mask, seen: Tensor) -> None:
    """Compare our run under a mask with transformers' own under what that mask should show, padding left out."""
    real = real_keys(prompts)
    visible = (seen & real[:, None, None, :]).expand(len(prompts), -1, -1, -1)
    output, recorded = run(name, prompts, mask)
    expected, weights = run_stock(name, prompts, visible)
    assert len(recorded) == len(weights)
    for site, held in recorded.items():
        difference = (held.call.weights() - weights[site.layer]).abs().amax(dim=(1, 3))
        assert float(difference[real].max()) <= 1e-5, str(site)
    scale = expected[real].abs().max().clamp(min=1)
    assert float((output[real] - expected[real]).abs().max() / scale) <= 1e-5


def positions(length: int) -> tuple[Tensor, Tensor]:
    place = torch.arange(length)
    return place[:, None], place[None, :]


@every_side
@pytest.mark.parametrize("name", ["bert", "modernbert", "albert", "distilbert"])
def test_an_encoder_run_causally_is_eager_attention_under_a_causal_mask(name: str, side: str):
    prompts = prompts_of(name, side)
    query, key = positions(len(prompts[0]))
    assert_same(name, prompts, Mask.causal(), key <= query)


@every_side
@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral", "opt", "gemma2"])
def test_a_decoder_run_both_ways_is_eager_attention_without_its_causal_mask(name: str, side: str):
    """Mistral's window goes as well: a foreign mask replaces all of a model's own structure."""
    prompts = prompts_of(name, side)
    query, key = positions(len(prompts[0]))
    assert_same(name, prompts, Mask.bidirectional(), (query == query) & (key == key))


@every_side
@pytest.mark.parametrize("name", ["gpt2", "mistral"])
def test_a_decoder_under_a_causal_mask_is_plainly_causal(name: str, side: str):
    prompts = prompts_of(name, side)
    query, key = positions(len(prompts[0]))
    assert_same(name, prompts, Mask.causal(), key <= query)


@every_side
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
@pytest.mark.parametrize("rule", ["window", "prefix", "document", "blocking", "both"])
def test_every_rule_is_eager_attention_under_what_it_says(name: str, rule: str, side: str):
    prompts = prompts_of(name, side)
    length = len(prompts[0])
    query, key = positions(length)
    blocked = ((query == 3) & (key == 1)) | ((query == 5) & (key == 5))
    mask, seen = {
        "window": (Mask.window(3), (query - key).abs() < 3),
        "prefix": (Mask.prefix(4), (key <= query) | (key < 4)),
        "document": (Mask.document([5, length - 5]), (query < 5) == (key < 5)),
        "blocking": (Mask.blocking([(3, 1), (5, 5)]), ~blocked),
        "both": (Mask.causal() & Mask.window(2), (key <= query) & (query - key < 2)),
    }[rule]
    assert_same(name, prompts, mask, seen)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_pairs_cut_out_of_what_a_model_has_are_gone_and_the_rest_stays(name: str):
    prompts = prompts_of(name, "none")
    query, key = positions(len(prompts[0]))
    native = key <= query if name == "gpt2" else (key == key) & (query == query)
    seen = native & ~((query == 4) & (key == 2))
    assert_same(name, prompts, Mask.native() & Mask.blocking([(4, 2)]), seen)


@every_side
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_a_mask_for_some_heads_is_eager_attention_masked_in_those_heads(name: str, side: str):
    prompts = prompts_of(name, side)
    query, key = positions(len(prompts[0]))
    past, everything = key <= query, (key == key) & (query == query)
    own, foreign = (everything, past) if name == "bert" else (past, everything)
    mask = Mask.causal() if name == "bert" else Mask.bidirectional()
    heads = [foreign if head == 2 else own for head in range(tiny(name).card.heads)]
    assert_same(name, prompts, mask.only(heads=[2]), torch.stack(heads))


@pytest.mark.parametrize(("name", "mask"), [("bert", Mask.causal()), ("gpt2", Mask.bidirectional())])
def test_a_mask_for_one_head_changes_that_head_alone_in_the_first_layer(name: str, mask: Mask):
    model = tiny(name)
    native, changed = model.run(LONG), model.run(LONG, mask=mask.only(heads=[2]))
    for head in range(4):
        same = torch.equal(native.weights(0, head), changed.weights(0, head))
        assert same == (head != 2)
    assert not torch.equal(native.weights(1, 0), changed.weights(1, 0))
    assert changed.audit().passed


@pytest.mark.parametrize(("name", "mask"), [("bert", Mask.causal()), ("gpt2", Mask.bidirectional())])
def test_a_mask_for_one_layer_leaves_the_layers_before_it_alone(name: str, mask: Mask):
    model = tiny(name)
    native, changed = model.run(LONG), model.run(LONG, mask=mask.only(layers=[1]))
    assert torch.equal(native.weights(0), changed.weights(0))
    assert torch.equal(native.parts(0, 0)["output"], changed.parts(0, 0)["output"])
    assert not torch.equal(native.weights(1), changed.weights(1))
    shown = changed.visible(1, 0)
    expected = torch.ones_like(shown)
    assert torch.equal(shown, expected.tril() if name == "bert" else expected)


@every_side
@pytest.mark.parametrize(
    ("name", "mask"),
    [
        ("bert", Mask.causal()),
        ("bert", Mask.window(2)),
        ("gpt2", Mask.bidirectional()),
        ("mistral", Mask.bidirectional()),
        ("gpt2", Mask.native() & Mask.blocking([(4, 2)])),
        ("bert", Mask.bidirectional().only(heads=[1])),
    ],
)
def test_padding_stays_invisible_under_every_mask(name: str, mask: Mask, side: str):
    prompts = prompts_of(name, side)
    real = real_keys(prompts)
    for held in run(name, prompts, mask)[1].values():
        to_padding = held.call.weights().masked_select(~real[:, None, None, :])
        assert bool((to_padding == 0).all())


def test_rows_of_left_padding_see_nothing_under_a_causal_mask_and_stay_finite():
    prompts = prompts_of("bert", "left")
    output, recorded = run("bert", prompts, Mask.causal())
    real = real_keys(prompts)
    assert bool(output[real].isfinite().all())
    for held in recorded.values():
        weights = held.call.weights()
        assert bool(weights.isfinite().all())
        assert bool((weights.sum(dim=-1)[1, :, ~real[1]] == 0).all())


def test_the_answer_of_a_decoder_changes_with_what_it_sees():
    model = tiny("gpt2")
    assert model.predict(LONG) != model.predict(LONG, mask=Mask.window(1))


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_a_foreign_mask_leaves_cross_attention_its_own(name: str):
    """Encoder causal, decoder causal as ever: every target token still sees the whole source."""
    model = tiny(name)
    trace = model.run(LONG, target=SHORT, mask=Mask.causal())
    sources, targets = len(trace.prompt), len(trace.queries("cross"))
    for layer in range(trace.layers("cross")):
        assert bool(trace.visible(layer, 0, "cross").all())
        assert trace.weights(layer, kind="cross").shape == (4, targets, sources)
    assert torch.equal(trace.visible(1, 0, "encoder"), torch.ones(sources, sources).tril() > 0)
    assert not bool(trace.weights(1, kind="encoder").triu(1).any())
    assert trace.audit().passed


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_encoder_and_decoder_under_a_foreign_mask_are_eager_attention_under_it(name: str):
    """Window 3 in both stacks, run in transformers stack by stack, with cross-attention left whole."""
    model = tiny(name)
    trace = model.run(LONG, target=SHORT, mask=Mask.window(3))
    assert trace.target is not None
    given: dict[str, Any] = inputs(model, [trace.prompt], [trace.target])
    masks = []
    for length in (len(trace.prompt), len(trace.target)):
        query, key = positions(length)
        hidden = (query - key).abs() >= 3
        masks.append(torch.zeros(1, 1, length, length).masked_fill(hidden, torch.finfo(torch.float32).min))
    own = stock(name)
    with torch.inference_mode():
        encoded = own.get_encoder()(given["input_ids"], attention_mask=masks[0], output_attentions=True)
        outputs = own(
            encoder_outputs=encoded,
            decoder_input_ids=given["decoder_input_ids"],
            attention_mask=given["attention_mask"],
            decoder_attention_mask=masks[1],
            output_attentions=True,
            use_cache=False,
        )
    expected = {
        "encoder": encoded.attentions,
        "decoder": outputs.decoder_attentions,
        "cross": outputs.cross_attentions,
    }
    for site in trace.sites:
        theirs = expected[site.kind][site.layer][0]
        torch.testing.assert_close(trace.weights(site.layer, kind=site.kind), theirs, rtol=0, atol=1e-5)


def test_documents_that_do_not_add_up_are_refused_with_a_sentence():
    with pytest.raises(MaskError, match="add up to 5, not to the"):
        tiny("bert").run(LONG, mask=Mask.document([2, 3]))


def test_a_head_that_does_not_exist_is_refused_with_a_sentence():
    with pytest.raises(MaskError, match="Head 4 does not exist"):
        tiny("bert").run(LONG, mask=Mask.causal().only(heads=[4]))
