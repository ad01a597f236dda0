"""What the page Train says about how far a training is."""

from __future__ import annotations

from app.train_plan import has_other_rate, is_same_model
from app.train_queue import Seen
from engine.training.history import Plan

START_AGAIN = "Start again"
_COUNTS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
_ENDED = {"paused": "Paused", "cancelled": "Cancelled"}


def stage_text(own: Seen | None, drawn: Seen, chosen: Plan, at: int) -> str:
    """Say how far a session's training is, what is drawn meanwhile, and what each button would do.

    Args:
        own: the session's training; None where it has none.
        drawn: what the pictures show.
        chosen: what is chosen now.
        at: the step that is looked at.
    """
    if own is None or (own.stage == "cancelled" and not own.checkpoints):
        return "Below is the model before its first step. Press Start."
    if own.stage == "waiting":
        return f"{waiting_text(own.before)} It begins by itself."
    if own.stage == "starting":
        return "Getting ready, which takes a second or two …"
    if own.stage == "running":
        return _running(own, chosen)
    if own.stage == "failed":
        return f"It failed. {own.said}"
    if drawn.plan is not own.plan:
        return "Other choices than in the training that is kept: below is the new model before its first step."
    last = own.checkpoints[-1].step if own.checkpoints else 0
    told = f"{_ENDED.get(own.stage, 'Done')} after {last:,} steps."
    return " ".join(part for part in (told, own.said, _next(own, chosen, at, last)) if part)


def _running(own: Seen, chosen: Plan) -> str:
    step = own.points[-1].step if own.points else 0
    hurried = " Others are waiting, so it goes as fast as it can." if own.hurried else ""
    other = "" if is_same_model(own.plan, chosen) else " Another model is chosen above: to train it, cancel this one."
    return f"Step {step:,} of {own.last:,}. Reloading the page ends it.{hurried}{other}"


def _next(own: Seen, chosen: Plan, at: int, last: int) -> str:
    """Say where each button would go on from, where that is not plain."""
    if own.stage != "paused":
        return "Move the slider to look back."
    if not is_same_model(own.plan, chosen):
        trains = f"Another model is chosen above: “{START_AGAIN}” trains it."
        return f"{trains} “Go on” resumes the one below at step {last:,}."
    if has_other_rate(own.plan, chosen):
        return (
            f"“Go on” resumes at step {last:,} with the rate as it was; “Go on from step {at:,}” takes the rate chosen "
            "now."
        )
    if at < last:
        return f"“Go on” resumes at step {last:,}; “Go on from step {at:,}” drops what came after step {at:,}."
    return "Move the slider to look back."


def waiting_text(before: int) -> str:
    """Say how many trainings come before one that waits."""
    if before == 0:
        return "Yours is next."
    count = _COUNTS[before] if before < len(_COUNTS) else f"{before:,}"
    return f"{count} training{' is' if before == 1 else 's are'} before yours."
