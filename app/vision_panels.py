"""The page Vision: a picture of our own, where a small vision transformer looks on it, and what it takes it to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from app import state
from app import vision_words as words
from app.charts_inputs import Floats
from app.charts_vision import CONFIG, answer_bars, heads_figure, picture_figure, spotlight
from app.panels import is_dark
from app.phrases import SPACE, percent
from app.shell import literal
from app.view_vision import MOST_PICTURES, STAGES
from app.vision_numbers import Looked, answer_without, best_head, looked, vision_model
from engine.pictures import ACROSS, COLOURS, MOST_DISTRACTORS, SHAPES
from engine.vision import CLASS_TOKEN

SIZE = 420  # pixels, of every figure
HALF = 150
ROOM = f"""<style>
.st-key-vit_bar {{ min-height: 69px; }}
.st-key-vit_where {{ min-height: 69px; }}
.st-key-vit_image, .st-key-vit_head_map, .st-key-vit_heads, .st-key-vit_rollout, .st-key-vit_answer {{
  min-height: {SIZE}px; }}
.st-key-vit_scores {{ overflow-x: auto; min-height: 14rem; }}
.st-key-vit_scores td + td, .st-key-vit_scores th + th {{ white-space: nowrap; }}
.st-key-vit_scores td:first-child {{ min-width: 11rem; }}
</style>"""


def vision_page() -> None:
    """Draw the page.

    Raises:
        EngineError: the model cannot be loaded.
    """
    st.html(ROOM)
    st.markdown(f"{words.INTRODUCTION} This page reads its picture, not the sentence above.")
    _bar()
    view = state.view()
    made = looked(view)
    layer, head = _head(made)
    _answer_line(made, layer, head)
    _pictures(made, layer, head)
    _details(made, layer, head)
    _measured()


def _bar() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", key="vit_bar"):
        st.selectbox("Shape", list(SHAPES), width=HALF, **state.mirror("vit_shape"))
        st.selectbox("Colour", list(COLOURS), width=HALF, **state.mirror("vit_colour"))
        st.slider("Dots and lines", 0, MOST_DISTRACTORS, width=200, **state.mirror("vit_distractors"))
        st.button("Another picture", on_click=_another, key="vit_another")
        st.segmented_control(
            "Model", list(STAGES), format_func=words.STAGES.__getitem__, required=True, **state.mirror("vit_stage")
        )


def _another() -> None:
    state.set(vit_picture=(state.view().vit_picture + 1) % (MOST_PICTURES + 1))


def _head(made: Looked) -> tuple[int, int]:
    """Find the head that is shown, within the model's range."""
    view, (layers, heads) = state.view(), made.mass.shape
    own = best_head(vision_model(view.vit_stage))
    layer = min(own[0] if view.vit_layer is None else view.vit_layer, layers - 1)
    head = min(own[1] if view.vit_head is None else view.vit_head, heads - 1)
    asked = (view.vit_layer, view.vit_head)
    if asked not in ((None, None), (layer, head)):
        state.note(f"Little ViT has {layers} × {heads} heads: showing layer {layer}, head {head}.")
        state.amend(vit_layer=layer, vit_head=head)
    return layer, head


def _answer_line(made: Looked, layer: int, head: int) -> None:
    view = state.view()
    answer = made.answer
    st.markdown(
        f"#### {words.answer_text(answer, view.vit_shape, view.vit_colour)}\n"
        f"{answer.colour} {percent(answer.colours[answer.colour])}, {answer.shape} "
        f"{percent(answer.shapes[answer.shape])}. {_stage_text()} In layer {layer}, head {head} "
        f"{words.looks_text(float(made.mass[layer, head]), made.area)}"
    )


def _stage_text() -> str:
    model = vision_model(state.view().vit_stage)
    told = {
        "trained": f"This is the model after {model.trained.steps:,} steps of training.",
        "early": f"This is the same model after {model.trained.steps:,} steps: sure of colours, and not yet of shapes.",
        "untrained": "This is the same model before its training: its weights are random, and so is what it says.",
    }
    return told[state.view().vit_stage]


