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


def attention_rollout(weights: Tensor) -> Tensor:
    """Follow attention down through all layers: how much of each input reaches each output (Abnar & Zuidema 2020).

    The heads of a layer are averaged, and half of what a token is made of counts as its own, since every layer adds
    what it gathers to what was there: R = (W/2 + I/2) · R of the layer below (2005.00928).

    Args:
        weights: attention probabilities of all layers, first layer first, (..., L, H, T, T); each row sums to 1.

    Returns:
        The share of every input in every output, (..., T, T); each row sums to 1.

    Raises:
        ShapeError: weights has fewer than four dimensions, no layers, or queries and keys that are not the same tokens.
    """
    if weights.dim() < 4 or weights.shape[-1] != weights.shape[-2] or 0 in weights.shape[-4:]:
        raise ShapeError(
            f"Rollout needs layers, heads, and as many keys as queries, not weights of shape {tuple(weights.shape)}."
        )
    own = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    rolled = own
    for layer in weights.mean(dim=-3).unbind(dim=-3):  # (..., T, T)
        rolled = (0.5 * layer + 0.5 * own) @ rolled
    return rolled


def attention_mass(weights: Tensor, keys: Tensor) -> Tensor:
    """Add up the weight that falls on some keys.

    Args:
        weights: attention probabilities, (..., S); each row sums to 1.
        keys: True for the keys that count, broadcastable to (..., S).

    Returns:
        A share from 0 to 1, (...).

    Raises:
        ShapeError: there are not as many keys as columns of weights.
    """
    if keys.dim() < 1 or weights.dim() < 1 or keys.shape[-1] != weights.shape[-1]:
        raise ShapeError(f"Weights of shape {tuple(weights.shape)} do not have the keys of {tuple(keys.shape)}.")
    return weights.masked_fill(~keys, 0).sum(dim=-1)
