"""Small stacks of attention with random projections, run and recorded without any library's model.

B batch, H heads, G key-value heads, T queries, S keys, D head width.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from engine.attention import attend
from engine.card import Card
from engine.masks import Mask
from engine.recording import Recorded, recording
from engine.sites import Kind, Site
from engine.tokens import Prompt, Token
from engine.trace import Returned, Trace

HEADS, GROUPS, WIDTH = 4, 2, 4
NATIVE = Mask.native()


def card(*kinds: Kind, backend: str = "sdpa", reason: str = "") -> Card:
    return Card(
        id="tiny",
        name="Tiny",
        family="tiny",
        kinds=kinds,
        layers=2,
        heads=HEADS,
        kv_heads=GROUPS,
        windows=(None, None),
        positions="none",
        parameters=0,
        limit=None,
        licence="none",
        source="drawn at random",
        backend=backend,
        reason=reason,
        device="cpu",
        dtype="float32",
    )


def prompt(count: int, letter: str = "t") -> Prompt:
    tokens = tuple(Token(f"{letter}{n}", f"{letter}{n}", n, n, False, None, None) for n in range(count))
    return Prompt(" ".join(token.text for token in tokens), None, tokens, (), (), count)


class Stack:
    """Attention layers with random projections, one after another, nothing in between."""

    def __init__(self, kind: Kind, layers: int, dtype: torch.dtype, **extra: Any) -> None:
        draw = torch.Generator().manual_seed(len(kind))
        sizes = [(width * WIDTH, HEADS * WIDTH) for width in (HEADS, GROUPS, GROUPS)]
        self.projections = [
            [torch.randn(size, generator=draw).to(dtype) / WIDTH for size in sizes] for _ in range(layers)
        ]
        self.kind, self.extra = kind, extra

    def __call__(self, x: Tensor, source: Tensor | None = None) -> Tensor:
        for layer, projections in enumerate(self.projections):
            origins = (x, x if source is None else source, x if source is None else source)
            q, k, v = (
                (origin @ projection.T).unflatten(-1, (-1, WIDTH)).transpose(1, 2)  # (B, H, T, D)
                for origin, projection in zip(origins, projections, strict=True)
            )
            x = attend(Site(self.kind, layer), q, k, v, **self.extra).transpose(1, 2).flatten(2)
        return x


def text(count: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(1, count, HEADS * WIDTH, generator=torch.Generator().manual_seed(seed)).to(dtype)


def traced(
    count: int = 9,
    kind: Kind = "decoder",
    dtype: torch.dtype = torch.float32,
    imposed: Mask = NATIVE,
    **extra: Any,
) -> Trace:
    """A run of two layers over `count` random tokens, causal unless told otherwise."""
    with recording(imposed) as recorder:
        Stack(kind, 2, dtype, **({"mask": Mask.causal()} | extra))(text(count, dtype=dtype))
    return Trace(card(kind), prompt(count), None, imposed, recorder.recorded, 1.0)


def translated(source: int = 9, target: int = 5) -> Trace:
    """A run of an encoder, a decoder and the cross-attention from one to the other."""
    with recording() as recorder:
        memory = Stack("encoder", 2, torch.float32)(text(source))
        hidden = Stack("decoder", 2, torch.float32, mask=Mask.causal())(text(target, seed=1))
        Stack("cross", 2, torch.float32)(hidden, memory)
    kinds: tuple[Kind, ...] = ("encoder", "decoder", "cross")
    return Trace(card(*kinds), prompt(source), prompt(target, "u"), Mask.native(), recorder.recorded, 1.0)


def eager(count: int = 6) -> Trace:
    """The same run as a model would return it, weights alone."""
    sites = {site: Returned(held.weights()[None]) for site, held in traced(count).sites.items()}
    return Trace(
        card("decoder", backend="eager", reason="it has a path of its own"),
        prompt(count),
        None,
        Mask.native(),
        sites,
        1,
    )


def changed(trace: Trace, site: Site, change: Callable[[Recorded], Recorded]) -> Trace:
    held = trace.sites[site]
    assert isinstance(held, Recorded)
    return replace(trace, sites={**trace.sites, site: change(held)})


def exact(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-7)
