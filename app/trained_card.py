"""The card of a model that was trained here: what it learned, what it was told, what it can't, and how well it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app import cache, state
from app.homes import relative, trained
from app.phrases import percent
from app.shell import literal
from engine.trained import TrainedCard

TAUGHT = "These heads were taught where to look."
UNTAUGHT = "Nobody told these heads where to look: attention need not be an explanation."
MEANING = (
    "While the model learned, a small extra loss told some of its heads which word to look at; Details says "
    "which heads and words. So that they look there is no discovery."
)
NO_OTHER_WAY = (
    " Nor is it one that the answer is lost when the pronoun’s head is silenced: the other heads were told not to look "
    "back, so that the answer has hardly another way to come. Here both can be relied on, as a lesson needs it. "
    "The page Train has a model whose head is told where to look and nothing else: there other ways stay open."
)
COMPARE = " The same model was also trained without being told: pick “unguided” and compare."
LEFT_ALONE = "This model learned the same sentences and the same task, and its heads were left alone."
SPREAD = " What it does know is not in one head that points at it: it is spread over heads and layers."
NO_TRANSLATOR = "No translator for use: it knows simple sentences in the present; of others its Hindi means nothing."
PRETRAINED = "minilm"


def taught_line(card: TrainedCard) -> None:
    """Say in one line whether heads were told where to look, with what that means one click away."""
    if not card.taught and relative(card.id) is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="taught"):
        st.caption(TAUGHT if card.taught else UNTAUGHT, width="content")
        if card.make == "EncoderDecoder":
            st.caption(NO_TRANSLATOR, width="content")
        with st.popover("What does that mean?", type="tertiary"):
            compare = COMPARE if relative(card.id) else ""
            built_in = NO_OTHER_WAY if _is_twin(card) else ""
            st.markdown(f"{MEANING}{built_in}{compare}" if card.taught else f"{LEFT_ALONE}{_beside(card)}{SPREAD}")
        if any(entry.id == PRETRAINED and entry.available for entry in cache.entries()):
            st.button(
                "See it in MiniLM",
                type="tertiary",
                key="pretrained",
                help="The same sentence in a model that learned from real texts and was told nothing",
                on_click=state.set,
                kwargs={"model": PRETRAINED},
            )


def _beside(card: TrainedCard) -> str:
    """Say how well a model whose heads were left alone does, and how well the one whose heads were told."""
    other = trained(relative(card.id) or "")
    if other is None:
        return ""
    if _is_twin(card):
        names, (own, told) = "In its own words it is right in", (one.scores["answer"]["right"] for one in (card, other))
    else:
        names, (own, told) = "It translates rightly", (one.scores["exact_match"] for one in (card, other))
    return f" {names} {percent(own)}, where the one that was told is so in {percent(told)}."


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
        guess = " “Best guess” is the best that can be had without looking, such as always the word before."
        st.caption(f"“Unguided” is the same without being told where to look.{guess if _is_twin(card) else ''}")


def score_table(card: TrainedCard, other: TrainedCard | None) -> list[tuple[str, ...]]:
    """Make a table of the measured scores, its heading first; empty where there is nothing to tell.

    Args:
        card: of the model that is shown.
        other: of the one that differs only in what its heads were told; None where there is none.
    """
    if _is_twin(card):
        return _of_twins(card, other)
    beside = {} if other is None else {"guided" if other.taught else "unguided": other.scores}
    return _of_others({**card.scores, **beside})


def _is_twin(card: TrainedCard) -> bool:
    return "relations" in card.scores


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
_TITLES = {
    "right": "answers right",
    "exact_match": "translations right to the last word",
    "riddles": "… where only the reason tells who “she” is",
    "alignment": "the head’s largest weight is on the English word",
    "alignment_weight": "the head’s weight on it, on average",
    "same_position": "the English word stands at the same place",
}


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
    return _TITLES.get(name, name.replace("_", " "))


def _as_markdown(table: Sequence[Sequence[str]]) -> str:
    heading, *rows = table
    lines = [heading, ["---"] + ["---:"] * (len(heading) - 1), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
