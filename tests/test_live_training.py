"""Training while somebody watches: in a process of its own, paused, rewound, bounded, and one at a time."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load

from engine.errors import ShapeError
from engine.training import history, live
from engine.training._live_worker import SPARSE, is_kept
from engine.training.copying import Copying
from engine.training.history import Checkpoint, Past, Plan, beginning, thinned
from engine.training.live import Run
from tests.conftest import ROOT

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
SHORT = Plan((Copying(),), steps=30)
ENDLESS = Plan((Copying(),), steps=5000)  # measured every 50 steps


def until(true: Callable[[], bool], seconds: float) -> bool:
    """Wait until something is so, or time is over; say which."""
    end = time.monotonic() + seconds
    while not (done := true()) and time.monotonic() < end:
        time.sleep(0.02)
    return done


def lives(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pid_of(run: Run) -> int:
    """The number of a run's process, once it is there."""
    assert until(lambda: run._process is not None, 10)
    assert run._process is not None
    return run._process.pid


@pytest.fixture
def endless() -> Iterator[Run]:
    """A run that is going, and would for long."""
    run = Run.start(ENDLESS)
    assert until(lambda: len(run.past().points) > 1, 60)
    yield run
    run.cancel()


@pytest.fixture(scope="module")
def done() -> Run:
    """Two models side by side, for 60 steps."""
    run = Run.start(Plan((Copying(), Copying(depth=1)), steps=60))
    assert run.wait(60)
    return run


def test_a_run_measures_every_model_and_keeps_its_maps(done: Run):
    past = done.past()
    assert (done.status, done.said, done.last) == ("done", "", 60)
    assert [point.step for point in past.points] == list(range(61))
    assert [one.step for one in past.checkpoints] == [0, 10, 20, 30, 40, 50, 60]
    assert all(len(point.losses) == len(point.scores) == 2 for point in past.points)
    deep, shallow = past.checkpoints[-1].maps
    assert (deep.shape, shallow.shape) == ((2, 1, 30, 30), (1, 1, 30, 30))
    torch.testing.assert_close(deep.sum(-1), torch.ones(2, 1, 30))


def test_the_process_does_what_the_task_does_here_bit_by_bit(done: Run):
    """Twice, for that matter: once in another process and once in this one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        task = Copying().task()
        losses = [task.step() for _ in range(60)]
    finally:
        torch.set_num_threads(threads)
    assert [point.losses[0] for point in done.past().points[1:]] == losses
    packed = load(done.past().checkpoints[-1].packed)
    assert all(torch.equal(value, packed[f"0/{name}"]) for name, value in task.state().items())


def test_before_the_first_step_everything_is_there_at_once(done: Run):
    """The page opens on the very models that the run begins with."""
    start = time.monotonic()
    first = beginning(done.plan.settings)
    assert time.monotonic() - start < 2
    assert first.points == done.past().points[:1]
    assert torch.equal(first.checkpoints[0].maps[0], done.past().checkpoints[0].maps[0])


def test_going_on_from_a_checkpoint_goes_the_same_way(done: Run):
    """Rewound to step 20, the same forty steps lead to the same weights, to the last bit."""
    again = Run.start(Plan(done.plan.settings, steps=40), done.past().until(20))
    assert again.wait(30)
    assert (again.first, again.last) == (20, 60)
    assert again.past().checkpoints[-1].packed == done.past().checkpoints[-1].packed
    assert again.past().points == done.past().points


def test_going_on_with_another_rate_goes_another_way(done: Run):
    settings = tuple(Copying(depth=depth, rate=0.001) for depth in (2, 1))
    again = Run.start(Plan(settings, steps=40), done.past().until(20))
    assert again.wait(30)
    assert again.past().points[:21] == done.past().points[:21]
    assert again.past().points[-1].losses != done.past().points[-1].losses


def test_it_stands_still_with_a_checkpoint_and_goes_on(endless: Run):
    endless.pause()
    assert until(lambda: endless.status == "paused", 30)
    step = endless.past().points[-1].step
    assert endless.past().checkpoints[-1].step >= step
    time.sleep(0.3)
    assert endless.past().points[-1].step == step
    endless.go_on()
    assert until(lambda: endless.status == "running" and endless.past().points[-1].step > step, 60)


def test_what_is_said_before_it_is_ready_is_not_lost():
    run = Run.start(ENDLESS)
    run.pause()
    assert until(lambda: run.status == "paused", 60)
    run.cancel()


@LINUX
@pytest.mark.parametrize("after", [0.0, 0.4, 2.5])
def test_cancelling_ends_it_within_two_seconds_and_leaves_nothing(after: float):
    """While it starts and while it trains; what it has shown stays."""
    run = Run.start(ENDLESS)
    pid = pid_of(run)
    time.sleep(after)
    points = len(run.past().points)
    start = time.monotonic()
    run.cancel()
    assert time.monotonic() - start < 2
    assert (run.status, run.said) == ("cancelled", "")
    assert not lives(pid)
    assert len(run.past().points) >= points
    run.cancel()


@LINUX
def test_a_pause_can_be_cancelled_too(endless: Run):
    endless.pause()
    assert until(lambda: endless.status == "paused", 30)
    pid = pid_of(endless)
    endless.cancel()
    assert until(lambda: not lives(pid), 2)


@LINUX
@pytest.mark.parametrize("end", ["killed", "at its end"])
def test_it_ends_with_whoever_started_it(end: str):
    """Its input closes with the parent, however that came to its end."""
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from engine.training.history import Plan\nfrom engine.training.live import Run\n"
        "from engine.training.copying import Copying\n"
        "run = Run.start(Plan((Copying(),), steps=5000))\n"
        "while not run.past().points: time.sleep(0.01)\n"
        "print(run._process.pid, flush=True)\n"
        f"time.sleep({60 if end == 'killed' else 0})\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(ROOT)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert lives(child)
        if end == "killed":
            parent.send_signal(signal.SIGKILL)
        parent.wait(10)
        assert until(lambda: not lives(child), 2)


@LINUX
def test_it_takes_one_thread_and_gives_way_to_others(endless: Run):
    """Its niceness is ten above ours, and its time is never more than one core's."""
    pid = pid_of(endless)
    assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0) + 10

    def used() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    start, before = time.monotonic(), used()
    time.sleep(1.0)
    assert used() - before < 1.2 * (time.monotonic() - start)


