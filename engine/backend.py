"""Where Hugging Face models meet `attend`: one function registered with transformers, and the walk of its calls.

A model whose attention implementation is named BACKEND calls `_attention` in every attention module. Which site a
call belongs to follows from a plan made when the model was loaded: the n-th call is the n-th site, by the same
module. A run that strays from its plan raises, since a map of the wrong place is worse than none.

Dimensions: B batch, H heads, T queries, S keys, D head width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from engine.attention import attend
from engine.errors import CaptureError
from engine.masks import Visibility
from engine.sites import Site

BACKEND = "attention_explorer"


@dataclass(frozen=True)
class Step:
    """One expected call: the module that makes it (by identity) and the site it is."""

    module: int
    site: Site
    heads: int
    kv_heads: int
    window: int | None


@dataclass(frozen=True)
class Seen:
    """One call as met while a model is probed."""

    module: int
    shape: tuple[int, int, int, int]  # H, G, T, S
    causal: bool
    window: int | None


class Guide(Protocol):
    """Tells which site the next call is."""

    def next(self, module: nn.Module, seen: Seen) -> Site | None:
        """Name the site of the next call; None leaves it unrecorded."""


class Scout:
    """Takes down every call of a model whose sites are not known yet."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []

    def next(self, module: nn.Module, seen: Seen) -> Site | None:
        """Note the call and leave it unrecorded."""
        self.seen.append(seen)
        return None


class Walk:
    """Follows a plan, call by call."""

    def __init__(self, plan: tuple[Step, ...]) -> None:
        self.plan = plan
        self.done = 0

    def next(self, module: nn.Module, seen: Seen) -> Site | None:
        """Name the site of this call.

        Raises:
            CaptureError: the call comes from another module than planned, or is one too many.
        """
        if self.done >= len(self.plan) or self.plan[self.done].module != id(module):
            raise CaptureError(
                f"Attention call {self.done + 1} came from an unexpected place ({type(module).__name__}); "
                f"{len(self.plan)} calls were seen when the model was loaded."
            )
        self.done += 1
        return self.plan[self.done - 1].site

    def finish(self) -> None:
        """Check that every planned call was made.

        Raises:
            CaptureError: some were not.
        """
        if self.done != len(self.plan):
            raise CaptureError(
                f"Attention ran {self.done} times, but {len(self.plan)} times when the model was loaded."
            )


_guide: ContextVar[Guide | None] = ContextVar("guide", default=None)


@contextmanager
def guided(guide: Guide) -> Iterator[None]:
    """Let `guide` name the sites of every call inside this block."""
    token = _guide.set(guide)
    try:
        yield
    finally:
        _guide.reset(token)


def register() -> None:
    """Make BACKEND known to transformers; masks arrive as SDPA's do: a boolean tensor, or None for a plain rule."""
    AttentionInterface.register(BACKEND, _attention)
    AttentionMaskInterface.register(BACKEND, sdpa_mask)


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Attend for a transformers module: (B, H, T, D) in, (B, T, H, D) out, no weights."""
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    visibility, bias = _split(attention_mask, bool(causal), query, key, position_bias)
    guide = _guide.get()
    site = None
    if guide is not None:
        shape = (query.shape[1], key.shape[1], query.shape[2], key.shape[2])
        window = others.get("sliding_window") or getattr(module, "sliding_window", None)
        site = guide.next(module, Seen(id(module), shape, _is_causal(visibility), window))
    # Sinks are a parameter of the module itself; recorded as one, it would make every weight ask for gradients.
    sinks = None if s_aux is None else s_aux.detach()
    output = attend(site, query, key, value, mask=visibility, scale=scaling, bias=bias, softcap=softcap, sinks=sinks)
    return output.transpose(1, 2).contiguous(), None


def _split(
    mask: Tensor | None, causal: bool, query: Tensor, key: Tensor, bias: Tensor | None
) -> tuple[Visibility, Tensor | None]:
    """Tell apart what hides a key and what merely adds to its score.

    transformers passes no mask where SDPA's own causal rule would do, booleans where it would not, and numbers
    where somebody prepared a mask by hand: there, the lowest values hide and the rest are a bias.
    """
    if mask is None:
        return Visibility(causal=causal and query.shape[2] > 1), bias
    if mask.dtype == torch.bool:
        return Visibility(tensor=mask), bias
    visible = mask > torch.finfo(mask.dtype).min / 2
    added = mask.masked_fill(~visible, 0.0)
    if not bool(added.any()):
        return Visibility(tensor=visible), bias
    return Visibility(tensor=visible), added if bias is None else added + bias


def _is_causal(visibility: Visibility) -> bool:
    if visibility.causal or visibility.tensor is None:
        return visibility.causal
    seen = visibility.tensor
    return not bool(seen.triu(1).any()) and seen.shape[-2] > 1


register()
