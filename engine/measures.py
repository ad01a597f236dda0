"""Measures of attention: pure functions on weights.

Dimensions: T queries, S keys.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.errors import ShapeError


def attention_entropy(weights: Tensor) -> Tensor:
    """Measure how widely each query spreads its attention (Shannon 1948).

    Args:
        weights: attention probabilities, (..., T, S); each row sums to 1.

    Returns:
        Entropy in bits, (..., T): 0 for a single key, log2(S) for an even spread.

    Raises:
        ShapeError: weights has fewer than two dimensions.
    """
    if weights.dim() < 2:
        raise ShapeError(f"Entropy needs weights of queries and keys, not of shape {tuple(weights.shape)}.")
    return -torch.special.xlogy(weights, weights).sum(dim=-1) / math.log(2)
