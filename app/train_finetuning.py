"""Fine-tuning beside training from scratch: what the same few sentences are worth to each."""

from __future__ import annotations

import numpy as np
import streamlit as st

from app import cache, charts
from app.charts_curves import Level, Line, curves
from app.panels import is_dark
from app.phrases import percent
from engine.grammar import TOPICS
from engine.training.finetuned import WAYS, Curves, read

NAMES = {
    "scratch": "from scratch: our classifier",
    "frozen": "MiniLM frozen, a head on top",
    "unfrozen": "MiniLM unfrozen",
}
CURVES_BYTES = 2_000


def finetuning_panel() -> None:
    """Draw how many sentences each way of training needs, and say how it was done.

    Raises:
        ModelError: the figures are missing or broken.
    """
    told = cache.derived(("finetuning",), read, lambda made: CURVES_BYTES)
    st.markdown("#### Fine-tuning, or training from scratch?")
    st.markdown(
        "Seldom does anybody train from random weights. A model that has read a lot already is given a small new head, "
        "which learns from a few examples. Here the question is what a sentence of our grammar is about: one of "
        f"{len(TOPICS)} topics. Three ways to learn it saw the **same few sentences**, and all are measured on "
        f"{told.tested} others with other pairs of nouns."
    )
    lines = [
        Line(NAMES["scratch"], _points(told, "scratch"), "before"),
        Line(NAMES["frozen"], _points(told, "frozen"), 0, dash="dash"),
        Line(NAMES["unfrozen"], _points(told, "unfrozen"), "accent"),
    ]
    figure = curves(
        np.array(told.counts), lines, x_title="sentences to learn from", y_title="topics right (%)",
        title="The same few sentences, three ways", levels=[Level("chance", 100 / len(TOPICS))], dark=is_dark(),
        number=".1f",
    )  # fmt: skip
    figure.update_traces(mode="lines+markers", selector={"mode": "lines", "showlegend": None})
    figure.update_xaxes(type="log", tickvals=list(told.counts), ticktext=[str(count) for count in told.counts])
    figure.update_yaxes(range=[0, 104])
    st.plotly_chart(figure, theme=None, config=charts.CONFIG, key="finetuning")
    st.markdown(_said(told))
    st.caption(
        "Frozen: only the head's numbers learn, from MiniLM's mean vector of a sentence. Unfrozen: the head first, "
        "then MiniLM's layers with it, at a small learning rate. From scratch: our topic classifier, random at first. "
        f"Computed once, with seed {told.seed}, by `python -m engine.training train finetuning`."
    )


def _points(told: Curves, way: str) -> np.ndarray:
    """Give the shares of one way, in per cent."""
    return 100 * np.array(told.right[way])


def _said(told: Curves) -> str:
    """Say what the curves come to, in the figures of the fewest and of the most sentences."""
    few, many = ({way: percent(told.right[way][place]) for way in WAYS} for place in (0, -1))
    return (
        f"With {told.counts[0]} sentences, {told.counts[0] // len(TOPICS)} of each topic, the classifier from scratch "
        f"gets **{few['scratch']}** right, the head on frozen MiniLM **{few['frozen']}** and unfrozen MiniLM "
        f"**{few['unfrozen']}**. With {told.counts[-1]} they reach {many['scratch']}, {many['frozen']} and "
        f"{many['unfrozen']}. What MiniLM has read before is worth most where there is little to learn "
        f"from{_later(told)}."
    )


def _later(told: Curves) -> str:
    """Say where training from scratch does as well as a head on vectors that stay as they are; nothing for nowhere."""
    both = zip(told.counts, told.right["scratch"], told.right["frozen"], strict=True)
    level = [str(count) for count, scratch, frozen in both if scratch >= frozen]
    if not level:
        return ""
    named = level[0] if len(level) == 1 else f"{', '.join(level[:-1])} and {level[-1]}"
    return f": with {named} sentences our classifier does as well from scratch as the head on frozen vectors"
