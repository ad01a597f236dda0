"""Masks that a model was not trained with, on our models and on transformers' with the same weights."""

import functools
from dataclasses import replace
from typing import Any

import pytest
import torch

from engine import Mask, Prompt, recording
from engine.weights import rebuilt
from tests.rebuilt_models import LENGTHS, TOLERANCE, Read, furthest_apart, weights_of
from tests.tiny_models import LONG, tiny

# Transformers gives encoders no positions for padding on the left, so that ours would count otherwise.
SIDES = {"bert": ("none", "right"), "t5": ("none", "right"), "bart": ("none", "right")}
FOREIGN = [
    ("bert", "causal"),
    ("bert", "window:2"),
    ("bert", "prefix:4"),
    ("bert", "document:5,8"),
    ("bert", "native & blocking:4>2"),
    ("gpt2", "bidirectional"),
    ("gpt2", "native & blocking:4>2"),
    ("llama", "window:3"),
    ("mistral", "bidirectional"),
    ("mistral", "causal"),
    ("qwen3", "prefix:4"),
    ("t5", "window:3"),
    ("bart", "causal"),
]


SIDED = [(family, spec, side) for family, spec in FOREIGN for side in SIDES.get(family, ("none", "right", "left"))]


@pytest.mark.parametrize(("family", "spec", "side"), SIDED)
def test_a_foreign_mask_on_our_model_is_that_mask_on_theirs(family: str, spec: str, side: str):
    """Theirs runs through the recording backend, whose masks tests/test_foreign_masks.py holds against eager ones."""
    check(family, Mask.parse(spec), side)


@pytest.mark.parametrize("side", ["none", "right"])
@pytest.mark.parametrize(("family", "mask"), [("bert", Mask.causal()), ("gpt2", Mask.bidirectional())])
def test_a_mask_for_some_heads_of_one_layer_is_that_mask_on_theirs(family: str, mask: Mask, side: str):
    """Heads 1 and 2 of layer 1 see what they were not trained to see."""
    check(family, mask.only(layers=[1], heads=[1, 2]), side)


def test_a_foreign_mask_changes_what_our_model_reads():
    """Otherwise the agreement above would prove little."""
    native, causal = read_by_ours("bert", Mask.native(), "none"), read_by_ours("bert", Mask.causal(), "none")
    assert furthest_apart(native, causal)[0] > 100 * TOLERANCE


def check(family: str, mask: Mask, side: str) -> None:
    """Run ours and theirs under a mask, and compare everything at real tokens."""
    prompts = prompts_of(family, side)
    targets = prompts if "cross" in tiny(family).card.kinds else []
    outputs, recorded, _ = tiny(family)._forward(prompts, targets, mask)
    theirs = Read(outputs.logits, {site: held.call.weights() for site, held in recorded.items()})
    real = torch.tensor([prompt.real for prompt in prompts])
    difference, place = furthest_apart(read_by_ours(family, mask, side), theirs, real)
    assert difference <= TOLERANCE, place


def read_by_ours(family: str, mask: Mask, side: str) -> Read:
    model, prompts = ours_of(family), prompts_of(family, side)
    ids = torch.tensor([prompt.ids for prompt in prompts])
    real = torch.tensor([prompt.real for prompt in prompts])
    given = (ids, ids, real, real) if "cross" in tiny(family).card.kinds else (ids, real)
    with torch.inference_mode(), recording(mask=mask, padding={"encoder": real, "decoder": real}) as recorder:
        output = model.logits(model(*given))
    return Read(output, weights_of(recorder))


def prompts_of(family: str, side: str) -> list[Prompt]:
    """One text, or two of which the second is padded on one side."""
    prompt, lengths = tiny(family).prompt(LONG), LENGTHS[:1] if side == "none" else LENGTHS
    prompts = [replace(prompt, tokens=(prompt.tokens * 2)[:length]) for length in lengths]
    return [prompt.padded(LENGTHS[0], "left" if side == "left" else "right") for prompt in prompts]


@functools.cache
def ours_of(family: str) -> Any:
    return rebuilt(tiny(family).module)
