"""Induction: going on with a sequence that repeats itself, by looking at what came after the same symbol last time.

    K R D A M W   K R D A M W   K R D …

At the second *D* a model that has found out how looks at the *A* that came right after the first *D*, and says A. A
head that does so is an induction head (Olsson et al. 2022, 2209.11895). It takes two layers: in the first a head looks
one symbol back, so that the place of A also knows "I came right after a D"; in the second a head looks for the place
that knows so.

Dimensions: B sequences, L layers, H heads, T queries, S keys (S = T), D head width, C model width, V symbols.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.attention import attend
from engine.errors import ShapeError
from engine.masks import Visibility
from engine.positions import Positions
from engine.rotary import Rotary
from engine.sites import Site

Order = Literal["learned", "rotary", "none"]
ORDERS: tuple[Order, ...] = get_args(Order)

SYMBOLS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
PERIODS = (6, 16)  # the shortest and the longest
LENGTH = 48  # symbols in a sequence: three of the longest periods
WIDTH = 32
ROTARY_BASE = 100.0  # a sequence is short: with the usual 10,000 most pairs would hardly turn


def repeated(
    count: int, generator: torch.Generator, *, period: int | None = None, length: int = LENGTH
) -> tuple[Tensor, Tensor]:
    """Make sequences that repeat themselves; within a period no symbol comes twice.

    Args:
        count: B.
        generator: decides the symbols and the periods.
        period: of all of them; None draws one from 6 to 16 for each.
        length: T.

    Returns:
        Symbols, (B, T), and the period of each sequence, (B, 1).

    Raises:
        ShapeError: a period has no symbols, or more than there are.
    """
    if period is not None and not 0 < period <= len(SYMBOLS):
        raise ShapeError(f"A period of {period} does not fit: with {len(SYMBOLS)} symbols it is 1 to {len(SYMBOLS)}.")
    order = torch.rand(count, len(SYMBOLS), generator=generator).argsort(dim=1)  # (B, V)
    if period is None:
        periods = torch.randint(PERIODS[0], PERIODS[1] + 1, (count, 1), generator=generator)
    else:
        periods = torch.full((count, 1), period)
    return order.gather(1, torch.arange(length)[None] % periods), periods


def after_equal(ids: Tensor) -> Tensor:
    """Find the symbols that came right after an earlier copy of the query's.

    Args:
        ids: symbols, (B, T).

    Returns:
        True where s ≤ t and symbol s - 1 equals symbol t, (B, T, S).
    """
    equal = (ids[:, :, None] == ids[:, None, :]).tril(-1)  # (B, T, S): an earlier equal symbol
    return F.pad(equal[:, :, :-1], (1, 0))


def induction_score(weights: Tensor, ids: Tensor, periods: Tensor) -> Tensor:
    """Measure how much of its attention a head gives to symbols that came right after an earlier copy of the query's.

    Args:
        weights: attention, (B, H, T, S), rows summing to 1.
        ids: symbols, (B, T).
        periods: from where on symbols come again, (B, 1).

    Returns:
        The mean over all queries from the second period on, per head, 0 to 1, (H,).

    Source: Olsson et al. 2022, 2209.11895.
    """
    mass = (weights * after_equal(ids)[:, None]).sum(dim=-1)  # (B, H, T)
    later = torch.arange(ids.shape[1], device=ids.device)[None] >= periods  # (B, T)
    return (mass * later[:, None]).sum(dim=(0, 2)) / later.sum()


def previous_score(weights: Tensor, periods: Tensor) -> Tensor:
    """Measure how much of its attention a head gives to the symbol just before, where that is of use.

    From the second period on, an induction head looks at the places 1 to p, p being the period: these have to know what
    stood before them. Later ones need not, and often a model doesn't care for them.

    Args:
        weights: attention, (B, H, T, S), T above every period.
        periods: of each sequence, (B, 1).

    Returns:
        The mean over the queries 1 to p, per head, 0 to 1, (H,).
    """
    back = weights.diagonal(offset=-1, dim1=-2, dim2=-1)  # (B, H, T - 1), from query 1 on
    useful = torch.arange(back.shape[-1], device=weights.device)[None] < periods  # (B, T - 1)
    return (back * useful[:, None]).sum(dim=(0, 2)) / useful.sum()


def even_weights(count: int, length: int) -> Tensor:
    """Give the attention of a head that tells nothing apart: row t spreads evenly over its t + 1 symbols.

    Returns:
        (B, 1, T, S).
    """
    rows = torch.ones(length, length).tril()
    return (rows / rows.sum(dim=-1, keepdim=True)).expand(count, 1, length, length)


class CopyLayer(nn.Module):
    """Attention alone, added to what was there: no feed-forward layer, no biases, a norm without parameters."""

    def __init__(self, layer: int, heads: int, order: Order) -> None:
        super().__init__()
        width = 2 * (WIDTH // (2 * heads))  # D, even for rotary positions
        self.q, self.k, self.v = (nn.Linear(WIDTH, heads * width, bias=False) for _ in range(3))
        self.out = nn.Linear(heads * width, WIDTH, bias=False)
        self.positions = Rotary(width, ROTARY_BASE) if order == "rotary" else Positions()
        self.width, self.site = width, Site("decoder", layer)

    def forward(self, x: Tensor, places: Tensor | None) -> Tensor:
        """Let every symbol gather from those before it.

        Args:
            x: one vector per symbol, (B, T, C).
            places: one vector per position, which queries and keys see and values do not, (T, C); None for none.

        Returns:
            (B, T, C).
        """
        normed = F.layer_norm(x, x.shape[-1:])
        placed = normed if places is None else normed + places
        numbers = torch.arange(x.shape[1], device=x.device)[None]  # (1, T)
        q, k = (self.positions.turn(self._heads(part(placed)), numbers) for part in (self.q, self.k))  # (B, H, T, D)
        mixed = attend(self.site, q, k, self._heads(self.v(normed)), mask=Visibility(causal=True))  # (B, H, T, D)
        return x + self.out(mixed.transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.width)).transpose(1, 2)  # (B, T, H·D) to (B, H, T, D)


class CopyModel(nn.Module):
    """A transformer reduced to what copying needs: embeddings, layers of attention, and a score for every symbol.

    Args:
        depth: L, 1 to 3.
        heads: H in each layer, 1 to 4.
        order: how word order enters: a learned vector per position, rotary positions, or not at all.
        seed: decides its random weights.

    Raises:
        ShapeError: there is no such model.
    """

    def __init__(self, depth: int = 2, heads: int = 1, order: Order = "learned", seed: int = 0) -> None:
        super().__init__()
        if not 1 <= depth <= 3 or not 1 <= heads <= 4:
            raise ShapeError(f"{depth} layers of {heads} heads: here a model has 1 to 3 layers of 1 to 4 heads.")
        if order not in ORDERS:
            raise ShapeError(f"There are no {order!r} positions here: they are {', '.join(ORDERS)}.")
        self.symbols = nn.Embedding(len(SYMBOLS), WIDTH)
        self.places = nn.Parameter(torch.empty(LENGTH, WIDTH)) if order == "learned" else None
        self.layers = nn.ModuleList(CopyLayer(layer, heads, order) for layer in range(depth))
        self.scores = nn.Linear(WIDTH, len(SYMBOLS), bias=False)
        self._begin(seed)

    @torch.no_grad()
    def _begin(self, seed: int) -> None:
        """Draw all weights, from random numbers that nobody else draws from: vectors are normal, matrices even."""
        generator = torch.Generator().manual_seed(seed)
        for name, weight in self.named_parameters():
            if name in ("symbols.weight", "places"):
                weight.normal_(generator=generator)
            else:
                reach = weight.shape[1] ** -0.5
                weight.uniform_(-reach, reach, generator=generator)

    def forward(self, ids: Tensor) -> Tensor:
        """Score every symbol as the next one, (B, T) to (B, T, V)."""
        x = self.symbols(ids)  # (B, T, C)
        places = None if self.places is None else self.places[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, places)
        return self.scores(F.layer_norm(x, x.shape[-1:]))


def copying_loss(scores: Tensor, ids: Tensor, periods: Tensor) -> Tensor:
    """Measure how surprising the next symbols are, in nats, where the past decides them.

    Args:
        scores: for every symbol as the next one, (B, T, V).
        ids: symbols, (B, T).
        periods: of each sequence, (B, 1).

    Returns:
        The mean of −ln p(next symbol) over all queries of the second period and later, a scalar.
    """
    surprise = F.cross_entropy(scores[:, :-1].mT, ids[:, 1:], reduction="none")  # (B, T - 1)
    decided = torch.arange(ids.shape[1] - 1, device=ids.device)[None] >= periods
    return (surprise * decided).sum() / decided.sum()
