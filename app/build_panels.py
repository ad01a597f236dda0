"""The page Build: switches, the transformer that they make, its shapes, its size, its attention, its code."""

from __future__ import annotations

import streamlit as st

from app import charts, state
from app.build_attention import attention
from app.build_code import code
from app.build_numbers import Facts, facts_of, words_of
from app.build_plan import Plan
from app.build_switches import planned, start_bar, switches
from app.build_words import (
    FAMILY_SENTENCES,
    FEEDS,
    HEADINGS,
    NORMS,
    ORDERS,
    bytes_text,
    mask_words,
    sharing_name,
    times_text,
)
from app.charts_build import Labels, block_diagram, steps_table
from app.charts_build_parts import parts_bars, sharing
from app.panels import is_dark
from app.shell import literal
from app.view_build import OWN
from engine import Prompt

SAMPLE = 1000  # words, for saying what a cache comes to


def build_page() -> None:
    """Draw the page.

    Raises:
        TextError: the sentence is blank.
    """
    plan = planned()
    prompt = words_of(state.view().sentence, plan)
    facts = facts_of(plan, 1 if prompt is None else len(prompt))
    for sentence in () if prompt is None else prompt.notices:
        st.caption(literal(sentence))
    start_bar(plan)
    st.markdown(_headline(plan, facts))
    left, middle, right = st.columns([31, 37, 47], gap="medium")
    with left:
        switches(plan)
    with middle:
        st.html(block_diagram(facts.steps, labels_of(plan, prompt), dark=is_dark()))
        _below_diagram()
    with right:
        _table(plan, facts, prompt)
    left, right = st.columns(2, gap="large")
    with left:
        _parameters(plan, facts)
    with right:
        _cache(plan, facts)
    attention(plan, prompt)
    code(plan, facts)


def _headline(plan: Plan, facts: Facts) -> str:
    changed = plan.changed()
    begun = "" if plan.start == OWN else f" from {plan.title}"
    start = f" Changed{begun}: {', '.join(changed)}." if changed else " Flip a switch, and all below follows."
    return f"#### {HEADINGS[plan.family]} with {facts.total:,} parameters\n{FAMILY_SENTENCES[plan.family]}{start}"


def labels_of(plan: Plan, prompt: Prompt | None) -> Labels:
    """Say what the boxes of the diagram are called."""
    kind = sharing_name(plan.query_heads, plan.kv_heads).capitalize()
    heads = f"{plan.query_heads} head{'s' * (plan.query_heads > 1)}"
    begins = "an image" if prompt is None else f"{len(prompt)} word{'s' * (len(prompt) > 1)}, as numbers"
    aside = ""
    if plan.family == "both":
        aside = (
            f"The decoder is drawn. Beside it stands an encoder of {plan.depth} such layers, without cross-attention; "
            "what it makes of the sentence goes into each cross-attention."
        )
    return Labels(
        norm=NORMS[plan.norm],
        attention=f"{kind} attention, {heads}",
        feed_forward=f"Feed-forward, {FEEDS[plan.feed]}",
        positions={"alibi": "ALiBi", "relative": "relative bias"}.get(
            plan.word_order, f"{ORDERS[plan.word_order].lower()} positions"
        ),
        mask=mask_words(plan.family, plan.sees, plan.span),
        layers=plan.depth,
        begins=begins,
        normed=plan.qk_norm,
        aside=aside,
    )


def _below_diagram() -> None:
    st.caption(
        "In the boxes: learned parameters. Beside the arrows: shapes. The line on the left is the residual path: what "
        "came in goes past unchanged, and what the part says is added to it."
    )


def _table(plan: Plan, facts: Facts, prompt: Prompt | None) -> None:
    st.html(steps_table(facts.steps, plan.depth, dark=is_dark()))
    letters = ["T words", "S words looked at", "C width", "H heads", "G key-value heads", "D width of a head"]
    letters += ["F feed-forward width"] + ["V vocabulary"] * plan.reads_text
    st.caption(
        f"{', '.join(letters)}. {_whose(prompt)} They were found by running the model itself, without numbers. Scores "
        "and weights, in italics, are never stored as a whole: the fast kernel makes them block by block."
    )


def _whose(prompt: Prompt | None) -> str:
    if prompt is None:
        return "An image is cut into patches, which stand for words: the shapes are those for one image."
    most = f", the first {len(prompt)} words of it" if prompt.cut else ""
    return f"The shapes are those for your sentence{most}."


def _parameters(plan: Plan, facts: Facts) -> None:
    st.markdown("#### Where its parameters are")
    st.plotly_chart(parts_bars(facts.parts, dark=is_dark()), theme=None, config=charts.CONFIG, key="parts")
    ratio = facts.total / facts.neighbour_total
    same = facts.total == facts.neighbour_total
    mine = "exactly as many as this one" if same else f"this one has {times_text(ratio)} × as many"
    st.markdown(
        f"**{facts.total:,}** in all. The nearest known model is {facts.neighbour.title} with "
        f"{facts.neighbour_total:,}: {mine}. {_where_most(facts)}"
    )


def _where_most(facts: Facts) -> str:
    part = max(facts.parts, key=lambda name: facts.parts[name])
    why = {
        "token embedding": "one row for every word it may meet; that share shrinks as a model grows",
        "feed-forward": "its matrices are the widest, and every layer has its own",
        "attention": "four matrices in every layer: for queries, keys, values, and the way back",
    }.get(part)
    return "" if why is None else f"Most are in the {part}: {why}."


def _cache(plan: Plan, facts: Facts) -> None:
    heads, groups = plan.query_heads, plan.kv_heads
    st.markdown(f"#### {sharing_name(heads, groups).capitalize()} attention, and the cache")
    st.plotly_chart(sharing(heads, groups, dark=is_dark()), theme=None, config=charts.CONFIG, key="sharing")
    st.markdown(f"{_shared(heads, groups)} {_kept(plan, facts)}")


def _shared(heads: int, groups: int) -> str:
    if heads == 1:
        return "There is one head, with keys and values of its own."
    if heads == groups:
        return "Every query head has keys and values of its own."
    every = f"All {heads} query heads share" if groups == 1 else f"Every {heads // groups} query heads share"
    return f"{every} one head of keys and values: each still asks its own question, but they look in the same place."


def _kept(plan: Plan, facts: Facts) -> str:
    if not facts.cached:
        kind = {"vision": "A vision transformer", "classifier": "A classifier"}.get(plan.family, "An encoder")
        return f"{kind} keeps no cache: it reads everything at once and writes nothing."
    if not plan.looks_back_only:
        return (
            "Looking both ways it can keep no cache: each new word would change what the earlier words have made of "
            "themselves."
        )
    single, half = 4 * facts.cached, 2 * facts.cached
    text = (
        f"While it writes, a cache keeps the keys and values of all earlier words: **{facts.cached:,} numbers per "
        f"word**, over all layers. That is {bytes_text(single)} in float32 and {bytes_text(half)} in bfloat16 for each "
        f"word, and {bytes_text(SAMPLE * half)} in bfloat16 for {SAMPLE:,} words (1\u202fKiB is 1,024\u202fB)."
    )
    if facts.cached < facts.cached_multi_head:
        text += f" With multi-head attention it would be {facts.cached_multi_head // facts.cached} times as much."
    return text
