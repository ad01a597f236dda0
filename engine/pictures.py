"""Pictures of our own: one coloured shape among dots and lines, drawn from numbers, the same ones for the same seed.

Every dot and line has a colour of its own from the same palette as the shape, so that neither the colour nor the number
of them says anything about it: whoever wants to name the shape and its colour has to find it.

Dimensions: B pictures, M dots and lines, P patches, row by row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.errors import ShapeError

SIDE, PATCH = 40, 5  # pixels
ACROSS = SIDE // PATCH  # patches in a row

SHAPES = ("circle", "square", "triangle", "cross", "ring")
COLOURS: dict[str, tuple[float, float, float]] = {
    "red": (0.86, 0.16, 0.18),
    "orange": (0.95, 0.52, 0.08),
    "yellow": (0.92, 0.82, 0.16),
    "green": (0.20, 0.62, 0.28),
    "blue": (0.16, 0.38, 0.82),
    "purple": (0.55, 0.24, 0.70),
}
"""The palette: red, green and blue, each from 0 to 1."""
MOST_DISTRACTORS = 10

SPLITS = ("training", "development", "test", "shown")
SEEDS = 2**30  # seeds of one split; PyTorch's generator tells 2**32 apart, so each of the four has its own

_RADIUS = (4.6, 6.8)  # pixels, of the shape
_TURN = 0.25  # radians, either way
_GROUND = (0.80, 0.97)  # grey, from 0 to 1
_NOISE = 0.04  # standard deviation of every pixel's colours
_SHADE = 0.05  # the most that a colour is lighter or darker than the palette has it
_DOT, _LINE, _LENGTH = (1.0, 1.8), (0.6, 0.9), (5.0, 11.0)  # pixels: radius of a dot; half a line's width; its length


@dataclass(frozen=True)
class Pictures:
    """Drawn pictures and what is on them.

    Attributes:
        images: red, green and blue of every pixel, each from 0 to 1, (B, 3, SIDE, SIDE).
        shapes: which of SHAPES, (B,).
        colours: which of COLOURS, in their order, (B,).
        distractors: how many dots and lines, (B,).
        objects: True for the patches that the shape reaches into, by a pixel that is mostly the shape's, (B, P).
    """

    images: Tensor
    shapes: Tensor
    colours: Tensor
    distractors: Tensor
    objects: Tensor

    def __len__(self) -> int:
        return len(self.images)

    def part(self, chosen: Tensor) -> Pictures:
        """Take some of the pictures, by number."""
        return Pictures(*(getattr(self, field.name)[chosen] for field in fields(self)))


def pictures(
    count: int,
    seed: int,
    split: str = "shown",
    *,
    shape: int | None = None,
    colour: int | None = None,
    distractors: int | None = None,
) -> Pictures:
    """Draw pictures; what is asked for changes nothing else of a seed's pictures.

    Args:
        count: B, how many.
        seed: decides everything that is not asked for; 0 at least.
        split: one of SPLITS, whose pictures never come from the same random numbers.
        shape, colour: which of SHAPES and COLOURS, by number; None for any.
        distractors: how many dots and lines, up to MOST_DISTRACTORS; None for any number of them.

    Raises:
        ShapeError: there is no such shape, colour, split or seed, or too many dots and lines.
    """
    _checked("count", count, 1, 100_000)
    _checked("shape", shape, 0, len(SHAPES) - 1)
    _checked("colour", colour, 0, len(COLOURS) - 1)
    _checked("distractors", distractors, 0, MOST_DISTRACTORS)
    draws = _Draws(count, seed, split)
    asked = (draws.whole(len(SHAPES), shape), draws.whole(len(COLOURS), colour))
    number = draws.whole(MOST_DISTRACTORS + 1, distractors)  # (B,)
    ground = draws.even(*_GROUND).view(-1, 1, 1, 1).expand(-1, 3, SIDE, SIDE)
    image = _with_distractors(ground, number, draws)
    cover = _cover(_distance(asked[0], draws))  # (B, SIDE, SIDE)
    image = _painted(image, cover, draws.shades(asked[1]))
    image = (image + _NOISE * draws.normal(3, SIDE, SIDE)).clamp(0, 1)
    objects = F.max_pool2d(cover[:, None], PATCH).flatten(1) > 0.5  # (B, P)
    return Pictures(image, *asked, number, objects)


class _Draws:
    """Random numbers, always drawn in the same order, whatever is asked for."""

    def __init__(self, count: int, seed: int, split: str) -> None:
        if split not in SPLITS:
            raise ShapeError(f"Pictures are for {', '.join(SPLITS)}, not for {split!r}.")
        _checked("seed", seed, 0, SEEDS - 1)
        self.count = count
        self.generator = torch.Generator().manual_seed(SPLITS.index(split) * SEEDS + seed)

    def even(self, low: float, high: float, *shape: int) -> Tensor:
        """Draw numbers evenly between two ends, (B, ...)."""
        return low + (high - low) * torch.rand(self.count, *shape, generator=self.generator)

    def normal(self, *shape: int) -> Tensor:
        """Draw from the normal distribution, (B, ...)."""
        return torch.randn(self.count, *shape, generator=self.generator)

    def whole(self, below: int, asked: int | None = None) -> Tensor:
        """Draw whole numbers from 0, (B,), or give the one that is asked for."""
        drawn = torch.randint(below, (self.count,), generator=self.generator)
        return drawn if asked is None else torch.full_like(drawn, asked)

    def shades(self, colours: Tensor) -> Tensor:
        """Give each of the palette's colours, (B,), a shade of its own, (B, 3)."""
        palette = torch.tensor(list(COLOURS.values()))
        return palette[colours] + self.even(-_SHADE, _SHADE, 1)


