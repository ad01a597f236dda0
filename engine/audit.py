"""The audit: proof that the weights which are shown are the weights which the fast kernel used.

It multiplies the shown weights with V and compares with what the kernel returned. That the kernel was given what the
model means is another matter: see engine/probe.py.

Dimensions: H heads, R rows looked at, S keys, E value width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from engine.attention import BLOCK_SCORES, rows_at_once
from engine.recording import Recorded, audit_rows
from engine.sites import Site

AUDIT_ALL_ROWS = 512

# How far W V may stray from the kernel's output, relative to the largest output: a few units of the last place kept.
TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}


@dataclass(frozen=True)
class Audit:
    """How closely the shown weights, times V, give what the fast kernel returned.

    Attributes:
        relative: the largest difference over the largest output, at the worst site; None where there is no audit.
        absolute: the largest difference itself.
        rows: "all", or how many rows of every head were compared.
        tolerance: what `relative` may be at this precision.
        reason: why there is no audit, or which outputs are not finite; empty where all is well.
    """

    relative: float | None
    absolute: float | None
    rows: str
    tolerance: float
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether the picture is what the kernel computed, to the precision it computes in."""
        return self.relative is not None and self.relative <= self.tolerance and not self.reason

    def __str__(self) -> str:
        if self.relative is None:
            return f"no audit: {self.reason}"
        verdict = f"audit {self.relative:.0e}, {self.rows} rows"
        if self.relative > self.tolerance:
            verdict += f" — above {self.tolerance:.0e}, do not trust these weights"
        return verdict + (f"; {self.reason}" if self.reason else "")


def compared(recorded: Mapping[Site, Recorded]) -> Audit:
    """Audit every site of a run and report the worst.

    Args:
        recorded: what was recorded where; at least one site.
    """
    relative = absolute = tolerance = 0.0
    broken, sampled = [], []
    for site, held in recorded.items():
        difference, largest, rows = _compare(held)
        tolerance = max(tolerance, TOLERANCES[held.call.q.dtype])
        if rows < held.queries:
            sampled.append(rows)
        if not (math.isfinite(difference) and math.isfinite(largest)):
            broken.append(str(site))
            continue
        absolute = max(absolute, difference)
        if difference:
            relative = max(relative, difference / largest if largest else math.inf)
    reason = f"numbers that are not finite at {', '.join(broken)}" if broken else ""
    return Audit(relative, absolute, str(min(sampled)) if sampled else "all", tolerance, reason)


def _compare(recorded: Recorded) -> tuple[float, float, int]:
    """Return the largest difference between W V and the kernel's output, the largest output, and how many rows."""
    output, rows = recorded.output, recorded.rows
    if rows is None:
        rows = torch.arange(recorded.queries, device=output.device)
        if recorded.queries > AUDIT_ALL_ROWS:
            rows = audit_rows(recorded.queries, output.device)
            output = output[:, :, rows]
    call = recorded.call
    repeats = recorded.heads // recorded.kv_heads
    at_once = rows_at_once(BLOCK_SCORES, recorded.heads * recorded.keys, output.device)
    difference = largest = torch.zeros((), device=output.device)
    for block, expected in zip(rows.split(at_once), output.split(at_once, dim=2), strict=True):
        weights = call.weights(block)  # (1, H, R, S)
        v = call.v.to(weights.dtype)
        mixed = (weights.unflatten(1, (-1, repeats)) @ v.unsqueeze(2)).flatten(1, 2)  # (1, H, R, E)
        difference = torch.maximum(difference, (mixed - expected).abs().max())
        largest = torch.maximum(largest, expected.abs().max())
    return float(difference), float(largest), len(rows)
