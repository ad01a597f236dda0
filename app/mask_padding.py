"""Whether padding changes anything: measured on the sentence, and said as measured."""

from __future__ import annotations

import inspect
import textwrap

import numpy as np
import streamlit as st

from app import charts, state
from app.lesson import (
    PAD,
    PaddingTest,
    around,
    drawn_note,
    fits_padding,
    is_recorded,
    padding_test,
    places_drawn,
    token_of,
    verdict,
)
from app.panels import is_dark
from app.scene import Scene
from app.shell import literal
from engine import Mask, attend, attention_weights

SIDES = {"right": "on the right", "left": "on the left"}


def padding(scene: Scene) -> None:
    """Measure what padding changes for real tokens, and show what its own rows are."""
    view, trace = scene.view, scene.trace
    if "cross" in trace.kinds or not is_recorded(trace):
        return
    st.markdown("#### Does padding change anything?")
    if not fits_padding(trace, view.pads):
        st.markdown(
            f"The {len(trace.prompt)} tokens of this sentence leave no room for padding: {literal(trace.card.name)} "
            f"reads {trace.card.limit:,} at most. A shorter one shows it."
        )
        return
    st.segmented_control(
        "Padding stands", list(SIDES), format_func=SIDES.__getitem__, required=True, **state.mirror("side")
    )
    made = padding_test(view.model, trace, view.layer, view.head, scene.kind, view.pads, view.side)
    left, right = st.columns([5, 6], gap="large")
    with left:
        _map(scene, made)
    with right:
        st.markdown(
            f"Sentences in a batch are filled up to one length with {literal(PAD)}. Its columns are hidden from "
            "everyone, so the real tokens should get the same weights as without it. Do they? Measured on this "
            f"sentence, over every head of every layer:\n\n{verdict(trace, made.difference, view.side)}\n\n"
            f"The rows of {literal(PAD)} itself are computed too, but nobody reads them: greyed.{_nothing_seen(made)}"
        )
        with st.expander("Show the code"):
            st.code(textwrap.dedent(inspect.getsource(Mask.visible)), language="python")
            st.code(inspect.getsource(attention_weights), language="python")
            st.code(inspect.getsource(attend), language="python")


def _map(scene: Scene, made: PaddingTest) -> None:
    view, count = scene.view, len(scene.trace.prompt)
    drawn = around(token_of(scene), count)
    places = places_drawn(made.tokens, drawn)
    cells = np.ix_(places, places)
    labels = [made.tokens[place].text for place in places]
    real = np.array([not made.tokens[place].padding for place in places])
    figure = charts.heatmap(
        made.weights[cells], labels, labels, visible=made.visible[cells] & real[:, None], dark=is_dark(), size=440,
        width=350, title=f"layer {view.layer}, head {view.head}, with padding",
    )  # fmt: skip
    st.plotly_chart(figure, theme=None, config=charts.CONFIG, key="padded_map")
    note = drawn_note(drawn, count)
    if note:
        st.caption(f"{note} So is all padding.")


def _nothing_seen(made: PaddingTest) -> str:
    empty = int((~made.visible.any(axis=1)).sum())
    if not empty:
        return ""
    return (
        f" {empty} of the padding rows see nothing at all: before them stands only padding. Such a row gets weights of "
        "zero here, never a division 0/0."
    )
