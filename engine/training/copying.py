"""The task of copying, to be watched: a small model of attention alone learns to go on with repeated sequences.

Dimensions: B sequences, L layers, H heads, T queries, S keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from engine.recording import recording
from engine.training.adam import Adam
from engine.training.induction import (
    SYMBOLS,
    CopyModel,
    Order,
    copying_loss,
    even_weights,
    induction_score,
    previous_score,
    repeated,
)

BATCH = 32
TESTED = 64  # sequences that the scores are measured on; no batch draws from their random numbers
TEST_SEED = 20_220_924
SHOWN_PERIOD, SHOWN_LENGTH = 10, 30  # of the sequence that is drawn
STRIDE = 1_000_003  # apart from each other, the batches of two seeds share no step
CHANCE = math.log2(len(SYMBOLS))


@dataclass(frozen=True)
class Copying:
    """What is chosen about a model that learns to copy.

    Attributes:
        depth: L, 1 to 3 layers.
        heads: H in each, 1 to 4.
        order: how word order enters.
        rate: how far a step goes: Adam's learning rate.
        seed: decides the random weights and the batches.
        period: of all training sequences; None draws one from 6 to 16 for each. Scores are measured on drawn ones.
    """

    kind: ClassVar[str] = "copying"

    depth: int = 2
    heads: int = 1
    order: Order = "learned"
    rate: float = 1e-2
    seed: int = 0
    period: int | None = None

    @property
    def tokens(self) -> tuple[str, ...]:
        """The sequence that the maps are drawn on: three periods of ten symbols."""
        return tuple(SYMBOLS[symbol] for symbol in _shown()[0].tolist())

    def task(self) -> CopyTask:
        """Make the untrained model with its random weights.

        Raises:
            ShapeError: there is no such model.
        """
        return CopyTask(self)


class CopyTask:
    """A model that learns to copy; a Task, see engine/training/task.py."""

    def __init__(self, setting: Copying) -> None:
        self.setting = setting
        self.model = CopyModel(setting.depth, setting.heads, setting.order, setting.seed)
        self.adam = Adam(self.model)

    def step(self) -> float:
        """Learn from the batch of this step, and give its loss in bits."""
        generator = torch.Generator().manual_seed(self.setting.seed * STRIDE + self.adam.steps)
        ids, periods = repeated(BATCH, generator, period=self.setting.period)
        loss = copying_loss(self.model(ids), ids, periods)
        loss.backward()
        self.adam.step(self.setting.rate)
        return bits(loss)

    @torch.no_grad()
    def scores(self) -> dict[str, float]:
        """Measure on sequences never trained on, of drawn periods.

        Returns:
            "loss" in bits; per head "induction 1.0" and "previous 1.0" (layer and head), from 0 to 1.
        """
        ids, periods = held_out()
        with recording() as recorder:
            loss = copying_loss(self.model(ids), ids, periods)
        measured = {"loss": bits(loss)}
        for site, recorded in recorder.recorded.items():
            weights = recorded.call.weights()  # (B, H, T, S)
            for name, scores in (
                ("induction", induction_score(weights, ids, periods)),
                ("previous", previous_score(weights, periods)),
            ):
                measured |= {f"{name} {site.layer}.{head}": score for head, score in enumerate(scores.tolist())}
        return measured

    @torch.no_grad()
    def maps(self) -> Tensor:
        """Give every head's attention on the sequence that is drawn, (L, H, T, S)."""
        with recording() as recorder:
            self.model(_shown())
        return torch.stack([recorded.weights() for recorded in recorder.recorded.values()])

    def state(self) -> dict[str, Tensor]:
        """Give copies of the weights and of what Adam remembers."""
        return self.adam.state()

    def restore(self, state: Mapping[str, Tensor], steps: int) -> None:
        """Go back to what was given after so many steps."""
        self.adam.restore(state, steps)


def held_out() -> tuple[Tensor, Tensor]:
    """Give the sequences that the scores are measured on, (B, T), and their periods, (B, 1)."""
    return repeated(TESTED, torch.Generator().manual_seed(TEST_SEED))


def chance_score() -> float:
    """Give the induction score of a head that spreads its attention evenly over the past."""
    ids, periods = held_out()
    return float(induction_score(even_weights(*ids.shape), ids, periods))


def bits(loss: Tensor) -> float:
    """Turn a loss in nats into bits: log₂ instead of ln."""
    return loss.item() / math.log(2)


def _shown() -> Tensor:
    """Give the sequence that is drawn, (1, T)."""
    generator = torch.Generator().manual_seed(TEST_SEED + 1)
    return repeated(1, generator, period=SHOWN_PERIOD, length=SHOWN_LENGTH)[0]
