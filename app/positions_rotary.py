"""Rotary positions: arrows that turn, how fast each pair turns, and what is done for longer texts."""

from __future__ import annotations

import inspect

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from app import cache, charts, state
from app.charts_curves import Level, Line, curves
from app.charts_rotary import turning
from app.panels import is_dark
from app.phrases import brief
from app.positions_numbers import HEAD_WIDTH, Pairs, pairs_of, picked, scaling_of, turning_of
from app.shell import literal
from app.view import View
from app.view_positions import BASES, FACTORS, TRAINED
from engine.tokens import Prompt

FIGURE_BYTES = 3_000_000  # of the moving picture, as plotly keeps it
MOVES = {"both": "Both words move", "one": "Only the query moves"}
SCALINGS = {
    "plain": "As trained",
    "linear": "Linear",
    "ntk": "NTK-aware",
    "dynamic": "Dynamic NTK",
    "yarn": "YaRN",
    "llama3": "Llama 3",
}
REMARKS = {
    "plain": "Nothing is changed: beyond the trained length, slow pairs reach angles that the model has never met.",
    "linear": "Every pair turns {factor} times slower, as if the positions stood closer together. No angle is new, but "
    "neighbours are harder to tell apart: the fast pairs are slowed down too.",
    "ntk": "The base becomes larger: the slowest pair turns {factor} times slower and the fastest as before, so that "
    "neighbours stay as clear as they were.",
    "dynamic": "As NTK-aware, but the base follows the length of the text and short texts are left as they were. At "
    "{factor} times the trained length, drawn here, it has become NTK-aware with factor {factor}.",
    "yarn": "Pairs that came round often in training keep their speed, those that never came round turn {factor} times "
    "slower, those between are blended. Queries and keys are also stretched a little, by the attention factor.",
    "llama3": "Pairs that came round at least four times in training keep their speed, those that never came round "
    "turn {factor} times slower, those between are blended.",
}


def rotary(view: View, prompt: Prompt) -> None:
    """Show rotary positions."""
    _arrows(view, prompt)
    _speeds(view)


def _arrows(view: View, prompt: Prompt) -> None:
    """Draw the arrows of two words, and let them turn."""
    st.markdown("#### See it: what turns, and what stays")
    query, key = picked(view, prompt)
    labels = [f"{place} {brief(token.text)}" for place, token in enumerate(prompt.tokens)]
    with st.container(horizontal=True, vertical_alignment="bottom", key="rotary_bar"):
        st.segmented_control(
            "Press Play, or pull the slider", list(MOVES), format_func=MOVES.__getitem__,
            required=True, **state.mirror("moving"),
        )  # fmt: skip
        for field, name, place in (("word", "Query", query), ("partner", "Key", key)):
            st.selectbox(
                name, list(map(str, range(len(labels)))), format_func=lambda number: labels[int(number)], width=210,
                **state.mirror(field, where="rotary", value=str(place)),
            )  # fmt: skip
    words = [literal(brief(prompt.tokens[place].text)) for place in (query, key)]
    st.markdown(_what_to_see(view.moving, words[0], words[1]))
    named, dark = (prompt.tokens[query].text, prompt.tokens[key].text), is_dark()
    figure = cache.derived(
        ("turning", query, key, named, view.rotary_base, view.moving, dark),
        lambda: _moving_figure(query, key, named, view, dark),
        lambda made: FIGURE_BYTES,
    )
    with st.container(key="rotary_picture"):
        st.plotly_chart(figure, theme=None, config=charts.CONFIG, key="rotary_turning")
    st.caption(
        f"A head of {HEAD_WIDTH} numbers is {HEAD_WIDTH // 2} pairs, each an arrow in a plane of its own; three of "
        "them are drawn. So that all you see is due to position, both words begin with the same arrow, to the right "
        "(dotted). In a model they begin where the words put them, and are turned just so."
    )


def _moving_figure(query: int, key: int, named: tuple[str, str], view: View, dark: bool) -> go.Figure:
    made = turning_of(query, key, float(view.rotary_base), view.moving)
    return turning(
        made.planes,
        made.score,
        query=named[0],
        key=named[1],
        query_places=made.query_places,
        key_places=made.key_places,
        steps=made.steps,
        slider="Words put in front of both:" if view.moving == "both" else "The query's distance from the key:",
        dark=dark,
    )


def _what_to_see(moving: str, query: str, key: str) -> str:
    if moving == "both":
        return (
            f"Words are put in front of the sentence, so **{query}** and **{key}** both move on, at the same distance. "
            "Every arrow turns, but the angle between two arrows stays, and so does their product: the dot on the "
            "curve stands still."
        )
    return (
        f"**{key}** stays where it is, and **{query}** moves away from it, word by word. Now the angle between the "
        "arrows grows with the distance, quickly in the fast pair, hardly at all in the slow one, and the dot runs "
        "along the curve: the score knows the distance."
    )


def _speeds(view: View) -> None:
    """Draw how far each pair goes for a full turn, and what scalings for longer texts do to that."""
    st.markdown("#### Longer texts than in training")
    with st.container(horizontal=True, vertical_alignment="bottom", key="scaling_bar"):
        st.segmented_control(
            "Scaling", list(SCALINGS), format_func=SCALINGS.__getitem__, required=True, wrap=True,
            **state.mirror("scaling"),
        )  # fmt: skip
        st.segmented_control(
            "Times longer", FACTORS, format_func=lambda factor: f"{factor} ×", required=True, **state.mirror("factor")
        )
        st.selectbox("Trained on", TRAINED, format_func=_tokens, width=180, **state.mirror("trained"))
        st.selectbox("Base", BASES, format_func=lambda base: f"{base:,}", width=130, **state.mirror("rotary_base"))
    made = pairs_of(view)
    left, right = st.columns([7, 4], gap="large", vertical_alignment="center")
    with left:
        st.plotly_chart(_speed_figure(view, made), theme=None, config=charts.CONFIG, key="rotary_speeds")
    with right:
        st.markdown(_count(view, made))
        st.markdown(REMARKS[view.scaling].format(factor=view.factor))
        st.metric("Attention factor", f"{made.factor:.4f}", help="What cosine and sine are multiplied with.")
        with st.expander("Show the code"):
            st.code(inspect.getsource(type(scaling_of(view))), language="python")


def _tokens(count: int) -> str:
    return f"{count:,} tokens"


def _speed_figure(view: View, made: Pairs) -> go.Figure:
    lines = [Line("as trained", made.before, "before" if view.scaling != "plain" else "accent")]
    if view.scaling != "plain":
        lines.append(Line(f"{SCALINGS[view.scaling]}, {view.factor} ×", made.after))
    levels = [
        Level(f"trained length, {view.trained:,}", view.trained),
        Level(f"{view.factor} × longer, {view.trained * view.factor:,}", view.trained * view.factor),
    ]
    return curves(
        np.arange(len(made.before)), lines, x_title="pair of numbers", y_title="positions for a full turn (tokens)",
        title="How far each pair goes before it comes round", levels=levels, log=True, dark=is_dark(), size=430,
        number=",.4~g",
    )  # fmt: skip


def _count(view: View, made: Pairs) -> str:
    return (
        f"**{made.unfinished(view.trained)} of {len(made.before)} pairs** never came round once in training: they lie "
        f"above the lower line. In a text {view.factor} times longer they would go on to angles that are new to the "
        "model."
    )
