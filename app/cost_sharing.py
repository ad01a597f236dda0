"""Multi-head against grouped-query against multi-query: what sharing keys and values saves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from app import charts
from app.build_words import group_label
from app.charts_curves import bars
from app.cost_numbers import by_part
from app.cost_plan import CostPlan
from app.cost_units import BINARY, bytes_both, bytes_text, flop_text, tokens_text
from app.cost_words import thing
from app.panels import is_dark
from app.phrases import SPACE
from engine.cost import Job, kv_cache_bytes


@dataclass(frozen=True)
class Shared:
    """One way to share: G key-value heads, the model's parameters, its cache, its projections."""

    groups: int
    parameters: int
    per_token: int
    at_n: int
    projections: int


def ways(plan: CostPlan) -> list[Shared]:
    """Count every way to share the heads of a model evenly, from multi-head to multi-query."""
    heads, one = plan.own.config.heads, Job(1, plan.job.batch)
    found = []
    for groups in (number for number in range(heads, 0, -1) if heads % number == 0):
        sizes = plan.own.sharing(groups)
        sizes = sizes if plan.window is None else sizes.windowed(plan.window)
        per_token, at_n = (kv_cache_bytes(sizes, job, plan.dtype) for job in (one, plan.job))
        projections = by_part(replace(plan, sizes=sizes), plan.job)["projections"]
        found.append(Shared(groups, sizes.parameters, per_token, at_n, projections))
    return found


def sharing_panel(plan: CostPlan) -> None:
    """Compare the ways to share keys and values."""
    st.markdown("#### Sharing keys and values: MHA, GQA, MQA")
    found, heads = ways(plan), plan.own.config.heads
    left, right = st.columns([6, 5], gap="large", vertical_alignment="center")
    with left:
        with st.container(key="cost_sharing_table"):
            st.markdown(_table(plan, found))
        st.caption(_lesson(plan, found))
    if not plan.sizes.writes:
        right.markdown("It reads and does not write, so it keeps no cache; sharing only saves matrices.")
        return
    unit, size = _unit(max(way.at_n for way in found))
    chosen = next(place for place, way in enumerate(found) if way.groups == plan.sizes.config.G)
    figure = bars(
        [group_label(way.groups, heads) for way in found], np.array([way.at_n / size for way in found]),
        x_title="key-value heads", y_title=f"cache ({unit})", title=f"Cache at {tokens_text(plan.job.tokens)}",
        selected=chosen, dark=is_dark(), size=300,
    )  # fmt: skip
    right.plotly_chart(figure, theme=None, config=charts.CONFIG, key="cost_sharing")


def _table(plan: CostPlan, found: list[Shared]) -> str:
    texts = f", {plan.job.batch:,} {thing(plan)}s" if plan.job.batch > 1 else ""
    n = f"at {tokens_text(plan.job.tokens)}{texts}"
    caches = [f"Cache per token{texts}", f"Cache {n}"] if plan.sizes.writes else []
    heads = ["Key-value heads", "Parameters", *caches, f"Projections, {n}"]
    rows = [f"| {' | '.join(heads)} |", "|:--|" + "--:|" * (len(heads) - 1)]
    for way in found:
        name = group_label(way.groups, plan.own.config.heads)
        own = " (as made)" if way.groups == plan.own.config.G else ""
        title = f"**{name}**{own}" if way.groups == plan.sizes.config.G else f"{name}{own}"
        kept = [bytes_text(way.per_token), bytes_both(way.at_n)] if plan.sizes.writes else []
        rows.append(f"| {' | '.join([title, f'{way.parameters:,}', *kept, flop_text(way.projections)])} |")
    return "\n".join(rows)


def _lesson(plan: CostPlan, found: list[Shared]) -> str:
    most, least = found[0], found[-1]
    if not plan.sizes.writes or most.groups == least.groups:
        return "Every query head still asks its own question; shared are only the keys and values that it looks at."
    window = f" The window bounds it: only the last {plan.window:,} tokens are kept." if plan.window else ""
    return (
        f"Every query head still asks its own question, so scores and mixing cost the same; one key-value head for all "
        f"makes the cache {most.at_n // least.at_n}{SPACE}times smaller. With a small cache more texts fit into memory "
        f"at once, and a new token waits less for them to be read.{window}"
    )


def _unit(most: int) -> tuple[str, int]:
    power = min(max(most, 1).bit_length() - 1, 10 * (len(BINARY) - 1)) // 10
    return BINARY[power], 1024**power
