"""The controls of the page Cost: which model, how long a text, what is done with it, and how attention is computed."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from app import state
from app.build_words import group_label
from app.cost_plan import CostPlan, pairs_of, plan_of, titles
from app.shell import literal
from app.view_cost import MOST_TEXTS, MOST_TOKENS
from engine.cost import BYTES

JOBS = {"read": "Reading", "write": "One more token", "train": "Training"}
FROM = {"length": "A length", "sentence": "The typed sentence"}
PAIRS = {"all": "All pairs", "visible": "Only the visible"}
KERNELS = {"standard": "Standard", "flash": "FlashAttention", "window": "Window"}
JOB_HELP = (
    "Reading: all tokens go through the model at once. One more token: n tokens are in the cache, and the model reads "
    "one more. Training: reading, and then gradients, counted as twice as much again."
)
PAIRS_HELP = (
    "Under a causal mask half of all pairs of tokens are hidden. All pairs: everything is computed, then hidden. Only "
    "the visible: a causal kernel may skip the hidden half, and what a window hides. A window that you choose begins "
    "with that."
)
KERNEL_HELP = (
    "Standard builds the matrix of weights in memory. FlashAttention computes the same numbers block by block and "
    "never builds it: as many operations, far less memory. A sliding window lets a token see only its last n."
)
SLIDER = sorted({2**power for power in range(20)} | {3 * 2**power for power in range(19)} | {MOST_TOKENS})
NARROW, EXACT, HALF, WIDE = 130, 150, 180, 240


def planned() -> CostPlan:
    """Read the controls, make them fit together, and say so where that changed one.

    Raises:
        EngineError: the model cannot be loaded, or the sentence is blank.
    """
    plan, changed, said = plan_of(state.view())
    for sentence in said:
        state.note(sentence)
    if changed:
        state.amend(**changed)
    return plan


def controls(plan: CostPlan) -> None:
    """Draw the controls."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="cost_model_bar"):
        _model(plan)
        _heads(plan)
        _pick("cost_job", "What is done", {name: JOBS[name] for name in JOBS if name != "write" or plan.own.writes},
              JOB_HELP)  # fmt: skip
        _pick("cost_kernel", "Attention", KERNELS, KERNEL_HELP)
        if plan.window is not None:
            st.number_input("Window (tokens)", 1, MOST_TOKENS, width=EXACT, **state.mirror("cost_window"))
    with st.container(horizontal=True, vertical_alignment="bottom", key="cost_length_bar"):
        _length(plan)
        _pick("cost_pairs", "Pairs counted", PAIRS, PAIRS_HELP, plan.pairs)
        st.selectbox(
            "Precision", list(BYTES), width=NARROW, help="What each number is stored in: 8, 4, 2 or 1 bytes.",
            **state.mirror("cost_dtype"),
        )  # fmt: skip
        st.number_input("Texts at once", 1, MOST_TEXTS, width=NARROW, help="The batch.", **state.mirror("cost_batch"))


def _model(plan: CostPlan) -> None:
    names = titles()
    st.selectbox(
        "Model",
        list(names),
        format_func=names.__getitem__,
        width=WIDE,
        **state.mirror("cost_of", value=plan.of, then=_own_heads),
    )


def _own_heads() -> None:
    """Let another model stand as it was made."""
    state.set(cost_groups=None)


def _heads(plan: CostPlan) -> None:
    heads = plan.own.config.heads
    divisors = [number for number in range(heads, 0, -1) if heads % number == 0]
    st.selectbox(
        "Key-value heads",
        divisors,
        format_func=lambda groups: _group_name(groups, plan),
        width=HALF,
        help="MHA, multi-head: every query head has keys and values of its own. GQA, grouped-query: a few share them. "
        "MQA, multi-query: all share one.",
        **state.mirror("cost_groups", value=plan.sizes.config.G),
    )


def _group_name(groups: int, plan: CostPlan) -> str:
    own = " (as made)" if groups == plan.own.config.G else ""
    return group_label(groups, plan.own.config.heads) + own


def _length(plan: CostPlan) -> None:
    n = plan.job.tokens
    st.select_slider(
        "n, how long the text is (tokens)",
        sorted({*SLIDER, n}),
        format_func="{:,}".format,
        width=WIDE,
        **state.mirror("cost_tokens", where="slider", value=n, then=_by_length),
    )
    st.number_input(
        "n exactly",
        1,
        width=EXACT,
        **state.mirror("cost_tokens", where="exact", value=n, then=_in_range),
    )
    if plan.sentence is not None:
        _pick("cost_from", "n follows", FROM, "As many tokens as the sentence above has, or a length of your own.")


def _in_range() -> None:
    """Bring a length that is longer than any that is counted back into range, and say so."""
    if state.asked().cost_tokens > MOST_TOKENS:
        state.note(f"Texts of up to {MOST_TOKENS:,} tokens are counted: showing that.")
        state.set(cost_tokens=MOST_TOKENS)
    _by_length()


def _by_length() -> None:
    state.set(cost_from="length")


def _pick(field: str, label: str, names: dict[str, str], tip: str, value: str | None = None) -> None:
    st.segmented_control(
        label,
        list(names),
        format_func=names.__getitem__,
        required=True,
        wrap=True,
        help=tip,
        **state.mirror(field, value=value or getattr(state.view(), field), then=_as_usual if value else None),
    )


def _as_usual() -> None:
    """Forget which pairs were chosen where they are those of the kernel, so that another kernel brings its own."""
    asked = state.asked()
    if asked.cost_pairs == pairs_of(replace(asked, cost_pairs=None)):
        state.set(cost_pairs=None)


def about(plan: CostPlan) -> None:
    """Say which sizes the numbers come from, and where the model's own parts differ."""
    sizes, config = plan.sizes, plan.sizes.config
    named = {
        "layers": f"L = {sizes.decoder_layers or config.layers:,}",
        "query heads": f"H = {config.heads:,}",
        "key-value heads": f"G = {config.G:,}",
        "width of a head": f"D = {config.D:,}",
        "width": f"C = {config.width:,}",
        "feed-forward width": f"F = {config.feed_forward:,}",
    }
    if config.vocabulary:
        named["vocabulary"] = f"V = {config.vocabulary:,}"
    parts = [f"{name} {value}" for name, value in named.items()]
    image = "One token is a patch of the image, and one more stands for all of it." if plan.is_image else ""
    text = f"{sizes.name}: {', '.join(parts)}; {sizes.parameters:,} parameters."
    st.caption(literal(" ".join(filter(None, [text, _two_stacks(plan), _windows(plan), image, sizes.note]))))


def _two_stacks(plan: CostPlan) -> str:
    if plan.sizes.decoder_layers and plan.sizes.decoder_layers != plan.sizes.attentions:
        return f"An encoder of {plan.sizes.config.layers} layers reads one text of n tokens, the decoder another."
    return ""


def _windows(plan: CostPlan) -> str:
    """Say where a model has windows of its own."""
    spans = {span for span in plan.sizes.windows if span is not None}
    if plan.window is not None or not spans:
        return ""
    some = "its layers see" if None not in plan.sizes.windows else "some of its layers see"
    reach = ", ".join(f"{span:,}" for span in sorted(spans))
    return f"As made, {some} only the last {reach} tokens."
