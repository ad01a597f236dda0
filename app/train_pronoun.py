"""The task "who is she?" on the page Train: its choices, its pictures and its words.

Dimensions: L layers, H heads, T tokens.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from app import state
from app import train_pronoun_words as words
from app.charts_curves import Level, Line
from app.charts_inputs import Bools
from app.charts_train import Band, Track, learning_curves
from app.phrases import percent
from app.train_copying_words import best_of, heads_of, key_of
from app.train_lesson import RATE_HELP, Course
from app.view import View
from app.view_train import MOST_SEED, TWIN_RATES
from engine.training import referent
from engine.training.batches import VOCABULARY
from engine.training.referent import TAUGHT, Referent, shown_cell

HALF = 150  # pixels
NAMES = {"taught": "Taught where to look", "untaught": "Not taught", "both": "Both side by side"}


class PronounLesson:
    """How "who is she?" is shown; a Lesson, see app/train_lesson.py."""

    name = "Who is “she”?"
    presets: Mapping[str, str] = NAMES

    def fields(self, preset: str) -> dict[str, Any]:
        """Say what a prepared choice sets, field by field."""
        return {"twin_taught": preset, "twin_rate": "0.003"}

    def settings(self, view: View) -> tuple[Referent, ...]:
        """Read which models are to be trained: one, or two of which one is taught."""
        told = {"taught": (True,), "untaught": (False,), "both": (True, False)}[view.twin_taught]
        return tuple(Referent(taught, float(view.twin_rate), view.learn_seed) for taught in told)

    def title(self, setting: Referent) -> str:
        """Name a model by what may differ."""
        told = "taught where to look" if setting.taught else "not taught where to look"
        return f"{told.capitalize()}, rate {setting.rate:g}, seed {setting.seed}"

    def introduction(self) -> str:
        """Say what is to be learned."""
        return words.INTRODUCTION

    def more(self) -> None:
        """Draw the controls that come second."""
        with st.container(horizontal=True, key="train_more"):
            st.selectbox("Learning rate", TWIN_RATES, width=HALF, **state.mirror("twin_rate"),
                         help=RATE_HELP)  # fmt: skip
            st.number_input("Seed", 0, MOST_SEED, width=HALF, help="Decides the random weights and the sentences.",
                            **state.mirror("learn_seed"))  # fmt: skip

    def loss_figure(self, courses: Sequence[Course], place: int, dark: bool, size: int) -> go.Figure:
        """Draw the loss of the answer, on what it learns from and on new pairs of people."""
        course = courses[place]
        lines = [
            Line("new pairs", np.array(course.scores("loss")), 2, dash="dash"),
            Line("training", np.array(course.losses)),
        ]
        values = [value for other in courses for value in (*other.losses, *other.scores("loss"))]
        levels = [Level(f"knows nothing: log₂ {len(VOCABULARY):,} = {words.NOTHING:.1f} bits", words.NOTHING)]
        track = Track(np.array(course.steps), lines, levels, course.last, course.marked, 2)
        top = max(1.35 * words.NOTHING, *values)
        return learning_curves(track, title="Loss: how surprised it is", y_title="bits", top=top, dark=dark, size=size)

    def score_figure(self, courses: Sequence[Course], place: int, dark: bool, size: int) -> go.Figure:
        """Draw how often every head finds who is meant, and how often the answer is right."""
        course = courses[place]
        best = best_of(course.now, "pronoun")
        rest = [head for head in heads_of(course.now, "pronoun") if head != best]
        lines = [Line("", np.array(course.scores(key_of("pronoun", head))), "before") for head in rest]
        lines.append(Line("its answer", np.array(course.scores("answer")), 3, dash="dot"))
        lines.append(Line("best head", np.array(course.scores(key_of("pronoun", best)))))
        low, high = words.by_chance()
        band = Band("chance alone, of two", low, high)
        track = Track(np.array(course.steps), lines, (), course.last, course.marked, 2, band)
        return learning_curves(
            track, title="How often it finds who is meant", y_title="share", top=1.0, dark=dark, size=size
        )

    def loss_words(self, course: Course) -> str:
        """Say what the loss is."""
        return words.LOSS

    def score_words(self, course: Course) -> str:
        """Say what the scores are, and how far chance alone gets."""
        return words.score()

    def found_words(self, course: Course) -> str:
        """Say what the model has found out at the step that is looked at."""
        return words.found(course)

    def map_words(self, setting: Referent) -> str:
        """Say what the maps show."""
        return (
            "Each row is a word; its colours say where it looks, from 0 to 100 %. **Orange square**: from *she* to the "
            "person meant. This very pair of people is in none of the sentences that it learns from."
        )

    def marked(self, setting: Referent) -> Bools:
        """Mark from the pronoun to the person meant, (T, T)."""
        return _cell()

    def visible(self, setting: Referent) -> None:
        """An encoder sees everything."""

    def best(self, course: Course) -> tuple[int, int]:
        """Give the head that is drawn large: the one that is taught, or else the best."""
        return TAUGHT if course.setting.taught else best_of(course.now, "pronoun")

    def head_name(self, course: Course, layer: int, head: int) -> str:
        """Give a head's share, and say if it is the one that is taught."""
        told = "taught, " if course.setting.taught and (layer, head) == TAUGHT else ""
        return f"{told}{percent(course.now[key_of('pronoun', (layer, head))])}"

    def explanation(self) -> None:
        """Draw what being taught means, and the code."""
        st.markdown("#### Taught where to look, or not")
        left, right = st.columns(2, gap="large")
        left.markdown(words.WHY)
        right.markdown(words.CAUTION)
        with st.expander("Show the code"):
            for part in (referent.ReferentTask, referent.opposite, referent.strays):
                st.code(inspect.getsource(part), language="python")


@lru_cache(maxsize=1)
def _cell() -> Bools:
    marked = np.zeros((len(Referent().tokens),) * 2, dtype=np.bool_)
    marked[shown_cell()] = True
    marked.setflags(write=False)
    return marked
