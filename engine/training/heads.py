"""How well every head of a twin follows every relation of the grammar, on sentences that it has never seen.

A head is right on a label when, of all tokens that it can see, [BOS] and signs among them, it gives the gold word the
most weight.

Dimensions: L layers, H heads, B sentences, T tokens, N labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.presets import Transformer
from engine.recording import recording
from engine.sites import Kind, Site
from engine.trained import Head
from engine.training.batches import Batch

FARTHEST = 12  # tokens, for the baseline that always looks equally far


@dataclass(frozen=True)
class Followed:
    """How well heads follow one relation.

    Attributes:
        right: the share of labels on which each head gives the gold word the most weight, (L, H).
        weight: what each head gives the gold word on average, (L, H).
        count: N, how many labels there were.
    """

    right: Tensor
    weight: Tensor
    count: int

    @property
    def best(self) -> Head:
        """The head that is right most often; the first of equals."""
        layer, head = divmod(int(self.right.argmax()), self.right.shape[1])
        return layer, head


@torch.inference_mode()
def weights_of(model: Transformer, batch: Batch, kind: Kind) -> Tensor:
    """Read sentences and give all attention weights, (L, B, H, T, T)."""
    with recording() as recorder:
        model(batch.ids, batch.real)
    layers = model.config.layers
    return torch.stack([recorder.recorded[Site(kind, layer)].call.weights() for layer in range(layers)])


def followed(weights: Tensor, labels: Tensor) -> Followed:
    """Count on how many labels each head is right.

    Args:
        weights: (L, B, H, T, T).
        labels: (N, 3): sentence, the row that attends, the gold column; one at least.
    """
    sentence, row, column = labels.unbind(1)
    rows = weights.permute(1, 3, 0, 2, 4)[sentence, row]  # (N, L, H, T)
    gold = column[:, None, None, None].expand(*rows.shape[:3], 1)
    right = rows.argmax(dim=-1, keepdim=True) == gold  # (N, L, H, 1)
    return Followed(right[..., 0].float().mean(dim=0), rows.gather(-1, gold)[..., 0].mean(dim=0), len(labels))


def preferred(weights: Tensor, rows: Tensor, ones: Tensor, others: Tensor) -> Tensor:
    """Say how often each head gives the one of two words more than the other.

    Args:
        weights: (L, B, H, T, T).
        rows: the row that attends in each sentence, (N, 2): sentence and row.
        ones, others: the columns that are compared, (N,).

    Returns:
        Shares from 0 to 1, (L, H).
    """
    found = weights.permute(1, 3, 0, 2, 4)[rows[:, 0], rows[:, 1]]  # (N, L, H, T)
    numbers = torch.arange(len(rows))
    return (found[numbers, :, :, ones] > found[numbers, :, :, others]).float().mean(dim=0)


def equally_far(development: Tensor, test: Tensor) -> tuple[int, float]:
    """The baseline of always looking equally far: the best distance on one split, and how often it is right on another.

    Args:
        development, test: labels, (N, 3).

    Returns:
        The distance in tokens, below 0 for looking back, and the share of labels on which it is right.
    """
    distances = [distance for distance in range(-FARTHEST, FARTHEST + 1) if distance]
    best = max(distances, key=lambda distance: _share(development, distance))
    return best, _share(test, best)


def _share(labels: Tensor, distance: int) -> float:
    return float((labels[:, 2] - labels[:, 1] == distance).float().mean())


def joint(parts: Sequence[Followed]) -> Followed:
    """Put together what was counted on several sets of labels."""
    count = sum(part.count for part in parts)
    right = torch.stack([part.right * part.count for part in parts]).sum(dim=0) / count
    weight = torch.stack([part.weight * part.count for part in parts]).sum(dim=0) / count
    return Followed(right, weight, count)
