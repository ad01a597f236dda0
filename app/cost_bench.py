"""One measurement at a time for everybody who uses this app: two at once would measure each other."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from engine import Decoder, Encoder
from engine.cost import Job, flops
from engine.measuring import FITTED, Kernel, Measurement, Plan, Point
from engine.sizes import Sizes


@dataclass(frozen=True)
class Seen:
    """What can be seen of the measurement that runs, or ran last.

    Attributes:
        title: which model's layer it is.
        sizes: of that one layer.
        plan: what is measured.
        points: what is there so far.
        running: whether more may come.
        cancelled: whether somebody ended it.
        error: what went wrong, in a sentence; empty where nothing did.
        notes: what was not measured, and why, in sentences.
    """

    title: str
    sizes: Sizes
    plan: Plan
    points: tuple[Point, ...]
    running: bool
    cancelled: bool
    error: str
    notes: tuple[str, ...]

    def of(self, kernel: Kernel) -> list[Point]:
        """The points of one kernel, by length."""
        return sorted((point for point in self.points if point.kernel == kernel), key=lambda point: point.tokens)

    def operations(self, tokens: int) -> int:
        """Count what the layer, or its attention alone, costs: all pairs, whether or not a kernel skips some."""
        return layer_operations(self.sizes, self.plan.what, tokens)

    def seconds_per_operation(self, kernel: Kernel) -> float | None:
        """Fit one number to a kernel's times: what an operation takes, the mean of the longest texts' ratios."""
        longest = self.of(kernel)[-FITTED:]
        if not longest:
            return None
        ratios = (point.seconds / self.operations(point.tokens) for point in longest)
        return math.exp(sum(map(math.log, ratios)) / len(longest))


class Bench:
    """The place where measurements are made, shared by all sessions.

    Args:
        begin: starts a measurement; another one in tests.
    """

    def __init__(self, begin: Callable[[Plan], Measurement] = Measurement.start) -> None:
        self._begin = begin
        self._lock = threading.Lock()
        self._owner = ""
        self._title = ""
        self._sizes: Sizes | None = None
        self._plan: Plan | None = None
        self._held: Measurement | None = None
        self._cancelled = False

    def start(self, owner: str, sizes: Sizes, plan: Plan) -> bool:
        """Begin, unless somebody is measuring; say whether it began.

        Args:
            owner: who may cancel it.
            sizes: of the model whose layer it is.
            plan: what is to be measured.
        """
        with self._lock:
            if self._held is not None and self._held.running:
                return False
            self._owner, self._title, self._plan = owner, sizes.name, plan
            self._sizes, self._cancelled = one_layer(sizes), False
            self._held = self._begin(plan)
            return True

    def cancel(self, owner: str) -> bool:
        """End the measurement of whoever asks; say whether it was theirs."""
        with self._lock:
            if self._held is None or owner != self._owner:
                return False
            held, self._cancelled = self._held, self._held.running
        held.cancel()  # which takes a moment; others may look meanwhile
        return True

    def is_owner(self, owner: str) -> bool:
        """Say whether the measurement is somebody's own."""
        return owner == self._owner

    @property
    def running(self) -> bool:
        """Whether somebody is measuring."""
        held = self._held
        return held is not None and held.running

    def seen(self) -> Seen | None:
        """Look at what there is; None before the first measurement."""
        with self._lock:
            if self._held is None or self._plan is None or self._sizes is None:
                return None
            running = self._held.running  # before the points: what comes between is seen the next time
            return Seen(
                self._title, self._sizes, self._plan, tuple(self._held.points()), running, self._cancelled,
                self._held.error or "", tuple(self._held.refused),
            )  # fmt: skip


def one_layer(sizes: Sizes) -> Sizes:
    """Give one layer of a model, with nothing before or after it, that sees everything or all that came before."""
    config = replace(sizes.config, layers=1, decoder_layers=None, head="none", window=None)
    return Sizes(sizes.name, Decoder if sizes.writes else Encoder, config, (None,), 0)


def layer_operations(layer: Sizes, what: str, tokens: int) -> int:
    """Count the operations of a layer, or of its attention from given queries, keys and values on."""
    counts = flops(layer, Job(tokens))
    return counts["scores"] + counts["mixing"] if what == "attention" else sum(counts.values())
