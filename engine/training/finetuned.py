"""What came of fine-tuning: the figures in assets/finetuning.json, which engine/training/finetuning.py makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ModelError
from engine.trained import FOLDER

FILE = FOLDER.parent / "finetuning.json"
WAYS = ("scratch", "frozen", "unfrozen")


@dataclass(frozen=True)
class Curves:
    """Shares of test sentences that were got right, after learning from so many.

    Attributes:
        counts: how many sentences were shown, rising.
        tested: how many were measured on.
        seed: decides the sentences and the random weights.
        right: for each of WAYS its shares, 0 to 1, one for each of `counts`.
    """

    counts: tuple[int, ...]
    tested: int
    seed: int
    right: Mapping[str, tuple[float, ...]]


def read(file: Path = FILE) -> Curves:
    """Read the figures.

    Raises:
        ModelError: they are missing or broken.
    """
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        right = {way: tuple(map(float, told["right"][way])) for way in WAYS}
        made = Curves(tuple(map(int, told["counts"])), int(told["tested"]), int(told["seed"]), right)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError("The figures of fine-tuning are missing or broken. Install this app anew.") from error
    if not made.counts or any(len(shares) != len(made.counts) for shares in right.values()):
        raise ModelError("The figures of fine-tuning do not fit each other. Install this app anew.")
    return made


def write(made: Curves, file: Path = FILE) -> None:
    """Write the figures."""
    told = {"counts": made.counts, "tested": made.tested, "seed": made.seed, "right": dict(made.right)}
    file.write_text(f"{json.dumps(told, indent=1)}\n", encoding="utf-8")
