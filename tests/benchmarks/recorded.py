"""What recording costs at full size: a GPT-2 with random weights, 1,024 to 4,096 tokens, against eager and plain runs.

Every peak comes from a process of its own. Ratios are of processor times within one run of this script, which others
who share the machine touch less than the clock; recorded and plain runs take turns in one process.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.peaks import free_bytes
from tests.benchmarks.rows import Row, middle
from tests.conftest import ROOT

PART = "recorded"
LENGTHS = (1024, 2048, 4096)
REPEATS = 3
EAGER_AT_4096 = 21_500_000_000  # bytes: 12 layers' scores and weights, and what is made on the way
LONGEST = 4096
MOST_OVERVIEW = 300.0  # MB above the trace


@dataclass(frozen=True)
class Measured:
    """What one child process found: medians on the clock and of the processor, in seconds, and its peak in bytes."""

    clock: float
    processor: float
    runs: int
    peak: int


def comparisons() -> list[Row]:
    """Measure all kinds at all lengths; an eager run that would not fit into memory is left out and said so."""
    rows: list[Row] = []
    for tokens in LENGTHS:
        recorded = _child("recorded", tokens)
        rows.append(_seconds("recorded run", recorded, tokens))
        pair = _answer("pair", tokens, REPEATS)
        rows.append(middle(PART, "recorded over plain sdpa, time", pair["whole"], "×", tokens=tokens, aim=1.05))
        rows.append(middle(PART, "the same without the system's share", pair["own"], "×", tokens=tokens, aim=1.05))
        rows.append(_megabytes("recorded run, peak above the model", recorded, tokens))
        rows += _against_eager(tokens, recorded)
        rows += _looks(tokens, recorded)
    return rows


def _against_eager(tokens: int, recorded: Measured) -> list[Row]:
    if tokens == LONGEST and free_bytes() < EAGER_AT_4096:
        left = free_bytes() / 1e9
        return [Row(PART, f"eager left out: it needs 21.5 GB and {left:.1f} are free", left, "GB", tokens)]
    eager = _child("eager", tokens)
    slower, larger = (0.30, 0.10) if tokens == LONGEST else (None, None)
    return [
        _seconds("eager, output_attentions=True", eager, tokens),
        _megabytes("eager, peak above the model", eager, tokens),
        Row(
            PART,
            "recorded over eager, time",
            recorded.processor / eager.processor,
            "×",
            tokens,
            aim=slower,
        ),
        Row(PART, "recorded over eager, peak", recorded.peak / eager.peak, "×", tokens, aim=larger),
    ]


def _looks(tokens: int, recorded: Measured) -> list[Row]:
    """Measure what looking at a run costs: one head at the longest text, all thumbnails at the shortest."""
    if tokens == LONGEST:
        head = _child("head", tokens)
        share = head.processor / recorded.processor
        return [
            _seconds("one head's weights, exactly", head, tokens),
            Row(PART, "one head's weights over the run", share, "×", tokens, aim=0.03),
        ]
    if tokens == LENGTHS[0]:
        overview = _child("overview", tokens)
        return [
            _seconds("overview of all 144 heads", overview, tokens),
            Row(PART, "overview over the run", overview.processor / recorded.processor, "×", tokens, aim=0.5),
            Row(PART, "overview, peak above the trace", overview.peak / 1e6, "MB", tokens, aim=MOST_OVERVIEW),
        ]
    return []


def _child(what: str, tokens: int) -> Measured:
    found = _answer(what, tokens, 1 if what == "eager" and tokens == LONGEST else REPEATS)
    clock, processor = found["clock"], found["processor"]
    return Measured(statistics.median(clock), statistics.median(processor), len(clock), int(found["peak"]))


def _answer(what: str, tokens: int, repeats: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.child", what, str(tokens), str(repeats)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise RuntimeError(f"{what} at {tokens} tokens failed: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _seconds(what: str, measured: Measured, tokens: int) -> Row:
    once = " (once)" if measured.runs == 1 else ""
    return Row(PART, what + once, measured.clock, "s", tokens)


def _megabytes(what: str, measured: Measured, tokens: int) -> Row:
    return Row(PART, what, measured.peak / 1e6, "MB", tokens)
