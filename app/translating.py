"""What the translator can't read, and the same sentence said so that it can."""

from __future__ import annotations

import streamlit as st

from app import state
from app.scene import Scene
from app.shell import literal
from engine.grammar.present import in_the_present


def translating(scene: Scene) -> None:
    """Warn where the translator reads what it was never taught, and offer a sentence in the past in the present."""
    card = scene.trace.card.trained
    if card is None or card.make != "EncoderDecoder":
        return
    present = in_the_present(scene.view.sentence)
    if present is not None:
        with st.container(horizontal=True, vertical_alignment="center", key="present"):
            st.caption("**It knows no past.** Of a sentence in the past its Hindi means nothing.", width="content")
            st.button(
                "Say it in the present",
                help=literal(present),
                type="tertiary",
                on_click=state.set,
                kwargs={"sentence": present},
            )
    elif any(token.unmet for token in scene.trace.prompt.tokens):
        st.caption(
            "**Take its Hindi lightly.** It was taught simple sentences in the present; what it writes around words "
            "that it has never met may mean nothing, but for names of people and things, which become “…”."
        )