def _checked(name: str, number: int | None, least: int, most: int) -> None:
    if number is not None and not least <= number <= most:
        raise ShapeError(f"{name} is {number}; it must be a whole number from {least} to {most:,}.")


def _with_distractors(image: Tensor, number: Tensor, draws: _Draws) -> Tensor:
    """Paint M = MOST_DISTRACTORS dots and lines, of which each picture shows its number."""
    for index in range(MOST_DISTRACTORS):
        dots = draws.even(0, 1) < 0.5  # (B,)
        start, angle = draws.even(1, SIDE - 1, 2), draws.even(0, 2 * math.pi)
        length = torch.where(dots, 0.0, draws.even(*_LENGTH))
        width = torch.where(dots, draws.even(*_DOT), draws.even(*_LINE))
        cover = _cover(_to_line(start, angle, length) - width[:, None, None])
        shown = (index < number)[:, None, None]
        image = _painted(image, cover * shown, draws.shades(draws.whole(len(COLOURS))))
    return image


def _painted(image: Tensor, cover: Tensor, colours: Tensor) -> Tensor:
    """Lay colours (B, 3) over images (B, 3, SIDE, SIDE), as far as each pixel is covered, (B, SIDE, SIDE)."""
    return torch.lerp(image, colours[:, :, None, None].expand_as(image), cover[:, None].expand_as(image))


def _cover(distance: Tensor) -> Tensor:
    """Say how much of each pixel lies within an edge, from the signed distance to it in pixels."""
    return (0.5 - distance).clamp(0, 1)


def _from(centres: Tensor, turns: Tensor) -> tuple[Tensor, Tensor]:
    """Give every pixel's place beside centres (B, 2), turned by angles (B,): across and down, (B, SIDE, SIDE)."""
    at = torch.arange(SIDE) + 0.5
    x, y = at - centres[:, :1], at - centres[:, 1:]  # (B, SIDE)
    across, down = x[:, None, :], y[:, :, None]
    cos, sin = turns.cos()[:, None, None], turns.sin()[:, None, None]
    return cos * across + sin * down, cos * down - sin * across


def _to_line(start: Tensor, angle: Tensor, length: Tensor) -> Tensor:
    """Measure every pixel's distance to a line from its start, in pixels, (B, SIDE, SIDE)."""
    along, beside = _from(start, angle)
    beyond = along - along.clamp(min=0).minimum(length[:, None, None])
    return torch.hypot(beyond, beside)


def _distance(shapes: Tensor, draws: _Draws) -> Tensor:
    """Measure every pixel's signed distance to the edge of a shape somewhere, negative inside, (B, SIDE, SIDE)."""
    radius, turns = draws.even(*_RADIUS), draws.even(-_TURN, _TURN)
    room = radius[:, None] + 1
    centres = room + (SIDE - 2 * room) * draws.even(0, 1, 2)
    x, y = _from(centres, turns)
    result = torch.empty_like(x)
    for index, edge in enumerate((_circle, _square, _triangle, _cross, _ring)):
        chosen = (shapes == index).nonzero().squeeze(1)
        result[chosen] = edge(x[chosen], y[chosen], radius[chosen, None, None])
    return result


def _circle(x: Tensor, y: Tensor, radius: Tensor) -> Tensor:
    return torch.hypot(x, y) - 0.95 * radius


def _square(x: Tensor, y: Tensor, radius: Tensor) -> Tensor:
    return torch.maximum(x.abs(), y.abs()) - 0.82 * radius


def _triangle(x: Tensor, y: Tensor, radius: Tensor) -> Tensor:
    """Equilateral, one corner up: inside all three of its edges."""
    y = y - 0.15 * radius
    slanted = math.cos(math.pi / 6) * x.abs() - 0.5 * y
    return torch.maximum(slanted, y) - 0.6 * radius


def _cross(x: Tensor, y: Tensor, radius: Tensor) -> Tensor:
    long, short = x.abs().maximum(y.abs()), x.abs().minimum(y.abs())
    return torch.maximum(long - radius, short - 0.34 * radius)


def _ring(x: Tensor, y: Tensor, radius: Tensor) -> Tensor:
    return (torch.hypot(x, y) - 0.70 * radius).abs() - 0.26 * radius
