"""The page Train: a model learns while one watches, and can be rewound to any step.

Dimensions: L layers, H heads, T tokens.
"""

from __future__ import annotations

import streamlit as st

from app import cache, state
from app.cost_measure import owner
from app.shell import literal
from app.train_controls import SAID, buttons, controls, looked_at, rewind
from app.train_pictures import pictures
from app.train_plan import is_same_model, lesson_of, plan_of
from app.train_queue import Seen, Stage
from app.train_words import stage_text
from engine.training.history import Plan, beginning

EVERY = 0.6  # seconds between two looks at a training that waits, and, for each of its models, at one that runs
BEGINNING_BYTES = 300_000
# Room for what comes and goes, so that nothing below it jumps; and no fading of what is drawn anew all the time.
ROOM = """<style>
.st-key-train_pictures [data-stale="true"], .st-key-train_line [data-stale="true"] { opacity: 1 !important; }
.st-key-train_line { min-height: 2.6rem; }
.st-key-train_steps { min-height: 3.2rem; }
.st-key-train_found { min-height: 3.2rem; }
.st-key-train_found_0, .st-key-train_found_1 { min-height: 6.4rem; }
</style>"""


def train_page() -> None:
    """Draw the page."""
    st.html(ROOM)
    view = state.view()
    lesson = lesson_of(view)
    st.markdown(f"#### Watch a model learn\n{lesson.introduction()}")
    controls(view)
    plan, stage = plan_of(view), _stage()
    if stage == "waiting":
        # A whole class may be waiting: nothing is drawn again and again but one line.
        st.fragment(_line, run_every=EVERY)(plan, stage)
        seen = shown(cache.trainer().seen(owner()), plan)
        pictures(seen, looked_at(seen))
    else:
        every = EVERY * len(plan.settings) if stage in ("starting", "running") else None
        st.fragment(_watch, run_every=every)(plan, stage)
    lesson.explanation()


def _stage() -> Stage | None:
    seen = cache.trainer().seen(owner())
    return None if seen is None else seen.stage


def _watch(plan: Plan, stage: Stage | None) -> None:
    """Draw all there is so far; while a training runs, this part alone is drawn again and again."""
    seen, at = _line(plan, stage)
    pictures(seen, at)


def _line(plan: Plan, stage: Stage | None) -> tuple[Seen, int]:
    """Draw the buttons and how far it is; give what is to be drawn, and the step that is looked at."""
    own = cache.trainer().seen(owner())
    if (None if own is None else own.stage) != stage:
        st.rerun()
    seen = shown(own, plan)
    with st.container(horizontal=True, vertical_alignment="center", key="train_line"):
        buttons(own, seen, plan)
        if said := st.session_state.pop(SAID, "") or stage_text(own, seen, plan, looked_at(seen)):
            st.markdown(literal(said))
    with st.container(key="train_steps"):
        return seen, rewind(seen)


def shown(own: Seen | None, plan: Plan) -> Seen:
    """Choose what is drawn: the session's own training, or the models that were chosen, before their first step.

    Raises:
        EngineError: a setting makes no model.
    """
    if own is not None and own.checkpoints and (own.moves or own.stage == "paused" or is_same_model(own.plan, plan)):
        return own
    past = cache.derived(("train", repr(plan.settings)), lambda: beginning(plan.settings), lambda made: BEGINNING_BYTES)
    last = plan.steps
    if own is not None and own.moves and is_same_model(own.plan, plan):
        return Seen(own.plan, past.points, past.checkpoints, own.stage, 0, own.last, own.before)
    return Seen(plan, past.points, past.checkpoints, "done", 0, last)
