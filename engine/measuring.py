"""What attention takes on this machine: seconds and bytes, measured in a process of its own.

What a run takes in memory can only be told in a process that does nothing else. So each kernel gets one, in which
lengths grow: the most that it has held so far is then what the longest one took. Nothing is tried that does not fit,
and the process ends with whoever started it.

    eager    softmax(q kᵀ / √D) v spelt out, with the T × T matrix of every head in memory
    sdpa     PyTorch's scaled_dot_product_attention, which never builds it

Dimensions: T tokens, D head width.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path
from typing import IO, Literal

import torch

from engine._alone import code_of, last_words
from engine._plan import BYTES, KERNELS, LENGTHS, Fitting, Kernel, Plan, Point, fitting, needed_bytes, refusal
from engine._slope import FEWEST, slope
from engine.errors import ResourceError

__all__ = [
    "BYTES",
    "KERNELS",
    "LENGTHS",
    "Fit",
    "Fitting",
    "Kernel",
    "Measurement",
    "Plan",
    "Point",
    "exponent",
    "fitting",
    "needed_bytes",
    "refusal",
]

# A process counts its time from when it is ready; one that has not ended so long after it is ended.
GRACE_SECONDS = 30.0
JOIN_SECONDS = 2.0
# A power is fitted to so many of the longest texts, unless it is said from which length on.
FITTED = 4

_ALONE = code_of("engine._measured")


class Measurement:
    """A measurement that runs beside whoever started it: kernel after kernel, each in a process of its own."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._lock = threading.Lock()
        self._points: list[Point] = []
        self._refused: list[str] = []
        self._error: str | None = None
        self._process: subprocess.Popen[str] | None = None
        self._cancelled = False
        self._thread = threading.Thread(target=self._run, name="measurement", daemon=True)

    @classmethod
    def start(cls, plan: Plan) -> Measurement:
        """Begin to measure, and come back at once.

        Raises:
            ResourceError: there is no such device, or not even the shortest text fits.
        """
        if plan.device.startswith("cuda") and not torch.cuda.is_available():
            raise ResourceError("There is no CUDA device here; measure on the cpu.")
        fits = [fitting(plan, kernel) for kernel in KERNELS]
        if not any(one.lengths for one in fits):
            raise ResourceError(f"Nothing can be measured: {fits[0].refused}")
        measurement = cls(plan)
        measurement._thread.start()
        return measurement

    def points(self) -> tuple[Point, ...]:
        """What has been measured so far, in that order."""
        with self._lock:
            return tuple(self._points)

    @property
    def refused(self) -> tuple[str, ...]:
        """For each kernel that did not get through all lengths, why, with both numbers."""
        with self._lock:
            return tuple(self._refused)

    @property
    def error(self) -> str | None:
        """What went wrong; None where nothing did."""
        return self._error

    @property
    def running(self) -> bool:
        """Whether more points may come."""
        return self._thread.is_alive()

    def cancel(self) -> None:
        """End it now, within two seconds, and leave nothing behind; what was measured stays."""
        with self._lock:
            self._cancelled = True
            if self._process is not None:
                self._process.kill()
        self._thread.join(timeout=JOIN_SECONDS)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is through, or for so many seconds; say whether it is through."""
        self._thread.join(seconds)
        return not self.running

    def _run(self) -> None:
        left = self.plan.most_seconds
        for place, kernel in enumerate(KERNELS):
            try:
                left -= self._measure(kernel, left / (len(KERNELS) - place))
            except OSError as error:  # no process to be had
                self._error = f"{kernel} could not be measured: {error.strerror or error}."

    def _measure(self, kernel: Kernel, seconds: float) -> float:
        """Let one process measure, and say how long it took from when it was ready."""
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints:
            with self._lock:
                if self._cancelled:
                    return 0.0
                process = self._process = _begin(complaints)
            late = threading.Timer(seconds + GRACE_SECONDS, process.kill)
            late.daemon = True  # or it would hold up the end of a program that ends before
            late.start()
            try:
                with process:
                    task = json.dumps({"plan": asdict(self.plan), "kernel": kernel, "seconds": seconds})
                    used = self._listen(process, task)
            finally:
                late.cancel()
                process.kill()
                late.join(JOIN_SECONDS)
            if process.returncode and not self._cancelled:
                complaints.seek(0)
                self._error = _failure(kernel, process.returncode, complaints.read())
            return used

    def _listen(self, process: subprocess.Popen[str], task: str) -> float:
        given, told, ready = process.stdin, process.stdout, time.monotonic()
        if given is None or told is None:
            raise ResourceError("A process without pipes cannot be measured in.")
        with suppress(BrokenPipeError):  # it has ended already, and its exit code says how
            given.write(f"{task}\n")
            given.flush()
        for line in told:  # `given` stays open: when it closes, the process ends
            answer = json.loads(line)
            with self._lock:
                if "ready" in answer:
                    ready = time.monotonic()
                elif "point" in answer:
                    self._points.append(Point(**answer["point"]))
                else:
                    self._refused.append(answer["stopped"])
        return time.monotonic() - ready


def _begin(complaints: IO[str]) -> subprocess.Popen[str]:
    """Start a process that measures, on as many threads as this one, apart from its group and its signals."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _ALONE, str(Path(__file__).parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())},
        start_new_session=True,
    )


def _failure(kernel: Kernel, code: int, complaints: str) -> str:
    """Say what went wrong in a process that did not end well."""
    if code == -signal.SIGKILL:
        return f"The process that measured {kernel} was ended from outside: its time was over, or memory ran out."
    return f"The process that measured {kernel} failed: {last_words(code, complaints)}"


@dataclass(frozen=True)
class Fit:
    """How something grows: like tokens to the power of `exponent`.

    Attributes:
        exponent: the slope where both axes are logarithmic.
        low, high: its 95 % interval, by how far the points lie off the line.
        from_tokens: the shortest length that was fitted.
    """

    exponent: float
    low: float
    high: float
    from_tokens: int


def exponent(
    points: Sequence[Point], of: Literal["seconds", "peak_bytes"] = "seconds", from_tokens: int | None = None
) -> Fit | None:
    """Fit the power with which time or memory grows.

    Args:
        points: of one kernel.
        of: which of a point's numbers.
        from_tokens: shorter lengths are left out: there everything but the matrix decides. None takes the four longest.

    Returns:
        The power and its interval; None with fewer than three points, through which any line would fit.
    """
    used = sorted((point for point in points if getattr(point, of) > 0), key=lambda point: point.tokens)
    used = used[-FITTED:] if from_tokens is None else [point for point in used if point.tokens >= from_tokens]
    if len(used) < FEWEST:
        return None
    b, half = slope([log(point.tokens) for point in used], [log(getattr(point, of)) for point in used])
    return Fit(b, b - half, b + half, used[0].tokens)
