"""Rotary positions: arrows that turn, how fast each pair turns, and what is done for longer texts."""

from __future__ import annotations

import inspect

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from app import cache, state
from app.charts_curves import Level, Line, curves
from app.charts_rotary import turning
from app.panels import is_dark
from app.phrases import brief
from app.positions_draw import draw
from app.positions_longer import SCALINGS as NAMES
from app.positions_numbers import HEAD_WIDTH, Pairs, pairs_of, picked, scaling_of, turning_of
from app.shell import literal
from app.view import View
from app.view_positions import BASES, FACTORS, TRAINED
from engine.tokens import Prompt

FIGURE_BYTES = 3_000_000  # of the moving picture, as plotly keeps it
MOVES = {"both": "Both words move", "one": "Only the query moves"}
PLANES = {"all": "All", "fast": "Fast", "middle": "Middle", "slow": "Slow"}
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
    "dynamic": "NTK-aware with a factor that follows the text: its length ÷ the trained length, and 1 up to there, so "
    "short texts are left as they were. At {factor} times the trained length, drawn here, it is NTK-aware with factor "
    "{factor}. (The transformers library multiplies the growth by a factor of its own: 1 + factor × (length ÷ trained "
    "length − 1); here that factor is 1.)",
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
        st.segmented_control(
            "Pair", list(PLANES), format_func=PLANES.__getitem__, required=True, **state.mirror("plane")
        )
        for field, name, place in (("word", "Query", query), ("partner", "Key", key)):
            st.selectbox(
                name, list(map(str, range(len(labels)))), format_func=lambda number: labels[int(number)], width=160,
                **state.mirror(field, where="rotary", value=str(place)),
            )  # fmt: skip
    words = [literal(brief(prompt.tokens[place].text)) for place in (query, key)]
    st.markdown(_what_to_see(view.moving, (words[0], query), (words[1], key)))
    named, dark = (prompt.tokens[query].text, prompt.tokens[key].text), is_dark()
    figure = cache.derived(
        ("turning", query, key, named, view.rotary_base, view.moving, view.plane, dark),
        lambda: _moving_figure(query, key, named, view, dark),
        lambda made: FIGURE_BYTES,
    )
    with st.container(key="rotary_picture" if view.plane == "all" else "rotary_plane"):
        draw(figure, "rotary_turning")
    drawn = "three of them are" if view.plane == "all" else "one of them is"
    st.caption(
        f"A head of {HEAD_WIDTH} numbers is {HEAD_WIDTH // 2} pairs, each an arrow in its own plane; {drawn} shown. "
        "Every arrow here has length 1, so q · k is the cosine of the angle. So that all you see is due to position, "
        "both words begin with the same arrow, to the right (dotted). In a model the words decide where their arrows "
        "begin and how long they are, and positions turn them just so."
    )


def _moving_figure(query: int, key: int, named: tuple[str, str], view: View, dark: bool) -> go.Figure:
    made = turning_of(query, key, float(view.rotary_base), view.moving)
    names = list(PLANES)[1:]
    return turning(
        made.planes if view.plane == "all" else [made.planes[names.index(view.plane)]],
        made.score,
        query=named[0],
        key=named[1],
        query_places=made.query_places,
        key_places=made.key_places,
        steps=made.steps,
        slider="Words put in front of both:" if view.moving == "both" else "The query's distance from the key:",
        dark=dark,
    )


def _what_to_see(moving: str, query: tuple[str, int], key: tuple[str, int]) -> str:
    """Say what the picture is about to show; query and key are words with their positions."""
    (asking, query_place), (asked, key_place) = query, key
    if moving == "one":
        return (
            f"The key **{asked}** ({key_place}) stays where it is, and the query **{asking}** moves away from it, word "
            "by word. Now the angle between the arrows grows with the distance, quickly in the fast pair, hardly at "
            "all in the slow one, and the dot runs along the curve: the score knows the distance."
        )
    if query_place == key_place:
        return (
            f"Words are put in front of the sentence, so **{asking}** ({query_place}) moves on. It is query and key at "
            "once: the word meets itself, both arrows turn alike, and the product stays as large as it can be."
        )
    return (
        f"Words are put in front of the sentence, so **{asking}** ({query_place}) and **{asked}** ({key_place}) both "
        "move on, at the same distance. Every arrow turns, but the angle between two arrows stays, and so does their "
        "product: the dot on the curve stands still."
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
        st.selectbox("Trained on", TRAINED, format_func=_tokens, width=160, **state.mirror("trained"))
        st.selectbox("Base", BASES, format_func=lambda base: f"{base:,}", width=115, **state.mirror("rotary_base"))
    made = pairs_of(view)
    left, right = st.columns([7, 4], gap="large")
    with left:
        draw(_speed_figure(view, made), "rotary_speeds")
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
    count, length = len(made.before), view.trained * view.factor
    where = "The curve lies" if view.scaling == "plain" else "The grey curve, as trained, lies"
    said = (
        f"{where} above the lower line in **{made.unfinished(view.trained)} of {count} pairs**: they never came round "
        f"once in training. In a text {view.factor} times longer they would go on to angles that are new to the model."
    )
    if view.scaling == "plain":
        return said
    return f"{said} With {NAMES[view.scaling]}, **{made.unmet(view.trained, length)} of {count}** still do."
