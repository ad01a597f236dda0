"""One training step after the other, the same ones for the same seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

WARMUP = 50  # steps
DECAYED = 0.1  # what the learning rate ends at, as a share of its highest
CLIP = 1.0


@contextmanager
def one_thread(seed: int) -> Iterator[None]:
    """Compute on one thread with random numbers that begin at `seed`, so that every run gives the same weights."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def descend(
    model: nn.Module,
    loss_of: Callable[[int], Tensor],
    steps: int,
    *,
    rate: float = 3e-3,
    decay: float = 0.01,
    warmup: int = WARMUP,
) -> Iterator[tuple[int, float]]:
    """Train a model with AdamW: the rate rises in a straight line, then falls along a cosine to a tenth.

    Args:
        model: whose weights are changed; it is in training mode meanwhile and out of it in the end.
        loss_of: the loss of the batch of one step, given the step's number from 0.
        steps: how many.
        rate: the highest learning rate.
        decay: AdamW's weight decay.
        warmup: steps until the highest rate.

    Yields:
        After each step its number, from 1, and its loss.
    """
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay, betas=(0.9, 0.98), fused=True)
    model.train()
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * share_of_rate(step, steps, warmup)
        loss = loss_of(step)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        yield step + 1, float(loss.detach())
    model.eval()


def share_of_rate(step: int, steps: int, warmup: int = WARMUP) -> float:
    """Say which share of the highest learning rate a step gets, 0 to 1."""
    if step < warmup:
        return (step + 1) / warmup
    through = (step - warmup) / max(1, steps - warmup)
    return DECAYED + (1 - DECAYED) * 0.5 * (1 + math.cos(math.pi * through))
