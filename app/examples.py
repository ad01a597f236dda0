"""Sentences to begin with, and what to look for in each."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ASSETS = Path(__file__).resolve().parent.parent / "assets"


@dataclass(frozen=True)
class Example:
    """A sentence worth looking at; word and partner are places as in app.view.

    A twin is another example that differs in the reason alone, so that its partner is the other person. A sentence that
    is made for one model names it.
    """

    name: str
    sentence: str
    note: str
    word: str | None
    partner: str | None
    twin: str | None = None
    model: str | None = None


@cache
def examples() -> tuple[Example, ...]:
    """Read the example sentences; the first is the one the app opens on."""
    rows = json.loads((ASSETS / "examples.json").read_text(encoding="utf-8"))
    return tuple(Example(**row) for row in rows)


def example_of(sentence: str) -> Example | None:
    """Find the example with exactly this sentence."""
    return next((example for example in examples() if example.sentence == sentence), None)
