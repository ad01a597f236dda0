"""Predictions: what a model with a head on top would put where, and how sure it is of it.

    reads both ways (BERT)                  position t speaks of token t itself: hide it as [MASK] to ask for it
    reads left to right (GPT)               position t speaks of token t + 1, which it has not seen
    writes beside an encoder (T5)           position t of the target speaks of the target's token t + 1
    classifier                              one answer for the whole text

Dimensions: T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.errors import ModelError, ShapeError
from engine.presets import Transformer
from engine.tokens import Token
from engine.transformer import Encoder, TextClassifier, VisionTransformer


@dataclass(frozen=True)
class Guess:
    """One token or label that a model thinks of, with its probability from 0 to 1."""

    text: str
    id: int
    probability: float


@dataclass(frozen=True, repr=False, eq=False)
class Prediction:
    """What a model thinks of every place in a text.

    Attributes:
        tokens: those of the text; of the target, where there is one.
        probabilities: of every token of the vocabulary at every position, (T, V), or of every label, (classes,);
            float32 on the CPU, each row sums to 1.
        ahead: how many tokens after its own position a position speaks of: 1 for a model that writes on, else 0.
        text_of: what a reader sees of a token or label, given its id.
    """

    tokens: tuple[Token, ...]
    probabilities: Tensor
    ahead: int
    text_of: Callable[[int], str]

    def __repr__(self) -> str:
        what = "labels" if self.is_of_the_whole else "tokens at each position"
        return f"Prediction({len(self.tokens)} tokens, {self.probabilities.shape[-1]:,} {what})"

    @property
    def is_of_the_whole(self) -> bool:
        """Whether it is one answer for the whole text, as a classifier gives it."""
        return self.probabilities.dim() == 1

    def at(self, position: int | None = None, top: int = 5) -> tuple[Guess, ...]:
        """List the likeliest tokens or labels, the likeliest first.

        Args:
            position: counted from 0; None for a classifier, which speaks of the whole text.
            top: how many at most.

        Raises:
            ShapeError: there is no such position, or fewer than one guess is asked for.
        """
        if top < 1:
            raise ShapeError(f"{top} guesses cannot be listed; ask for one at least.")
        row = self._row(position)
        best = row.topk(min(top, len(row)))
        found = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return tuple(Guess(self.text_of(id), id, probability) for id, probability in found)

    def of(self, position: int | None, id: int) -> float:
        """Give the probability of one token or label, from 0 to 1; positions as for `at`.

        Raises:
            ShapeError: there is no such position or id.
        """
        row = self._row(position)
        if not 0 <= id < len(row):
            raise ShapeError(f"There is no id {id} to predict: ids count from 0 to {len(row) - 1:,}.")
        return float(row[id])

    def _row(self, position: int | None) -> Tensor:
        if self.is_of_the_whole:
            if position is not None:
                raise ShapeError(f"A classifier speaks of the whole text, so there is no position {position}.")
            return self.probabilities
        if position is None or not 0 <= position < len(self.probabilities):
            last = len(self.probabilities) - 1
            raise ShapeError(f"Position {position} does not exist: positions count from 0 to {last}.")
        return self.probabilities[position]


def check_predicts(module: Transformer, name: str) -> None:
    """Make sure that a model has something on top that turns its vectors into an answer.

    Raises:
        ModelError: it has not.
    """
    if not isinstance(module, TextClassifier | VisionTransformer) and module.config.head == "none":
        raise ModelError(f"{name} has no head on top that predicts words, so it has no answer to show.")


def speaks_ahead(module: Transformer) -> int:
    """Say how many tokens after its own position a position speaks of: 1 where a model writes on, else 0."""
    return 0 if isinstance(module, Encoder | TextClassifier | VisionTransformer) else 1


@torch.no_grad()
def probabilities(module: Transformer, vectors: Tensor, padding: Tensor | None) -> Tensor:
    """Turn a model's last vectors into probabilities.

    Args:
        module: a model with a head on top.
        vectors: one per token, (1, T, C).
        padding: True for real tokens, (1, T); None where all are real. A classifier leaves the others out of its mean.

    Returns:
        (T, V), or (classes,) of a classifier; float32 on the CPU.
    """
    scores = module.logits(vectors, padding) if isinstance(module, TextClassifier) else module.logits(vectors)
    return scores[0].float().softmax(dim=-1).cpu()
