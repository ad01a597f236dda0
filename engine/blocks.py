"""The parts of a transformer: norms, feed-forward layers, attention, the block that joins them, and a stack of blocks.

    pre-norm    x = x + attention(norm(x));  x = x + feed_forward(norm(x))          (GPT-2, Llama)
    post-norm   x = norm(x + attention(x));  x = norm(x + feed_forward(x))          (the first transformer, BERT)

Dimensions: B batch, T tokens read now, S tokens read so far (S = T without a cache), S' tokens of another text, H query
heads, G key-value heads, D head width, C model width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.attention import attend
from engine.config import GATED, Config
from engine.errors import ShapeError
from engine.masks import Visibility
from engine.positions import ALiBi, Learned, Positions, RelativeBuckets, Sinusoidal
from engine.rotary import Rotary
from engine.rules import Window
from engine.sites import Kind, Site

EVERYTHING = Visibility()
NOWHERE = Positions()


class LayerNorm(nn.Module):
    """Give every token mean 0 and variance 1, then a learned scale and shift (Ba et al. 2016, 1607.06450)."""

    def __init__(self, width: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Norm the last axis, in float32 at least, (..., C)."""
        precise = x.float() if x.dtype.itemsize < 4 else x
        centred = precise - precise.mean(dim=-1, keepdim=True)
        normed = centred * torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + self.epsilon)
        return normed.to(x.dtype) * self.weight + self.bias


class RMSNorm(nn.Module):
    """Divide every token by its root mean square, then a learned scale (Zhang & Sennrich 2019, 1910.07467)."""

    def __init__(self, width: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Norm the last axis, in float32 at least, (..., C)."""
        precise = x.float() if x.dtype.itemsize < 4 else x
        normed = precise * torch.rsqrt(precise.square().mean(dim=-1, keepdim=True) + self.epsilon)
        return normed.to(x.dtype) * self.weight


def norm_of(config: Config) -> nn.Module:
    """Make the norm that a configuration asks for."""
    kind = LayerNorm if config.norm == "layer" else RMSNorm
    return kind(config.width, config.epsilon)


def activation_of(name: str) -> Callable[[Tensor], Tensor]:
    """Find the function that bends a feed-forward layer's straight lines; for a gated one, that of its gate."""
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": F.relu,
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),  # the approximation that GPT-2 was trained with
        "swiglu": F.silu,
        "geglu": F.gelu,
        "geglu_tanh": lambda x: F.gelu(x, approximate="tanh"),  # as in T5 1.1 and FLAN-T5
    }
    return functions[name]


class FeedForward(nn.Module):
    """Every token by itself: widen, bend, narrow again."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.widen = nn.Linear(config.width, config.feed_forward, config.bias)
        self.narrow = nn.Linear(config.feed_forward, config.width, config.bias)
        self.bend = activation_of(config.activation)

    def forward(self, x: Tensor) -> Tensor:
        """Work on each token, (B, T, C)."""
        return self.narrow(self.bend(self.widen(x)))


class GatedFeedForward(nn.Module):
    """The same with a gate: what is widened is multiplied with a second, bent copy (Shazeer 2020, 2002.05202)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.gate = nn.Linear(config.width, config.feed_forward, config.bias)
        self.widen = nn.Linear(config.width, config.feed_forward, config.bias)
        self.narrow = nn.Linear(config.feed_forward, config.width, config.bias)
        self.bend = activation_of(config.activation)

    def forward(self, x: Tensor) -> Tensor:
        """Work on each token, (B, T, C)."""
        return self.narrow(self.bend(self.gate(x)) * self.widen(x))


