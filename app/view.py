"""The view as a value: what a link reproduces, how it is written in an address, and how a place is named.

A place is a word or a token, as text: "9" is word 9 of the sentence as typed, and survives another model
and the switch between words and tokens; "t3" is token 3 of what the model gets, for special tokens and for
pieces after the first of a word.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from app.examples import example_of, examples
from engine.errors import MaskError
from engine.masks import Mask
from engine.tokens import Group

MAX_CHARACTERS = 2000
MAX_TOKENS = 100_000
# What neither an address nor a browser takes as it is: control characters, and halves of a pair of surrogates.
_UNREADABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
OPENING = examples()[0]
TEXTS = frozenset({"sentence", "target"})  # what a reader types


@dataclass(frozen=True)
class View:
    """Everything a link reproduces; layers, heads, words and tokens count from 0."""

    sentence: str = OPENING.sentence
    model: str = "minilm"
    mask: str = "native"  # as Mask.parse reads it
    layer: int = 5
    head: int = 8
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
    kept, unreadable = _UNREADABLE.subn("\ufffd", cut)
    if unreadable:
        problems = (*problems, "Characters that cannot be read became “\ufffd”.")
    return kept, problems


def _cut(text: str) -> tuple[str, tuple[str, ...]]:
    if len(text) <= MAX_CHARACTERS:
        return text, ()
    return text[:MAX_CHARACTERS], (f"Only the first {MAX_CHARACTERS:,} of {len(text):,} characters are read.",)


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
    for field in fields(View):
        value, parameter = getattr(shown, field.name), _PARAMETERS[field.name]
        default = View().sentence if field.name == "sentence" else getattr(opening, field.name)
        if field.name == "partner":
            default = own_partner(shown.sentence, shown.word, shown.direction)
        if value != default:
            written[parameter.name] = parameter.write(value)
    return written


def from_address(parameters: dict[str, list[str]], models: Collection[str]) -> tuple[View, tuple[str, ...]]:
    """Read a view from query parameters, and say in sentences what could not be read."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for field, parameter in _PARAMETERS.items():
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
    shown = replace(opening_view(values.get("sentence", OPENING.sentence)), **values)
    if "partner" not in values:
        shown = replace(shown, partner=own_partner(shown.sentence, shown.word, shown.direction))
    return shown, tuple(problems)


def assignment(field: str, value: object) -> str:
    """Write one field as it stands in an address: "word=8"."""
    parameter = _PARAMETERS[field]
    return f"{parameter.name}={parameter.write(value)}"


def _named(field: str) -> str:
    """Name a field in a sentence about a link, as it is called there unless that is one letter."""
    name = _PARAMETERS[field].name
    return f"The {field}" if field in (name, "sentence") else f"“{name}”"


@dataclass(frozen=True)
class _Parameter:
    """How one field is written in the address; read raises ValueError for what it can't take."""

    name: str
    read: Callable[[str], object]
    write: Callable[[Any], str] = str


def _whole(limit: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,6}", text) or int(text) > limit:
            raise ValueError(text)
        return int(text)

    return read


def _counted(limit: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = _whole(limit)(text)
        if number < 1:
            raise ValueError(text)
        return number

    return read


def _matching(pattern: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(text)
        return text

    return read


def _flag(text: str) -> bool:
    return _matching("[01]")(text) == "1"


def _place(text: str) -> str | None:
    return None if text == "none" else _matching("t?(0|[1-9][0-9]{0,5})")(text)


def _write_place(place: str | None) -> str:
    return "none" if place is None else place


def _write_flag(flag: bool) -> str:
    return "1" if flag else "0"


def _mask(text: str) -> str:
    try:
        return Mask.parse(_matching(r"(?!.*[0-9]{7})[^\x00-\x1f]{1,500}")(text)).spec
    except MaskError as error:
        raise ValueError(text) from error


def _sentence(text: str) -> str:
    if _UNREADABLE.search(text):
        raise ValueError(text)
    return text


_PARAMETERS = {
    "sentence": _Parameter("q", _sentence),
    "model": _Parameter("model", _matching(r"[^\x00-\x1f]{1,200}")),
    "mask": _Parameter("mask", _mask),
    "layer": _Parameter("layer", _whole(999)),
    "head": _Parameter("head", _whole(999)),
    "word": _Parameter("word", _place, _write_place),
    "partner": _Parameter("to", _place, _write_place),
    "direction": _Parameter("direction", _matching("to|by")),
    "unit": _Parameter("view", _matching("words|tokens")),
    "specials": _Parameter("special", _flag, _write_flag),
    "average": _Parameter("mean", _matching("head|layer|all")),
    "colour": _Parameter("colour", _matching("linear|log")),
    "threshold": _Parameter("min", _whole(100)),
    "renormalise": _Parameter("rescale", _flag, _write_flag),
    "heads_by": _Parameter("heads", _matching("weights|pair")),
    "kind": _Parameter("kind", _matching("encoder|decoder|cross|vision")),
    "target": _Parameter("target", _sentence),
    "prefix": _Parameter("prefix", _counted(MAX_TOKENS)),
    "window": _Parameter("window", _counted(MAX_TOKENS)),
    "pads": _Parameter("pads", _counted(6)),
    "side": _Parameter("side", _matching("right|left")),
    "lesson": _Parameter("lesson", _matching("causal|bidirectional|prefix|window")),
}
