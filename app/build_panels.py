"""The page Build: switches, the transformer that they make, its shapes, its size, its attention, its code."""

from __future__ import annotations

import streamlit as st

from app import charts, state
from app.build_attention import attention
from app.build_cache import cache_panel
from app.build_code import code
from app.build_numbers import Facts, facts_of, words_of
from app.build_plan import Plan
from app.build_reach import family_sentences
from app.build_switches import half_bar, planned, start_bar, switches
from app.build_words import (
    FEEDS,
    HEADINGS,
    NORMS,
    ORDERS,
    mask_words,
    sharing_name,
    times_text,
)
from app.charts_build import Labels, block_diagram, steps_table
from app.charts_build_parts import parts_bars
from app.panels import is_dark
from app.phrases import percent
from app.shell import literal
from app.view_build import OWN
from engine import Prompt

# Room kept free while the page loads, so that nothing jumps: about as much as comes there.
ROOM = """<style>
.st-key-build_bar { min-height: 69px; }
.st-key-build_switches { min-height: 30rem; }
.st-key-build_diagram { min-height: 50rem; }
.st-key-build_table { min-height: 38rem; }
.st-key-sharing { min-height: 210px; }
.st-key-untrained, .st-key-whole { min-height: 560px; }
</style>"""


def build_page() -> None:
    """Draw the page.

    Raises:
        TextError: the sentence is blank.
    """
    st.html(ROOM)
    plan, fitted = planned()
    prompt = words_of(state.view().sentence, plan)
    facts = facts_of(plan, 1 if prompt is None else len(prompt))
    for sentence in () if prompt is None else prompt.notices:
        st.caption(literal(sentence))
    start_bar(plan)
    st.markdown(_headline(plan, facts))
    reading = half_bar(plan)
    left, middle, right = st.columns([31, 37, 47], gap="medium")
    with left, st.container(key="build_switches"):
        switches(plan, fitted)
    with middle:
        _diagram(plan, facts, prompt, reading)
    with right:
        _table(plan, facts, prompt, reading)
    left, right = st.columns(2, gap="large")
    with left:
        _parameters(plan, facts)
    with right:
        cache_panel(plan, facts)
    attention(plan, prompt)
    code(plan, facts)


def _headline(plan: Plan, facts: Facts) -> str:
    changed = plan.changed()
    begun = "" if plan.start == OWN else f" from {plan.title}"
    start = f" Changed{begun}: {', '.join(changed)}." if changed else " Flip a switch, and all below follows."
    return f"#### {HEADINGS[plan.family]} with {facts.total:,} parameters\n{family_sentences(plan)}{start}"


def labels_of(plan: Plan, prompt: Prompt | None, *, reading: bool = False) -> Labels:
    """Say what the boxes of the diagram are called; `reading` for the encoder of an encoder–decoder."""
    kind = sharing_name(plan.query_heads, plan.kv_heads).capitalize()
    heads = f"{plan.query_heads} head{'s' * (plan.query_heads > 1)}"
    begins = "an image" if prompt is None else f"{len(prompt)} token{'s' * (len(prompt) > 1)}, as numbers"
    aside, ends = _beside(plan, reading)
    return Labels(
        norm=NORMS[plan.norm],
        attention=f"{kind} attention, {heads}",
        feed_forward=f"Feed-forward, {FEEDS[plan.feed]}",
        positions={"alibi": "ALiBi", "relative": "T5 buckets"}.get(
            plan.word_order, f"{ORDERS[plan.word_order].lower()} positions"
        ),
        mask=mask_words("encoder" if reading else plan.family, plan.sees, plan.span),
        layers=plan.depth,
        begins=begins,
        normed=plan.qk_norm,
        aside=aside,
        ends=ends,
    )


def _beside(plan: Plan, reading: bool) -> tuple[str, str]:
    """Say what stands beside the half that is drawn, and where its output goes."""
    if plan.family != "both":
        return "", ""
    shared = "The token embedding is the same for both and counts once."
    if reading:
        return f"The encoder is drawn. {shared}", "goes into every cross-attention of the decoder"
    return (
        "The decoder is drawn; here it reads the same sentence as the encoder beside it, whose output goes into each "
        f"cross-attention. {shared}",
        "",
    )


def _diagram(plan: Plan, facts: Facts, prompt: Prompt | None, reading: bool) -> None:
    steps = facts.reading if reading else facts.steps
    with st.container(key="build_diagram"):
        st.html(block_diagram(steps, labels_of(plan, prompt, reading=reading), dark=is_dark()))
    st.caption(
        "In the boxes: learned parameters. Beside the arrows: shapes. The line on the left is the residual path: what "
        "came in goes past unchanged, and what the part says is added to it."
    )


def _table(plan: Plan, facts: Facts, prompt: Prompt | None, reading: bool) -> None:
    with st.container(key="build_table"):
        st.html(steps_table(facts.reading if reading else facts.steps, plan.depth, dark=is_dark()))
    letters = ["T tokens", "S tokens looked at", "C width", "H heads", "G key-value heads", "D width of a head"]
    letters += ["F feed-forward width"] + ["V vocabulary"] * plan.reads_text
    st.caption(
        f"{', '.join(letters)}. {_whose(prompt)} They were found by running the model itself, without numbers. Scores "
        "and weights, in italics, are never stored as a whole: the fast kernel makes them block by block."
    )


def _whose(prompt: Prompt | None) -> str:
    if prompt is None:
        return "An image is cut into patches, which are its tokens: the shapes are those for one image."
    most = f", the first {len(prompt)} words of it" if prompt.cut else ""
    return f"The shapes are those for your sentence{most}. Here every word counts as one token."


def _parameters(plan: Plan, facts: Facts) -> None:
    st.markdown("#### Where its parameters are")
    st.plotly_chart(parts_bars(facts.parts, dark=is_dark()), theme=None, config=charts.CONFIG, key="parts")
    st.markdown(f"**{facts.total:,}** in all. {_neighbour(plan, facts)}{where_most(plan, facts)}")


def _neighbour(plan: Plan, facts: Facts) -> str:
    """Name the nearest known model, unless that is just what was chosen."""
    same = facts.total == facts.neighbour_total
    if plan.start != OWN and not plan.changed():
        return ""
    mine = f"this one has {times_text(facts.total / facts.neighbour_total)} × as many"
    return (
        f"The nearest known model is {facts.neighbour.title} with {facts.neighbour_total:,}: "
        f"{'exactly as many as this one' if same else mine}. "
    )


def where_most(plan: Plan, facts: Facts) -> str:
    """Say which part has the largest share of the parameters, how large it is, and why."""
    part = max(facts.parts, key=lambda name: facts.parts[name])
    share = facts.parts[part] / facts.total
    why = {
        "token embedding": ": one row for every token it may meet; that share shrinks as a model grows",
        "feed-forward": ": every layer has its own",
        "attention": ": four matrices in every layer, for queries, keys, values, and the way back",
    }.get(part, "")
    if part == "feed-forward" and plan.inner > plan.width:
        why = ": its matrices are the widest, and every layer has its own"
    most = "Most" if share > 0.5 else "The largest share"
    return f"{most}, {percent(share)}, {'are' if share > 0.5 else 'is'} in the {part}{why}."
