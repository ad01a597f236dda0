"""Training that somebody watches: in a process of its own, that can be paused, rewound and gone on with.

The process takes one thread and gives way to every other (`nice`), so that who else uses this computer feels nothing.
It tells what it measures as it goes, and leaves checkpoints: the maps of every head, and all that learning goes on
from. It ends with whoever started it, and when its time is over.

Two models may learn side by side, a step of the one after a step of the other.

Dimensions: L layers, H heads, T queries, S keys.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Literal

from engine._alone import code_of, last_words
from engine.training.history import NOTHING, Checkpoint, Past, Plan, Point, last_step, thinned

Status = Literal["starting", "running", "paused", "done", "cancelled", "failed"]
ACTIVE: frozenset[Status] = frozenset({"starting", "running", "paused"})

JOIN_SECONDS = 2.0

_ALONE = code_of("engine.training._live_worker")


class Run:
    """A training that runs beside whoever started it.

    Args:
        plan: what is trained.
        past: what it goes on from; nothing to begin at the beginning.
        ended: called, from another thread, when it has ended.
    """

    def __init__(self, plan: Plan, past: Past = NOTHING, ended: Callable[[], None] = lambda: None) -> None:
        self.plan, self._ended = plan, ended
        self.first, self.last = past.step, last_step(plan, past)
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._points, self._checkpoints = list(past.points), list(past.checkpoints)
        self._status: Status = "starting"
        self._said = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._begun = False  # whether the process has its task
        self._early: list[str] = []  # what was said before that
        self._thread = threading.Thread(target=self._run, name="training", daemon=True)

    @classmethod
    def start(cls, plan: Plan, past: Past = NOTHING, ended: Callable[[], None] = lambda: None) -> Run:
        """Begin to train, and come back at once.

        Raises:
            ShapeError: it would go on for too long, or a setting makes no model.
        """
        run = cls(plan, past, ended)
        run._thread.start()
        return run

    @property
    def status(self) -> Status:
        """How far it is: "starting", "running", "paused", "done", "cancelled" or "failed"."""
        return self._status

    @property
    def said(self) -> str:
        """Why it ended before it was through, in a sentence; empty where it did not."""
        return self._said

    def past(self) -> Past:
        """What there is so far."""
        with self._lock:
            return Past(tuple(self._points), tuple(self._checkpoints))

    @property
    def nbytes(self) -> int:
        """Memory that its checkpoints take, in bytes."""
        with self._lock:
            return sum(len(checkpoint.packed) for checkpoint in self._checkpoints)

    def pause(self) -> None:
        """Stand still after this step, with a checkpoint."""
        self._tell("pause")

    def go_on(self) -> None:
        """Go on after a pause."""
        with self._lock:
            if self._status == "paused":
                self._status = "running"
        self._tell("go on")

    def hurry(self) -> None:
        """Go as fast as it goes from now on."""
        self._tell("hurry")

    def stop(self) -> None:
        """End it, and come back at once; what it has shown stays."""
        with self._lock:
            if self._status in ACTIVE:
                self._status = "cancelled"
            if self._process is not None:
                self._process.kill()

    def cancel(self) -> None:
        """End it now, within two seconds, and leave nothing running; what it has shown stays."""
        self.stop()
        self._thread.join(timeout=JOIN_SECONDS)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended, or for so many seconds; say whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _tell(self, command: str) -> None:
        # With a lock of its own: while the process starts it doesn't read yet, and who looks shall not wait for that.
        with self._writing:
            if self._begun:
                self._write(f"{command}\n".encode())
            else:
                self._early.append(command)

    def _write(self, content: bytes) -> None:
        with suppress(OSError, ValueError):  # it has ended meanwhile
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.write(content)
                self._process.stdin.flush()

    def _run(self) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints:
            try:
                with self._lock:
                    if self._status == "cancelled":
                        return
                    process = self._process = _begin(complaints)
                with process:
                    try:
                        self._listen(process)
                    finally:
                        process.kill()
                complaints.seek(0)
                self._end(process.returncode, complaints.read())
            except OSError as error:  # no process to be had
                self._end(1, f"No process could be started: {error.strerror or error}.")
            finally:
                self._ended()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        told = process.stdout
        if told is None:
            raise OSError("it has no output")
        packed = self._checkpoints[-1].packed if self._checkpoints else b""
        with self._writing:
            self._write(f"{self._task(len(packed))}\n".encode() + packed)
            self._begun = True
            self._write("".join(f"{command}\n" for command in self._early).encode())
        for line in told:
            answer = json.loads(line)
            packed = told.read(answer["bytes"]) if "bytes" in answer else b""
            with self._lock:
                self._take(answer, packed)

    def _task(self, following: int) -> str:
        """Write down what is to be done; so many bytes of a checkpoint follow."""
        plan = self.plan
        settings = [{"kind": setting.kind, "chosen": vars(setting)} for setting in plan.settings]
        task = {"settings": settings, "first": self.first, "steps": plan.steps, "every": plan.every}
        return json.dumps(task | {"pace": plan.pace, "seconds": plan.seconds, "bytes": following})

    def _take(self, answer: dict[str, Any], packed: bytes) -> None:
        """Keep what the process has told; called with the lock held."""
        if self._status not in ACTIVE:
            return
        if "point" in answer:
            step, losses, scores = answer["point"]
            self._points.append(Point(step, tuple(losses), tuple(scores)))
        elif "checkpoint" in answer:
            self._checkpoints = thinned([*self._checkpoints, Checkpoint(answer["checkpoint"], packed)])
        elif "said" in answer:
            self._said = answer["said"]
        else:
            self._status = answer["status"]

    def _end(self, code: int, complaints: str) -> None:
        with self._lock:
            if self._status in ACTIVE:
                self._status = "failed"
                self._said = _failure(code, complaints)


def _begin(complaints: IO[str]) -> subprocess.Popen[bytes]:
    """Start a process that trains, on one thread, apart from this one's group and its signals."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _ALONE, str(Path(__file__).parent.parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        start_new_session=True,
    )


def _failure(code: int, complaints: str) -> str:
    """Say what went wrong in a process that did not end well."""
    if code == -signal.SIGKILL:
        return "The process that trained was ended from outside: perhaps memory ran out."
    return f"The process that trained failed: {last_words(code, complaints)}"
