"""The controls of the page Train: what is learned, by which model, and the buttons that start, stop and rewind it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from app import cache, state
from app.cost_measure import owner
from app.train_plan import LESSONS, PACES, has_other_rate, is_same_model, lesson_of, plan_of, preset_of
from app.train_queue import Seen
from app.train_words import START_AGAIN
from app.view import View
from app.view_train import STEPS
from engine import EngineError
from engine.training.history import Past, Plan

AT = "train_at"  # the step that is looked at
PRESET = "train_preset"
WIDE = 160  # pixels
SAID = "train_said"  # why a training did not begin, to be shown once
PACE_NAMES = {"slow": "Slow: 20 steps a second", "watch": "To watch: 50 a second", "fast": "As fast as it goes"}


def controls(view: View) -> None:
    """Draw the choices that matter first, and the rest behind "more"."""
    lesson = lesson_of(view)
    with st.container(horizontal=True, vertical_alignment="center", key="train_bar"):
        if len(LESSONS) > 1:
            st.segmented_control(
                "What is learned", list(LESSONS), format_func=lambda kind: LESSONS[kind].name, required=True,
                label_visibility="collapsed", **state.mirror("learn"),
            )  # fmt: skip
        st.session_state[PRESET] = preset_of(view)
        st.pills(  # on a telephone they wrap, which joined buttons do badly
            "Model", list(lesson.presets), format_func=lesson.presets.__getitem__, wrap=True,
            label_visibility="collapsed", key=PRESET, on_change=_take_preset,
        )  # fmt: skip
        with st.popover("More"):
            lesson.more()
            with st.container(horizontal=True, key="train_length"):
                st.selectbox("Steps", STEPS, format_func="{:,}".format, width=150, **state.mirror("learn_steps"))
                st.selectbox("Pace", list(PACES), format_func=PACE_NAMES.__getitem__, width=300,
                             **state.mirror("learn_pace"))  # fmt: skip


def _take_preset() -> None:
    chosen = st.session_state[PRESET]
    if chosen is not None:
        state.set(**lesson_of(state.asked()).fields(chosen))


def buttons(own: Seen | None, drawn: Seen, plan: Plan) -> None:
    """Draw the buttons that fit: Start, or Pause and Cancel while it runs, or Go on while it stands still."""
    trainer, mine = cache.trainer(), owner()
    if own is not None and own.moves:
        if own.stage != "waiting":
            st.button("Pause", key="train_pause", on_click=trainer.pause, args=(mine,))
        name = "Leave the line" if own.stage == "waiting" else "Cancel"
        st.button(name, key="train_cancel", on_click=trainer.cancel, args=(mine,))
        return
    paused, again = own is not None and own.stage == "paused", own is not None and own.plan is drawn.plan
    if paused:
        st.button("Go on", type="primary", key="train_go", on_click=trainer.go_on, args=(mine,))
    st.button(
        START_AGAIN if again else "Start", type="secondary" if paused else "primary", width=WIDE, key="train_start",
        on_click=_start, args=(plan,),
    )  # fmt: skip
    at = looked_at(drawn)
    if own is not None and again and (not paused or at < own.checkpoints[-1].step or has_other_rate(own.plan, plan)):
        st.button(f"Go on from step {at:,}", key="train_from", on_click=_go_on_from, args=(drawn, at))


def looked_at(drawn: Seen) -> int:
    """Say which step is looked at: what the slider says, or the last."""
    steps = [checkpoint.step for checkpoint in drawn.checkpoints]
    at = st.session_state.get(AT)
    return at if at in steps and not drawn.moves else steps[-1]


def rewind(drawn: Seen) -> int:
    """Draw how far it is, or where it stands still a slider over its checkpoints; give the step that is looked at."""
    steps = [checkpoint.step for checkpoint in drawn.checkpoints]
    at = looked_at(drawn)
    if drawn.moves:
        # Scores are taken less often than checkpoints: the newest may lie before the step that it went on from.
        done = max(0, drawn.points[-1].step - drawn.first)
        st.progress(done / max(1, drawn.last - drawn.first))
        st.session_state.pop(AT, None)
    elif len(steps) == 1:
        st.progress(0.0)
    else:
        st.session_state[AT] = at
        st.select_slider(
            "Look at the step", steps, format_func=lambda step: f"step {step:,}", label_visibility="collapsed", key=AT
        )
    return at


def _start(plan: Plan) -> None:
    try:
        cache.trainer().start(owner(), plan)
    except EngineError as error:
        st.session_state[SAID] = str(error)


def _go_on_from(drawn: Seen, step: int) -> None:
    """Go on from a checkpoint, at the rate and for the steps that are chosen now."""
    wanted = plan_of(state.asked())
    plan = wanted if is_same_model(drawn.plan, wanted) else replace(wanted, settings=drawn.plan.settings)
    try:
        cache.trainer().start(owner(), plan, Past(drawn.points, drawn.checkpoints).until(step))
    except EngineError as error:
        st.session_state[SAID] = str(error)
