"""How the fields of a view are written in an address, and read back from one; what can't be read raises ValueError."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.errors import InterventionError, MaskError
from engine.interventions import Silence
from engine.masks import Mask

TWIN = "twin"  # no mask, but stands where one could: the model's twin, under the mask that the twin was trained with

# What neither an address nor a browser takes as it is: control characters, and halves of a pair of surrogates.
UNREADABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class Parameter:
    """How one field is written in the address; read raises ValueError for what it can't take."""

    name: str
    read: Callable[[str], object]
    write: Callable[[Any], str] = str


def whole(limit: int) -> Callable[[str], int]:
    """Read a whole number from 0 to a limit."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,6}", text) or int(text) > limit:
            raise ValueError(text)
        return int(text)

    return read


def counted(limit: int, least: int = 1) -> Callable[[str], int]:
    """Read a whole number from 1, or from `least`, to a limit."""

    def read(text: str) -> int:
        number = whole(limit)(text)
        if number < least:
            raise ValueError(text)
        return number

    return read


def one_of(*numbers: int) -> Callable[[str], int]:
    """Read one of a few whole numbers."""

    def read(text: str) -> int:
        number = whole(max(numbers))(text)
        if number not in numbers:
            raise ValueError(text)
        return number

    return read


def several(limit: int, most: int) -> Callable[[str], tuple[int, ...]]:
    """Read a few different whole numbers from 0 to a limit: "0,12,40"."""

    def read(text: str) -> tuple[int, ...]:
        numbers = tuple(whole(limit)(part) for part in text.split(",")) if text else ()
        if len(numbers) > most or len(set(numbers)) < len(numbers):
            raise ValueError(text)
        return numbers

    return read


def write_several(numbers: tuple[int, ...]) -> str:
    """Write numbers as `several` reads them."""
    return ",".join(map(str, numbers))


def matching(pattern: str) -> Callable[[str], str]:
    """Read text that matches a pattern from end to end."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(text)
        return text

    return read


def read_flag(text: str) -> bool:
    """Read yes or no."""
    return matching("[01]")(text) == "1"


def write_flag(value: bool) -> str:
    """Write yes or no."""
    return "1" if value else "0"


def read_place(text: str) -> str | None:
    """Read a place, as app.view names places, or none."""
    return None if text == "none" else matching("t?(0|[1-9][0-9]{0,5})")(text)


def write_place(value: str | None) -> str:
    """Write a place, or none."""
    return "none" if value is None else value


def read_mask(text: str) -> str:
    """Read a mask as Mask.parse does, in its shortest spelling, or the twin."""
    if text == TWIN:
        return text
    try:
        return Mask.parse(matching(r"(?!.*[0-9]{7})[^\x00-\x1f]{1,500}")(text)).spec
    except MaskError as error:
        raise ValueError(text) from error


def read_silence(text: str) -> str:
    """Read a head as Silence.parse does."""
    try:
        return Silence.parse(text).spec
    except InterventionError as error:
        raise ValueError(text) from error


def read_sentence(text: str) -> str:
    """Read what a person has typed."""
    if UNREADABLE.search(text):
        raise ValueError(text)
    return text
