"""Faults made on purpose: the comparison with transformers' own models has to notice each of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from engine.rotary import Rotary, Scaling
from engine.weights import rebuilt
from tests.rebuilt_models import TOLERANCE, furthest_apart, pair, read_by_both, texts_of


def swap_queries_and_keys(model: Any) -> None:
    attention = model.stack.blocks[1].attention
    attention.q, attention.k = attention.k, attention.q


def swap_two_heads(model: Any) -> None:
    """Output and all, so that only the maps of attention give it away."""
    attention = model.stack.blocks[1].attention
    order = torch.tensor([1, 0, 2, 3])
    for part in (attention.q, attention.k, attention.v):
        part.weight.data = part.weight.data.unflatten(0, (4, -1))[order].flatten(0, 1)
        part.bias.data = part.bias.data.unflatten(0, (4, -1))[order].flatten(0, 1)
    attention.out.weight.data = attention.out.weight.data.unflatten(1, (4, -1))[:, order].flatten(1, 2)


def drop_the_final_norm(model: Any) -> None:
    model.stack.final_norm = nn.Identity()


def forget_the_head_scale(model: Any) -> None:
    model.head.scale = 1.0


def turn_other_pairs(model: Any) -> None:
    model.stack.positions.layout = "interleaved"


def forget_the_scaling(model: Any) -> None:
    rotary = model.stack.positions
    model.stack.positions = Rotary(rotary.width, rotary.base)


def forget_the_sharpening(model: Any) -> None:
    scaling: Scaling = model.stack.positions.scaling
    model.stack.positions.scaling = replace(scaling, attention=1.0)  # type: ignore[call-arg]


def open_the_window(model: Any) -> None:
    model.stack.window = None


def widen_the_window_by_one(model: Any) -> None:
    model.stack.window += 1


def forget_the_norm_of_keys(model: Any) -> None:
    model.stack.blocks[0].attention.k_norm = nn.Identity()


def norm_before(model: Any) -> None:
    model.stack.blocks[1].norm_place = "pre"


def bend_exactly(model: Any) -> None:
    model.stack.blocks[0].feed_forward.bend = nn.functional.gelu


def move_epsilon(model: Any) -> None:
    model.stack.embedding_norm.epsilon = 1e-12


def mix_up_shared_keys(model: Any) -> None:
    """Query head h takes the keys of head h mod G instead of h // (H / G)."""
    keys = model.stack.blocks[0].attention.k.weight
    keys.data = keys.data.unflatten(0, (2, -1)).flip(0).flatten(0, 1)


def use_the_reserved_rows(model: Any) -> None:
    model.decoder.reserved = 0


def look_both_ways(model: Any) -> None:
    model.decoder.positions.both_ways = True


def divide_by_the_root_of_the_width(model: Any) -> None:
    model.decoder.blocks[0].cross.scale = None


def let_the_decoder_see_the_future(model: Any) -> None:
    model.decoder.causal = False


FAULTS: list[tuple[str, Callable[[Any], None]]] = [
    ("bert", swap_queries_and_keys),
    ("bert without pooler", swap_two_heads),
    ("bert", norm_before),
    ("bert, other bends", move_epsilon),
    ("gpt2", drop_the_final_norm),
    ("gpt2", swap_queries_and_keys),
    ("gpt2", bend_exactly),
    ("llama, 2 of 8 heads", turn_other_pairs),
    ("llama, 2 of 8 heads", mix_up_shared_keys),
    ("llama, linear", forget_the_scaling),
    ("llama, dynamic", forget_the_scaling),
    ("llama, yarn", forget_the_scaling),
    ("llama, yarn", forget_the_sharpening),
    ("llama, llama 3", forget_the_scaling),
    ("mistral, a window of 4", open_the_window),
    ("mistral, a window of 4", widen_the_window_by_one),
    ("qwen3", forget_the_norm_of_keys),
    ("t5", forget_the_head_scale),
    ("t5", look_both_ways),
    ("t5", divide_by_the_root_of_the_width),
    ("t5", let_the_decoder_see_the_future),
    ("bart", use_the_reserved_rows),
]


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_a_model_with_a_fault_is_told_from_transformers(name: str, fault: Callable[[Any], None]):
    """By ten times what is let pass at least, most by a thousand; otherwise the agreement would prove little."""
    model = rebuilt(pair(name)[0])
    with torch.no_grad():
        fault(model)
    difference, _ = furthest_apart(*read_by_both(name, texts_of(name), model=model))
    assert difference > 10 * TOLERANCE
