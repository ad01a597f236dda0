"""Rotary positions: queries and keys are turned by an angle that grows with their position.

    ⟨R(t) q, R(s) k⟩ = ⟨q, R(s - t) k⟩          (Su et al. 2021, 2104.09864)

Two turns leave only their difference, so the scores know the distance and nothing else. Each pair of numbers turns at
a speed of its own, θᵢ = base^(-2i/D): the first a radian per position, the last so slowly that a whole training never
saw it come round. That is where a longer text goes wrong, and what the scalings below mend.

Dimensions: B batch, H heads, T queries or keys, D head width, D/2 pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from engine.errors import ShapeError
from engine.positions import Positions, check_places

Layout = Literal["half", "interleaved"]


def rotary_frequencies(width: int, base: float = 10_000.0) -> Tensor:
    """Compute how fast each pair turns: θᵢ = base^(-2i/D) (Su et al. 2021, 2104.09864).

    Args:
        width: D, even.
        base: above 1; the larger, the slower the last pairs.

    Returns:
        Float32 radians per position, falling from 1, (D/2,).

    Raises:
        ShapeError: the width is odd or below 2, or the base is not above 1.
    """
    if width < 2 or width % 2:
        raise ShapeError(f"Rotary positions turn pairs, so a head's width has to be even; it is {width}.")
    if not 1 < base < math.inf:
        raise ShapeError(f"The base of rotary positions has to be above 1; it is {base}.")
    return 1.0 / base ** (torch.arange(0, width, 2, dtype=torch.float32) / width)


def wavelengths(frequencies: Tensor) -> Tensor:
    """Say after how many positions each pair has come round: 2π / θ, (D/2,)."""
    return 2 * math.pi / frequencies


def rotate(x: Tensor, angles: Tensor, layout: Layout = "half", factor: float = 1.0) -> Tensor:
    """Turn each pair of numbers of x by its angle.

    Args:
        x: queries or keys, (..., T, D).
        angles: radians, broadcastable to (..., T, D/2).
        layout: which numbers are a pair: i and i + D/2 ("half", Llama), or 2i and 2i + 1 ("interleaved", GPT-J).
        factor: multiplies cosine and sine; 1 leaves lengths as they are.

    Returns:
        The turned x in its own precision, (..., T, D).

    Raises:
        ShapeError: there is not one angle for each pair.
    """
    if 2 * angles.shape[-1] != x.shape[-1]:
        raise ShapeError(
            f"{angles.shape[-1]} angles cannot turn a width of {x.shape[-1]}: one for each pair is needed."
        )
    cos, sin = factor * angles.cos(), factor * angles.sin()
    first, second = x.chunk(2, dim=-1) if layout == "half" else (x[..., ::2], x[..., 1::2])  # (..., T, D/2) each
    turned = (first * cos - second * sin, first * sin + second * cos)
    if layout == "half":
        return torch.cat(turned, dim=-1).to(x.dtype)  # (..., T, D)
    return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)  # (..., T, D/2, 2) -> (..., T, D)


@dataclass(frozen=True)
class Scaling:
    """As trained: every pair turns at its own speed, however long the text. The others slow some pairs down."""

    name: ClassVar[str] = "as trained"
    # Whether the frequencies depend on how long the text is.
    follows_length: ClassVar[bool] = False

    @property
    def attention_factor(self) -> float:
        """What cosine and sine are multiplied with."""
        return 1.0

    def frequencies(self, width: int, base: float, length: int | None = None) -> Tensor:
        """Compute how fast each pair turns.

        Args:
            width: D, even.
            base: as in `rotary_frequencies`.
            length: T, for scalings that follow the length; None for a text no longer than those in training.

        Returns:
            Float32 radians per position, (D/2,).

        Raises:
            ShapeError: the width is odd or the base is not above 1.
        """
        return rotary_frequencies(width, base)


@dataclass(frozen=True)
class Linear(Scaling):
    """Linear interpolation: every pair turns `factor` times slower (Chen et al. 2023, 2306.15595)."""

    name = "linear interpolation"
    factor: float

    def __post_init__(self) -> None:
        _check_factor(self.factor)

    def frequencies(self, width: int, base: float, length: int | None = None) -> Tensor:
        """Divide all frequencies by the factor, (D/2,)."""
        return rotary_frequencies(width, base) / self.factor


@dataclass(frozen=True)
class NTKAware(Scaling):
    """A larger base: the slowest pair turns `factor` times slower, the fastest as before (bloc97 2023)."""

    name = "NTK-aware"
    factor: float

    def __post_init__(self) -> None:
        _check_factor(self.factor)

    def frequencies(self, width: int, base: float, length: int | None = None) -> Tensor:
        """Compute the frequencies of the base · factor^(D/(D-2)), (D/2,)."""
        if width == 2:  # one pair, which turns by a radian whatever the base
            return rotary_frequencies(width, base)
        return rotary_frequencies(width, base * self.factor ** (width / (width - 2)))


@dataclass(frozen=True)
class DynamicNTK(Scaling):
    """As NTK-aware, with a factor that grows as the text outgrows the trained length (bloc97 and emozilla 2023)."""

    name = "dynamic NTK"
    follows_length = True
    factor: float
    trained: int

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        _check_trained(self.trained)

    def frequencies(self, width: int, base: float, length: int | None = None) -> Tensor:
        """Compute the frequencies for a text of this length; up to the trained length they are as trained, (D/2,)."""
        excess = max(length or 0, self.trained) / self.trained - 1  # 0 for a text that fits, 1 for twice its length
        return NTKAware(1 + self.factor * excess).frequencies(width, base)


@dataclass(frozen=True)
class YaRN(Scaling):
    """Fast pairs stay, slow pairs are interpolated, those between are blended; scores are sharpened a little.

    Attributes:
        factor: how many times longer texts may get.
        trained: the length in training.
        fast: pairs with at least so many full turns over the trained length keep their speed.
        slow: pairs with at most so many full turns are slowed down by the whole factor.
        truncate: round the two borders outward to whole pairs.
        attention: the attention factor; None for the paper's, 0.1 · ln(factor) + 1.
        magnitude, magnitude_all: DeepSeek's `mscale` and `mscale_all_dim`: where both are given, the attention factor
            is (0.1 · magnitude · ln(factor) + 1) / (0.1 · magnitude_all · ln(factor) + 1).

    Source: Peng et al. 2023, 2309.00071.
    """

    name = "YaRN"
    factor: float
    trained: int
    fast: float = 32.0
    slow: float = 1.0
    truncate: bool = True
    attention: float | None = None
    magnitude: float | None = None
    magnitude_all: float | None = None

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        _check_trained(self.trained)
        if not 0 < self.slow <= self.fast:
            raise ShapeError(f"Fast pairs make more turns than slow ones, not {self.fast} against {self.slow}.")

    @property
    def attention_factor(self) -> float:
        """What cosine and sine are multiplied with; queries and keys both, so scores grow by its square."""
        if self.attention is not None:
            return self.attention
        if self.magnitude and self.magnitude_all:
            return self._sharpening(self.magnitude) / self._sharpening(self.magnitude_all)
        return self._sharpening(1.0)

    def frequencies(self, width: int, base: float, length: int | None = None) -> Tensor:
        """Blend each pair's own frequency with the interpolated one, (D/2,)."""
        own = rotary_frequencies(width, base)
        first, last = self._border(self.fast, width, base), self._border(self.slow, width, base)
        if self.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, width - 1)
        if first == last:
            last += 0.001  # a step instead of a ramp
        slowed = ((torch.arange(width // 2) - first) / (last - first)).clamp(0, 1)  # (D/2,), 0 as trained, 1 slowed
        return own * (1 - slowed) + own / self.factor * slowed

    def _border(self, turns: float, width: int, base: float) -> float:
        """Say which pair, in fractions of one, makes so many full turns over the trained length."""
        return width * math.log(self.trained / (2 * math.pi * turns)) / (2 * math.log(base))

    def _sharpening(self, magnitude: float) -> float:
        return 0.1 * magnitude * math.log(self.factor) + 1 if self.factor > 1 else 1.0


@dataclass(frozen=True)
class Llama3(Scaling):
    """As YaRN in spirit: pairs that came round often in training stay, those that did not are slowed down.

    Attributes:
        factor: how much the slow pairs are slowed down.
        trained: the length in training.
        low: pairs with at most so many full turns over the trained length are slowed down by the whole factor.
        high: pairs with at least so many full turns keep their speed.

    Source: Llama Team 2024, 2407.21783.
    """

    name = "Llama 3"
    factor: float
    trained: int
    low: float = 1.0
    high: float = 4.0

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        _check_trained(self.trained)
        if not 0 < self.low < self.high:
            raise ShapeError(f"The low number of turns has to be below the high one, not {self.low} and {self.high}.")

    def frequencies(self, width: int, base: float, length: int | None = None) -> Tensor:
        """Blend each pair's own frequency with the slowed one by its number of turns in training, (D/2,)."""
        own = rotary_frequencies(width, base)
        turns = self.trained / wavelengths(own)
        kept = ((turns - self.low) / (self.high - self.low)).clamp(0, 1)  # (D/2,), 0 slowed, 1 as trained
        return own * kept + own / self.factor * (1 - kept)


class Rotary(Positions):
    """Order enters at the queries and keys: both are turned by their position, and a score sees the difference.

    Args:
        width: D, the width of one head, even.
        base: the larger, the slower the last pairs.
        layout: which numbers of a head are a pair, see `rotate`.
        scaling: what is done for texts longer than those in training.

    Source: Su et al. 2021, 2104.09864.
    """

    name = "rotary"
    enters = "queries and keys"

    def __init__(
        self, width: int, base: float = 10_000.0, layout: Layout = "half", scaling: Scaling = Scaling()
    ) -> None:
        super().__init__()
        if layout not in ("half", "interleaved"):
            raise ShapeError(f'There is no rotary layout "{layout}": it is "half" or "interleaved".')
        scaling.frequencies(width, base)  # refuses what does not fit now, not at the first text
        self.width, self.base, self.layout, self.scaling = width, base, layout, scaling

    def angles(self, places: Tensor) -> Tensor:
        """Give the angles by which these places (..., T) turn each pair, in radians, (..., T, D/2)."""
        length = None
        if self.scaling.follows_length and places.numel():
            length = places.shape[-1] if places.is_meta else int(places.max()) + 1
        frequencies = self.scaling.frequencies(self.width, self.base, length)
        precise = torch.promote_types(places.dtype, torch.float32)
        return places[..., None] * frequencies.to(places.device, precise, non_blocking=True)

    def turn(self, x: Tensor, places: Tensor) -> Tensor:
        """Turn queries or keys by their places.

        Args:
            x: queries or keys, (B, H, T, D).
            places: positions, (B, T) or (1, T).

        Returns:
            The turned x in its own precision, (B, H, T, D).

        Raises:
            ShapeError: the width or the places do not fit x.
        """
        if x.shape[-1] != self.width:
            raise ShapeError(f"These rotary positions turn heads of width {self.width}, not {x.shape[-1]}.")
        check_places(x, places)
        precise = torch.promote_types(x.dtype, torch.float32)
        angles = self.angles(places.to(precise)).unsqueeze(1)  # (B, 1, T, D/2)
        return rotate(x, angles, self.layout, self.scaling.attention_factor)


def _check_factor(factor: float) -> None:
    if not 0 < factor < math.inf:
        raise ShapeError(f"A scaling needs a factor above 0, as 4 for texts four times longer; it is {factor}.")


def _check_trained(trained: int) -> None:
    if trained < 1:
        raise ShapeError(f"A scaling needs the length of the texts in training; it is {trained}.")
