"""Word order: how a model that mixes a set of vectors learns which came first.

Attention itself takes no notice of order: shuffle the words and each word's output is the same, in its new place.
Order can enter at three doors, and each scheme uses exactly one of them:

    x + table[t]               "input"              sinusoidal, learned
    ⟨turn(q, t), turn(k, s)⟩   "queries and keys"   rotary (engine/rotary.py)
    q·k / √D + bias[t, s]      "scores"             ALiBi, T5's relative buckets

What can be computed is computed when it is needed, so parameters and state hold learned numbers only.

Dimensions: B batch, H heads, T queries, S keys, D head width, C model width. Places are positions as whole numbers,
(B, T), or (1, T) where every sentence shares them.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from engine.errors import ShapeError

Entrance = Literal["nowhere", "input", "queries and keys", "scores"]


class Positions(nn.Module):
    """No positions at all: order enters nowhere, unless a causal mask lets it leak in.

    The base of all schemes: three doors that let everything through unchanged. Each scheme overrides one.
    """

    name: ClassVar[str] = "none"
    enters: ClassVar[Entrance] = "nowhere"

    @property
    def limit(self) -> int | None:
        """The most positions it has numbers for; None where it has no end."""
        return None

    def add(self, x: Tensor, places: Tensor) -> Tensor:
        """Add positions to the word vectors x (B, T, C) at places (B or 1, T) -> (B, T, C)."""
        return x

    def turn(self, x: Tensor, places: Tensor) -> Tensor:
        """Turn queries or keys x (B, H, T, D) by their places (B or 1, T) -> (B, H, T, D)."""
        return x

    def bias(self, queries: Tensor, keys: Tensor) -> Tensor | None:
        """Give what is added to the scores of places (B or 1, T) and (B or 1, S) -> (B or 1, H, T, S), or None."""
        return None


class Sinusoidal(Positions):
    """Order enters at the input: a fixed vector of sines and cosines is added to each word's vector.

    Args:
        width: C, the width of the word vectors.
        base: sets the slowest wave, which repeats after nearly 2π · base positions.

    Source: Vaswani et al. 2017, 1706.03762.
    """

    name = "sinusoidal"
    enters = "input"

    def __init__(self, width: int, base: float = 10_000.0) -> None:
        super().__init__()
        self.width = _at_least(1, "The width of a sinusoidal table", width)
        self.base = base

    def add(self, x: Tensor, places: Tensor) -> Tensor:
        """Add each place's waves to its word vector.

        Args:
            x: word vectors, (B, T, C).
            places: positions, (B, T) or (1, T).

        Returns:
            The sums in x's precision, (B, T, C).

        Raises:
            ShapeError: the width or the places do not fit x.
        """
        if x.shape[-1] != self.width:
            raise ShapeError(f"Positions of width {self.width} cannot be added to vectors of width {x.shape[-1]}.")
        check_places(x, places)
        precise = torch.promote_types(x.dtype, torch.float32)
        return (x + _waves(places.to(precise), self.width, self.base)).to(x.dtype)


class Learned(Positions):
    """Order enters at the input: each position has a vector of its own, learned like a word's, up to a last one.

    Args:
        length: the number of positions; there is nothing beyond the last.
        width: C, the width of the word vectors.

    Source: Gehring et al. 2017, 1705.03122; used by BERT and GPT-2.
    """

    name = "learned"
    enters = "input"

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        length, width = _at_least(1, "The number of positions", length), _at_least(1, "The width of positions", width)
        self.table = nn.Embedding(length, width)

    @property
    def limit(self) -> int | None:
        """The number of positions in the table."""
        return self.table.num_embeddings

    def add(self, x: Tensor, places: Tensor) -> Tensor:
        """Add each place's learned vector to its word vector.

        Args:
            x: word vectors, (B, T, C).
            places: positions, (B, T) or (1, T), from 0 to limit - 1.

        Returns:
            The sums in x's precision, (B, T, C).

        Raises:
            ShapeError: a place lies beyond the table, or the width or the places do not fit x.
        """
        if x.shape[-1] != self.table.embedding_dim:
            raise ShapeError(
                f"Positions of width {self.table.embedding_dim} cannot be added to vectors of width {x.shape[-1]}."
            )
        check_places(x, places)
        self._check_end(places)
        return (x + self.table(places)).to(x.dtype)

    def _check_end(self, places: Tensor) -> None:
        if places.is_meta or not places.numel():
            return
        first, last, length = int(places.min()), int(places.max()), self.table.num_embeddings
        if first < 0 or last >= length:
            wrong = first if first < 0 else last
            raise ShapeError(
                f"There is no position {wrong}: this model has learned {length} positions, 0 to {length - 1}. "
                "Shorten the text."
            )


class ALiBi(Positions):
    """Order enters at the scores: each head subtracts a fixed number per word of distance, steep heads look near.

    Args:
        heads: H, any number.

    Source: Press et al. 2022, 2108.12409.
    """

    name = "ALiBi"
    enters = "scores"

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = _at_least(1, "The number of heads", heads)

    def bias(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Give the penalties for distance: places (B or 1, T) and (B or 1, S) -> (B or 1, H, T, S), 0 or below."""
        return alibi_bias(alibi_slopes(self.heads).to(queries.device), queries, keys)


