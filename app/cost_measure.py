"""Predicted and measured: one layer of the model, run on this machine for growing lengths, beside the formula."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import streamlit as st
import torch
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import cache, charts, state
from app.charts_cost import Role, Series, Unit, cost_curves
from app.cost_bench import Seen
from app.cost_fitted import exponent_sentences, points_csv, points_table, speed_sentence
from app.cost_plan import CostPlan
from app.cost_units import bytes_both, time_text
from app.panels import is_dark
from app.shell import literal
from app.view import View
from app.view_cost import LONGEST, SECONDS
from engine import EncoderDecoder, EngineError
from engine.measuring import BYTES, Kernel, Plan, fitting, needed_bytes

OWNER = "bench_owner"
SAID = "bench_said"  # why a measurement did not begin, to be shown beside the button once
SHORTEST = 64  # tokens
MOST_BYTES = 2 * 2**30
EVERY = 0.7  # seconds between two looks at a measurement that runs
WHATS = {"attention": "Attention alone", "layer": "A whole layer"}
NAMES: dict[Kernel, str] = {"eager": "eager", "sdpa": "SDPA"}
ROLES: dict[Kernel, Role] = {"eager": "accent", "sdpa": 1}


def measured(plan: CostPlan) -> None:
    """Let the reader run one layer here, and draw what it took over what the formula says."""
    st.markdown("#### Predicted and measured")
    wanted = bench_plan(plan, state.view())
    st.markdown(
        f"So far everything was counted. One layer of {literal(plan.sizes.name)} with random weights can be run on "
        f"**this machine** ({wanted.device}, {wanted.dtype}), for texts of {SHORTEST} tokens and more, each twice as "
        "long as the last: once **eager**, softmax(Q Kᵀ) V spelt out with its matrix in memory, and once through "
        "**SDPA**, PyTorch's fast kernel, which computes the same numbers and never builds it."
    )
    _settings(wanted)
    for sentence in (*left_out(plan), *refused(wanted)):
        st.caption(literal(sentence))
    running = cache.bench().running
    st.fragment(_watch, run_every=EVERY if running else None)(plan, wanted, running)


def bench_plan(plan: CostPlan, view: View) -> Plan:
    """Plan the measurement: a layer of the model, on a GPU where there is one."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    lengths = [SHORTEST]
    while lengths[-1] < view.bench_longest:
        lengths.append(2 * lengths[-1])
    made = Plan.of(
        plan.sizes,
        what="layer" if view.bench_what == "layer" else "attention",
        lengths=tuple(lengths),
        dtype=plan.dtype if device == "cuda" and plan.dtype in BYTES else "float32",
        device=device,
        most_seconds=float(view.bench_seconds),
        most_bytes=MOST_BYTES,
    )
    return made if view.bench_causal is None else replace(made, causal=view.bench_causal)


def refused(wanted: Plan) -> list[str]:
    """Say which lengths will not be tried because they do not fit, with what they need and what there is."""
    reasons = (fitting(wanted, kernel).refused for kernel in NAMES)
    return [f"Not tried: {reason}" for reason in reasons if reason]


def left_out(plan: CostPlan) -> list[str]:
    """Say what of the model is not in the layer that is run."""
    found = []
    if plan.sizes.make is EncoderDecoder:
        found.append("What is run is a layer of the decoder without its attention across to the other text.")
    if any(span is not None for span in plan.sizes.windows):
        found.append("It is run without its window: every token sees as far as the mask lets it.")
    if plan.biased:
        found.append("It is run without the numbers that its positions add to the scores.")
    return found


def owner() -> str:
    """Give this session's name at the bench: Streamlit's own, by which it can be seen whether it is still there."""
    context = get_script_run_ctx()
    name: str = context.session_id if context is not None else st.session_state.setdefault(OWNER, uuid4().hex)
    return name


def measured_speed() -> float | None:
    """Say how many operations a second this machine reached in the last measurement, by the fast kernel."""
    seen = cache.bench().seen()
    rate = None if seen is None else seen.seconds_per_operation("sdpa")
    return None if rate is None or rate <= 0 else 1 / rate


def _settings(wanted: Plan) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", key="bench_bar"):
        st.segmented_control(
            "What is run", list(WHATS), format_func=WHATS.__getitem__, required=True, **state.mirror("bench_what")
        )
        st.selectbox(
            "Longest text (tokens)", LONGEST, format_func="{:,}".format, width=190, **state.mirror("bench_longest")
        )
        st.selectbox(
            "Ends after", SECONDS, format_func=lambda seconds: f"{seconds} s", width=130,
            **state.mirror("bench_seconds"),
        )  # fmt: skip
        st.toggle("Causal mask", **state.mirror("bench_causal", value=wanted.causal))


