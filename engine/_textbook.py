"""Attention as a textbook writes it, with every matrix in memory: what the fast kernels are compared with."""

from __future__ import annotations

import torch
from torch import Tensor


def spelt_out(
    q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, causal: bool = False, scale: float | None = None
) -> Tensor:
    """Attend step by step: scores, a mask, a softmax, a product.

    Args:
        q: queries, (B, H, T, D).
        k: keys, (B, G, S, D).
        v: values, (B, G, S, E).
        mask: booleans, True for visible, or numbers to add to the scores, broadcastable to (B, H, T, S).
        causal: whether a query sees no later key.
        scale: multiplies the dot products; None means 1/√D.

    Returns:
        The mixed values, (B, H, T, E).
    """
    repeats = q.shape[1] // k.shape[1]
    if repeats > 1:
        k, v = k.repeat_interleave(repeats, dim=1), v.repeat_interleave(repeats, dim=1)  # (B, H, S, D)
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)  # (B, H, T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    if causal:
        later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu_(1)  # (T, S)
        scores = scores.masked_fill(later, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
