"""What can be learned while you watch: a setting makes a task, which learns step by step and can be looked at.

Dimensions: L layers, H heads, T queries, S keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from torch import Tensor


class Task(Protocol):
    """A model that is learning, with its data; the same setting always goes the same way."""

    def step(self) -> float:
        """Learn from one batch, the one that belongs to this step, and give its loss in bits."""

    def scores(self) -> dict[str, float]:
        """Measure the model as it is now, by name."""

    def maps(self) -> Tensor:
        """Give every head's attention on one sequence that stays the same, (L, H, T, S)."""

    def state(self) -> dict[str, Tensor]:
        """Give everything that learning goes on from: copies that are not changed any more."""

    def restore(self, state: Mapping[str, Tensor], steps: int) -> None:
        """Go back to what was given after so many steps."""


class Setting(Protocol):
    """What a task is made from: a frozen dataclass of numbers and words."""

    kind: ClassVar[str]

    @property
    def tokens(self) -> tuple[str, ...]:
        """The sequence that the maps are drawn on, as T texts."""

    def task(self) -> Task:
        """Make the task, untrained."""
