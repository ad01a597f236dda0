"""The choices of the page Train, put together: what is trained, for how long, and which prepared choice that is."""

from __future__ import annotations

from app.train_copying import CopyLesson
from app.train_lesson import Lesson
from app.train_pronoun import PronounLesson
from app.view import View
from engine.training.history import Plan

PACES = {"slow": 20.0, "watch": 50.0, "fast": 0.0}  # steps in a second; 0 for as fast as it goes
SECONDS = 240.0  # after which a training ends by itself, which a slow machine may need
LESSONS: dict[str, Lesson] = {"copying": CopyLesson(), "pronoun": PronounLesson()}


def lesson_of(view: View) -> Lesson:
    """Find the task that was chosen."""
    return LESSONS[view.learn]


def preset_of(view: View) -> str | None:
    """Find the prepared choice that the view is; None where it is the reader's own."""
    lesson = lesson_of(view)
    for name in lesson.presets:
        if all(getattr(view, field) == value for field, value in lesson.fields(name).items()):
            return name
    return None


def plan_of(view: View) -> Plan:
    """Read what is to be trained, and for how long."""
    return Plan(lesson_of(view).settings(view), steps=view.learn_steps, pace=PACES[view.learn_pace], seconds=SECONDS)


def is_same_model(one: Plan, other: Plan) -> bool:
    """Say whether two plans train the same models, though perhaps at another rate: one can go on with the other."""
    return [_model(setting) for setting in one.settings] == [_model(setting) for setting in other.settings]


def has_other_rate(one: Plan, other: Plan) -> bool:
    """Say whether two plans train the same models, at different rates."""
    return is_same_model(one, other) and one.settings != other.settings


def _model(setting: object) -> tuple[object, ...]:
    return (type(setting), *((name, value) for name, value in vars(setting).items() if name != "rate"))
