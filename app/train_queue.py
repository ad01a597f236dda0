"""One training at a time for everybody who uses this app: the others wait in a line, and are told where they stand."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from app.cost_bench import is_here
from engine.training.history import NOTHING, Checkpoint, Past, Plan, Point, last_step
from engine.training.live import ACTIVE, Run, Status

Begin = Callable[[Plan, Past, Callable[[], None]], Run]
Stage = Literal["waiting"] | Status

MOST_SESSIONS = 60  # whose last training is kept
MOST_BYTES = 240_000_000
GONE_SECONDS = 10.0  # a page that has lost its connection for less is taken to come back, where others wait
LOST_SECONDS = 60.0  # likewise, where nobody waits; after that a session of Streamlit can't come back
TICK = 5.0  # seconds between two looks at who is still there, while anything runs or waits
PAUSE_SECONDS = 120.0  # after which a process that stands still is let go; its checkpoint stays


@dataclass(frozen=True)
class Seen:
    """What can be seen of one session's training.

    Attributes:
        plan: what is trained.
        points, checkpoints: what there is so far.
        stage: how far it is.
        first, last: the steps that this stretch begins and ends at.
        before: how many trainings come first; 0 unless it waits.
        said: why it ended before it was through, in a sentence; empty where it did not.
        hurried: whether it runs faster than was asked for, because others wait.
    """

    plan: Plan
    points: tuple[Point, ...]
    checkpoints: tuple[Checkpoint, ...]
    stage: Stage
    first: int
    last: int
    before: int = 0
    said: str = ""
    hurried: bool = False

    @property
    def moves(self) -> bool:
        """Whether there may be something new to see in a moment."""
        return self.stage in ("waiting", "starting", "running")


@dataclass
class _Job:
    """A session's training: waiting while it has no run, and while it is parked, paused without a process."""

    plan: Plan
    past: Past
    run: Run | None = None
    parked: bool = False
    given_up: bool = False
    hurried: bool = False
    looked: float = field(default_factory=time.monotonic)
    paused_since: float | None = None

    @property
    def stage(self) -> Stage:
        if self.given_up:
            return "cancelled"
        if self.parked:
            return "paused"
        return "waiting" if self.run is None else self.run.status

    @property
    def holds_process(self) -> bool:
        return self.run is not None and self.stage in ACTIVE and not self.parked

    @property
    def is_busy(self) -> bool:
        return self.holds_process or self.stage == "waiting"

    def kept(self) -> Past:
        return self.past if self.run is None else self.run.past()


