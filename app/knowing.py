"""Where a run that reads left to right can know whom a pronoun means: not at the pronoun, if the reason comes later."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from app import state
from app.answer import parsed
from app.drawn import traced
from app.examples import Example, example_of
from app.phrases import brief, percent
from app.reading import depends, in_words
from app.scene import Scene
from app.shell import literal
from app.shown import shown
from engine.errors import MaskError
from engine.grammar import Sentence

SAME = 1e-6  # differences up to here are rounding


@dataclass(frozen=True)
class Knowing:
    """What there is to say about the picked word.

    Attributes:
        at_the_pronoun: whether it is the pronoun, which cannot know; else it is where the reason ends.
        sentence: what the grammar makes of the sentence.
        pronoun, end: the two words as typed.
        twin: the example that differs in the reason alone; None where there is none.
    """

    at_the_pronoun: bool
    sentence: Sentence
    pronoun: str
    end: str
    twin: Example | None


def knowing(scene: Scene) -> Knowing | None:
    """Find out whether the picked word is one that cannot know yet, or the first that can; None elsewhere."""
    sentence, view = parsed(scene.view.sentence), scene.view
    if sentence is None or sentence.decided != "reason" or view.direction != "to" or not _reads_onwards(scene):
        return None
    pronoun, end, picked = sentence.pronoun, sentence.reason_end, scene.sources[scene.pin].word
    words = scene.trace.prompt.words
    if pronoun is None or end is None or picked not in (pronoun, end) or scene.trace.prompt.cut:
        return None
    group = in_words(scene.trace, scene.kind, pronoun)
    reason = {place for place, token in enumerate(scene.trace.tokens) if pronoun < (token.word or 0) <= end}
    if depends(scene.trace, scene.kind, scene.trace.layers(scene.kind) - 1, group, reason):
        return None
    example = example_of(view.sentence)
    twin = example_of(example.twin) if example is not None and example.twin else None
    return Knowing(picked == pronoun, sentence, words[pronoun].text, words[end].text, twin)


def _reads_onwards(scene: Scene) -> bool:
    """Say whether every word sees just the ones before it."""
    return scene.view.mask == "causal" or (scene.view.mask == "native" and scene.trace.card.style == "GPT-style")


def largest_difference(scene: Scene, found: Knowing) -> float | None:
    """Say how much any weight of the pronoun's row differs in the other sentence; None where none can be run."""
    if found.twin is None:
        return None
    view = replace(scene.view, sentence=found.twin.sentence)
    try:
        other = shown(traced(view), view, scene.kind)
    except MaskError:  # one that names tokens, and the other sentence has others
        return None
    upto = min(scene.pin + 1, len(other.queries))
    here, there = scene.shown.weights[scene.pin, :upto], other.weights[upto - 1, :upto]
    return float(np.abs(here - there).max())


def where_it_can_know(scene: Scene) -> None:
    """Say it, and offer the word where the reason ends, or the way back."""
    found = knowing(scene)
    if found is None:
        return
    here, there = (found.pronoun, found.end) if found.at_the_pronoun else (found.end, found.pronoun)
    place = found.sentence.reason_end if found.at_the_pronoun else found.sentence.pronoun
    with st.container(horizontal=True, vertical_alignment="center", key="knowing"):
        st.markdown(_cannot(scene, found) if found.at_the_pronoun else _can(found))
        st.button(
            f"Go to *{literal(brief(there))}*, where it can know"
            if found.at_the_pronoun
            else f"Back to *{literal(brief(there))}*",
            key=f"go_{'on' if found.at_the_pronoun else 'back'}",
            help=f"Pick that word instead of {literal(brief(here))}",
            on_click=state.set,
            kwargs={"word": str(place), "partner": None},
        )


def _cannot(scene: Scene, found: Knowing) -> str:
    said = (
        f"Reading left to right, *{literal(brief(found.pronoun))}* comes before the reason and **cannot know who is "
        "meant**"
    )
    difference = largest_difference(scene, found)
    if difference is None or found.twin is None:
        return f"{said}: its row is the same whatever the reason says."
    ending = literal("…" + found.twin.sentence.split("because")[-1])
    many = "not one weight differs" if difference < SAME else f"weights differ by {percent(difference)} at most"
    return f"{said}: computed with “{ending}” too, {many}."


def _can(found: Knowing) -> str:
    return (
        f"At *{literal(brief(found.end))}* the reason is complete: this is the first word that **can know** who "
        f"*{literal(brief(found.pronoun))}* is."
    )