def _pictures(made: Looked, layer: int, head: int) -> None:
    left, middle, right = st.columns([10, 10, 12], gap="medium")
    with left:
        _image(made)
    with middle:
        _head_map(made, layer, head)
    with right:
        _heads(made, layer, head)


def _image(made: Looked) -> None:
    hovers = [f"{words.token_name(1 + patch)}{', on the shape' * bool(on)}" for patch, on in enumerate(made.objects)]
    figure = picture_figure(
        made.image, hovers, title="what it is given", meaning="click a patch to see where that patch looks",
        chosen=_patch(), dark=is_dark(), size=SIZE,
    )  # fmt: skip
    _clickable(figure, "vit_image", _pick_patch)
    st.selectbox(
        "Whose attention is shown", list(range(1 + ACROSS**2)), format_func=_token_label, **state.mirror("vit_token")
    )
    st.caption("Patches are named by row and column, which count from 0, as layers and heads do.")


def _token_label(token: int) -> str:
    return words.token_name(token) + ("" if token else ", the class token")


def _row() -> tuple[int, str]:
    """Give the token whose row is shown, and its name."""
    token = state.view().vit_token
    return token, words.token_name(token)


def _patch() -> int | None:
    """Give the patch whose row is shown; None for the class token."""
    return state.view().vit_token - 1 if state.view().vit_token else None


def _head_map(made: Looked, layer: int, head: int) -> None:
    row, name = _row()
    weights = made.weights[layer, head, row]
    figure = picture_figure(
        spotlight(made.image, weights[1:], dark=is_dark()), _hovers(name, weights),
        title=f"where {name} looks: layer {layer}, head {head}", meaning=_brightest(weights[1:]),
        chosen=_patch(), dark=is_dark(), size=SIZE,
    )  # fmt: skip
    _clickable(figure, "vit_head_map", _pick_patch)
    layers, heads = made.mass.shape
    with st.container(horizontal=True, key="vit_where"):
        st.selectbox("Layer", list(range(layers)), width=HALF, **state.mirror("vit_layer", value=layer, then=_both))
        st.selectbox("Head", list(range(heads)), width=HALF, **state.mirror("vit_head", value=head, then=_both))
    itself = f"{percent(float(weights[0]))} of this row stays with {CLASS_TOKEN}, which is no patch."
    st.caption(f"The less weight a patch has, the more it fades. {itself}")


def _both() -> None:
    """Let a choice of layer or head bring the other along, so that a link names both."""
    view = state.asked()
    own = best_head(vision_model(view.vit_stage))
    state.set(
        vit_layer=own[0] if view.vit_layer is None else view.vit_layer,
        vit_head=own[1] if view.vit_head is None else view.vit_head,
    )


def _hovers(name: str, weights: Floats) -> list[str]:
    return [
        f"{name} → {words.token_name(1 + patch)}  {100 * float(weights[1 + patch]):.2f} %" for patch in range(ACROSS**2)
    ]


def _brightest(patches: Floats) -> str:
    return f"full colour: {percent(float(np.max(patches)))}, the row’s largest weight"


