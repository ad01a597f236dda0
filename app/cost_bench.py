"""One measurement at a time for everybody who uses this app: two at once would measure each other."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from streamlit import runtime

from engine import Decoder, Encoder
from engine.cost import Job, flops
from engine.measuring import FITTED, Kernel, Measurement, Plan, Point
from engine.sizes import Sizes


def is_here(session: str) -> bool:
    """Say whether a session of the app is still connected; where no app is served, nobody leaves."""
    return not runtime.exists() or runtime.get_instance().is_active_session(session)


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
        left: seconds after which it is to end by itself; 0 where it has ended, or its time is over.
    """

    title: str
    sizes: Sizes
    plan: Plan
    points: tuple[Point, ...]
    running: bool
    cancelled: bool
    error: str
    notes: tuple[str, ...]
    left: int = 0

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
        here: says whether a session is still looked at.
    """

    def __init__(
        self,
        begin: Callable[[Plan], Measurement] = Measurement.start,
        here: Callable[[str], bool] = is_here,
    ) -> None:
        self._begin, self._here = begin, here
        self._started = 0.0
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
            owner: the session that may cancel it; when that is gone, anybody may.
            sizes: of the model whose layer it is.
            plan: what is to be measured.
        """
        with self._lock:
            if self._held is not None and self._held.running:
                return False
            self._owner, self._title, self._plan = owner, sizes.name, plan
            self._sizes, self._cancelled = one_layer(sizes), False
            self._held, self._started = self._begin(plan), time.monotonic()
            return True

    def cancel(self, owner: str) -> bool:
        """End the measurement, for who may; say whether that was so."""
        with self._lock:
            if self._held is None or not self.may_cancel(owner):
                return False
            held, self._cancelled = self._held, self._held.running
        held.cancel()  # which takes a moment; others may look meanwhile
        return True

    def is_owner(self, owner: str) -> bool:
        """Say whether the measurement is somebody's own."""
        return owner == self._owner

    def may_cancel(self, owner: str) -> bool:
        """Say whether somebody may end it: who began it, and anybody once that page is closed or was loaded anew."""
        return owner == self._owner or not self._here(self._owner)

    @property
    def running(self) -> bool:
        """Whether somebody is measuring."""
        held = self._held
        return held is not None and held.running

    def _left(self) -> int:
        most = 0.0 if self._plan is None else self._plan.most_seconds
        return max(0, math.ceil(most - (time.monotonic() - self._started)))

    def seen(self) -> Seen | None:
        """Look at what there is; None before the first measurement."""
        with self._lock:
            if self._held is None or self._plan is None or self._sizes is None:
                return None
            running = self._held.running  # before the points: what comes between is seen the next time
            return Seen(
                self._title, self._sizes, self._plan, tuple(self._held.points()), running, self._cancelled,
                self._held.error or "", tuple(self._held.refused), self._left() if running else 0,
            )  # fmt: skip


def one_layer(sizes: Sizes) -> Sizes:
    """Give one layer of a model, with nothing before or after it, that sees everything or all that came before."""
    config = replace(sizes.config, layers=1, decoder_layers=None, head="none", window=None)
    return Sizes(sizes.name, Decoder if sizes.writes else Encoder, config, (None,), 0)


def layer_operations(layer: Sizes, what: str, tokens: int) -> int:
    """Count the operations of a layer, or of its attention from given queries, keys and values on."""
    counts = flops(layer, Job(tokens))
    return counts["scores"] + counts["mixing"] if what == "attention" else sum(counts.values())
