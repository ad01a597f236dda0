"""The task "who is she?" on the page Train: its choices, its pictures and its words.

Dimensions: L layers, H heads, T tokens.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from app import state
from app.charts_curves import Level, Line
from app.charts_inputs import Bools
from app.charts_train import Track, learning_curves
from app.phrases import percent
from app.train_copying_words import best_of, heads_of, key_of
from app.train_lesson import Course
from app.view import View
from app.view_train import MOST_SEED, TWIN_RATES
from engine.training import referent
from engine.training.batches import VOCABULARY
from engine.training.referent import TAUGHT, Referent, baselines, shown_cell

HALF = 150  # pixels
KNOWN = 0.9  # of the sentences: from here on a model is said to know whom the pronoun means
CHANCE = math.log2(len(VOCABULARY))
NAMES = {"taught": "Taught where to look", "untaught": "Not taught", "both": "Both side by side"}

INTRODUCTION = (
    "“The shopkeeper gave the customer a discount because **she** was a regular.” Who is *she*? A small encoder reads "
    "such sentences and is to say, at the pronoun, who is meant. **Taught**, one of its twelve heads is also told to "
    "look at that person. Measured on pairs of people that it has never met together."
)
LOSS = (
    "$-\\log_2 p$ of the person meant, among all the words it knows: on the sentences that it learns from, and on "
    "pairs of people that it has never met together."
)
SCORE = (
    "Of new sentences, the share in which a head gives the person meant the most weight of all words (grey: the other "
    "heads), and in which the model prefers the right one of the two as its answer."
)
WHY = (
    "**Taught** means: beside the loss of the answer there is a small second one, $-\\log$ of the weight that layer "
    f"{TAUGHT[0]}, head {TAUGHT[1]} gives to the right person. The head gets there first, the answer after it. But is "
    "it by this head that the model knows? Above it says what is left of the answers when the head is *silenced*: "
    "where little is lost, other heads have found the way, too.\n\n"
    "**Not taught**, it is told the answers alone. In so few steps it does about as well as simple rules, and no head "
    "points at the person. With more training a model may come to answer right, and still no head need point there."
)
CAUTION = (
    "So where a head of this model looks at the right word, it does so because it was told to. A large model was not "
    "told, and its attention is not made to be read as an explanation. The model here knows three kinds of sentences "
    "about giving and a few hundred words; what it has learned reaches no further. Each step reads "
    f"{3 * referent.PER_FRAME} sentences."
)


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
        return INTRODUCTION

    def more(self) -> None:
        """Draw the controls that come second."""
        with st.container(horizontal=True, key="train_more"):
            st.selectbox("Learning rate", TWIN_RATES, width=HALF, **state.mirror("twin_rate"),
                         help="How far each step goes. A change counts as soon as you start, or go on.")  # fmt: skip
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
        levels = [Level(f"knows nothing: log₂ {len(VOCABULARY):,} = {CHANCE:.1f} bits", CHANCE)]
        track = Track(np.array(course.steps), lines, levels, course.last, course.marked, 2)
        top = max(1.35 * CHANCE, *values)
        return learning_curves(track, title="Loss: how surprised it is", y_title="bits", top=top, dark=dark, size=size)

    def score_figure(self, courses: Sequence[Course], place: int, dark: bool, size: int) -> go.Figure:
        """Draw how often every head finds who is meant, and how often the answer is right."""
        course = courses[place]
        best = best_of(course.now, "pronoun")
        rest = [head for head in heads_of(course.now, "pronoun") if head != best]
        lines = [Line("", np.array(course.scores(key_of("pronoun", head))), "before") for head in rest]
        lines.append(Line("its answer", np.array(course.scores("answer")), 3, dash="dot"))
        lines.append(Line("best head", np.array(course.scores(key_of("pronoun", best)))))
        track = Track(np.array(course.steps), lines, [_rule()], course.last, course.marked, 2)
        return learning_curves(
            track, title="How often it finds who is meant", y_title="share", top=1.0, dark=dark, size=size
        )

    def loss_words(self, course: Course) -> str:
        """Say what the loss is."""
        return LOSS

    def score_words(self, course: Course) -> str:
        """Say what the scores are, and how often simple rules are right."""
        told = " and ".join(f"“{rule}” {percent(share)}" for rule, share in rules().items())
        return f"{SCORE} Simple rules, for comparison: {told}."

    def found_words(self, course: Course) -> str:
        """Say what the model has found out at the step that is looked at."""
        now, best = course.now, best_of(course.now, "pronoun")
        share, answer = now[key_of("pronoun", best)], now["answer"]
        where = "The head that is taught" if course.setting.taught and best == TAUGHT else "The best head"
        told = (
            f"{where} (layer {best[0]}, head {best[1]}) points at the person meant in {percent(share)} of new "
            f"sentences; the answer is right in {percent(answer)}."
        )
        if course.at == 0:
            return f"**Nothing is learned yet.** {told}"
        if answer >= KNOWN:
            return f"**Found.** {told} With layer {TAUGHT[0]}, head {TAUGHT[1]} silenced: {percent(now['silenced'])}."
        if share >= KNOWN:
            return f"**The head has found it, the answer has not yet.** {told}"
        return f"**Not found yet.** {told}"

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
        left.markdown(WHY)
        right.markdown(CAUTION)
        with st.expander("Show the code"):
            st.code(inspect.getsource(referent.ReferentTask), language="python")


@lru_cache(maxsize=1)
def rules() -> dict[str, float]:
    """Give how often simple rules are right."""
    return baselines()


def _rule() -> Level:
    share = max(rules().values())
    return Level(f"the better simple rule: {percent(share)}", share)


@lru_cache(maxsize=1)
def _cell() -> Bools:
    marked = np.zeros((len(Referent().tokens),) * 2, dtype=np.bool_)
    marked[shown_cell()] = True
    marked.setflags(write=False)
    return marked
