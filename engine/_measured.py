"""The process that measures: it reads a plan on its input, and writes a line for every length that it is through with.

It ends when its input does, so that it never outlives who started it, and when its time is over.

Dimensions: B batch, H heads, G key-value heads, T queries, S keys, D head width, C model width.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any, NoReturn

import torch
from torch import Tensor

from engine import attention, blocks
from engine._memory import forget_peak, give_back, peak_bytes
from engine._plan import Kernel, Plan, Point, refusal
from engine._textbook import spelt_out
from engine.config import Config
from engine.errors import EngineError
from engine.masks import Visibility
from engine.sites import Site

WARM_UP = 32
# Runs of one length: as many as fit into some tenths of a second, but three, unless one takes several seconds.
RUNS, TOGETHER, LONG = (3, 15), 0.3, 3.0
# A length twice as long takes four times as long, where the matrix decides.
GROWTH = 2

Run = Callable[[], Tensor]
Make = Callable[[int], Run]


def main() -> None:
    """Read a plan and the name of a kernel from the input, measure, and write a line of JSON per point."""
    task = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_input, daemon=True).start()
    plan = Plan(**{**task["plan"], "lengths": tuple(task["plan"]["lengths"])})
    watch = threading.Timer(task["seconds"], _give_up, [task["kernel"], task["seconds"]])
    watch.daemon = True
    watch.start()
    _tell(ready=True)
    with suppress(OSError):  # if memory runs out all the same, this process goes first, and not who started it
        Path("/proc/self/oom_score_adj").write_text("1000")
    try:
        _measure(plan, task["kernel"], time.monotonic() + task["seconds"])
    except (EngineError, RuntimeError, MemoryError) as error:  # a kernel that a device lacks, or no memory for it
        _tell(stopped=f"{task['kernel']} ended: {str(error).splitlines()[0]}")


def _measure(plan: Plan, kernel: Kernel, deadline: float) -> None:
    with torch.inference_mode():
        make = (_attention if plan.what == "attention" else _layer)(plan, kernel)
        for _ in range(2):
            _timed(make(WARM_UP), plan.device)
        give_back()
        forget_peak(plan.device)
        before, last = peak_bytes(plan.device), (0, 0.0)
        for tokens in plan.lengths:
            if why := refusal(plan, kernel, tokens) or _late(kernel, last, tokens, deadline):
                _tell(stopped=why)
                return
            point = _point(plan, kernel, make(tokens), tokens, before)
            last = (tokens, point.seconds)
            _tell(point=asdict(point))


def _point(plan: Plan, kernel: Kernel, run: Run, tokens: int, before: int) -> Point:
    """Take the peak of the first run: later ones also hold what an allocator did not give back in between."""
    times = [_timed(run, plan.device)]
    held = max(0, peak_bytes(plan.device) - before)
    least, most = RUNS
    while times[0] < LONG and (len(times) < least or (sum(times) < TOGETHER and len(times) < most)):
        times.append(_timed(run, plan.device))
    give_back()
    forget_peak(plan.device)
    return Point(kernel, tokens, median(times), held, len(times))


def _late(kernel: Kernel, last: tuple[int, float], tokens: int, deadline: float) -> str:
    """Say why the next length is not begun, if it would hardly be through in time."""
    before, seconds = last
    left = deadline - time.monotonic()
    expected = seconds * (tokens / before) ** GROWTH if before else 0.0
    if expected <= left:
        return ""
    return f"{kernel} at {tokens:,} tokens would take about {expected:.1f} s, and {max(0.0, left):.1f} s are left."


def _timed(run: Run, device: str) -> float:
    _wait(device)
    start = time.perf_counter()
    run()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def _attention(plan: Plan, kernel: Kernel) -> Make:
    call, mask = KERNELS[kernel], Visibility(causal=plan.causal)

    def make(tokens: int) -> Run:
        q = _random(plan, plan.heads, tokens, plan.head_width)
        k, v = (_random(plan, plan.kv_heads, tokens, plan.head_width) for _ in range(2))
        return lambda: call(None, q, k, v, mask=mask)

    return make


def _layer(plan: Plan, kernel: Kernel) -> Make:
    config = Config(
        width=plan.width, layers=1, heads=plan.heads, kv_heads=plan.kv_heads, head_width=plan.head_width,
        feed_forward=plan.feed_forward, activation="swiglu" if plan.gated else "gelu", bias=False, positions="none",
    )  # fmt: skip
    block = blocks.Block(config, Site("decoder" if plan.causal else "encoder", 0))
    block.to(plan.device, getattr(torch, plan.dtype))
    vars(blocks)["attend"] = KERNELS[kernel]  # nobody else lives in this process

    def make(tokens: int) -> Run:
        x = _random(plan, tokens, plan.width)
        places = torch.arange(tokens, device=plan.device)[None]
        reading = blocks.Reading(places, blocks.NOWHERE, Visibility(causal=plan.causal))
        return lambda: block(x, reading)

    return make


def _random(plan: Plan, *shape: int) -> Tensor:
    return torch.randn(1, *shape, dtype=getattr(torch, plan.dtype), device=plan.device)


def _eager(_site: Site | None, q: Tensor, k: Tensor, v: Tensor, *, mask: Visibility, **_: Any) -> Tensor:
    """Stand in for `attend` in a layer whose only rule is the causal one."""
    return spelt_out(q, k, v, causal=mask.causal)


KERNELS: dict[Kernel, Callable[..., Tensor]] = {"sdpa": attention.attend, "eager": _eager}


def _tell(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _end_with_the_input() -> NoReturn:
    while os.read(sys.stdin.fileno(), 1):  # not through sys.stdin, whose lock would be held when the process ends
        pass
    _leave()


def _give_up(kernel: Kernel, seconds: float) -> NoReturn:
    _tell(stopped=f"{kernel} was ended when its {seconds:.1f} s were over.")
    _leave()


def _leave() -> NoReturn:
    os._exit(0)
