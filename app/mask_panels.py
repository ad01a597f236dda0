"""Who may see whom: five masks over the sentence, drawn side by side, to be tried on the whole model."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from app import charts, state
from app.lesson import PAD, around, drawn_note, is_recorded, matrix, padded, places_drawn, token_of
from app.panels import is_dark
from app.scene import Scene
from app.shell import literal
from app.view import to_address
from engine import Mask, Prompt

# Five stand in a row at 1440 pixels, three at 1024, one on a telephone.
CARD_WIDTH = 240
EXPLORE = "../pages/explore.py"


def who_sees_whom(scene: Scene) -> None:
    """Draw the five masks of the sentence side by side."""
    prompt, view = scene.trace.prompt, scene.view
    row, longest = token_of(scene), max(2, len(prompt))
    prefix, window = min(view.prefix, longest), min(view.window, longest)
    with_pads = padded(prompt, view.pads, view.side)
    st.markdown("#### Who may see whom")
    st.markdown(
        "A mask says for every token (a row) which tokens (the columns) it may attend to. Masks act on tokens, so this "
        f"page shows tokens, special ones too. {drawn_note(around(row, len(prompt)), len(prompt))} The outlined row is "
        f"**{literal(prompt.tokens[row].text)}**."
    )
    with st.container(horizontal=True, key="masks"):
        _card(scene, "BERT-style", Mask.bidirectional(), "Everyone sees everyone: good for understanding a sentence.")
        _card(scene, "GPT-style", Mask.causal(), "Only itself and the past: so it can learn to write the next word.")
        _card(
            scene, "Padding", None, f"{PAD} fills up a batch; nobody may look at it.", prompt=with_pads,
            control=lambda: st.slider("Padding tokens", 1, 6, **state.mirror("pads")),
        )  # fmt: skip
        _card(
            scene, "Prefix", Mask.prefix(prefix), "All see the first tokens (the question); then it is causal.",
            control=lambda: st.slider("Prefix length", 1, longest, **state.mirror("prefix", value=prefix)),
        )  # fmt: skip
        _card(
            scene, "Sliding window", Mask.window(window), "Only neighbours: cost grows with length, not its square.",
            control=lambda: st.slider(window_label(window), 1, longest, **state.mirror("window", value=window)),
        )  # fmt: skip


def window_label(width: int) -> str:
    """Say what a window of this width shows: 3 is two tokens on either side and the token itself."""
    if width == 1:
        return "Window: each token sees only itself"
    return f"Window: each token sees {width - 1} on either side and itself"


def _card(
    scene: Scene,
    name: str,
    mask: Mask | None,
    why: str,
    *,
    prompt: Prompt | None = None,
    control: Callable[[], object] | None = None,
) -> None:
    """Draw one mask with what it is for, its slider, and a button that puts it on the model.

    Args:
        scene: what the page draws.
        name: the mask's title.
        mask: the mask; None for padding alone, which is nothing to put on a model.
        why: what it is for, in a sentence.
        prompt: the sentence, where it is not the scene's.
        control: draws a slider.
    """
    with st.container(width=CARD_WIDTH):
        _matrix(scene, prompt or scene.trace.prompt, mask or Mask.bidirectional(), name, why)
        if control is not None:
            control()
        if mask is not None:
            _use(scene, mask, name)


def _matrix(scene: Scene, prompt: Prompt, mask: Mask, name: str, why: str) -> None:
    whole, token = matrix(prompt.tokens, mask), token_of(scene)
    places = places_drawn(prompt.tokens, around(token, len(scene.trace.prompt)))
    row = [place for place, flag in enumerate(whole.padding) if not flag][token]
    made = whole.part(places)
    figure = charts.mask_matrix(
        made.visible, list(made.labels), list(made.labels), title=name, padding=made.padding, row=places.index(row),
        dark=is_dark(), size=262, width=CARD_WIDTH,
    )  # fmt: skip
    st.plotly_chart(figure, theme=None, config=charts.CONFIG, key=f"matrix_{name}")
    st.caption(f"{why} **{literal(whole.labels[row])}** may look at {whole.seen_by(row)} tokens.")


def _use(scene: Scene, mask: Mask, name: str) -> None:
    """Offer a mask to the whole model, on the page that shows what it does there."""
    pressed = st.button(
        "Use in Explore",
        key=f"use_{mask.spec.partition(':')[0]}",
        help=f"Put the mask {name} on every layer of {literal(scene.trace.card.name)}",
        disabled=not is_recorded(scene.trace),
    )
    if pressed:
        state.set(mask=mask.spec)
        st.switch_page(EXPLORE, query_params=to_address(state.asked()))