class RelativeBuckets(Positions):
    """Order enters at the scores: each head learns a number for every distance, far distances sharing one.

    Args:
        heads: H.
        buckets: how many numbers each head learns.
        furthest: from this distance on, all share the last bucket.
        both_ways: keys after the query get buckets of their own, as encoders need; without, they share bucket 0.

    Source: Raffel et al. 2020, 1910.10683 (T5).
    """

    name = "relative"
    enters = "scores"

    def __init__(self, heads: int, buckets: int = 32, furthest: int = 128, both_ways: bool = True) -> None:
        super().__init__()
        _exact_buckets(buckets, furthest, both_ways)
        self.furthest, self.both_ways = furthest, both_ways
        self.table = nn.Embedding(buckets, _at_least(1, "The number of heads", heads))

    def bias(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Look up each distance: places (B or 1, T) and (B or 1, S) -> (B or 1, H, T, S)."""
        distances = keys[:, None, :] - queries[:, :, None]  # (B, T, S)
        buckets = relative_buckets(distances, self.table.num_embeddings, self.furthest, self.both_ways)
        return self.table(buckets).permute(0, 3, 1, 2)  # (B, T, S, H) -> (B, H, T, S)


def sinusoidal_table(length: int, width: int, base: float = 10_000.0) -> Tensor:
    """Compute the vectors that sinusoidal positions add to the words (Vaswani et al. 2017, 1706.03762).

    Args:
        length: T, how many positions, from 0 on.
        width: C.
        base: sets the slowest wave.

    Returns:
        Float32 in -1 to 1, (T, C): column 2i is sin(t / base^(2i/C)), column 2i+1 its cosine. An odd width ends on a
        sine without its cosine.

    Raises:
        ShapeError: the length is below 0 or the width below 1.
    """
    places = torch.arange(_at_least(0, "The number of positions", length), dtype=torch.float32)
    return _waves(places, _at_least(1, "The width of a sinusoidal table", width), base)


def _waves(places: Tensor, width: int, base: float) -> Tensor:
    steps = torch.arange(0, width, 2, device=places.device, dtype=places.dtype)  # 2i, rounded up to whole pairs
    angles = places[..., None] / base ** (steps / width)  # (..., T, ⌈C/2⌉)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :width]  # (..., T, C)


def alibi_slopes(heads: int) -> Tensor:
    """Give each head's slope: 1/2, 1/4, … 1/256 for eight heads (Press et al. 2022, 2108.12409).

    Args:
        heads: H. Where it is no power of two, the slopes of the next lower power come first, then every other slope
            of the next higher one.

    Returns:
        Float32 between 0 and 1, (H,).

    Raises:
        ShapeError: there is no head.
    """
    power = 2 ** int(math.log2(_at_least(1, "The number of heads", heads)))
    slopes = [2.0 ** (-8 * head / power) for head in range(1, power + 1)]
    between = [2.0 ** (-4 * head / power) for head in range(1, 2 * power, 2)]
    return torch.tensor((slopes + between)[:heads])


def alibi_bias(slopes: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Compute -slope · distance, which is added to the scores as it is, not divided by √D.

    Args:
        slopes: per head, (H,).
        queries: positions, (B, T) or (1, T).
        keys: positions, (B, S) or (1, S).

    Returns:
        0 where query and key coincide, else below, (B or 1, H, T, S).
    """
    distances = (queries[:, :, None] - keys[:, None, :]).abs()  # (B, T, S)
    return slopes[:, None, None] * -distances[:, None]  # (B, H, T, S)


def relative_buckets(distances: Tensor, buckets: int = 32, furthest: int = 128, both_ways: bool = True) -> Tensor:
    """Sort distances into T5's buckets: near ones have their own, farther ones share ever wider ones.

    Args:
        distances: key position minus query position, whole numbers of any shape.
        buckets: how many buckets there are.
        furthest: from this distance on, all share the last bucket.
        both_ways: the upper half of the buckets is for keys after the query; without, those fall into bucket 0.

    Returns:
        Bucket numbers, 0 to buckets - 1, shaped like the distances.

    Raises:
        ShapeError: there are too few buckets, or the furthest distance is too near for them.

    Source: Raffel et al. 2020, 1910.10683.
    """
    exact = _exact_buckets(buckets, furthest, both_ways)
    if both_ways:
        buckets //= 2
        offset, distances = torch.where(distances > 0, buckets, 0), distances.abs()
    else:
        offset, distances = torch.zeros_like(distances), (-distances).clamp(min=0)
    # In float32 and in this order, as T5 was trained: elsewhere a distance on the edge changes its bucket.
    growth = torch.log(distances.clamp(min=exact).float() / exact) / math.log(furthest / exact)
    shared = (exact + (growth * (buckets - exact)).long()).clamp(max=buckets - 1)
    return offset + torch.where(distances < exact, distances, shared)


def _exact_buckets(buckets: int, furthest: int, both_ways: bool) -> int:
    """Say how many distances, from 0 on, have a bucket to themselves."""
    exact = (buckets // 2 if both_ways else buckets) // 2
    if exact < 1:
        raise ShapeError(f"{buckets} buckets are too few: it takes {4 if both_ways else 2} at least.")
    if furthest <= exact:
        raise ShapeError(f"The furthest distance is {furthest}, but {buckets} buckets need one above {exact}.")
    return exact


def check_places(x: Tensor, places: Tensor) -> None:
    """Make sure that there is one place for each token of x.

    Args:
        x: (B, ..., T, width).
        places: to be (B, T) or (1, T).

    Raises:
        ShapeError: they are not.
    """
    if places.dim() != 2 or places.shape[0] not in (1, x.shape[0]) or places.shape[1] != x.shape[-2]:
        raise ShapeError(
            f"Places of shape {tuple(places.shape)} do not fit {x.shape[0]} sentences of {x.shape[-2]} tokens."
        )


def _at_least(least: int, what: str, number: int) -> int:
    if number < least:
        raise ShapeError(f"{what} is {number}; it has to be {least} at least.")
    return number