def _heads(made: Looked, layer: int, head: int) -> None:
    row, name = _row()
    layers, heads = made.mass.shape
    on_shape = made.weights[:, :, row, 1:][:, :, made.objects].sum(axis=-1)  # (L, H)
    hovers = [
        f"layer {at}, head {which}: {100 * float(on_shape[at, which]):.1f} % on the shape"
        for at in range(layers)
        for which in range(heads)
    ]
    figure = heads_figure(
        made.image, made.weights[:, :, row, 1:], hovers, title=f"every head, from {name}",
        meaning="each up to its own largest weight; click one", chosen=(layer, head), dark=is_dark(), size=SIZE,
    )  # fmt: skip
    _clickable(figure, "vit_heads", lambda index: state.set(vit_layer=index // heads, vit_head=index % heads))
    order = np.argsort(-on_shape, axis=None, kind="stable")[:3]
    ranked = ", ".join(f"{at // heads}.{at % heads} {percent(float(on_shape.flat[at]))}" for at in order.tolist())
    st.caption(f"Most on the shape, as layer.head: {literal(ranked)}.")


def _details(made: Looked, layer: int, head: int) -> None:
    left, middle, right = st.columns([10, 10, 12], gap="medium")
    with left:
        _bars(made)
    with middle:
        _rollout(made)
    with right:
        st.markdown("#### One head, and all of them together")
        st.markdown(
            f"{words.ROLLOUT} Here {percent(made.mass_by_rollout())} of what the patches gave came from those that the "
            "shape reaches into."
        )
        st.latex(r"R_l = \left(\tfrac12 W_l + \tfrac12 I\right) R_{l-1}")
        without = answer_without(state.view(), layer, head)
        st.markdown(words.silenced_text(made.answer, without, layer, head))
        st.markdown(words.CAUTION)


def _bars(made: Looked) -> None:
    view, answer = state.view(), made.answer
    groups = [
        ("shape", list(answer.shapes), np.array(list(answer.shapes.values())), view.vit_shape),
        ("colour", list(answer.colours), np.array(list(answer.colours.values())), view.vit_colour),
    ]
    figure = answer_bars(groups, title="what it takes the picture to be", dark=is_dark(), size=SIZE)
    st.plotly_chart(figure, theme=None, config=CONFIG, key="vit_answer")


def _rollout(made: Looked) -> None:
    row, name = _row()
    rolled = made.rolled[row]
    figure = picture_figure(
        spotlight(made.image, rolled[1:], dark=is_dark()), _hovers(name, rolled),
        title=f"rollout: what has arrived in {name}", meaning=_brightest(rolled[1:]),
        chosen=_patch(), dark=is_dark(), size=SIZE,
    )  # fmt: skip
    _clickable(figure, "vit_rollout", _pick_patch)


def _measured() -> None:
    trained, early = (vision_model(stage).trained for stage in ("trained", "early"))
    st.markdown("#### How well it does, and what it was taught")
    stages = {
        words.STAGES["trained"]: trained.scores,
        f"After {early.steps:,} steps": early.scores,
        "Random weights": trained.scores["random"],
    }
    chance = {
        "shape": percent(1 / len(SHAPES)), "colour": percent(1 / len(COLOURS)), "times": f"1{words.TIMES}",
        "top": percent(trained.scores["area"]),
    }  # fmt: skip
    with st.container(key="vit_scores"):
        st.markdown(words.scores_table(stages, chance))
    st.markdown(words.measured_text(trained))
    st.markdown(words.learned_text(trained))
    made, card = looked(state.view()), vision_model(state.view().vit_stage).card
    line = [f"{card.parameters:,} parameters", f"{card.layers} × {card.heads} heads", f"{1 + ACROSS**2} tokens"]
    line += [card.device, card.dtype, f"{made.milliseconds:.0f}{SPACE}ms"]
    st.caption(literal(" · ".join(line)))


def _clickable(figure: Any, key: str, take: Callable[[int], None]) -> None:
    """Put a figure on the page that hands on the number of the square that is clicked."""

    def clicked() -> None:
        chosen = (st.session_state.get(key) or {}).get("selection", {}).get("point_indices", [])
        if len(chosen) == 1 and isinstance(chosen[0], int):
            take(chosen[0])

    st.plotly_chart(figure, theme=None, config=CONFIG, key=key, on_select=clicked, selection_mode="points")


def _pick_patch(patch: int) -> None:
    """Show a patch's row; the same patch again goes back to the class token's."""
    if 0 <= patch < ACROSS**2:
        state.set(vit_token=0 if state.view().vit_token == 1 + patch else 1 + patch)
