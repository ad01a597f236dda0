"""A recipe: everything needed to train one of the models in assets/ again, and to measure it.

Two models may be stations of one run, the same model after fewer and after more steps: it is made once for both.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from engine.config import Config
from engine.errors import ModelError
from engine.presets import Transformer, build
from engine.trained import FOLDER, Head, TrainedCard, write
from engine.training.loop import one_thread

Say = Callable[[str], None]


class Train(Protocol):
    """What changes the weights of a model, batch by batch."""

    def __call__(self, model: Transformer, seed: int, say: Say) -> Iterator[int]:
        """Train a model in place, a step each time the iterator is asked for one.

        Args:
            model: with the random weights of `seed`.
            seed: decides the batches.
            say: told how it goes, a line at a time.

        Yields:
            The number of the step just made, from 1.
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
        steps: after how many of its training's steps it is done.
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
        (model,) = trained((self,), seed, say)
        return model

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


def runs(recipes: Iterable[Recipe]) -> list[tuple[Recipe, ...]]:
    """Put together what is one run, stopped after different numbers of steps."""
    found: dict[object, tuple[Recipe, ...]] = {}
    for recipe in recipes:
        key = (recipe.make, recipe.config, recipe.train, recipe.seed)
        found[key] = (*found.get(key, ()), recipe)
    return list(found.values())


def trained(run: Sequence[Recipe], seed: int | None = None, say: Say = lambda line: None) -> tuple[Transformer, ...]:
    """Train the models of one run, see `runs`, from their random weights on; the same seed gives the same models.

    Raises:
        ModelError: the training ends before a model has made its steps.
    """
    first, found = run[0], dict[int, Transformer]()
    chosen = first.seed if seed is None else seed
    wanted = {recipe.steps for recipe in run}
    with one_thread(chosen):
        model = build(first.make, first.config, seed=chosen)
        for step in first.train(model, chosen, say):
            if step in wanted:
                found[step] = deepcopy(model).eval()
            if len(found) == len(wanted):
                break
    if len(found) < len(wanted):
        raise ModelError(f"The training of {first.name} ended before step {max(wanted)}.")
    return tuple(found[recipe.steps] for recipe in run)
