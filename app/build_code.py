"""The code of exactly what was built: what to type, and the engine's own source of the parts it is made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import streamlit as st

from app.build_numbers import Facts
from app.build_plan import Plan, snippet
from engine.attention import attend
from engine.blocks import Attention, Block, FeedForward, GatedFeedForward, LayerNorm, RMSNorm
from engine.config import GATED
from engine.positions import ALiBi, Learned, Positions, RelativeBuckets, Sinusoidal
from engine.rotary import Rotary

POSITIONS: dict[str, type[Positions]] = {
    "learned": Learned,
    "sinusoidal": Sinusoidal,
    "rotary": Rotary,
    "alibi": ALiBi,
    "relative": RelativeBuckets,
    "none": Positions,
}


def code(plan: Plan, facts: Facts) -> None:
    """Show the call that builds it, and the source of its parts."""
    st.markdown("#### The code of exactly this")
    st.markdown("In a terminal or a notebook beside this app, these lines build it:")
    st.code(snippet(plan, facts.total), language="python")
    with st.expander("The source of its parts"):
        parts = parts_of(plan)
        for part, tab in zip(parts, st.tabs([part.__name__ for part in parts]), strict=True):
            with tab:
                st.code(inspect.getsource(part), language="python")


def parts_of(plan: Plan) -> list[Callable[..., Any]]:
    """List what a layer of this plan is made of, as the engine has it."""
    return [
        Block,
        Attention,
        GatedFeedForward if plan.feed in GATED else FeedForward,
        LayerNorm if plan.norm == "layer" else RMSNorm,
        POSITIONS[plan.word_order],
        attend,
    ]
