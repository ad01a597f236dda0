"""What every model offers, wherever it comes from: text in, Trace out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engine.card import Card
from engine.interventions import Silence
from engine.masks import Mask
from engine.tokens import Prompt
from engine.trace import Trace


class Model(Protocol):
    """A model that can be run and looked into; shared by all who use it, changed by nobody.

    Attributes:
        card: what it is.
    """

    card: Card

    def run(
        self,
        text: str,
        target: str | None = None,
        *,
        mask: Mask = Mask.native(),
        interventions: Sequence[Silence] = (),
    ) -> Trace:
        """Read a text once and record all attention.

        Args:
            text: what to read.
            target: for an encoder-decoder, what its decoder reads.
            mask: the mask to impose on self-attention.
            interventions: what else is changed while it runs, such as (Silence(2, 0),).
        """

    def run_prompt(
        self,
        prompt: Prompt,
        target: Prompt | None = None,
        mask: Mask = Mask.native(),
        interventions: Sequence[Silence] = (),
    ) -> Trace:
        """Read a prompt that is already made, padding and all, and record all attention."""
