"""The process that trains while somebody watches: it reads a task on its input, and commands after it.

It ends when its input does, so that it never outlives who started it, and when its time is over.

Dimensions: L layers, H heads, T queries, S keys.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

import torch
from safetensors.torch import load, save
from torch import Tensor

from engine.errors import EngineError
from engine.training.task import Task

# Where the settings of each kind of task are: only the one that is wanted is read.
SETTINGS = {
    "copying": ("engine.training.copying", "Copying"),
    "pronoun": ("engine.training.referent", "Referent"),
}
NICENESS = 10
LIFETIME = 900.0  # seconds after which a process ends, whatever it does
DENSE = ((200, 10), (500, 25), (1000, 50))  # until which step a checkpoint is made every so many steps
SPARSE = 100


class Control:
    """What has been said to this process while it trains: stand still, go on, hurry."""

    def __init__(self) -> None:
        self.hurried = False
        self._changed = threading.Condition()
        self._paused = False

    @property
    def paused(self) -> bool:
        """Whether it is to stand still."""
        return self._paused

    def say(self, command: str) -> None:
        """Take a command."""
        with self._changed:
            self._paused = command == "pause" or (self._paused and command != "go on")
            self.hurried = self.hurried or command == "hurry"
            self._changed.notify_all()

    def stand_still(self) -> None:
        """Wait until the pause is over."""
        with self._changed:
            while self._paused:
                self._changed.wait()

    def rest(self, seconds: float) -> None:
        """Wait for a while, but not through a command."""
        if seconds > 0:
            with self._changed:
                self._changed.wait(seconds)


def main() -> None:
    """Read a task from the input, train, and write lines of JSON, some with bytes after them."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    torch.set_num_threads(1)
    given = io.FileIO(sys.stdin.fileno(), closefd=False)
    task = json.loads(given.readline())
    packed = _exactly(given, task["bytes"])
    control = Control()
    threading.Thread(target=_listen, args=(given, control), daemon=True).start()
    watch = threading.Timer(LIFETIME, _leave)
    watch.daemon = True
    watch.start()
    try:
        Training(task, packed, control).run()
    except (EngineError, RuntimeError, MemoryError) as error:
        _tell({"said": f"Training ended: {str(error).splitlines()[0]}"})
        _tell({"status": "failed"})
    _leave()


class Training:
    """One training: one model or two, a step of the one after a step of the other."""

    def __init__(self, task: dict[str, Any], packed: bytes, control: Control) -> None:
        self.tasks = [setting_of(given).task() for given in task["settings"]]
        self.step, self.last, self.every = task["first"], task["first"] + task["steps"], task["every"]
        self.pace, self.seconds, self.control = task["pace"], task["seconds"], control
        self._losses: list[list[float]] = []
        self._kept = -1
        if packed:
            restore(self.tasks, packed, self.step)
            self._kept = self.step

    def run(self) -> None:
        """Train to the end, unless time is over before."""
        _tell({"status": "running"})
        if self._kept < 0:
            self._measure()
            self._keep()
        begun, resting = time.monotonic(), 0.0
        while self.step < self.last:
            if self.control.paused:
                resting += self._rested()
            if time.monotonic() - begun - resting > self.seconds:
                _tell({"said": f"It was ended when its {self.seconds:.0f} s were over."})
                break
            due = time.monotonic() + (0.0 if self.control.hurried or not self.pace else 1 / self.pace)
            self._one_step()
            self.control.rest(due - time.monotonic())
        self._keep()
        _tell({"status": "done"})

    def _one_step(self) -> None:
        self._losses.append([task.step() for task in self.tasks])
        self.step += 1
        if self.step % self.every == 0 or self.step == self.last:
            self._measure()
        if is_kept(self.step):
            self._keep()

    def _rested(self) -> float:
        """Stand still, with a checkpoint to be looked at, and say for how many seconds."""
        self._keep()
        _tell({"status": "paused"})
        start = time.monotonic()
        self.control.stand_still()
        _tell({"status": "running"})
        return time.monotonic() - start

    def _measure(self) -> None:
        scores = [task.scores() for task in self.tasks]
        # Nothing has been learned from before the first step: there the loss is that on what is never trained on.
        losses = [sum(one) / len(one) for one in zip(*self._losses, strict=True)] or [one["loss"] for one in scores]
        _tell({"point": [self.step, losses, scores]})
        self._losses.clear()

    def _keep(self) -> None:
        if self._kept == self.step:
            return
        self._kept = self.step
        _tell({"checkpoint": self.step}, packed(self.tasks))


def is_kept(step: int) -> bool:
    """Say whether a checkpoint is made after a step: often in the beginning, when things happen, later seldom."""
    return step % next((every for until, every in DENSE if step <= until), SPARSE) == 0


def packed(tasks: Sequence[Task]) -> bytes:
    """Pack what every task is looked at and gone on from, as safetensors."""
    held: dict[str, Tensor] = {}
    for number, task in enumerate(tasks):
        held |= {f"{number}/{name}": value.contiguous() for name, value in task.state().items()}
        held[f"{number}/maps"] = task.maps().contiguous()
    return save(held)


def restore(tasks: Sequence[Task], packed: bytes, steps: int) -> None:
    """Bring tasks back to where they were packed."""
    held = load(packed)
    for number, task in enumerate(tasks):
        begin = f"{number}/"
        task.restore({name.removeprefix(begin): held[name] for name in held if name.startswith(begin)}, steps)


def setting_of(given: dict[str, Any]) -> Any:
    """Read a setting as it was sent."""
    module, name = SETTINGS[given["kind"]]
    make: Callable[..., Any] = getattr(import_module(module), name)
    return make(**given["chosen"])


def _exactly(given: io.FileIO, count: int) -> bytes:
    parts = []
    while count and (part := given.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _listen(given: io.FileIO, control: Control) -> NoReturn:
    while line := given.readline():
        control.say(line.decode().strip())
    _leave()


def _tell(line: dict[str, Any], content: bytes = b"") -> None:
    header = line | ({"bytes": len(content)} if content else {})
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n" + content)
    sys.stdout.buffer.flush()


def _leave() -> NoReturn:
    os._exit(0)
