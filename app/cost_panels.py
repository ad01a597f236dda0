"""The page Cost: how much work and memory a text takes, why that grows as it does, and what it comes to in seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from app import charts, cost_words
from app.charts_cost import Dash, Mark, Role, Series, cost_curves
from app.charts_cost_tables import cost_table
from app.cost_controls import about, controls, planned
from app.cost_measure import measured
from app.cost_memory import memory_text
from app.cost_numbers import (
    ACTIVATIONS,
    AT_ONCE,
    CACHE,
    FLASH,
    GRADIENTS,
    KEPT,
    MOMENTS,
    PARAMETERS,
    QUADRATIC,
    by_part,
    is_held,
    layers_differ,
    lengths_drawn,
    memory_curves,
    memory_rows,
    operation_rows,
    overtakes,
    shown_name,
)
from app.cost_plan import CostPlan
from app.cost_sharing import sharing_panel
from app.cost_table import cost_csv, formulas
from app.cost_time import seconds_panel
from app.cost_units import bytes_both, flop_text
from app.panels import is_dark
from app.view_cost import MOST_TOKENS

LOOKS: dict[str, tuple[Role, Dash]] = {
    "in all": ("total", "solid"), PARAMETERS: ("before", "solid"),
    QUADRATIC: ("accent", "solid"), "projections": (0, "solid"), "feed-forward": (1, "dash"), "head": ("before", "dot"),
    "patches": ("before", "dashdot"), KEPT: ("accent", "solid"), AT_ONCE: ("accent", "dash"), FLASH: (0, "dot"),
    CACHE: (1, "solid"), ACTIVATIONS: ("total", "dash"),
    GRADIENTS: (1, "dot"), MOMENTS: (1, "solid"),
}  # fmt: skip


def cost_page() -> None:
    """Draw the page.

    Raises:
        EngineError: the model cannot be loaded, or the sentence is blank.
    """
    plan = planned()
    controls(plan)
    about(plan)
    _answer(plan)
    left, right = st.columns(2, gap="large")
    with left:
        _operations(plan)
    with right:
        _memory(plan)
    _table(plan)
    sharing_panel(plan)
    seconds_panel(plan)
    measured(plan)


def _answer(plan: CostPlan) -> None:
    st.markdown(cost_words.headline(plan))
    left, right = st.columns(2, gap="large")
    left.markdown(cost_words.doubling(plan))
    left.markdown(cost_words.overtaking_text(plan))
    right.markdown(cost_words.sentence_text(plan))
    right.markdown(cost_words.book_text(plan))


def _marks(plan: CostPlan, *, overtaking: bool) -> list[Mark]:
    named = {
        "n": plan.job.tokens,
        "your sentence": plan.sentence,
        "attention overtakes": overtakes(plan) if overtaking else None,
        "reads at most" if plan.ends else "trained on": plan.limit,
    }
    return [
        Mark(name, length, main=name == "n")
        for name, length in named.items()
        if length is not None and length <= MOST_TOKENS
    ]


def _operations(plan: CostPlan) -> None:
    marks = _marks(plan, overtaking=True)
    lengths = lengths_drawn(*(mark.tokens for mark in marks))
    counted = [by_part(plan, plan.at(length)) for length in lengths]
    names = [name for name in LOOKS if any(name in counts for counts in counted)]
    lines = {name: [counts.get(name) for counts in counted] for name in names}
    series = [_series("in all", lengths, [sum(counts.values()) for counts in counted], flop_text, "FLOP")]
    series += [_series(name, lengths, values, flop_text, "FLOP") for name, values in reversed(lines.items())]
    figure = cost_curves(
        series, unit="FLOP", title=cost_words.title(plan),
        y_title="floating-point operations (FLOP)", marks=marks, dark=is_dark(),
    )  # fmt: skip
    st.plotly_chart(figure, theme=None, config=charts.CONFIG, key="cost_work")
    st.markdown(f"{cost_words.picture_text(plan)} {cost_words.beyond_limit(plan)}")


def _memory(plan: CostPlan) -> None:
    marks = _marks(plan, overtaking=False)
    lengths = lengths_drawn(*(mark.tokens for mark in marks))
    held = memory_curves(plan, lengths)
    series = [
        _in_memory(plan, _series(name, list(held[name]), list(held[name].values()), bytes_both, "B"))
        for name in LOOKS
        if name in held
    ]
    figure = cost_curves(
        series, unit="B", title=f"Memory in {plan.dtype}{cost_words.batch_text(plan)}",
        y_title="bytes (1 KiB is 1,024 B)", marks=marks, dark=is_dark(),
    )  # fmt: skip
    st.plotly_chart(figure, theme=None, config=charts.CONFIG, key="cost_memory")
    st.markdown(memory_text(plan))


def _in_memory(plan: CostPlan, drawn: Series) -> Series:
    """Name a curve as this question has it, and draw what another kernel would need thin and dotted."""
    name = shown_name(drawn.name, plan)
    if not is_held(drawn.name, plan):
        return replace(drawn, name=f"{name}, not built", role="before", dash="dot")
    chosen = drawn.name == FLASH
    return replace(drawn, name=name, role="accent" if chosen else drawn.role, dash="solid" if chosen else drawn.dash)


def _series(
    name: str, lengths: Sequence[int], values: Sequence[int | None], text: Callable[[int], str], unit: str
) -> Series:
    role, dash = LOOKS[name]
    texts = ["" if value is None else f"{value:,} {unit}, {text(value)}" for value in values]
    return Series(name, lengths, values, texts, role, dash)


def _table(plan: CostPlan) -> None:
    st.markdown("#### Part by part")
    rows = [*operation_rows(plan), *memory_rows(plan)]
    drawn = cost_table(rows, plan.job.tokens, mean=layers_differ(plan), thing=cost_words.thing(plan), dark=is_dark())
    st.html(drawn)
    with st.container(horizontal=True, vertical_alignment="center", key="cost_csv_bar"):
        st.caption(
            f"{cost_words.PAIRS[plan.pairs].capitalize()}. A multiplication and an addition count as two operations. "
            "Norms, activation functions and sums are left out: they are no products, and next to nothing. "
            "Hover a number to see it in full."
        )
        st.download_button(
            "CSV", lambda: cost_csv(plan, rows), file_name="cost.csv", mime="text/csv", on_click="ignore",
            help="The numbers of the table, exact",
        )  # fmt: skip
    _formulas(plan)


def _formulas(plan: CostPlan) -> None:
    what = "For one text, read once"
    if plan.job.step == "write":
        what = "For one new token after the n of one text"
    with st.expander("The formulas, with this model's numbers"), st.container(key="cost_formulas"):
        st.markdown(
            f"{what}: each line says what one layer or attention costs, then that times how many there "
            "are; where they differ, their sum. "
            "Training is three times as many operations, and so many texts so many times as much. b is bytes per "
            "number."
        )
        for name, formula in formulas(plan):
            st.markdown(name[:1].upper() + name[1:])
            st.latex(formula)
