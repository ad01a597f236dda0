"""What a text longer than those in training meets that training never showed, scheme by scheme.

Learned positions end. Rotary (and sinusoidal) pairs that did not come round in training reach angles never met. T5's
far distances share a bucket that training filled. ALiBi's penalty is of no new kind, it only grows.

Dimensions: H heads, D head width, D/2 pairs.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.errors import ShapeError
from engine.positions import Positions, RelativeBuckets, relative_buckets

# Frequencies are float32: angles closer than this are the same.
ROUNDING = 1e-5


def largest_angles(frequencies: Tensor, length: int) -> Tensor:
    """Say how far round each pair comes within so many positions.

    Args:
        frequencies: radians per position, (D/2,).
        length: the number of positions.

    Returns:
        Radians, (D/2,), at most 2π: a pair that has come round has met every angle.

    Raises:
        ShapeError: the length is below 1.
    """
    return (frequencies * _some(length)).clamp(max=2 * math.pi)


def unmet_pairs(frequencies: Tensor, trained: int, length: int, original: Tensor | None = None) -> Tensor:
    """Say which rotary pairs reach angles in a longer text that they never met in training.

    A pair is in danger when its wavelength is longer than the trained length: training showed it a part of its circle
    only. It leaves this part when the text grows, unless a scaling slows it down enough (Chen et al. 2023, 2306.15595;
    Peng et al. 2023, 2309.00071).

    Args:
        frequencies: radians per position in the longer text, (D/2,).
        trained: the number of positions in training.
        length: the number of positions in the longer text.
        original: radians per position in training, (D/2,); None where nothing has been scaled.

    Returns:
        True for pairs that meet new angles, (D/2,).

    Raises:
        ShapeError: a length is below 1, or the two sets of frequencies have different sizes.
    """
    original = frequencies if original is None else original
    if original.shape != frequencies.shape:
        raise ShapeError(f"{len(frequencies)} frequencies cannot be compared with {len(original)}.")
    return largest_angles(frequencies, length) > largest_angles(original, trained) * (1 + ROUNDING)


def places_beyond(positions: Positions, length: int) -> int:
    """Say how many positions of a text of this length have no numbers at all: 0 unless positions are learned."""
    return 0 if positions.limit is None else max(0, length - positions.limit)


def shared_from(positions: RelativeBuckets) -> int:
    """Say from which distance on all earlier keys share T5's last bucket, so that they look equally far."""
    distances = torch.arange(positions.furthest + 1)
    buckets = relative_buckets(-distances, positions.table.num_embeddings, positions.furthest, positions.both_ways)
    return int((buckets == buckets[-1]).int().argmax())


def largest_penalties(slopes: Tensor, length: int) -> Tensor:
    """Give each head's ALiBi bias between the two ends of a text: slopes (H,) -> -slope · (length - 1), (H,).

    Raises:
        ShapeError: the length is below 1.
    """
    return slopes * -(_some(length) - 1)


def _some(length: int) -> int:
    if length < 1:
        raise ShapeError(f"A text has one position at least, not {length}.")
    return length
