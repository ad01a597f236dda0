"""Heads that share keys and values, and what a cache of them comes to.

Dimensions: H heads, G key-value heads, D head width, L layers.
"""

from __future__ import annotations

import streamlit as st

from app import charts
from app.build_numbers import Facts
from app.build_plan import Plan
from app.build_words import bytes_text, sharing_name
from app.charts_build_parts import sharing
from app.panels import is_dark

SAMPLE = 1000  # tokens, for saying what a cache comes to


def cache_panel(plan: Plan, facts: Facts) -> None:
    """Draw which heads share keys and values, and say what is kept of them while writing."""
    heads, groups = plan.query_heads, plan.kv_heads
    st.markdown(f"#### {sharing_name(heads, groups).capitalize()} attention, and the cache")
    st.plotly_chart(sharing(heads, groups, dark=is_dark()), theme=None, config=charts.CONFIG, key="sharing")
    st.markdown(f"{_shared(heads, groups)} {kept(plan, facts)}")


def _shared(heads: int, groups: int) -> str:
    if heads == 1:
        return "There is one head, with keys and values of its own."
    if heads == groups:
        return "Every query head has keys and values of its own."
    every = f"All {heads} query heads share" if groups == 1 else f"Every {heads // groups} query heads share"
    return f"{every} one head of keys and values: each still asks its own question, but they look in the same place."


def kept(plan: Plan, facts: Facts) -> str:
    """Say what a cache keeps under the mask in force: numbers per token, and bytes."""
    if not facts.cached:
        kind = {"vision": "A vision transformer", "classifier": "A classifier"}.get(plan.family, "An encoder")
        return f"{kind} keeps no cache: it reads everything at once and writes nothing."
    if not plan.looks_back_only:
        who = "its decoder" if plan.family == "both" else "it"
        return (
            f"Looking both ways {who} can keep no cache: each new word would change what the earlier words have made "
            "of themselves."
        )
    single, half = 4 * facts.cached, 2 * facts.cached
    begins = (
        "While it writes, a cache keeps" if plan.output != "none" else "It has no head to write with; a cache keeps"
    )
    sentences = [
        f"{begins} the keys and values of all earlier tokens: **{facts.cached:,} numbers per token**, over all layers. "
        f"That is {bytes_text(single)} in float32 and {bytes_text(half)} in bfloat16 for each token, and "
        f"{bytes_text(SAMPLE * half)} in bfloat16 for {SAMPLE:,} tokens (1\u202fKiB is 1,024\u202fB)."
    ]
    if plan.sees == "window":
        sentences.append(_rolling(plan.span, half))
    if facts.cached < facts.cached_multi_head:
        sentences.append(
            f"With multi-head attention it would be {facts.cached_multi_head // facts.cached} times as much."
        )
    if facts.crossed:
        sentences.append(
            f"The keys and values of the other text, for cross-attention, are kept as well, made once: "
            f"**{facts.crossed:,} numbers per token of that text**, which do not grow while it writes."
        )
    return " ".join(sentences)


def _rolling(span: int, half: int) -> str:
    last = "newest token is" if span == 1 else f"last {span:,} tokens are"
    return (
        f"These numbers are for keeping all. Only the {last} ever read, so a rolling cache may drop the rest: it never "
        f"grows beyond {bytes_text(span * half)} in bfloat16."
    )
