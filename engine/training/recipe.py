"""A recipe: everything needed to train one of the models in assets/ again, and to measure it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from engine.config import Config
from engine.presets import Transformer, build
from engine.trained import FOLDER, Head, TrainedCard, write
from engine.training.loop import one_thread

Say = Callable[[str], None]


class Train(Protocol):
    """What changes the weights of a model, batch by batch."""

    def __call__(self, model: Transformer, seed: int, say: Say) -> None:
        """Train a model in place.

        Args:
            model: with the random weights of `seed`.
            seed: decides the batches.
            say: told how it goes, a line at a time.
        """


@dataclass(frozen=True)
class Measured:
    """What was found out about a trained model: its scores on a test split, and the heads that follow a relation."""

    scores: Mapping[str, Any]
    heads: Mapping[str, Head]


@dataclass(frozen=True)
class Recipe:
    """How one model is made; texts as in TrainedCard.

    Attributes:
        make: its class.
        train: changes its weights; runs on one thread, on random numbers that begin at the seed.
        measure: its scores on what it has never seen.
    """

    id: str
    name: str
    make: Callable[[Config], Transformer]
    config: Config
    data: str
    objective: str
    taught: str
    untaught: str
    steps: int
    train: Train
    measure: Callable[[Transformer], Measured]
    words: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    seed: int = 0

    def trained(self, seed: int | None = None, say: Say = lambda line: None) -> Transformer:
        """Train the model from its random weights on; the same seed gives the same model."""
        chosen = self.seed if seed is None else seed
        with one_thread(chosen):
            model = build(self.make, self.config, seed=chosen)
            self.train(model, chosen, say)
        return model.eval()

    def write(self, model: Transformer, measured: Measured, folder: Path = FOLDER) -> None:
        """Write a trained model and its card."""
        card = TrainedCard(
            id=self.id,
            name=self.name,
            make=type(model).__name__,
            config=self.config,
            data=self.data,
            objective=self.objective,
            taught=self.taught,
            untaught=self.untaught,
            seed=self.seed,
            steps=self.steps,
            versions={"torch": torch.__version__, "python": platform.python_version()},
            scores=measured.scores,
            heads=measured.heads,
            words=self.words,
            labels=self.labels,
        )
        write(model, card, folder)
