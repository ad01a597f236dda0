"""The page Positions: which encoding, what it is, where it enters, and its picture."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable

import streamlit as st

from app import (
    palette,
    positions_attention,
    positions_order,
    positions_rotary,
    positions_scores,
    positions_tables,
    state,
)
from app.panels import is_dark
from app.positions_numbers import words_of
from app.positions_words import DOORS, ENCODINGS, Encoding
from app.shell import literal
from app.view import View
from engine.tokens import Prompt

PICTURES: dict[str, Callable[[View, Prompt], None]] = {
    "sinusoidal": positions_tables.sinusoidal,
    "learned": positions_tables.learned,
    "rotary": positions_rotary.rotary,
    "alibi": positions_scores.alibi,
    "relative": positions_scores.buckets,
    "none": positions_scores.nothing,
}


def positions_page() -> None:
    """Draw the page.

    Raises:
        TextError: the sentence is blank.
    """
    view = state.view()
    prompt = words_of(view.sentence)
    for sentence in prompt.notices:
        st.caption(literal(sentence))
    _explain(view)
    PICTURES[view.positions](view, prompt)
    positions_attention.inside(view, prompt)
    positions_order.shuffled(view, prompt)
    positions_order.longer(view)


def _explain(view: View) -> None:
    """Let the reader pick an encoding, and say what it is and where it enters."""
    encoding = ENCODINGS[view.positions]
    st.segmented_control(
        "Positions",
        list(ENCODINGS),
        format_func=lambda name: ENCODINGS[name].name,
        required=True,
        wrap=True,
        label_visibility="collapsed",
        **state.mirror("positions", value=view.positions),
    )
    left, right = st.columns([6, 5], gap="large")
    with left:
        st.markdown(f"{encoding.what} Used by {encoding.used}.")
        st.html(_doors(encoding))
    with right:
        st.latex(encoding.formula)
    st.caption(encoding.symbols.format(width=view.table_width, base=f"{view.rotary_base:,}"))
    with st.expander("Show the code"):
        for shown in encoding.code:
            st.code(textwrap.dedent(inspect.getsource(shown)), language="python")


def _doors(encoding: Encoding) -> str:
    """Draw the way from words to weights, the step where order enters in colour."""
    accent, page = (palette.ACCENT_DARK, palette.PAGE_DARK) if is_dark() else (palette.ACCENT_LIGHT, palette.PAGE_LIGHT)
    steps = []
    for door in DOORS:
        entered = door == encoding.kind.enters
        style = f' style="background:{accent};border-color:{accent};color:{page}"' if entered else ""
        steps.append(f"<span{style}>{door}{': order enters here' if entered else ''}</span>")
    steps.append("<span>weights</span>")
    way = '<span class="then">→</span>'.join(steps)
    return f'<div class="doors">{way}</div>'