@dataclass
class Cache:
    """The keys and values of everything read so far, so that the next token need not compute them again.

    Keys are kept as they were turned by rotary positions. Dynamic NTK scaling, whose turns change with the length,
    would turn old keys otherwise today than when they were read; the other schemes do not mind.

    Attributes:
        held: for every site its keys and values, each (B, G, S, D).
    """

    held: dict[Site, tuple[Tensor, Tensor]] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """S, how many tokens have been read."""
        return next((k.shape[2] for k, _ in self.held.values()), 0)

    @property
    def nbytes(self) -> int:
        """Memory that it takes, in bytes."""
        return sum(k.nbytes + v.nbytes for k, v in self.held.values())

    def extend(self, site: Site, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the new tokens' keys and values of one site, (B, G, T, D), and give all of them, (B, G, S, D)."""
        if site in self.held:
            old_k, old_v = self.held[site]
            k, v = torch.cat([old_k, k], dim=2), torch.cat([old_v, v], dim=2)
        self.held[site] = (k, v)
        return k, v


@dataclass(frozen=True)
class Reading:
    """What the layers are told about the sequence that they read; the same for all of them.

    Attributes:
        places: the position of each token in its text, (B or 1, T).
        positions: how these enter.
        visibility: which key each query may see.
        bias: what positions add to the scores, (B or 1, H, T, S); None for nothing.
        memory: the text that keys and values come from, (B, S', C), where it is another one: cross-attention.
        cache: keys and values of earlier tokens; None where everything is read at once.
    """

    places: Tensor
    positions: Positions
    visibility: Visibility = EVERYTHING
    bias: Tensor | None = None
    memory: Tensor | None = None
    cache: Cache | None = None


class Attention(nn.Module):
    """Attention with H query heads that share G key-value heads.

    G = H is multi-head (Vaswani et al. 2017, 1706.03762), G = 1 multi-query (Shazeer 2019, 1911.02150), and anything
    between grouped-query attention (Ainslie et al. 2023, 2305.13245).
    """

    def __init__(self, config: Config, site: Site) -> None:
        super().__init__()
        H, G, D = config.heads, config.G, config.D
        self.q = nn.Linear(config.width, H * D, config.bias)
        self.k = nn.Linear(config.width, G * D, config.bias)
        self.v = nn.Linear(config.width, G * D, config.bias)
        self.out = nn.Linear(H * D, config.width, config.bias)
        self.q_norm = RMSNorm(D, config.epsilon) if config.qk_norm else nn.Identity()
        self.k_norm = RMSNorm(D, config.epsilon) if config.qk_norm else nn.Identity()
        self.scale, self.softcap = config.scale, config.softcap
        self.head_width, self.site = D, site

    def forward(self, x: Tensor, reading: Reading) -> Tensor:
        """Let every token gather from those it may see, (B, T, C)."""
        source = x if reading.memory is None else reading.memory
        q = self.q_norm(self._heads(self.q(x)))  # (B, H, T, D)
        k = self.k_norm(self._heads(self.k(source)))  # (B, G, T, D); across, (B, G, S', D)
        v = self._heads(self.v(source))  # as k
        if reading.memory is None:  # the distance to a word of another text means nothing
            q = reading.positions.turn(q, reading.places)
            k = reading.positions.turn(k, reading.places)
        if reading.cache is not None:
            k, v = reading.cache.extend(self.site, k, v)  # (B, G, S, D)
        mixed = attend(
            self.site, q, k, v, mask=reading.visibility, scale=self.scale, bias=reading.bias, softcap=self.softcap
        )  # (B, H, T, D)
        return self.out(mixed.transpose(1, 2).flatten(2))  # (B, T, C)

    def _heads(self, x: Tensor) -> Tensor:
        """Cut the last axis into heads, (B, T, H·D) to (B, H, T, D)."""
        return x.unflatten(-1, (-1, self.head_width)).transpose(1, 2)


class Block(nn.Module):
    """One layer: attention, in a decoder beside an encoder also cross-attention, and a feed-forward layer."""

    def __init__(self, config: Config, site: Site, *, crosses: bool = False) -> None:
        super().__init__()
        self.attention = Attention(config, site)
        self.attention_norm = norm_of(config)
        if crosses:
            self.cross = Attention(config, Site("cross", site.layer))
            self.cross_norm = norm_of(config)
        self.feed_forward = (GatedFeedForward if config.activation in GATED else FeedForward)(config)
        self.feed_forward_norm = norm_of(config)
        self.dropout = nn.Dropout(config.dropout)
        self.norm_place, self.crosses = config.norm_place, crosses

    def forward(self, x: Tensor, reading: Reading, across: Reading | None = None) -> Tensor:
        """Rewrite every token once.

        Args:
            x: tokens, (B, T, C).
            reading: what attention among them is told.
            across: what cross-attention is told, where there is any.

        Returns:
            Tokens, (B, T, C).
        """
        x = self._added(x, self.attention_norm, lambda y: self.attention(y, reading))
        if self.crosses:
            x = self._added(x, self.cross_norm, lambda y: self.cross(y, across))
        return self._added(x, self.feed_forward_norm, self.feed_forward)

    def _added(self, x: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        """Add what a part says to what was there, with the norm before the part or after the sum."""
        if self.norm_place == "pre":
            return x + self.dropout(part(norm(x)))
        return norm(x + self.dropout(part(x)))


def positions_of(config: Config, *, both_ways: bool) -> Positions:
    """Make the positions that a configuration asks for; `both_ways` where a token also looks at later ones."""
    if config.positions == "learned":
        return Learned(config.length + config.reserved, config.width)
    if config.positions == "sinusoidal":
        return Sinusoidal(config.width)
    if config.positions == "rotary":
        return Rotary(config.D, config.rotary_base, config.rotary_layout, config.rotary_scaling)
    if config.positions == "alibi":
        return ALiBi(config.heads)
    if config.positions == "relative":
        return RelativeBuckets(config.heads, config.buckets, config.furthest, both_ways)
    return Positions()


class Stack(nn.Module):
    """Positions, L blocks one after the other, and the last norm: what all the models below have in common."""

    def __init__(self, config: Config, kind: Kind, *, causal: bool, layers: int, crosses: bool = False) -> None:
        super().__init__()
        self.positions = positions_of(config, both_ways=not causal)
        self.embedding_norm = norm_of(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, Site(kind, layer), crosses=crosses) for layer in range(layers))
        self.final_norm = norm_of(config) if config.final_norm else nn.Identity()
        self.causal, self.crosses = causal, crosses
        self.window, self.reserved = config.window, config.reserved
        self.length = config.length if config.positions == "learned" else None

    def forward(
        self,
        x: Tensor,
        padding: Tensor | None = None,
        *,
        memory: Tensor | None = None,
        memory_padding: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Run embedded tokens through all blocks.

        Args:
            x: embedded tokens, (B, T, C).
            padding: True for real tokens, (B, S); None where all are real.
            memory: what an encoder made of another text, (B, S', C); blocks with cross-attention need it.
            memory_padding: True for its real tokens, (B, S').
            cache: keys and values of the S - T tokens read before; these T are added to it.

        Returns:
            One vector per token, (B, T, C).

        Raises:
            ShapeError: there are more tokens than the table of positions has rows, or memory is missing or in the way.
        """
        before = 0 if cache is None else cache.length
        key_places = places_of(padding, before + x.shape[1], x.device)  # (B or 1, S)
        places = key_places[:, before:]  # (B or 1, T)
        if self.length is not None and key_places.shape[1] > self.length:
            raise ShapeError(f"{key_places.shape[1]} tokens do not fit into {self.length} learned positions.")
        if self.crosses != (memory is not None):
            raise ShapeError("Blocks with cross-attention need another text to look at, and only they can use one.")
        # Rows of a learned table that no token uses come first; where nothing is reserved, this adds 0.
        x = self.dropout(self.embedding_norm(self.positions.add(x, places + self.reserved)))
        bias = self.positions.bias(places, key_places)  # (B or 1, H, T, S), or None
        reading = Reading(places, self.positions, self._visible(padding, before, key_places), bias, cache=cache)
        across = None
        if memory is not None:
            across = Reading(places, NOWHERE, Visibility(tensor=_columns(memory_padding)), memory=memory)
        for block in self.blocks:
            x = block(x, reading, across)
        return self.final_norm(x)

    def _visible(self, padding: Tensor | None, before: int, key_places: Tensor) -> Visibility:
        """Say which key each query may see: causal as a rule, windows and padding as booleans.

        A window reaches as far to either side; in a decoder the causal rule takes the later side away.
        """
        seen = _columns(padding)  # (B, 1, 1, S)
        if self.window is not None:
            column = torch.arange(key_places.shape[1], device=key_places.device)
            near = Window(self.window).visible(column[before:, None], column[None, :])  # (T, S)
            seen = near[None, None] if seen is None else seen & near
        return Visibility(causal=self.causal, tensor=seen)


def places_of(padding: Tensor | None, count: int, device: torch.device) -> Tensor:
    """Number the tokens from 0, counting from the first real one, so that padding in front moves nobody.

    Args:
        padding: True for real tokens, (B, S); None where all are real.
        count: S.
        device: where the numbers are needed.

    Returns:
        Positions, (B, S), or (1, S) where they are the same for all texts.
    """
    if padding is None:
        return torch.arange(count, device=device)[None]
    return (padding.long().cumsum(dim=1) - 1).clamp(min=0)


def _columns(padding: Tensor | None) -> Tensor | None:
    """Spread what is real (True) and what is padding (False) over all heads and queries, (B, S) to (B, 1, 1, S)."""
    return None if padding is None else padding[:, None, None, :]
