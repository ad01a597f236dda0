"""The shape of everything a transformer computes on its way, found by running it without numbers.

PyTorch's meta device runs the model itself and keeps shapes only: an 8-billion-parameter model takes no memory, and
nothing here is a formula that could differ from the code.

Dimensions: B batch, T tokens, S keys, H heads, G key-value heads, D head width, C model width, F feed-forward width,
V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import cast

import torch
from torch import Tensor, nn

from engine.blocks import Attention, Block, Cache, GatedFeedForward, Stack
from engine.config import Config
from engine.presets import PRESETS, Preset, Transformer, build, count_parameters
from engine.recording import Recorded, recording
from engine.sites import Site
from engine.transformer import Decoder, Encoder, EncoderDecoder, TextClassifier, VisionTransformer

SCORES = "scores q · k / √D"
UNSCALED = "scores q · k, not divided by √D"  # or by a number of the model's own, as config.scale says
ACTIVATIONS = {
    "relu": "ReLU",
    "gelu": "GELU",
    "gelu_tanh": "GELU (tanh form)",
    "swiglu": "SiLU and multiplied (SwiGLU)",
    "geglu": "GELU and multiplied (GeGLU)",
    "geglu_tanh": "GELU (tanh form) and multiplied (GeGLU)",
}


@dataclass(frozen=True)
class Step:
    """One thing that is computed on the way.

    Attributes:
        part: where: "embedding", "layer", "end".
        what: what a person calls it.
        axes: the name of each axis, without the batch.
        shape: its size along each, without the batch.
        parameters: learned numbers that making it takes; 0 for none.
        kept: whether it ever lies in memory; the scores and weights do not, where SDPA works.
    """

    part: str
    what: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    parameters: int = 0
    kept: bool = True


def steps(
    make: Callable[[Config], Transformer], config: Config, tokens: int, *, reading: bool = False
) -> tuple[Step, ...]:
    """List everything that a model computes for a sentence: the embedding, one layer, and the end.

    Args:
        make: the model's class.
        config: its sizes.
        tokens: how long the sentence is.
        reading: of an encoder-decoder, list the encoder; otherwise the decoder, whose layers have all three parts. Both
            use the same token embedding.

    Returns:
        The steps in order; all layers have the same shapes, so one stands for all.

    Raises:
        ShapeError: the sentence is longer than a learned table of positions.
    """
    model, made = build(make, config, device="meta"), {}
    for module in model.modules():
        module.register_forward_hook(lambda module, given, output: made.update({module: tuple(output.shape[1:])}))
    with torch.inference_mode(), recording() as recorder:
        vectors = _run(model, tokens)
        stack = model.encoder if isinstance(model, EncoderDecoder) and reading else _stack_of(model)
        walk = _Walk(made, recorder.recorded, cast(Block, stack.blocks[0]), config)
        end = _end(model, stack, vectors) if stack is _stack_of(model) else _last_norm(config, stack, vectors)
        return (*_beginning(model, stack, tuple(vectors.shape[1:])), *walk.layer(), *end)


@dataclass(frozen=True)
class _Walk:
    """One block, with the shapes that came out of its modules and what its attention was given."""

    made: dict[nn.Module, tuple[int, ...]]
    recorded: dict[Site, Recorded]
    block: Block
    config: Config

    def layer(self) -> Iterator[Step]:
        """List the block's parts in the order in which a token meets them."""
        block = self.block
        yield from self._part(block.attention_norm, self._attention(block.attention, crossing=False))
        if block.crosses:
            yield from self._part(block.cross_norm, self._attention(block.cross, crossing=True))
        yield from self._part(block.feed_forward_norm, self._feed_forward(block.feed_forward))

    def _part(self, norm: nn.Module, inner: Iterator[Step]) -> Iterator[Step]:
        normed = Step("layer", "norm", ("T", "C"), self.made[norm], _numbers(norm))
        added = Step("layer", "added to what was there", ("T", "C"), self.made[norm])
        if self.block.norm_place == "pre":
            yield from (normed, *inner, added)
        else:
            yield from (*inner, added, normed)

    def _attention(self, attention: Attention, *, crossing: bool) -> Iterator[Step]:
        held = self.recorded[attention.site]
        q, k, v, mixed = (tuple(part.shape[1:]) for part in (held.call.q, held.call.k, held.call.v, held.output))
        other = " of the other text" if crossing else ""
        square = (q[0], q[1], k[1])
        yield Step("layer", "queries", ("H", "T", "D"), q, _numbers(attention.q) + _numbers(attention.q_norm))
        yield Step("layer", f"keys{other}", ("G", "S", "D"), k, _numbers(attention.k) + _numbers(attention.k_norm))
        yield Step("layer", f"values{other}", ("G", "S", "D"), v, _numbers(attention.v))
        if self.config.positions == "rotary" and not crossing:
            yield Step("layer", "queries and keys turned by their positions", ("H", "T", "D"), q)
        yield Step("layer", SCORES if self.config.scale is None else UNSCALED, ("H", "T", "S"), square, kept=False)
        yield Step("layer", "weights, each row summing to 1", ("H", "T", "S"), square, kept=False)
        yield Step("layer", "values mixed by the weights", ("H", "T", "D"), mixed)
        yield Step(
            "layer", "heads joined and mapped back", ("T", "C"), self.made[attention.out], _numbers(attention.out)
        )

    def _feed_forward(self, part: nn.Module) -> Iterator[Step]:
        widen, narrow = cast(nn.Module, part.widen), cast(nn.Module, part.narrow)
        if isinstance(part, GatedFeedForward):
            yield Step("layer", "gate", ("T", "F"), self.made[part.gate], _numbers(part.gate))
        yield Step("layer", "widened", ("T", "F"), self.made[widen], _numbers(widen))
        yield Step("layer", f"activation: {ACTIVATIONS[self.config.activation]}", ("T", "F"), self.made[widen])
        yield Step("layer", "narrowed", ("T", "C"), self.made[narrow], _numbers(narrow))


