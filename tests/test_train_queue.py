"""One training at a time: who waits is told, who is gone drops out, and results are kept within bounds."""

from collections.abc import Callable

import pytest

from app.train_queue import Trainer
from app.train_words import waiting_text
from engine.errors import ShapeError
from engine.training.copying import Copying
from engine.training.history import NOTHING, Checkpoint, Past, Plan, Point
from engine.training.live import Run
from tests.test_live_training import SHORT, until


class Pretended(Run):
    """A run without a process: it goes as far as it is told."""

    def __init__(self, plan: Plan, past: Past = NOTHING, ended: Callable[[], None] = lambda: None) -> None:
        super().__init__(plan, past, ended)
        self.hurried = False
        self._status = "running"

    def pause(self) -> None:
        """Stand still at step 7."""
        self._checkpoints.append(Checkpoint(self.first + 7, b"x"))
        self._points.append(Point(self.first + 7, (1.0,), ({},)))
        self._status = "paused"

    def go_on(self) -> None:
        """Go on."""
        self._status = "running"

    def hurry(self) -> None:
        """Remember that others wait."""
        self.hurried = True

    def finish(self) -> None:
        """Be through."""
        self._status = "done"
        self._ended()


class Room:
    """A trainer with pretended runs, and the sessions that look at it."""

    def __init__(self) -> None:
        self.runs: list[Pretended] = []
        self.here = {"a", "b", "c", "d"}
        self.trainer = Trainer(self.begin, self.here.__contains__)

    def begin(self, plan: Plan, past: Past, ended: Callable[[], None]) -> Run:
        """Begin a run that only pretends."""
        self.runs.append(Pretended(plan, past, ended))
        return self.runs[-1]

    def stage(self, owner: str) -> tuple[str, int]:
        """How far somebody's training is, and how many come first."""
        seen = self.trainer.seen(owner)
        return ("none", 0) if seen is None else (seen.stage, seen.before)

    def leave(self, owner: str) -> None:
        """Close a page, long ago."""
        self.here.remove(owner)
        self.trainer._jobs[owner].looked -= 60


@pytest.fixture
def room() -> Room:
    """An empty one."""
    return Room()


def test_one_trains_and_the_others_wait_in_the_order_in_which_they_came(room: Room):
    for owner in "abc":
        room.trainer.start(owner, SHORT)
    assert [room.stage(owner) for owner in "abc"] == [("running", 0), ("waiting", 1), ("waiting", 2)]
    assert len(room.runs) == 1
    room.runs[0].finish()
    assert [room.stage(owner) for owner in "abc"] == [("done", 0), ("running", 0), ("waiting", 1)]
    room.runs[1].finish()
    assert [room.stage(owner) for owner in "abc"] == [("done", 0), ("done", 0), ("running", 0)]


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (0, "Yours is next."),
        (1, "One training is before yours."),
        (2, "Two trainings are before yours."),
        (12, "12 trainings are before yours."),
    ],
)
def test_who_waits_is_told_in_words(before: int, said: str):
    assert waiting_text(before) == said


def test_who_trains_is_hurried_when_others_wait(room: Room):
    room.trainer.start("a", SHORT)
    assert not room.runs[0].hurried
    room.trainer.start("b", SHORT)
    assert room.runs[0].hurried
    seen = room.trainer.seen("a")
    assert seen is not None
    assert seen.hurried


def test_gone_sessions_drop_out_of_the_line(room: Room):
    for owner in "abc":
        room.trainer.start(owner, SHORT)
    room.leave("b")
    assert room.stage("c") == ("waiting", 1)
    assert "b" not in room.trainer._jobs


def test_the_training_of_a_session_that_is_gone_makes_room(room: Room):
    room.trainer.start("a", SHORT)
    room.trainer.start("b", SHORT)
    room.leave("a")
    assert room.stage("b") == ("running", 0)
    assert room.runs[0].status == "cancelled"


def test_a_page_that_loses_its_connection_for_a_moment_keeps_its_place(room: Room):
    room.trainer.start("a", SHORT)
    room.here.remove("a")
    room.trainer.start("b", SHORT)
    assert room.stage("a") == ("running", 0)


def test_leaving_the_line_and_cancelling_make_room(room: Room):
    for owner in "abc":
        room.trainer.start(owner, SHORT)
    room.trainer.cancel("b")
    assert [room.stage(owner) for owner in "abc"] == [("running", 0), ("none", 0), ("waiting", 1)]
    room.trainer.cancel("a")
    assert [room.stage(owner) for owner in "ac"] == [("cancelled", 0), ("running", 0)]


