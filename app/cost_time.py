"""Seconds and money: what the operations and bytes come to on a device that is used perfectly, which none is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from app import state
from app.cost_measure import measured_speed
from app.cost_numbers import total
from app.cost_plan import CostPlan
from app.cost_units import bytes_both, flop_text, money_text, scaled, time_text, tokens_text
from app.cost_words import batch_text, doing
from app.view_cost import LEAST_SPEED, MOST_PRICE, MOST_SPEED, CostChoices
from engine.cost import kv_cache_bytes, parameter_bytes, seconds

TERA, GIGA = 1e12, 1e9
HOUR = 3600
MILLION = 1_000_000


@dataclass(frozen=True)
class Device:
    """A device, or what is known of one.

    Attributes:
        name: what it is called.
        speed: of arithmetic in 16 bits, TFLOP/s.
        bandwidth: of its memory, GB/s.
        source: where these numbers are from.
        single: of arithmetic in float32 where the device has another speed for that, TFLOP/s.
        rounded: of float32 numbers that tensor cores round to TF32, TFLOP/s; None where that is not known.
    """

    name: str
    speed: float
    bandwidth: float
    source: str
    single: float | None = None
    rounded: float | None = None


SHEET = "the vendor’s datasheet, dense, without sparsity"
KNOWN = {
    "laptop": Device("A laptop’s processor", 0.2, 50, "a rough figure of our own, not a measurement"),
    "t4": Device("NVIDIA T4", 65, 320, f"{SHEET}: float16, tensor cores", 8.1),
    "l4": Device("NVIDIA L4", 121, 300, f"{SHEET}: bfloat16, tensor cores", 30.3),
    "rtx4090": Device("NVIDIA RTX 4090", 165, 1008, f"{SHEET}: float16 with float32 sums, tensor cores", 82.6),
    "a100": Device("NVIDIA A100 80 GB SXM", 312, 2039, f"{SHEET}: bfloat16, tensor cores", 19.5, 156),
    "h100": Device("NVIDIA H100 SXM", 989, 3350, f"{SHEET}: bfloat16, tensor cores", 67, 495),
    "h200": Device("NVIDIA H200 SXM", 989, 4800, f"{SHEET}: bfloat16, tensor cores", 67, 495),
}
OWN = "Your own numbers"
MEASURED = "This machine, as measured"


def device_of(choices: CostChoices, measured: float | None) -> Device:
    """Give the device that is chosen, with the knobs as the reader has turned them.

    Args:
        choices: what is chosen.
        measured: operations per second of this machine, where it was measured.
    """
    base = KNOWN.get(choices.cost_device, KNOWN["laptop"])
    speed = base.speed if choices.cost_speed is None else choices.cost_speed
    bandwidth = base.bandwidth if choices.cost_bandwidth is None else choices.cost_bandwidth
    if choices.cost_device == "measured" and measured is not None:
        source = "fitted to the times measured below; how fast its memory is was not measured"
        return Device(MEASURED, measured / TERA, bandwidth, source)
    if choices.cost_device in KNOWN:
        return in_precision(base, choices.cost_dtype)
    return Device(OWN, speed, bandwidth, "set by you")


def in_precision(device: Device, dtype: str) -> Device:
    """Give a device as fast as it is in float32 where numbers are stored so, or wider.

    Args:
        device: as it is in 16 bits.
        dtype: what numbers are stored in.
    """
    if device.single is None or dtype not in ("float32", "float64"):
        return device
    wider = " In float64 it is slower still." if dtype == "float64" else ""
    rounded = f", or {device.rounded:g} TFLOP/s on tensor cores that round to TF32" if device.rounded else ""
    source = f"{SHEET}: float32 without tensor cores{rounded}; in 16 bits it reaches {device.speed:g} TFLOP/s.{wider}"
    return replace(device, speed=device.single, source=source.removesuffix("."))


def seconds_panel(plan: CostPlan) -> None:
    """Turn operations and bytes into seconds, and seconds into money."""
    st.markdown("#### In seconds, at best")
    view, measured = state.view(), measured_speed()
    if view.cost_device == "measured" and measured is None:
        state.note("Nothing was measured on this machine yet: the numbers are those of a laptop.")
        view = state.amend(cost_device="laptop")
    device = device_of(view, measured)
    _knobs(view.cost_device, device, measured)
    speed, bandwidth = device.speed * TERA, device.bandwidth * GIGA
    least = seconds(plan.sizes, plan.job, plan.dtype, flop_per_second=speed, bytes_per_second=bandwidth)
    count, moved = total(plan, plan.job), bytes_moved(plan)
    st.markdown(
        f"**{_what(plan)}: {time_text(least)} at best.** Arithmetic: {flop_text(count)} at "
        f"{scaled(speed, 'FLOP/s')} is {time_text(count / speed)}. Memory: {bytes_both(moved)} "
        f"{_read(plan)} at {scaled(bandwidth, 'B/s')} is {time_text(moved / bandwidth)}. "
        f"{_bound(count / speed, moved / bandwidth)} {_throughput(plan, least)}"
    )
    if view.cost_price:
        st.markdown(_money(plan, least, view.cost_price))
    st.caption(
        f"{device.name}: {device.source}. This is the best case: no device reaches it. Half of the arithmetic is good, "
        "and short texts reach far less."
    )


def bytes_moved(plan: CostPlan) -> int:
    """Count what has to come from memory at least: the parameters and, to write, the cache."""
    cached = kv_cache_bytes(plan.sizes, plan.job, plan.dtype) if plan.job.step == "write" else 0
    return parameter_bytes(plan.sizes, plan.dtype) + cached


def _knobs(chosen: str, device: Device, measured: float | None) -> None:
    names = {name: known.name for name, known in KNOWN.items()} | {"own": OWN}
    if measured is not None:
        names["measured"] = MEASURED
    with st.container(horizontal=True, vertical_alignment="bottom", key="cost_time_bar"):
        st.selectbox(
            "Device", list(names), format_func=names.__getitem__, width=280,
            **state.mirror("cost_device", value=chosen, then=_as_device),
        )  # fmt: skip
        for field, label, value in (
            ("cost_speed", "TFLOP/s", device.speed),
            ("cost_bandwidth", "GB/s", device.bandwidth),
        ):
            st.number_input(
                label, LEAST_SPEED, float(MOST_SPEED), width=150, format="%.4g", step=None,
                **state.mirror(field, value=_within(value), then=lambda: _own_numbers(device)),
            )  # fmt: skip
        st.number_input(
            "Price per hour", 0.0, float(MOST_PRICE), width=150, format="%.4g", step=None,
            help="In whatever money; 0 leaves it out.", **state.mirror("cost_price"),
        )  # fmt: skip


def _within(value: float) -> float:
    return round(min(max(float(value), LEAST_SPEED), float(MOST_SPEED)), 4)


def _as_device() -> None:
    """Let the knobs stand as the chosen device has them."""
    if state.asked().cost_device != "own":
        state.set(cost_speed=None, cost_bandwidth=None)


def _own_numbers(device: Device) -> None:
    """Keep the other knob where it was when one is turned."""
    asked = state.asked()
    speed = device.speed if asked.cost_speed is None else asked.cost_speed
    bandwidth = device.bandwidth if asked.cost_bandwidth is None else asked.cost_bandwidth
    state.set(cost_device="own", cost_speed=_within(speed), cost_bandwidth=_within(bandwidth))


def _what(plan: CostPlan) -> str:
    length = f"{plan.job.tokens:,} patches" if plan.is_image else tokens_text(plan.job.tokens)
    return f"{doing(plan).capitalize()} {length}{batch_text(plan)}"


def _read(plan: CostPlan) -> str:
    return "of parameters and cache, read once," if plan.job.step == "write" else "of parameters, read once,"


def _bound(arithmetic: float, memory: float) -> str:
    if arithmetic >= memory:
        return "The slower of the two decides: here **arithmetic**."
    return "The slower of the two decides: here **memory**, while most of the arithmetic waits."


def _throughput(plan: CostPlan, least: float) -> str:
    tokens = plan.job.batch * (1 if plan.job.step == "write" else plan.job.tokens)
    rate = tokens / least
    return f"That is {rate:,.0f} tokens a second." if rate >= 10 else f"That is {rate:.2g} tokens a second."


def _money(plan: CostPlan, least: float, price: float) -> str:
    tokens = plan.job.batch * (1 if plan.job.step == "write" else plan.job.tokens)
    once = least / HOUR * price
    many = money_text(once / tokens * MILLION)
    return (
        f"At {price:,.10g} per hour this costs **{money_text(once)}**, and a million tokens **{many}**, "
        "if the device never waits."
    )