def _beginning(model: Transformer, stack: Stack, shape: tuple[int, ...]) -> Iterator[Step]:
    if isinstance(model, VisionTransformer):
        yield Step("embedding", "patches", ("T", "C"), (shape[0] - 1, shape[1]), _numbers(model.patches))
        yield Step("embedding", "class token in front", ("T", "C"), shape, model.first.numel())
    else:
        text = model.encoder if isinstance(model, TextClassifier) else model
        yield Step("embedding", "token numbers", ("T",), shape[:1])
        yield Step("embedding", "token embedding", ("T", "C"), shape, _numbers(text.tokens))
        if isinstance(text, Encoder) and text.config.segments:
            yield Step("embedding", "segment embedding added", ("T", "C"), shape, _numbers(text.segments))
    if stack.positions.enters == "input":
        yield Step("embedding", "positions added", ("T", "C"), shape, _numbers(stack.positions))
    if stack.positions.enters == "scores":
        bias = (model.config.heads, shape[0], shape[0])
        yield Step(
            "embedding", "position bias, for every layer's scores", ("H", "T", "S"), bias, _numbers(stack.positions)
        )
    if model.config.embedding_norm:
        yield Step("embedding", "norm", ("T", "C"), shape, _numbers(stack.embedding_norm))


def _end(model: Transformer, stack: Stack, vectors: Tensor) -> Iterator[Step]:
    config, shape = model.config, tuple(vectors.shape[1:])
    yield from _last_norm(config, stack, vectors)
    if config.pooler and isinstance(model, Encoder | VisionTransformer):
        pooled = tuple(model.pooled(vectors).shape[1:])
        yield Step("end", "pooler: the first token stands for all", ("C",), pooled, _numbers(model.pooler))
    if config.head != "none" and isinstance(model, Encoder | Decoder | EncoderDecoder):
        scores = tuple(model.logits(vectors).shape[1:])
        how = ", the token embedding used again (tied)" if config.head == "tied" else ""
        yield Step("end", f"a score for every token{how}", ("T", "V"), scores, _numbers(model.head))
    if isinstance(model, TextClassifier):
        yield Step("end", "mean of the tokens", ("C",), shape[1:])
    if config.classes and isinstance(model, TextClassifier | VisionTransformer):
        yield Step("end", "a score for every label", ("labels",), (config.classes,), _numbers(model.classify))


def _last_norm(config: Config, stack: Stack, vectors: Tensor) -> Iterator[Step]:
    if config.final_norm:
        yield Step("end", "last norm", ("T", "C"), tuple(vectors.shape[1:]), _numbers(stack.final_norm))


def cache_numbers(make: Callable[[Config], Transformer], config: Config) -> int:
    """Count the numbers that a cache of keys and values keeps per written token, over all layers.

    An encoder reads its text at once and keeps no cache: 0. A decoder beside an encoder also keeps what cross-attention
    needs of the text, which does not grow and is not counted.
    """
    model, held = build(make, config, device="meta"), Cache()
    one = torch.zeros(1, 1, dtype=torch.long, device="meta")
    with torch.inference_mode():
        if isinstance(model, Decoder):
            model(one, cache=held)
        elif isinstance(model, EncoderDecoder):
            model.decode(one, model.encode(one), cache=held)
    return sum(k.numel() + v.numel() for k, v in held.held.values())


@cache
def totals() -> dict[str, int]:
    """Count the parameters of every known model."""
    counts = {}
    for name, known in PRESETS.items():
        counts[name] = sum(count_parameters(build(known.make, known.config, device="meta")).values())
    return counts


def nearest(total: int) -> tuple[Preset, int]:
    """Find the known model whose number of parameters is nearest, by their ratio, and say how many it has."""
    counts = totals()
    name = min(counts, key=lambda known: abs(math.log(counts[known] / max(total, 1))))
    return PRESETS[name], counts[name]


def _run(model: Transformer, tokens: int) -> Tensor:
    if isinstance(model, VisionTransformer):
        config = model.config
        return model(torch.zeros(1, config.channels, config.image, config.image, device="meta"))
    ids = torch.zeros(1, tokens, dtype=torch.long, device="meta")
    return model(ids, ids) if isinstance(model, EncoderDecoder) else model(ids)


def _stack_of(model: Transformer) -> Stack:
    if isinstance(model, EncoderDecoder):
        return model.decoder
    return model.encoder.stack if isinstance(model, TextClassifier) else model.stack


def _numbers(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