def test_it_goes_at_the_pace_that_was_asked_for_until_it_is_hurried():
    run = Run.start(Plan((Copying(),), steps=2000, pace=20.0))
    assert until(lambda: len(run.past().points) > 1, 60)
    start, first = time.monotonic(), run.past().points[-1].step
    time.sleep(1.5)
    slow = (run.past().points[-1].step - first) / (time.monotonic() - start)
    assert slow < 40  # measured every 20 steps
    run.hurry()
    start, first = time.monotonic(), run.past().points[-1].step
    time.sleep(1.5)
    assert (run.past().points[-1].step - first) / (time.monotonic() - start) > slow
    run.cancel()


def test_it_ends_by_itself_when_its_time_is_over():
    run = Run.start(Plan((Copying(),), steps=5000, seconds=1.0))
    assert run.wait(60)
    assert run.status == "done"
    assert re.fullmatch(r"It was ended when its \d s were over\.", run.said)
    assert 0 < run.past().checkpoints[-1].step < 5000


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('no such task')", "The process that trained failed: ValueError: no such task"),
        ("import sys; sys.exit(3)", "The process that trained failed: exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "was ended from outside"),
    ],
)
def test_a_process_that_fails_is_a_sentence(monkeypatch: pytest.MonkeyPatch, code: str, said: str):
    monkeypatch.setattr(live, "_ALONE", code)
    run = Run.start(SHORT)
    assert run.wait(10)
    assert run.status == "failed"
    assert said in run.said


def test_a_setting_that_makes_no_model_is_a_sentence_too():
    run = Run.start(Plan((Copying(depth=9),), steps=5))
    assert run.wait(20)
    assert (run.status, run.said[:36]) == ("failed", "Training ended: 9 layers of 1 heads:")


@pytest.mark.parametrize(
    ("settings", "steps", "why"),
    [
        ((), 5, "0 models"),
        ((Copying(),) * 3, 5, "3 models"),
        ((Copying(),), 0, "0 steps"),
        ((Copying(),), 9999, "9,999"),
    ],
)
def test_a_plan_that_cannot_be_watched_is_refused(settings: tuple[Copying, ...], steps: int, why: str):
    with pytest.raises(ShapeError, match=why):
        Plan(settings, steps)


def test_nobody_goes_on_for_ever():
    held = Past((), (Checkpoint(5990, b""),))
    with pytest.raises(ShapeError, match="After 5,990 steps, 30 more would be above 6,000"):
        Run(SHORT, held)


def test_checkpoints_are_thinned_out_but_the_first_and_the_last_stay():
    """By number and by bytes: a long run takes no more memory than a short one."""
    many = [Checkpoint(step, b"x") for step in range(1000)]
    kept = thinned(many)
    assert len(kept) <= history.MOST_CHECKPOINTS
    assert (kept[0].step, kept[-1].step) == (0, 999)
    heavy = [Checkpoint(step, bytes(history.MOST_BYTES // 10)) for step in range(20)]
    kept = thinned(heavy)
    assert sum(len(one.packed) for one in kept) <= history.MOST_BYTES
    assert (kept[0].step, kept[-1].step) == (0, 19)


def test_checkpoints_are_dense_where_things_happen():
    steps = [step for step in range(1, 6001) if is_kept(step)]
    assert steps[:20] == list(range(10, 201, 10))
    assert all(step % SPARSE == 0 for step in steps if step > 1000)
    assert len(steps) < 100


@LINUX
def test_ten_runs_leave_no_more_than_two():
    """Neither open files nor threads nor processes."""

    def left(times: int) -> tuple[int, int]:
        for _ in range(times):
            run = Run.start(Plan((Copying(),), steps=1))
            assert run.wait(30)
            assert run.status == "done"
        mine = [entry for entry in Path("/proc").glob("[0-9]*/stat") if _parent(entry) == os.getpid()]
        return len(list(Path("/proc/self/fd").iterdir())), len(mine)

    assert left(1) == left(3)


def _parent(entry: Path) -> int:
    try:
        return int(entry.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
