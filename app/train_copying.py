"""The task of copying on the page Train: its choices, its pictures and its words.

Dimensions: L layers, H heads, T symbols.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st
import torch

from app import state
from app import train_copying_words as words
from app.charts_curves import Level, Line
from app.charts_inputs import Bools
from app.charts_train import Track, learning_curves
from app.train_copying_words import best_of, heads_of, key_of
from app.train_lesson import RATE_HELP, Course
from app.view import View
from app.view_train import MOST_SEED, PERIODS, RATES
from engine.training import induction
from engine.training.copying import CHANCE, Copying
from engine.training.induction import SYMBOLS, after_equal

FIXED = 8  # symbols, the period at which it cheats
TOO_FAST, TOO_SLOW = 0.03, 0.001
LEAST_TOP = 6.5  # bits that the axis of the loss ends at, if not later
ORDERS = {"learned": "Learned", "rotary": "Rotary", "none": "None"}
HALF = 150  # pixels

_OPENING: dict[str, Any] = {
    "learn_depth": 2, "learn_heads": 1, "learn_order": "learned", "learn_rate": "0.01", "learn_period": 0,
    "learn_beside": "nothing",
}  # fmt: skip
# What each of the prepared choices sets otherwise; the seed stays as it is.
_PRESETS: dict[str, dict[str, Any]] = {
    "two": {},
    "one": {"learn_depth": 1},
    "beside": {"learn_beside": "one"},
    "fixed": {"learn_period": FIXED},
}


class CopyLesson:
    """How copying is shown; a Lesson, see app/train_lesson.py."""

    name = "Copying"
    presets: Mapping[str, str] = {
        "two": "Two layers", "one": "One layer", "beside": "Both side by side", "fixed": "Fixed period: it cheats",
    }  # fmt: skip

    def fields(self, preset: str) -> dict[str, Any]:
        """Say what a prepared choice sets, field by field."""
        return _OPENING | _PRESETS[preset]

    def settings(self, view: View) -> tuple[Copying, ...]:
        """Read which models are to be trained: one, or two that differ in one thing."""
        first = Copying(
            depth=view.learn_depth,
            heads=view.learn_heads,
            order=view.learn_order,  # type: ignore[arg-type]
            rate=float(view.learn_rate),
            seed=view.learn_seed,
            period=view.learn_period or None,
        )
        others = besides(first)
        if view.learn_beside not in others or view.learn_beside == "nothing":
            return (first,)
        return first, replace(first, **others[view.learn_beside][1])

    def title(self, setting: Copying) -> str:
        """Name a model by what may differ: "2 layers of 1 head, learned positions, rate 0.01, seed 0"."""
        layers = f"{setting.depth} layer{'s' * (setting.depth > 1)}"
        heads = f"{setting.heads} head{'s' * (setting.heads > 1)}"
        order = "no positions" if setting.order == "none" else f"{setting.order} positions"
        period = "" if setting.period is None else f", period always {setting.period}"
        return f"{layers} of {heads}, {order}, rate {setting.rate:g}, seed {setting.seed}{period}"

    def introduction(self) -> str:
        """Say what is to be learned."""
        return words.INTRODUCTION

    def more(self) -> None:
        """Draw the controls that come second."""
        first = self.settings(state.view())[0]
        with st.container(horizontal=True, key="train_more"):
            st.selectbox("Layers", [1, 2, 3], width=HALF, **state.mirror("learn_depth"))
            st.selectbox("Heads in each layer", [1, 2, 3, 4], width=HALF, **state.mirror("learn_heads"))
            st.selectbox("Positions", list(ORDERS), format_func=ORDERS.__getitem__, width=HALF,
                         **state.mirror("learn_order"))  # fmt: skip
            st.selectbox("Learning rate", RATES, width=HALF, **state.mirror("learn_rate"),
                         help=RATE_HELP)  # fmt: skip
            st.selectbox("Period", PERIODS, format_func=_period_name, width=HALF, **state.mirror("learn_period"))
            st.number_input("Seed", 0, MOST_SEED, width=HALF, help="Decides the random weights and the sequences.",
                            **state.mirror("learn_seed"))  # fmt: skip
            others = besides(first)
            chosen = state.view().learn_beside
            st.selectbox(
                "Beside it, the same with", list(others), format_func=lambda name: others[name][0], width=2 * HALF,
                **state.mirror("learn_beside", value=chosen if chosen in others else "nothing"),
            )  # fmt: skip

    def loss_figure(self, courses: Sequence[Course], place: int, dark: bool, size: int) -> go.Figure:
        """Draw the loss, where chance is, and the loss on sequences of all periods where it learns from one alone."""
        course = courses[place]
        lines = [Line("training", np.array(course.losses))]
        other_periods = any(other.setting.period is not None for other in courses)
        if other_periods:
            lines.insert(0, Line("other periods", np.array(course.scores("loss")), 2, dash="dash"))
        values = [value for other in courses for value in (*other.losses, *other.scores("loss"))]
        levels = [Level("knows nothing: log₂ 32 = 5 bits", CHANCE)]
        track = Track(np.array(course.steps), lines, levels, course.last, course.marked, 2 * other_periods)
        return learning_curves(
            track, title="Loss: how surprised it is", y_title="bits", top=max(LEAST_TOP, *values), dark=dark, size=size
        )

    def score_figure(self, courses: Sequence[Course], place: int, dark: bool, size: int) -> go.Figure:
        """Draw every head's induction score, the others' in grey, and who looks one back best."""
        course = courses[place]
        best = best_of(course.now, "induction")
        rest = [head for head in heads_of(course.now) if head != best]
        lines = [Line("", np.array(course.scores(key_of("induction", head))), "before") for head in rest]
        if course.setting.depth > 1:
            values = np.array(course.scores(key_of("previous", best_of(course.now, "previous"))))
            lines.append(Line("looks one back", values, 3, dash="dot"))
        lines.append(
            Line(
                f"layer {best[0]}" if course.setting.heads == 1 else "best head",
                np.array(course.scores(key_of("induction", best))),
            )
        )
        levels = [Level("spread evenly", words.chance())]
        names = 2 * any(other.setting.depth > 1 for other in courses)
        track = Track(np.array(course.steps), lines, levels, course.last, course.marked, names)
        return learning_curves(
            track, title="Induction score of each head", y_title="share", top=1.0, dark=dark, size=size
        )

    def loss_words(self, course: Course) -> str:
        """Say what the loss is."""
        return words.loss(course.setting)

    def score_words(self, course: Course) -> str:
        """Say what the score is."""
        return words.SCORE

    def found_words(self, course: Course) -> str:
        """Say what the model has found out at the step that is looked at."""
        return words.found(course)

    def map_words(self, setting: Copying) -> str:
        """Say what the maps show."""
        return words.maps(setting)

    def marked(self, setting: Copying) -> Bools:
        """Say where an induction head looks, (T, T)."""
        return _stripe()

    def visible(self, setting: Copying) -> Bools:
        """Say where a head may look: not at what comes later, (T, T)."""
        return np.tri(len(setting.tokens), dtype=np.bool_)

    def best(self, course: Course) -> tuple[int, int]:
        """Give the head with the highest score, which is drawn large."""
        return best_of(course.now, "induction")

    def head_name(self, course: Course, layer: int, head: int) -> str:
        """Say whether a head looks one back, or else its induction score."""
        back = course.now[key_of("previous", (layer, head))]
        if back >= words.BACK:
            return f"one back {back:.2f}"
        return f"induction {course.now[key_of('induction', (layer, head))]:.2f}"

    def explanation(self) -> None:
        """Draw why it takes two layers, and the code."""
        st.markdown("#### Why it takes two layers")
        left, right = st.columns(2, gap="large")
        left.markdown(words.TWO_LAYERS)
        right.markdown(words.ELSEWHERE)
        left.markdown(words.TRY)
        right.markdown(words.FORMULA)
        right.latex(words.SCORE_FORMULA)
        with st.expander("Show the code"):
            for part in (induction.induction_score, induction.previous_score, induction.repeated, induction.CopyLayer):
                st.code(inspect.getsource(part), language="python")


def besides(first: Copying) -> dict[str, tuple[str, dict[str, Any]]]:
    """Give what can be trained beside a model: a name, and the fields of its setting that are different."""
    depth = 2 if first.depth == 1 else 1
    found: dict[str, tuple[str, dict[str, Any]]] = {
        "one": ("two layers" if depth == 2 else "one layer", {"depth": depth}),
        "none": ("no positions", {"order": "none"}),
        "rotary": ("rotary positions", {"order": "rotary"}),
        "fixed": (f"period always {FIXED}", {"period": FIXED}),
        "slow": (f"learning rate {TOO_SLOW}", {"rate": TOO_SLOW}),
        "fast": (f"learning rate {TOO_FAST}", {"rate": TOO_FAST}),
        "seed": ("another seed", {"seed": first.seed + 1}),
    }
    different = {name: beside for name, beside in found.items() if replace(first, **beside[1]) != first}
    return {"nothing": ("nothing", {}), **different}


def _period_name(period: int) -> str:
    return f"Always {period}" if period else "6 to 16, drawn"


@lru_cache(maxsize=1)
def _stripe() -> Bools:
    ids = torch.tensor([[SYMBOLS.index(token) for token in Copying().tokens]])
    marked: Bools = after_equal(ids)[0].numpy()
    marked.setflags(write=False)
    return marked
