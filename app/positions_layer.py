"""The small layer of attention that every encoding is tried on: drawn, never trained.

Dimensions: H heads, T words.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from app.view import View
from app.view_positions import PositionsChoices
from engine.order import ScoreParts, SmallAttention, drawn, noticed, parts_of, shifted
from engine.positions import ALiBi, Learned, Positions, RelativeBuckets, Sinusoidal
from engine.rotary import Rotary
from engine.tokens import Prompt

WIDTH, HEADS = 64, 4
LENGTH = 512  # rows of the learned table
LATER = 5  # words, by which the sentence is moved
ROUNDING = 1e-9  # the layer computes to fifteen digits


def positions_of(name: str, both_ways: bool = True) -> Positions:
    """Make the positions of the small layer; tables are drawn at random."""
    made: dict[str, Positions] = {
        "sinusoidal": Sinusoidal(WIDTH),
        "learned": Learned(LENGTH, WIDTH),
        "rotary": Rotary(WIDTH // HEADS),
        "alibi": ALiBi(HEADS),
        "relative": RelativeBuckets(HEADS, both_ways=both_ways),
        "none": Positions(),
    }
    return drawn(made[name])


def layer_of(name: str, view: PositionsChoices) -> SmallAttention:
    """Make the small layer with these positions, under the mask that is picked."""
    return SmallAttention(WIDTH, HEADS, positions_of(name, view.both_ways), view.past_only)


def ids_of(prompt: Prompt) -> torch.Tensor:
    """Give the words' numbers, (T,)."""
    return torch.tensor(prompt.ids)


def parts(view: PositionsChoices, prompt: Prompt) -> ScoreParts:
    """Take the scores of the sentence apart, with the encoding that is picked."""
    return parts_of(layer_of(view.positions, view), ids_of(prompt))


def order_of(count: int, seed: int) -> torch.Tensor:
    """Draw an order for words, never the one they have unless there is only one word, (T,)."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return order.roll(1) if order.equal(torch.arange(count)) else order


@dataclass(frozen=True)
class Noticed:
    """What one encoding makes of another order and of another place.

    Attributes:
        shuffled: by how much the outputs change when the words are shuffled, relative to the longest output.
        moved: the same where the sentence stands some words later.
    """

    shuffled: float
    moved: float


def noticed_by(name: str, view: View, prompt: Prompt) -> Noticed:
    """Shuffle the sentence, and move it, and measure what changes."""
    layer, ids = layer_of(name, view), ids_of(prompt)
    order = order_of(len(ids), view.shuffle)
    return Noticed(float(noticed(layer, ids, order).max()), float(shifted(layer, ids, LATER).max()))
