"""The view as a value: what a link reproduces, how it is written in an address, and how a place is named.

A place is a word or a token, as text: "9" is word 9 of the sentence as typed, and survives another model
and the switch between words and tokens; "t3" is token 3 of what the model gets, for special tokens and for
pieces after the first of a word.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.examples import example_of, examples
from app.homes import FIRST, home
from app.parameters import (
    UNREADABLE,
    Parameter,
    counted,
    matching,
    read_flag,
    read_mask,
    read_place,
    read_sentence,
    read_silence,
    whole,
    write_flag,
    write_place,
)
from app.view_build import BUILD_PARAMETERS, BuildChoices
from app.view_cost import COST_PARAMETERS, CostChoices
from app.view_positions import POSITIONS_PARAMETERS, PositionsChoices
from app.view_train import TRAIN_PARAMETERS, TrainChoices
from app.view_vision import VISION_PARAMETERS, VisionChoices
from engine.tokens import Group

MAX_CHARACTERS = 2000
HALF_A_WORD = re.compile(r"\s+\S{1,40}$")  # a longer stretch without a space is text of a script that has none
MAX_TOKENS = 100_000
OPENING = examples()[0]
TEXTS = frozenset({"sentence", "target"})  # what a reader types


@dataclass(frozen=True)
class View(PositionsChoices, BuildChoices, CostChoices, VisionChoices, TrainChoices):
    """Everything a link reproduces; layers, heads, words and tokens count from 0."""

    sentence: str = OPENING.sentence
    model: str = FIRST
    mask: str = "native"  # as Mask.parse reads it, or "twin"
    layer: int = home(FIRST)[0]
    head: int = home(FIRST)[1]
    silence: str = ""  # a head that hands on nothing, as Silence.parse reads it; "" for none
    word: str | None = OPENING.word  # the place that is clicked: the query, in attention's own words
    partner: str | None = OPENING.partner  # the place it is compared with: the key
    direction: str = "to"  # "to": what the word attends to; "by": what attends to the word
    unit: str = "words"  # "words" or "tokens"
    specials: bool = False  # whether special tokens are shown
    average: str = "head"  # "head": one head; "layer": mean of a layer's heads; "all": mean of all heads
    colour: str = "linear"  # "linear" or "log"
    threshold: int = 0  # per cent; weights below it are hidden
    renormalise: bool = False  # leave special tokens out and let each row sum to 1 again
    heads_by: str = "weights"  # what the grid of heads shows: their "weights", or what the picked "pair" gets
    kind: str = ""  # which attention, where a model has several; "" lets the page choose
    target: str = ""  # what the decoder of an encoder-decoder reads; "" lets the model write it
    prefix: int = 3  # tokens, for the lesson on masks
    window: int = 3  # tokens, likewise
    pads: int = 2  # padding tokens, likewise
    side: str = "right"  # where they stand: "right" or "left"
    lesson: str = "causal"  # the mask of that lesson: "causal", "bidirectional", "prefix" or "window"


def opening_view(sentence: str) -> View:
    """Give the view that a sentence opens with: defaults, and its own word and partner if an example."""
    example = example_of(sentence)
    if example is None:
        return View(sentence=sentence, word=None, partner=None)
    return View(sentence=sentence, word=example.word, partner=example.partner)


def own_partner(sentence: str, word: str | None, direction: str) -> str | None:
    """Give the partner that an example brings along; it belongs to the example's word and to what that attends to."""
    opening = opening_view(sentence)
    return opening.partner if word == opening.word and direction == opening.direction else None


def usable(text: str) -> tuple[str, tuple[str, ...]]:
    """Make typed text fit for an address, and say in sentences what that changed."""
    cut, problems = _cut(text)
    kept, unreadable = UNREADABLE.subn("\ufffd", cut)
    if unreadable:
        problems = (*problems, "Characters that cannot be read became “\ufffd”.")
    return kept, problems


def _cut(text: str) -> tuple[str, tuple[str, ...]]:
    if len(text) <= MAX_CHARACTERS:
        return text, ()
    kept = text[:MAX_CHARACTERS]
    begun = HALF_A_WORD.search(kept)
    if begun and not text[MAX_CHARACTERS].isspace():
        kept = kept[: begun.start()]  # half a word would be another word
    return kept, (f"Only the first {len(kept):,} of {len(text):,} characters are read.",)


def place(groups: Sequence[Group], index: int) -> str:
    """Name the place of one label on an axis so that it outlives a change of axis."""
    return places(groups)[index]


