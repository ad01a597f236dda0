"""The switches of the page Build: where to start from, and every part that can be exchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

import streamlit as st

from app import state
from app.build_plan import Plan, groups_for, heads_for, plan_of, plan_of_start, title_of
from app.build_reach import part_masks
from app.build_words import (
    DEPTHS,
    FAMILIES,
    FEEDS,
    KNOWN_VOCABULARIES,
    MASKS_SEEN,
    NORM_PLACES,
    NORMS,
    ORDERS,
    OUTPUTS,
    PLACES,
    SPANS,
    WIDTHS,
    group_label,
    mask_words,
    times_label,
)
from app.shell import literal
from app.view_build import OWN, BuildChoices
from engine import PRESETS

HALF = 150  # pixels: two switches side by side in a column, and on a telephone
SHARING = (
    "MHA, multi-head: every query head has keys and values of its own. GQA, grouped-query: a few query heads share "
    "them. MQA, multi-query: all share one."
)
INSIDE = "Numbers per token inside the feed-forward layer; in brackets, how many times the width that is."
HALVES = {"decoder": "Its decoder", "encoder": "Its encoder"}
INNER_TIMES = (1.0, 2.0, 8 / 3, 3.5, 4.0, 8.0)


def planned() -> tuple[Plan, list[str]]:
    """Read the switches, make them fit together, and say why where that changed one.

    What the reader set by hand is put right for good. What stands as the start has it is only shown otherwise: it comes
    back by itself once it fits again.
    """
    view = state.view()
    plan, said = plan_of(view)
    by_hand = {field: getattr(plan, field) for field in said if getattr(view, field) is not None}
    if by_hand:
        state.amend(**by_hand)
    return plan, list(said.values())


def start_bar(plan: Plan) -> None:
    """Draw what to start from, and the family."""
    with st.container(horizontal=True, vertical_alignment="top", key="build_bar"):
        st.selectbox(
            "Start from",
            [OWN, *PRESETS],
            format_func=title_of,
            width=240,
            **state.mirror("start", value=plan.start, then=_fill),
        )
        families = [name for name in FAMILIES if name in ("encoder", "decoder", "both", plan.family)]
        st.segmented_control(
            "Family",
            families,
            format_func=FAMILIES.__getitem__,
            required=True,
            wrap=True,
            **state.mirror("family", value=plan.family),
        )


def _fill() -> None:
    """Let every switch stand as the new start has it."""
    state.set(**{field.name: field.default for field in fields(BuildChoices) if field.name != "start"})


def half_bar(plan: Plan) -> bool:
    """Let the reader choose which half of an encoder–decoder is drawn and listed; True for its encoder."""
    if plan.family != "both":
        return False
    chosen = state.view().looked_at
    st.segmented_control(
        "Look at",
        list(HALVES),
        format_func=HALVES.__getitem__,
        required=True,
        **state.mirror("looked_at", value=chosen),
    )
    return chosen == "encoder"


def switches(plan: Plan, fitted: Iterable[str] = ()) -> None:
    """Draw a switch for every part, and say why some stand otherwise than they were set."""
    _pick("feed", "Feed-forward", _feeds(plan), FEEDS | {"gelu_tanh": FEEDS["gelu"]}, plan)
    _pick("norm", "Norm", NORMS, NORMS, plan)
    _pick("norm_place", "Norm before or after each part", NORM_PLACES, NORM_PLACES, plan)
    with st.container(horizontal=True, key="build_sizes"):
        _choose("width", "Width", _among(WIDTHS, plan.width), plan, "{:,}".format, HALF)
        _choose("depth", "Depth, in layers", _among(DEPTHS, plan.depth), plan, str, HALF)
        _choose("query_heads", "Heads", heads_for(plan.width, plan.word_order), plan, str, HALF)
        _choose(
            "kv_heads", "Key-value heads", groups_for(plan.query_heads), plan,
            lambda groups: group_label(groups, plan.query_heads), HALF, SHARING,
        )  # fmt: skip
        _choose(
            "inner", "Inner width", _among(_inner_widths(plan.width), plan.inner), plan,
            lambda inner: times_label(inner, plan.width), HALF, INSIDE,
        )  # fmt: skip
        _choose("word_order", "Positions", ORDERS, plan, ORDERS.__getitem__, HALF)
    for sentence in fitted:
        st.caption(literal(sentence))
    _choose("sees", "Mask: who sees whom", MASKS_SEEN, plan, lambda sees: _mask_label(plan, sees))
    if plan.family == "both":
        st.caption(f"That is: {part_masks(plan)}.")
    if plan.sees == "window":
        _choose("span", "Window, in tokens", _among(SPANS, plan.span), plan, "{:,}".format)
    with st.expander("More switches"):
        _more(plan)


def _feeds(plan: Plan) -> list[str]:
    """List the activations; GELU in the form that the start was trained with, so that there is one of it."""
    tanh = "gelu_tanh" in (plan.feed, plan_of_start(plan.start).feed)
    return [name for name in FEEDS if name != ("gelu" if tanh and plan.feed != "gelu" else "gelu_tanh")]


def _more(plan: Plan) -> None:
    if plan.reads_text:
        _choose("vocabulary", "Vocabulary", _among(KNOWN_VOCABULARIES, plan.vocabulary), plan, _vocabulary_label)
    if plan.word_order == "learned" and plan.reads_text:
        _choose("places", "Longest text, in tokens", _among(PLACES, plan.places), plan, "{:,}".format)
    if plan.family in ("encoder", "decoder", "both"):
        _choose("output", "Head: what scores the tokens", OUTPUTS, plan, OUTPUTS.__getitem__)
    st.toggle("Biases: a learned constant in every linear layer", **state.mirror("biases", value=plan.biases))
    st.toggle("Norm queries and keys, too", **state.mirror("qk_norm", value=plan.qk_norm))


def _pick(field: str, label: str, options: Iterable[str], names: Mapping[str, str], plan: Plan) -> None:
    st.segmented_control(
        label,
        list(options),
        format_func=names.__getitem__,
        required=True,
        wrap=True,
        **state.mirror(field, value=getattr(plan, field)),
    )


def _choose(
    field: str,
    label: str,
    options: Iterable[Any],
    plan: Plan,
    name: Callable[[Any], str],
    width: int | None = None,
    tip: str | None = None,
) -> None:
    st.selectbox(
        label,
        list(options),
        format_func=name,
        help=tip,
        width="stretch" if width is None else width,
        **state.mirror(field, value=getattr(plan, field)),
    )


def _among(usual: Iterable[int], current: int) -> list[int]:
    return sorted({*usual, current})


def _inner_widths(width: int) -> list[int]:
    """Offer a few multiples of the width, in whole eights."""
    return [max(8, 8 * round(times * width / 8)) for times in INNER_TIMES]


def _mask_label(plan: Plan, sees: str) -> str:
    if sees == "family":
        own = (
            part_masks(replace(plan, sees=sees)) if plan.family == "both" else mask_words(plan.family, sees, plan.span)
        )
        return f"{MASKS_SEEN[sees]}: {own}"
    return MASKS_SEEN[sees]


def _vocabulary_label(size: int) -> str:
    known = KNOWN_VOCABULARIES.get(size)
    return f"{size:,} ({known})" if known else f"{size:,}"
