"""What the page Train says about how far a training is."""

from __future__ import annotations

from app.train_queue import Seen

_COUNTS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


def stage_text(own: Seen | None, drawn: Seen) -> str:
    """Say how far a session's training is, and what is drawn meanwhile.

    Args:
        own: the session's training; None where it has none.
        drawn: what the pictures show.
    """
    if own is None:
        return "Below is the model before its first step. Press Start."
    if own.stage == "waiting":
        return f"{waiting_text(own.before)} It begins by itself."
    if own.stage == "starting":
        return "Getting ready, which takes a second or two …"
    step = own.points[-1].step if own.points else 0
    if own.stage == "running":
        hurried = " Others are waiting, so it goes as fast as it can." if own.hurried else ""
        return f"Step {step:,} of {own.last:,}.{hurried}"
    if own.stage == "failed":
        return f"It failed. {own.said}"
    if drawn.plan is not own.plan:
        return "Other choices than in the training that is kept: below is the new model before its first step."
    ended = {"paused": "Paused", "cancelled": "Cancelled"}.get(own.stage, "Done")
    last = own.checkpoints[-1].step if own.checkpoints else 0
    return f"{ended} after {last:,} steps. {own.said} Move the slider to look back.".replace(".  ", ". ")


def waiting_text(before: int) -> str:
    """Say how many trainings come before one that waits."""
    if before == 0:
        return "Yours is next."
    count = _COUNTS[before] if before < len(_COUNTS) else f"{before:,}"
    return f"{count} training{' is' if before == 1 else 's are'} before yours."
