"""What each encoding notices of word order, and what becomes of it beyond the trained length, as measured."""

from __future__ import annotations

import streamlit as st

from app import state
from app.phrases import SPACE, brief
from app.positions_layer import LATER, ROUNDING, Noticed, noticed_by, order_of
from app.positions_longer import Beyond, beyond
from app.positions_numbers import HEAD_WIDTH
from app.positions_words import ENCODINGS
from app.shell import literal
from app.view import View
from app.view_positions import FACTORS
from engine.tokens import Prompt

MOST_SEED = 9999


def shuffled(view: View, prompt: Prompt) -> None:
    """Shuffle the words, and move the sentence, under every encoding."""
    st.markdown("#### Shuffle the words")
    with st.container(horizontal=True, vertical_alignment="bottom", key="shuffle_bar"):
        st.button("Shuffle again", on_click=_again)
        st.toggle("Causal mask", **state.mirror("past_only", where="shuffle"))
    order = order_of(len(prompt), view.shuffle).tolist()
    mixed = " ".join(brief(prompt.tokens[place].text) for place in order)
    mask = "a causal mask" if view.past_only else "no mask"
    st.markdown(f"**Shuffled:** {literal(mixed)}")
    st.markdown(
        f"The same small layer reads the sentence in this order, with {mask}, and each word's output is compared with "
        f"what it was before, wherever the word went. Then the sentence is read as typed but {LATER} positions later. "
        "The share says how much: the length of the largest change ÷ the length of the longest output; it may exceed "
        f"100{SPACE}%."
    )
    st.markdown(_table(view, {name: noticed_by(name, view, prompt) for name in ENCODINGS}))
    st.caption(_lesson(view, prompt))


def _again() -> None:
    state.set(shuffle=(state.asked().shuffle + 1) % (MOST_SEED + 1))


def _table(view: View, found: dict[str, Noticed]) -> str:
    rows = ["| Positions | Order enters | Words shuffled | Sentence moved |", "|:--|:--|:--|:--|"]
    for name, numbers in found.items():
        encoding = ENCODINGS[name]
        title = f"**{encoding.name}**" if name == view.positions else encoding.name
        cells = (title, encoding.kind.enters, _answer(numbers.shuffled), _answer(numbers.moved))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _answer(change: float) -> str:
    if change < ROUNDING:
        return f"does not notice (0{SPACE}%)"
    share = f"{change * 100:.3g}" if change >= 0.001 else "<0.1"
    return f"**notices** ({share}{SPACE}%)"


def _lesson(view: View, prompt: Prompt) -> str:
    if len(prompt) == 1:
        return "One word has no order: type a second one."
    if view.past_only:
        return (
            "With a causal mask even “None” notices the shuffle: each word sees other words before it. It still can't "
            "tell that the sentence was moved."
        )
    return (
        "Attention without positions cannot tell this from the sentence as typed. Rotary, ALiBi and T5's buckets know "
        "only distances, so they notice the shuffle and not the move; what is added at the input knows where it stands."
    )


def longer(view: View) -> None:
    """Say what becomes of each encoding in texts longer than those in training; all but the picked one are folded."""
    st.markdown("#### Beyond the trained length")
    st.markdown(
        f"Suppose a model was trained on texts of {view.trained:,} tokens. What does it meet in a text 2, 4 or 8 times "
        "as long?"
    )
    found = beyond(view)
    with st.container(key="longer_table"):
        st.markdown(_counts(view, [one for one in found if one.name == view.positions]))
    with st.expander("The other encodings"), st.container(key="longer_others"):
        st.markdown(_counts(view, [one for one in found if one.name != view.positions]))
    st.caption(
        f"Counted with the engine's own functions, for width {HEAD_WIDTH} in sinusoidal positions and heads of "
        f"{HEAD_WIDTH} numbers with base {view.rotary_base:,} in rotary ones. Linear interpolation, NTK-aware, YaRN "
        "and Llama 3 are set to the factor of their column; dynamic NTK is not set, its factor is the length of the "
        "text ÷ the trained length. A pair that came round in training has met every angle. An angle that was not met "
        "need not do harm, and one that was met need not help: this says what is new to the model, not how well it "
        "copes."
    )


def _counts(view: View, found: list[Beyond]) -> str:
    lengths = (f"{factor} ×: {view.trained * factor:,}" for factor in FACTORS)
    rows = [f"| Positions | What is counted | {' | '.join(lengths)} |", "|:--|:--|" + "--:|" * len(FACTORS)]
    rows += [f"| {one.title} | {one.counted} | {' | '.join(one.cells)} |" for one in found]
    return "\n".join(rows)