def places(groups: Sequence[Group]) -> list[str]:
    """Name the places of all labels on an axis, in order."""
    names, begun = [], set()
    for group in groups:
        begins = group.word is not None and group.word not in begun
        begun.add(group.word)
        names.append(str(group.word) if begins else f"t{group.indices[0]}")
    return names


def locate(groups: Sequence[Group], wanted: str | None) -> int | None:
    """Find a place on an axis; None when nothing is picked or this axis has no such place."""
    if wanted is None:
        return None
    token, number = wanted.startswith("t"), int(wanted.removeprefix("t"))
    for index, group in enumerate(groups):
        if (number in group.indices) if token else (group.word == number):
            return index
    return None


def portable(wanted: str | None) -> str | None:
    """Keep a place that another model understands too: a word, not a token."""
    return None if wanted is None or wanted.startswith("t") else wanted


def to_address(shown: View) -> dict[str, str]:
    """Write a view as query parameters; what a sentence opens with anyway is left out."""
    opening = opening_view(shown.sentence)
    written = {}
    for field, parameter in PARAMETERS.items():
        value = getattr(shown, field)
        default = View().sentence if field == "sentence" else getattr(opening, field)
        if field == "partner":
            default = own_partner(shown.sentence, shown.word, shown.direction)
        if field in ("layer", "head"):
            default = home(shown.model)[field == "head"]
        if value != default:
            written[parameter.name] = parameter.write(value)
    return written


def from_address(parameters: dict[str, list[str]], models: Collection[str]) -> tuple[View, tuple[str, ...]]:
    """Read a view from query parameters, and say in sentences what could not be read."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for field, parameter in PARAMETERS.items():
        given = parameters.get(parameter.name, [])
        if not given:
            continue
        try:
            if len(given) > 1:
                raise ValueError(given)
            text, said = _cut(given[0]) if field in TEXTS else (given[0], ())
            value = parameter.read(text)
            if field == "model" and value not in models:
                raise ValueError(given)
            values[field] = value
            problems.extend(said)
        except ValueError:
            problems.append(f"{_named(field)} in the link could not be used, so the default is shown.")
    layer, head = home(values.get("model", FIRST))
    values = {"layer": layer, "head": head, **values}
    shown = replace(opening_view(values.get("sentence", OPENING.sentence)), **values)
    if "partner" not in values:
        shown = replace(shown, partner=own_partner(shown.sentence, shown.word, shown.direction))
    return shown, tuple(problems)


def assignment(field: str, value: object) -> str:
    """Write one field as it stands in an address: "word=8"."""
    parameter = PARAMETERS[field]
    return f"{parameter.name}={parameter.write(value)}"


def _named(field: str) -> str:
    """Name a field in a sentence about a link as it is called there; that "q" is the sentence has to be said."""
    return f"“{PARAMETERS[field].name}”{' (the sentence)' if field == 'sentence' else ''}"


PARAMETERS = {
    "sentence": Parameter("q", read_sentence),
    "model": Parameter("model", matching(r"[^\x00-\x1f]{1,200}")),
    "mask": Parameter("mask", read_mask),
    "layer": Parameter("layer", whole(999)),
    "head": Parameter("head", whole(999)),
    "silence": Parameter("silence", read_silence),
    "word": Parameter("word", read_place, write_place),
    "partner": Parameter("to", read_place, write_place),
    "direction": Parameter("direction", matching("to|by")),
    "unit": Parameter("view", matching("words|tokens")),
    "specials": Parameter("special", read_flag, write_flag),
    "average": Parameter("mean", matching("head|layer|all")),
    "colour": Parameter("colour", matching("linear|log")),
    "threshold": Parameter("min", whole(100)),
    "renormalise": Parameter("rescale", read_flag, write_flag),
    "heads_by": Parameter("heads", matching("weights|pair")),
    "kind": Parameter("kind", matching("encoder|decoder|cross|vision")),
    "target": Parameter("target", read_sentence),
    "prefix": Parameter("prefix", counted(MAX_TOKENS)),
    "window": Parameter("window", counted(MAX_TOKENS)),
    "pads": Parameter("pads", counted(6)),
    "side": Parameter("side", matching("right|left")),
    "lesson": Parameter("lesson", matching("causal|bidirectional|prefix|window")),
    **POSITIONS_PARAMETERS,
    **BUILD_PARAMETERS,
    **COST_PARAMETERS,
    **VISION_PARAMETERS,
    **TRAIN_PARAMETERS,
}
