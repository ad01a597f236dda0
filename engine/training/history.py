"""What is to be trained while somebody watches, and what there is to see of it: points on curves, and checkpoints.

Dimensions: L layers, H heads, T queries, S keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from safetensors.torch import load
from torch import Tensor

from engine.errors import ShapeError
from engine.training._live_worker import packed
from engine.training.task import Setting

MOST_STEPS = 6000  # of one model, all that it has gone on together
MOST_SETTINGS = 2
# Of one run: more are thinned out, so that a long one takes no more memory than a short one.
MOST_CHECKPOINTS = 80
MOST_BYTES = 24_000_000
POINTS = 100  # that a run of any length is measured at


@dataclass(frozen=True)
class Plan:
    """What is to be trained, and for how long.

    Attributes:
        settings: of one model, or of two that learn side by side.
        steps: how many to go, from the beginning or from a checkpoint.
        pace: steps in a second, so that one can watch; 0 for as fast as it goes.
        seconds: after which it ends by itself, pauses not counted.
    """

    settings: tuple[Setting, ...]
    steps: int = 400
    pace: float = 0.0
    seconds: float = 120.0

    def __post_init__(self) -> None:
        if not 1 <= len(self.settings) <= MOST_SETTINGS:
            raise ShapeError(f"{len(self.settings)} models cannot be trained at once: it is one or two.")
        if not 1 <= self.steps <= MOST_STEPS:
            raise ShapeError(f"{self.steps:,} steps cannot be watched: it is 1 to {MOST_STEPS:,}.")

    @property
    def every(self) -> int:
        """How many steps lie between two measurements."""
        return max(1, self.steps // POINTS)


@dataclass(frozen=True)
class Point:
    """What was measured after some steps: for each model its mean loss in bits since the last point, and its scores."""

    step: int
    losses: tuple[float, ...]
    scores: tuple[Mapping[str, float], ...]


@dataclass(frozen=True)
class Checkpoint:
    """What a run can be looked at and gone on from after some steps; `packed` holds all of it, as safetensors."""

    step: int
    packed: bytes

    @property
    def maps(self) -> tuple[Tensor, ...]:
        """For each model every head's attention on its sequence, (L, H, T, S)."""
        held = load(self.packed)
        return tuple(held[name] for name in sorted(held) if name.endswith("/maps"))


@dataclass(frozen=True)
class Past:
    """What was there before a run begins: it goes on from the last of the checkpoints."""

    points: tuple[Point, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()

    def until(self, step: int) -> Past:
        """Leave out what came after a step."""
        return Past(
            tuple(point for point in self.points if point.step <= step),
            tuple(checkpoint for checkpoint in self.checkpoints if checkpoint.step <= step),
        )

    @property
    def step(self) -> int:
        """The step to go on from."""
        return self.checkpoints[-1].step if self.checkpoints else 0


NOTHING = Past()


def beginning(settings: Sequence[Setting]) -> Past:
    """Look at models before their first step, without a process of its own: it takes milliseconds.

    Raises:
        ShapeError: a setting makes no model.
    """
    tasks = [setting.task() for setting in settings]
    scores = tuple(task.scores() for task in tasks)
    point = Point(0, tuple(one["loss"] for one in scores), scores)
    return Past((point,), (Checkpoint(0, packed(tasks)),))


def last_step(plan: Plan, past: Past) -> int:
    """Give the step that a plan ends at.

    Raises:
        ShapeError: that is too many.
    """
    if past.step + plan.steps > MOST_STEPS:
        raise ShapeError(
            f"After {past.step:,} steps, {plan.steps:,} more would be above {MOST_STEPS:,}, the most that are kept "
            "here: begin anew, or go on from an earlier step."
        )
    return past.step + plan.steps


def thinned(checkpoints: Sequence[Checkpoint]) -> list[Checkpoint]:
    """Leave out every other checkpoint, but neither the first nor the last, until the rest are within bounds."""
    kept = list(checkpoints)
    while len(kept) > 2 and (len(kept) > MOST_CHECKPOINTS or sum(len(one.packed) for one in kept) > MOST_BYTES):
        kept = [*kept[:-1:2], kept[-1]]
    return kept
