"""What ran and how it was checked, in a line, and the model's card one click away."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable

import streamlit as st
import torch

from app.scene import Scene, audit_text
from app.shell import literal
from app.trained_card import learned
from app.view import MAX_CHARACTERS
from engine.attention import Call, attend
from engine.audit import TOLERANCES


def facts(scene: Scene, table: Callable[[Scene], bytes] | None = None, file_name: str = "attention.csv") -> None:
    """Say in one line what ran and how it was checked, with the details one click away.

    Args:
        scene: what the page draws.
        table: writes its numbers as CSV, where the page has numbers to hand out.
        file_name: what that file is called.
    """
    trace, card = scene.trace, scene.trace.card
    audit, fine = audit_text(scene)
    limit = f" of {card.limit:,}" if card.limit else ""
    line = [
        card.name,
        _counted(card.parameters),
        f"{trace.layers(scene.kind)} × {trace.heads(scene.kind)} heads",
        f"{len(trace.tokens)}{limit} tokens",
        f"{len(scene.view.sentence):,} of {MAX_CHARACTERS:,} characters",
        f"{card.device}, {card.dtype}",
        card.backend,
        f"{trace.milliseconds:.0f} ms",
        audit,
    ]
    with st.container(horizontal=True, vertical_alignment="center", key="facts"):
        st.caption(literal(" · ".join(line)))
        if table is not None:
            st.download_button(
                "CSV",
                lambda: table(scene),
                file_name=file_name,
                mime="text/csv",
                on_click="ignore",
                help="The numbers of the map",
            )
        with st.popover("Details"):
            _details(scene)
    if not fine:
        st.warning(literal(f"The check failed: {audit}."))


def _counted(parameters: int) -> str:
    if parameters < 1e5:
        return f"{parameters / 1e3:,.0f} k parameters"
    return f"{parameters / 1e6:,.1f} M parameters"


def _with_code(text: str) -> str:
    """Write literal text whose command, between two backticks, is set as code."""
    before, *rest = text.split("`")
    if len(rest) != 2:
        return literal(text)
    return f"{literal(before)} `{rest[0]}`{literal(rest[1])}"


def _rounding(dtype: str) -> float:
    return TOLERANCES[getattr(torch, dtype)]


def _details(scene: Scene) -> None:
    card = scene.trace.card
    rows = {
        "Family": f"{card.family}, {card.style}",
        "Positions": card.positions,
        "Licence": card.licence,
    }
    if card.reason:
        rows["Run eagerly, because"] = card.reason
    if card.unexpected:
        rows["Weights without a place"] = ", ".join(card.unexpected[:5])
    lines = [f"- **{name}**: {literal(text)}" for name, text in rows.items()]
    st.markdown("\n".join([*lines, f"- **Weights**: {_with_code(card.source)}"]))
    if card.trained is not None:
        learned(card.trained)
    st.latex(r"\text{weights} = \text{softmax}\left(Q K^\top / \sqrt{D} + \text{bias} + \text{mask}\right)")
    if card.backend == "sdpa":
        st.markdown(
            "The model ran through PyTorch's `scaled_dot_product_attention`, which never builds the matrix you see. "
            "Its queries and keys were recorded, and the weights are recomputed from them exactly. The audit "
            "multiplies these weights with the values and compares with what the fast kernel returned: the largest "
            f"difference, relative to the largest output. In {card.dtype}, up to {_rounding(card.dtype):.0e} is "
            "rounding; a sentence alone and the same one in a batch may differ by as much."
        )
    else:
        st.markdown("This model cannot be recorded, so it returned its own weights; there is nothing to audit.")
    st.markdown("Layers and heads count from 0. The code that computes the weights:")
    st.code(textwrap.dedent(inspect.getsource(Call.weights)), language="python")
    st.code(inspect.getsource(attend), language="python")
