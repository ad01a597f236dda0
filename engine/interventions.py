"""Interventions: what is changed in a model while it runs, to see what that does to its answer.

A head that is silenced hands on zeros: its mixed values are zeros before the output projection, so every later layer
has to do without them. What the head looked at is recorded as ever, and the model itself does not change.

Dimensions: B batch, H heads, T queries, E value width.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from engine.errors import InterventionError
from engine.sites import KINDS, Kind, Site

_SPEC = re.compile(rf"(?:({'|'.join(KINDS)}):)?(\d{{1,6}})\.(\d{{1,6}})", re.ASCII)


@dataclass(frozen=True)
class Silence:
    """One head that hands on nothing; layers and heads count from 0.

    Attributes:
        layer: the head's layer.
        head: the query head in it.
        kind: which attention, needed only where a model has several kinds.
    """

    layer: int
    head: int
    kind: Kind | None = None

    def __post_init__(self) -> None:
        for name in ("layer", "head"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise InterventionError(f"The {name} of a head is a whole number from 0 on, not {number!r}.")

    @classmethod
    def parse(cls, text: str) -> Silence:
        """Read a head as `spec` writes it: "2.0" is layer 2, head 0; "cross:2.0" says which attention as well.

        Raises:
            InterventionError: the text names no head.
        """
        found = _SPEC.fullmatch(text.strip())
        if found is None:
            raise InterventionError(f"{text!r} names no head. Write layer.head, such as 2.0 or cross:2.0.")
        kind, layer, head = found.groups()
        return cls(int(layer), int(head), cast(Kind | None, kind))

    @property
    def spec(self) -> str:
        """How it is written in an address or on a command line: "2.0" or "cross:2.0"."""
        return f"{f'{self.kind}:' if self.kind else ''}{self.layer}.{self.head}"

    @property
    def name(self) -> str:
        """What a person would say: "layer 2, head 0 silenced"."""
        return f"{f'{self.kind} ' if self.kind else ''}layer {self.layer}, head {self.head} silenced"

    def reaches(self, site: Site) -> bool:
        """Whether it changes anything at a site."""
        return self.layer == site.layer and self.kind in (None, site.kind)


def checked(interventions: Sequence[Silence], heads: Mapping[Site, int], model: str) -> tuple[Silence, ...]:
    """Make sure that a model has every head that is to be silenced.

    Args:
        interventions: the heads to silence.
        heads: H at every site of the model.
        model: its name.

    Returns:
        The same as a tuple, each once.

    Raises:
        InterventionError: there is no such head, or it could be one of several.
    """
    if isinstance(interventions, Silence):
        raise InterventionError("Interventions come as several: write (Silence(2, 0),) for a single one.")
    for one in interventions:
        if not isinstance(one, Silence):
            raise InterventionError(f"An intervention is a Silence, such as Silence(2, 0), not {one!r}.")
        _check(one, heads, model)
    return tuple(dict.fromkeys(interventions))


def _check(one: Silence, heads: Mapping[Site, int], model: str) -> None:
    kinds = tuple(dict.fromkeys(site.kind for site in heads))
    if one.kind is None and len(kinds) > 1:
        raise InterventionError(
            f"{model} has attention of the kinds {', '.join(kinds)}: say which, such as {kinds[-1]}:{one.spec}."
        )
    kind = one.kind or kinds[0]
    if kind not in kinds:
        raise InterventionError(f"{model} has no {kind} attention; it has {', '.join(kinds)}.")
    count = heads.get(Site(kind, one.layer))
    if count is None:
        last = max(site.layer for site in heads if site.kind == kind)
        raise InterventionError(f"{model} has no layer {one.layer}: layers count from 0 to {last}.")
    if one.head >= count:
        raise InterventionError(
            f"{model} has no head {one.head} in layer {one.layer}: heads count from 0 to {count - 1}."
        )


def without_heads(output: Tensor, heads: Sequence[int]) -> Tensor:
    """Set what some heads hand on to zero, whatever it was; gradients flow through the others.

    Args:
        output: mixed values, (B, H, T, E); left as it is.
        heads: which of the H heads.

    Returns:
        Mixed values, (B, H, T, E).

    Raises:
        InterventionError: there is no such head.
    """
    count = output.shape[1]
    if wrong := [head for head in heads if head >= count]:
        raise InterventionError(f"Head {wrong[0]} does not exist: heads count from 0 to {count - 1}.")
    quiet = torch.tensor([head in heads for head in range(count)], device=output.device)
    return output.masked_fill(quiet[:, None, None], 0.0)