def _watch(plan: CostPlan, wanted: Plan, polled: bool) -> None:
    """Draw the buttons and what there is so far; while something runs, this part alone is drawn again and again."""
    bench = cache.bench()
    running = bench.running
    if running != polled:
        st.rerun()
    mine = bench.is_owner(owner())
    with st.container(horizontal=True, vertical_alignment="center", key="bench_buttons"):
        st.button(
            "Measure on this machine", type="primary", disabled=running, key="bench_start",
            on_click=lambda: _start(plan, wanted),
        )  # fmt: skip
        if running and bench.may_cancel(owner()):
            st.button("Cancel", key="bench_cancel", on_click=_cancel)
        seen = bench.seen()
        said = st.session_state.pop(SAID, "") or ("" if seen is None else _progress(seen, mine))
        if said:
            st.caption(literal(said))
    if seen is None:
        return
    if seen.running:
        st.progress(min(1.0, len(seen.points) / (2 * len(seen.plan.lengths))))
    _results(seen)


def _start(plan: CostPlan, wanted: Plan) -> None:
    try:
        begun = cache.bench().start(owner(), plan.sizes, wanted)
    except EngineError as error:
        st.session_state[SAID] = str(error)
        return
    if not begun:
        st.session_state[SAID] = (
            "Somebody else is measuring: two at once would slow each other down. Watch, and begin when it ends."
        )


def _cancel() -> None:
    cache.bench().cancel(owner())


def _progress(seen: Seen, mine: bool) -> str:
    count = len(seen.points)
    points = f"{count} point{'s' * (count != 1)}"
    if seen.running:
        who = "Measuring" if mine else "Somebody else is measuring"
        ends = f"in at most about {seen.left} s" if seen.left else "any moment"
        return f"{who}: {points} so far. It ends by itself {ends}."
    if seen.error:
        return f"The measurement failed: {seen.error}"
    ended = "Cancelled" if seen.cancelled else "Done"
    return f"{ended}: {points}."


def _results(seen: Seen) -> None:
    what = "attention alone" if seen.plan.what == "attention" else "a whole layer"
    mask = "causal" if seen.plan.causal else "every token sees every token"
    st.markdown(
        f"**{literal(seen.title)}, {what}**, {seen.plan.device}, {seen.plan.dtype}, {mask}, one text. Points are "
        "measured; lines are predicted."
    )
    if not seen.points:
        return
    left, right = st.columns(2, gap="large")
    with left:
        _draw(seen, "s", "Time of one run", "seconds")
        st.markdown(speed_sentence(seen))
    with right:
        _draw(seen, "B", "Peak memory", "bytes (1 KiB is 1,024 B)")
        st.markdown(
            "The line is what was predicted before anything was allocated: what goes in, what comes out and, eager, "
            "the matrix with its softmax. The points are the most that the process held above what stood before, which "
            "includes what libraries set aside for themselves."
        )
    for sentence in exponent_sentences(seen):
        st.markdown(sentence)
    for sentence in seen.notes:
        st.caption(literal(sentence))
    with st.container(key="bench_table"):
        st.markdown(points_table(seen))
    st.download_button(
        "CSV of the points", lambda: points_csv(seen), file_name="measured.csv", mime="text/csv", on_click="ignore",
        help="Every point, exact", key="bench_csv",
    )  # fmt: skip


def _draw(seen: Seen, unit: Unit, title: str, y_title: str) -> None:
    figure = cost_curves(measured_series(seen, unit), unit=unit, title=title, y_title=y_title, dark=is_dark(), size=430)
    st.plotly_chart(figure, theme=None, config=charts.CONFIG, key=f"bench_{unit}")


def measured_series(seen: Seen, unit: Unit) -> list[Series]:
    """Give the curves and points of a picture: for each kernel what was predicted, and what was measured."""
    return [one for kernel in NAMES if seen.of(kernel) for one in _of_kernel(seen, kernel, unit)]


def _of_kernel(seen: Seen, kernel: Kernel, unit: Unit) -> list[Series]:
    points, name, role = seen.of(kernel), NAMES[kernel], ROLES[kernel]
    lengths = [point.tokens for point in points]
    if unit == "s":
        rate = seen.seconds_per_operation(kernel) or 0.0
        predicted = [rate * seen.operations(length) for length in lengths]
        found = [point.seconds for point in points]
    else:
        predicted = [float(needed_bytes(seen.plan, kernel, length)) for length in lengths]
        found = [float(point.peak_bytes) for point in points]
    text = time_text if unit == "s" else _bytes_text
    return [
        Series(f"{name}, predicted", lengths, predicted, [text(value) for value in predicted], role, "dash"),
        Series(
            f"{name}, measured", lengths, [value or None for value in found], [text(value) for value in found], role,
            points=True,
        ),
    ]  # fmt: skip


def _bytes_text(count: float) -> str:
    return f"{count:,.0f} B, {bytes_both(int(count))}"
