"""One measured number, and how many of them become a table and a file."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter, process_time
from typing import Any

import torch

REPEATS = 7


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        part: which part of the benchmarks measured it.
        what: what was done.
        value: the median, unless `what` says otherwise.
        unit: "ms", "s", "KB", "×" (a ratio of processor times within this run), "frames" or "cores".
        tokens: the length of the input; None where there is none.
        low: the smallest value seen; None where there was one alone.
        high: the largest.
        aim: what the value should not exceed; None where nothing is asked.
    """

    part: str
    what: str
    value: float
    unit: str
    tokens: int | None = None
    low: float | None = None
    high: float | None = None
    aim: float | None = None


def middle(
    part: str, what: str, values: Sequence[float], unit: str, *, tokens: int | None = None, aim: float | None = None
) -> Row:
    """Make a row of the median of several values, with the smallest and the largest beside it."""
    return Row(part, what, statistics.median(values), unit, tokens, min(values), max(values), aim)


@dataclass(frozen=True)
class Times:
    """How long one thing took, in milliseconds, time after time: on the clock, and of the processor's."""

    clock: list[float]
    processor: list[float]

    def __add__(self, other: Times) -> Times:
        """Add what was timed in the same rounds."""
        return Times(_summed(self.clock, other.clock), _summed(self.processor, other.processor))

    def over(self, other: Times) -> list[float]:
        """Divide processor times round by round: others who share the machine hardly touch these."""
        return [mine / theirs for mine, theirs in zip(self.processor, other.processor, strict=True)]


def in_turns(runs: Sequence[Callable[[], object]], repeats: int = REPEATS) -> list[Times]:
    """Time several things in turns, so that a busy moment of the machine falls on all of them alike.

    Returns:
        One for each of `runs`, in order; a first round that warms up is not among them.
    """
    rounds = [[_timed(run) for run in runs] for _ in range(repeats + 1)]
    return [Times(*map(list, zip(*times, strict=True))) for times in zip(*rounds[1:], strict=True)]


def _timed(run: Callable[[], object]) -> tuple[float, float]:
    clock, processor = perf_counter(), process_time()
    run()
    return (perf_counter() - clock) * 1000, (process_time() - processor) * 1000


def _summed(some: list[float], others: list[float]) -> list[float]:
    return [one + other for one, other in zip(some, others, strict=True)]


def table(rows: Sequence[Row]) -> str:
    """Lay rows out as a Markdown table."""
    lines = ["| part | what | tokens | median | lowest to highest | aim |", "|---|---|---:|---:|---:|---|"]
    for row in rows:
        span = "" if row.low is None or row.high is None else f"{_number(row.low)} to {_number(row.high)}"
        met = "" if row.aim is None else f"≤ {_number(row.aim)}: {'met' if row.value <= row.aim else 'MISSED'}"
        tokens = "" if row.tokens is None else str(row.tokens)
        lines.append(f"| {row.part} | {row.what} | {tokens} | {_number(row.value)} {row.unit} | {span} | {met} |")
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """Describe what the numbers were measured on; a load above zero at the start means that others were at work."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "load at the start": load,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def as_json(rows: Sequence[Row], where: dict[str, Any]) -> dict[str, Any]:
    """Give rows and machine as what JSON can hold."""
    return {"machine": where, "rows": [asdict(row) for row in rows]}


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
