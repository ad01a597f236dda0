"""From what a reader asked for to what is run: the mask, the twin in place of the model, the head that is silenced."""

from __future__ import annotations

from dataclasses import replace

from app import cache
from app.homes import TWINS, counterpart
from app.parameters import TWIN
from app.view import View
from engine import Mask, Trace


def mask_of(view: View) -> Mask:
    """Read the mask that a view names; a twin is run under its own."""
    return Mask.native() if view.mask == TWIN else Mask.parse(view.mask)


def drawn(asked: View) -> View:
    """Turn what is asked for into what is run: where the twin is asked for the twin, its mask and heads of its own."""
    if asked.mask != TWIN:
        return asked
    if asked.model not in TWINS:
        return replace(asked, mask="native")
    layer, head = counterpart(asked.model, (asked.layer, asked.head))
    silence = turned(asked.model, asked.silence)
    return replace(asked, model=TWINS[asked.model], mask="native", layer=layer, head=head, silence=silence)


def turned(model: str, silence: str) -> str:
    """Name the head of a model's twin that stands for one to be silenced; empty for none."""
    for one in cache.silences(silence):
        layer, head = counterpart(model, (one.layer, one.head))
        return replace(one, layer=layer, head=head).spec
    return ""


def traced(view: View) -> Trace:
    """Run what a view asks for, or fetch the trace of the same run.

    Raises:
        EngineError: the model or the sentence cannot be used.
    """
    return cache.trace(view.model, view.sentence, mask_of(view), view.target, view.silence)
