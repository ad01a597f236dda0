"""How numbers, words and names are written in sentences and on buttons, in one place so that they agree."""

from __future__ import annotations

from collections.abc import Sequence

from app.charts_inputs import shortened
from app.homes import TWINS
from engine import Mask
from engine.shipped import SHIPPED
from engine.tokens import Group

SPACE = "\u202f"  # narrow, and no line ends between a number and its unit
LEAST_PERCENT = 0.05  # below it one decimal would round to 0.0, and as close to 100 to 100.0
WORD_LENGTH = 24  # characters; a longer word would push the number beside it out of sight


def percent(share: float) -> str:
    """Write a share of 1 as every piece and chart does: "29.4 %", with one decimal.

    Nothing rounds to an end that it does not reach: what is above 0 is never "0 %", what is below 1 never "100 %".
    """
    value = share * 100
    if value <= 0 or value >= 100:
        return f"{0 if value <= 0 else 100}{SPACE}%"
    if value < LEAST_PERCENT:
        return f"<0.1{SPACE}%"
    return f">99.9{SPACE}%" if value >= 100 - LEAST_PERCENT else f"{value:.1f}{SPACE}%"


def brief(word: str) -> str:
    """Cut a very long word, so that what stands beside it stays in sight."""
    return shortened(word, WORD_LENGTH)


def mask_label(mask: str) -> str:
    """Say a mask's name in a sentence."""
    names = {"native": "as trained", "bidirectional": "BERT-style, both ways", "causal": "GPT-style, only the past"}
    return names.get(mask) or Mask.parse(mask).name


def mask_short(mask: str) -> str:
    """Say a mask's name where there is room for two words."""
    names = {"native": "as trained", "bidirectional": "BERT-style", "causal": "GPT-style"}
    return names.get(mask) or Mask.parse(mask).name


def twin_label(model: str) -> str:
    """Offer a model's twin beside the masks: "Twin, trained GPT-style"."""
    return f"Twin, trained {SHIPPED[TWINS[model]][1]}"


def pieces_remark(axes: Sequence[Group]) -> str:
    """Say which words are several tokens and what is done with their attention; empty where none is."""
    texts = dict.fromkeys(group.text for group in axes if len(group.indices) > 1 and not group.special)
    if not texts:
        return ""
    first, *others = texts
    if others:
        more = f"{len(others)} more word{'s' if len(others) > 1 else ''}"
        return (
            f"{brief(first)} and {more} are several tokens: attention from them is averaged, attention to them added up"
        )
    count = next(len(group.indices) for group in axes if group.text == first and len(group.indices) > 1)
    return f"{brief(first)} is {count} tokens: attention from it is averaged, attention to it added up"
