"""What a page of training needs to know about the task that is learned: its models, pictures and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import plotly.graph_objects as go

from app.charts_inputs import Bools
from app.view import View
from engine.training.history import Point
from engine.training.task import Setting

RATE_HELP = "How far each step goes. A change counts when you press Start, or go on from a step."


@dataclass(frozen=True)
class Course:
    """One model's way so far, up to the step that is looked at.

    Attributes:
        setting: what the model is.
        place: which of a point's losses and scores are its own.
        points: everything that was measured, also after that step.
        at: the step that is looked at.
        last: the step that the training ends at.
        moves: whether it is running: then nothing marks the step.
    """

    setting: Any
    place: int
    points: Sequence[Point]
    at: int
    last: int
    moves: bool = False

    @property
    def marked(self) -> int | None:
        """The step that is marked on the curves."""
        return None if self.moves else self.at

    @property
    def steps(self) -> list[int]:
        """Where it was measured."""
        return [point.step for point in self.points]

    @property
    def losses(self) -> list[float]:
        """Its losses on what it learns from, in bits."""
        return [point.losses[self.place] for point in self.points]

    def scores(self, name: str) -> list[float]:
        """One of its scores, over all steps."""
        return [point.scores[self.place][name] for point in self.points]

    @property
    def now(self) -> Mapping[str, float]:
        """Its scores at the step that is looked at, or at the last measurement before."""
        past = [point for point in self.points if point.step <= self.at] or self.points[:1]
        return past[-1].scores[self.place]

    @property
    def loss(self) -> float:
        """Its loss at that step."""
        past = [point for point in self.points if point.step <= self.at] or self.points[:1]
        return past[-1].losses[self.place]


class Lesson(Protocol):
    """One task, as the page shows it."""

    name: str
    presets: Mapping[str, str]

    def fields(self, preset: str) -> dict[str, Any]:
        """Say what a prepared choice sets, field by field."""

    def settings(self, view: View) -> tuple[Setting, ...]:
        """Read which models are to be trained: one, or two that differ in one thing."""

    def title(self, setting: Any) -> str:
        """Name a model by what may differ."""

    def introduction(self) -> str:
        """Say what is to be learned, in markdown."""

    def more(self) -> None:
        """Draw the controls that come second."""

    def loss_figure(self, courses: Sequence[Course], place: int, dark: bool, size: int) -> go.Figure:
        """Draw the loss of one of the models; axes are the same for all."""

    def score_figure(self, courses: Sequence[Course], place: int, dark: bool, size: int) -> go.Figure:
        """Draw what one of the models' heads do; axes are the same for all."""

    def loss_words(self, course: Course) -> str:
        """Say what the loss is, in markdown."""

    def score_words(self, course: Course) -> str:
        """Say what the score is, in markdown."""

    def found_words(self, course: Course) -> str:
        """Say what the model has found out at the step that is looked at, in markdown."""

    def map_words(self, setting: Any) -> str:
        """Say what the maps show, in markdown."""

    def marked(self, setting: Any) -> Bools:
        """Say where a head should look, (T, T)."""

    def visible(self, setting: Any) -> Bools | None:
        """Say where a head may look, (T, T); None for everywhere."""

    def best(self, course: Course) -> tuple[int, int]:
        """Give the head that is drawn large where there are many: layer and head."""

    def head_name(self, course: Course, layer: int, head: int) -> str:
        """Name one head with what is known of it."""

    def explanation(self) -> None:
        """Draw what explains the whole, below the pictures."""