class Trainer:
    """Where models are trained for all sessions, one training after the other.

    Args:
        begin: starts a run; another one in tests.
        here: says whether a session is still looked at.
    """

    def __init__(self, begin: Begin = Run.start, here: Callable[[str], bool] = is_here) -> None:
        self._begin, self._here = begin, here
        self._lock = threading.RLock()
        self._ticking = False
        self._jobs: OrderedDict[str, _Job] = OrderedDict()  # in the order in which they came

    def start(self, owner: str, plan: Plan, past: Past = NOTHING) -> None:
        """Begin a training, or wait in the line for it; what the session had before is given up.

        Args:
            owner: the session.
            plan: what is trained.
            past: what it goes on from; nothing for a new model.

        Raises:
            ShapeError: it would go on for too long.
        """
        last_step(plan, past)
        with self._lock:
            self._give_up(self._jobs.pop(owner, None))
            self._jobs[owner] = _Job(plan, past)
            self._advance()

    def pause(self, owner: str) -> None:
        """Let a session's training stand still."""
        with self._lock:
            job = self._jobs.get(owner)
            if job is not None and job.run is not None:
                job.run.pause()

    def go_on(self, owner: str) -> None:
        """Let it go on; where its process had to be let go, it waits in the line for another."""
        with self._lock:
            job = self._jobs.get(owner)
            if job is None or job.stage != "paused" or job.run is None:
                return
            job.paused_since = None
            if job.parked:
                self._requeue(owner, job)
            else:
                job.run.go_on()
            self._advance()

    def cancel(self, owner: str) -> None:
        """End a session's training, or leave the line; what it has shown stays."""
        with self._lock:
            job = self._jobs.get(owner)
            if job is None:
                return
            if job.run is None and not job.past.points:
                del self._jobs[owner]
            else:
                self._give_up(job)
            self._advance()

    def seen(self, owner: str) -> Seen | None:
        """Look at a session's training; None where it has none."""
        with self._lock:
            job = self._jobs.get(owner)
            if job is not None:
                job.looked = time.monotonic()
            self._advance()
            job = self._jobs.get(owner)
            return None if job is None else self._seen(owner, job)

    def forget(self) -> None:
        """End all trainings and forget them."""
        with self._lock:
            for job in self._jobs.values():
                self._give_up(job)
            self._jobs.clear()

    def _seen(self, owner: str, job: _Job) -> Seen:
        stage, kept = job.stage, job.kept()  # the stage first: what comes between is seen the next time
        first = job.past.step
        before = self._before(owner) if stage == "waiting" else 0
        said = "" if job.run is None else job.run.said
        return Seen(
            job.plan, kept.points, kept.checkpoints, stage, first, first + job.plan.steps, before, said, job.hurried
        )

    def _before(self, owner: str) -> int:
        """Count the trainings that come before one that waits: the one that runs, and those that wait longer."""
        waiting = [name for name, job in self._jobs.items() if job.stage == "waiting"]
        return waiting.index(owner) + sum(job.holds_process for job in self._jobs.values())

    def _advance(self) -> None:
        """Let those go who are gone, make room where somebody stands still, and begin what comes next."""
        now = time.monotonic()
        self._let_go(now)
        waiting = [job for job in self._jobs.values() if job.stage == "waiting"]
        for job in self._jobs.values():
            self._rest(job, now, bool(waiting))
        if waiting and not any(job.holds_process for job in self._jobs.values()):
            job = waiting[0]
            job.run = self._begin(job.plan, job.past, self._has_ended)
        self._bound()
        self._tick()

    def _let_go(self, now: float) -> None:
        """End the trainings of sessions that are gone, sooner where others wait."""
        waiting = {name for name, job in self._jobs.items() if job.stage == "waiting"}
        for name, job in list(self._jobs.items()):
            seconds = GONE_SECONDS if waiting - {name} else LOST_SECONDS
            if job.is_busy and not self._here(name) and now - job.looked > seconds:
                self._give_up(self._jobs.pop(name))

    def _tick(self) -> None:
        """Look again after a while: a page that was closed or loaded anew doesn't say so."""
        if self._ticking or not any(job.is_busy for job in self._jobs.values()):
            return
        self._ticking = True
        timer = threading.Timer(TICK, self._ticked)
        timer.daemon = True
        timer.start()

    def _ticked(self) -> None:
        with self._lock:
            self._ticking = False
            self._advance()

    def _rest(self, job: _Job, now: float, wanted: bool) -> None:
        """Let go of a process that stands still, where another is wanted or after a while; hurry one that runs."""
        if not job.holds_process or job.run is None:
            return
        if job.run.status == "paused":
            job.paused_since = job.paused_since or now
            if wanted or now - job.paused_since > PAUSE_SECONDS:
                job.parked = True
                job.run.stop()
        elif wanted and not job.hurried:
            job.hurried = True
            job.run.hurry()

    def _requeue(self, owner: str, job: _Job) -> None:
        """Put a training whose process was let go at the end of the line, with the steps that are left of it."""
        if job.run is None:
            return
        past = job.run.past()
        plan = replace(job.plan, steps=max(1, job.run.last - past.step))
        del self._jobs[owner]
        self._jobs[owner] = _Job(plan, past)

    def _give_up(self, job: _Job | None) -> None:
        """End what a job runs, or take it out of the line."""
        if job is None or job.stage not in (*ACTIVE, "waiting"):
            return
        job.given_up = True
        if job.run is not None:
            job.run.stop()

    def _has_ended(self) -> None:
        with self._lock:
            self._advance()

    def _bound(self) -> None:
        """Forget the trainings that were begun longest ago, beyond so many and so many bytes."""
        done = [name for name, job in self._jobs.items() if not job.is_busy]
        sizes = {name: sum(len(one.packed) for one in self._jobs[name].kept().checkpoints) for name in done}
        while done and (len(self._jobs) > MOST_SESSIONS or sum(sizes.values()) > MOST_BYTES):
            name = done.pop(0)
            del sizes[name]
            del self._jobs[name]
