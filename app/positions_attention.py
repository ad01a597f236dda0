"""Positions inside attention: the scores of a small layer, taken apart into what words say and what places say."""

from __future__ import annotations

import numpy as np
import streamlit as st
from torch import Tensor

from app import charts, state
from app.panels import is_dark
from app.positions_draw import draw
from app.positions_layer import HEADS, WIDTH, parts
from app.positions_words import ENCODINGS
from app.view import View
from engine.order import ScoreParts
from engine.positions import alibi_slopes
from engine.tokens import Prompt

SIZE, WIDTH_SHOWN = 490, 460  # pixels of a map; two stand in a row, one on a telephone
CARD_WIDTH = 306  # of the three sums, which stand in one row
CARD_SIZE = 360
CHANGED = {
    "nowhere": "What positions change: nothing",
    "input": "What positions change",
    "queries and keys": "What turning changes",
    "scores": "What is added",
}
# What the colours of the first three pictures mean, where it is not q · k / √D alone.
BIASED = ("score q · k / √D", "bias", "score q · k / √D + bias")
REMARKS = {
    "sinusoidal": "blocks and stripes that have little to do with any single word",
    "learned": "noise, since these rows are random and every pair of places has a number of its own",
    "rotary": "something else for every two words, since turning acts on what they say; nothing on the diagonal",
    "alibi": "nothing on the diagonal, and less and less away from it, in every row alike",
    "relative": "the same number all along each diagonal, whatever the words are",
    "none": "nothing",
}


def inside(view: View, prompt: Prompt) -> None:
    """Draw the scores of content, what positions change, their sum, and the weights."""
    st.markdown("#### Positions inside attention")
    head = min(view.places_head, HEADS - 1)
    with st.container(horizontal=True, vertical_alignment="bottom", key="inside_bar"):
        st.segmented_control(
            "Head of the small layer", range(HEADS), required=True, **state.mirror("places_head", value=head)
        )
        st.toggle("Causal mask", **state.mirror("past_only", where="inside"))
    st.markdown(
        f"One small layer reads the sentence, its positions: **{ENCODINGS[view.positions].name}**. Its weights are "
        f"random and nothing is trained, so what it finds in the words means nothing. The second picture is the one to "
        f"look at. What positions change in the scores: {REMARKS[view.positions]}."
    )
    if remark := _apart(view, head):
        st.markdown(remark)
    made = parts(view, prompt)
    words = [token.text for token in prompt.tokens]
    _maps(made, head, words, ENCODINGS[view.positions].kind.enters)
    st.caption(
        f"Width {WIDTH}, {HEADS} heads, drawn from one seed. The first three pictures share one scale: blue is above "
        "0, orange below. 1 + 2 = 3, and 4 is the softmax of each row of 3."
    )
    if made.word_position is not None:
        _terms(made, head, words)


def _apart(view: View, head: int) -> str:
    """Say where this layer is not as the page has it above; empty where it is."""
    if view.positions == "relative":
        return "T5 itself does not divide by √D. This layer does, under every encoding, so that they can be compared."
    if view.positions != "alibi" or view.alibi_heads == HEADS:
        return ""
    here, above = (alibi_slopes(heads)[head : head + 1].tolist() for heads in (HEADS, view.alibi_heads))
    there = f", and {above[0]:.3g} there" if above else ""
    return (
        f"This layer has {HEADS} heads and the pictures above have {view.alibi_heads}, so slopes differ: head {head} "
        f"takes {here[0]:.3g} off for each word of distance here{there}."
    )


def _maps(made: ScoreParts, head: int, words: list[str], enters: str) -> None:
    changed = CHANGED[enters]
    scores = {
        "1 · content alone": made.content,
        f"2 · {changed[0].lower()}{changed[1:]}": made.position,
        "3 · scores": made.scores,
    }
    held = {title: _flat(values, head) for title, values in scores.items()}
    reach = max(float(np.abs(values).max()) for values in held.values())
    visible = made.visible.numpy()
    meanings = BIASED if enters == "scores" else (BIASED[0],) * 3
    with st.container(key="inside_maps"):
        rows = [*st.columns(2, gap="large"), *st.columns(2, gap="large")]
    for number, (title, values) in enumerate(held.items()):
        figure = charts.scores_figure(
            values, visible, words, words, stage="after" if number == 2 else "before", title=title,
            meaning=meanings[number], reach=reach, dark=is_dark(), size=SIZE, width=WIDTH_SHOWN,
        )  # fmt: skip
        with rows[number]:
            draw(figure, f"inside_{number}")
    figure = charts.heatmap(
        _flat(made.weights, head), words, words, visible=visible, title="4 · weights", dark=is_dark(), size=SIZE,
        width=WIDTH_SHOWN,
    )  # fmt: skip
    figure.update_layout(showlegend=False)
    with rows[3]:
        draw(figure, "inside_weights")


def _terms(made: ScoreParts, head: int, words: list[str]) -> None:
    """Draw the three ways in which numbers added to the words get into their scores."""
    terms = {
        "word with place": made.word_position,
        "place with word": made.position_word,
        "place with place": made.position_position,
    }
    with st.expander("Where picture 2 comes from: three sums"):
        st.latex(
            r"(w_t + p_t) \cdot (w_s + p_s) = w_t w_s + \underbrace{w_t p_s + p_t w_s + p_t p_s}_{\text{picture 2}}"
        )
        st.markdown(
            "What is added to a word is multiplied with everything: the query's word meets the key's place, the "
            "query's place meets the key's word, and place meets place. Only the last is free of words."
        )
        held = {title: _flat(values, head) for title, values in terms.items() if values is not None}
        reach = max(float(np.abs(values).max()) for values in held.values())
        with st.container(horizontal=True, key="inside_terms"):
            for title, values in held.items():
                with st.container(width=CARD_WIDTH):
                    figure = charts.scores_figure(
                        values, None, words, words, title=title, reach=reach, dark=is_dark(), size=CARD_SIZE,
                        width=CARD_WIDTH,
                    )  # fmt: skip
                    draw(figure, f"term_{title}")


def _flat(values: Tensor, head: int) -> np.ndarray:
    made: np.ndarray = values[head].float().numpy()
    return made
