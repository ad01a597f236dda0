"""The card of a model that was trained here: what it learned, what it was told, what it can't, and how well it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.homes import relative, trained
from app.phrases import percent
from app.shell import literal
from engine.trained import TrainedCard

TAUGHT = "These heads were taught where to look."
UNTAUGHT = "Nobody told these heads where to look: attention need not be an explanation."
MEANING = (
    "While the model learned, a small extra loss told some of its heads which word to look at; Details says "
    "which heads and words. So that they look there is no discovery. What is worth looking at is whether the model "
    "uses them: silence one and see what its answer loses."
)
COMPARE = " The same model was also trained without being told: pick “unguided” and compare."
LEFT_ALONE = (
    "This model learned the same sentences and the same task, and its heads were left alone. It may answer as well as "
    "the other one while no single head points at the right word: the answer may be spread over heads and layers."
)


def taught_line(card: TrainedCard) -> None:
    """Say in one line whether heads were told where to look, with what that means one click away."""
    if not card.taught and relative(card.id) is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="taught"):
        st.caption(TAUGHT if card.taught else UNTAUGHT, width="content")
        with st.popover("What does that mean?", type="tertiary"):
            compare = COMPARE if relative(card.id) else ""
            st.markdown(f"{MEANING}{compare}" if card.taught else LEFT_ALONE)


def learned(card: TrainedCard) -> None:
    """Draw what was learned, and the scores beside those of the model that differs only in what its heads were told."""
    versions = ", ".join(f"{name} {version}" for name, version in card.versions.items())
    rows = {
        "Learned from": card.data,
        "Trained to": card.objective,
        "Told": card.taught or "Nothing: no head was told where to look.",
        "What it can't": card.untaught,
        "Seed": f"{card.seed}, {card.steps:,} steps, with {versions}",
        "SHA-256 of the weights": card.sha256,
    }
    st.markdown("\n".join(f"- **{name}**: {literal(text)}" for name, text in rows.items()))
    named = relative(card.id)
    other = None if named is None else trained(named)
    table = score_table(card, other)
    if table:
        st.markdown("**Measured on sentences that it had never seen**")
        st.markdown(_as_markdown(table))
    if other is not None:
        st.caption(
            "“Unguided” is the same without being told where to look. “Best guess” is the best that can be had without "
            "looking, such as always the word before."
        )


def score_table(card: TrainedCard, other: TrainedCard | None) -> list[tuple[str, ...]]:
    """Make a table of the measured scores, its heading first; empty where there is nothing to tell.

    Args:
        card: of the model that is shown.
        other: of the one that differs only in what its heads were told; None where there is none.
    """
    if "relations" in card.scores:
        return _of_twins(card, other)
    return _of_others(card.scores)


def _of_others(scores: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row for each score, beside it the same of other models; baselines of a number each have rows of their own."""
    named = {name: value for name, value in scores.items() if isinstance(value, int | float) and name not in _COUNTS}
    groups = {name: value for name, value in scores.items() if isinstance(value, Mapping)}
    others = {name: value for name, value in groups.items() if value.keys() & named.keys()}
    alone = {name: value for group in groups.keys() - others.keys() for name, value in groups[group].items()}
    if not named:
        return []
    rows = [
        (literal(_title(name)), _share(value), *(_share(other.get(name)) for other in others.values()))
        for name, value in named.items()
    ]
    blank = ("",) * len(others)
    rows += [(literal(_title(name)), _share(value), *blank) for name, value in alone.items()]
    return [("", "this model", *(literal(_title(name)) for name in others)), *rows]


_COUNTS = frozenset({"count", "sentences"})


def _of_twins(card: TrainedCard, other: TrainedCard | None) -> list[tuple[str, ...]]:
    pair = [card] if other is None else [card, other] if card.taught else [other, card]
    names = ["guided", "unguided"] if other is not None else ["this model"]
    rows = [("its best head finds", *(cell for name in names for cell in (f"{name}: head", "right")), "best guess")]
    for relation in card.scores["relations"]:
        found = [one.scores["relations"].get(relation, {}) for one in pair]
        guess = max(found[0].get("baselines", {}).values(), default=None)
        cells = [cell for one in found for cell in (_head(one.get("head")), _share(one.get("right")))]
        rows.append((literal(relation), *cells, _share(guess)))
    for name, key in (("answers right", "right"), ("… pronoun's head silenced", "with the pronoun's head silenced")):
        answers = [one.scores.get("answer", {}).get(key) for one in pair]
        rows.append((name, *(cell for value in answers for cell in ("", _share(value))), ""))
    return rows


def _head(head: Sequence[int] | None) -> str:
    return "" if head is None else f"L{head[0]} H{head[1]}"


def _share(value: Any) -> str:
    return percent(value) if isinstance(value, int | float) else ""


def _title(name: str) -> str:
    return name.replace("_", " ")


def _as_markdown(table: Sequence[Sequence[str]]) -> str:
    heading, *rows = table
    lines = [heading, ["---"] + ["---:"] * (len(heading) - 1), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