def test_whoever_stands_still_gives_way_and_goes_on_later_from_there(room: Room):
    """The process is let go, the checkpoint is not; going on means to wait in the line, for the steps that are left."""
    room.trainer.start("a", SHORT)
    room.trainer.pause("a")
    assert room.stage("a") == ("paused", 0)
    room.trainer.start("b", SHORT)
    assert [room.stage(owner) for owner in "ab"] == [("paused", 0), ("running", 0)]
    assert room.runs[0].status == "cancelled"
    room.trainer.go_on("a")
    assert room.stage("a") == ("waiting", 1)
    room.runs[1].finish()
    assert room.stage("a") == ("running", 0)
    assert (room.runs[2].first, room.runs[2].last) == (7, 30)


def test_whoever_stands_still_alone_goes_on_at_once(room: Room):
    room.trainer.start("a", SHORT)
    room.trainer.pause("a")
    room.trainer.go_on("a")
    assert room.stage("a") == ("running", 0)
    assert len(room.runs) == 1


def test_a_pause_does_not_hold_a_process_for_ever(room: Room):
    room.trainer.start("a", SHORT)
    room.trainer.pause("a")
    assert room.stage("a") == ("paused", 0)
    room.trainer._jobs["a"].paused_since -= 500  # type: ignore[operator]
    assert room.stage("a") == ("paused", 0)
    assert room.runs[0].status == "cancelled"


def test_starting_anew_ends_what_the_session_had(room: Room):
    room.trainer.start("a", SHORT)
    room.trainer.start("a", Plan((Copying(depth=1),), steps=10))
    assert [run.status for run in room.runs] == ["cancelled", "running"]
    seen = room.trainer.seen("a")
    assert seen is not None
    assert seen.plan.settings[0].depth == 1  # type: ignore[attr-defined]


def test_nothing_of_one_session_reaches_another(room: Room):
    room.trainer.start("a", SHORT)
    assert room.trainer.seen("b") is None
    room.trainer.pause("b")
    room.trainer.cancel("b")
    room.trainer.go_on("b")
    assert room.stage("a") == ("running", 0)


def test_results_are_kept_for_so_many_sessions_and_so_many_bytes(room: Room, monkeypatch: pytest.MonkeyPatch):
    """The oldest go first; what runs or waits is never forgotten."""
    monkeypatch.setattr("app.train_queue.MOST_SESSIONS", 3)
    for number in range(6):
        room.here.add(str(number))
        room.trainer.start(str(number), SHORT)
        room.runs[-1].finish()
    assert list(room.trainer._jobs) == ["3", "4", "5"]
    monkeypatch.setattr("app.train_queue.MOST_BYTES", 10)
    room.trainer.start("a", SHORT, Past((), (Checkpoint(3, bytes(100)),)))
    assert list(room.trainer._jobs)[-1] == "a"
    room.runs[-1].finish()
    assert room.stage("a") == ("none", 0)


def test_too_many_steps_are_refused_to_who_asks(room: Room):
    with pytest.raises(ShapeError, match="begin anew"):
        room.trainer.start("a", SHORT, Past((), (Checkpoint(5990, b""),)))
    assert room.stage("a") == ("none", 0)


def test_a_session_that_is_gone_is_noticed_though_nobody_looks(room: Room, monkeypatch: pytest.MonkeyPatch):
    """A page that was loaded anew says nothing, and may be the only one: its training ends all the same."""
    monkeypatch.setattr("app.train_queue.TICK", 0.05)
    room.trainer.start("a", SHORT)
    room.here.remove("a")
    assert not until(lambda: not room.trainer._jobs, 0.3)  # a connection may come back
    room.trainer._jobs["a"].looked -= 300
    assert until(lambda: not room.trainer._jobs, 5)
    assert room.runs[0].status == "cancelled"
    assert until(lambda: not room.trainer._ticking, 5)


def test_a_session_that_is_gone_loses_its_place_sooner_where_others_wait(room: Room):
    room.trainer.start("a", SHORT)
    room.here.remove("a")
    room.trainer._jobs["a"].looked -= 20
    room.trainer._advance()
    assert "a" in room.trainer._jobs
    room.trainer.start("b", SHORT)
    assert room.stage("b") == ("running", 0)


def test_real_runs_follow_one_another():
    """Three sessions, three processes one after the other, each with its own result."""
    trainer = Trainer(here=lambda session: True)
    for number, owner in enumerate("abc"):
        trainer.start(owner, Plan((Copying(seed=number),), steps=20, pace=20.0))
    assert until(lambda: all((seen := trainer.seen(owner)) is not None and seen.stage == "done" for owner in "abc"), 60)
    losses = {(seen := trainer.seen(owner)) and seen.points[-1].losses for owner in "abc"}
    assert len(losses) == 3
    trainer.forget()
