"""Whole transformers, made of the parts in engine/blocks.py: the parts first, the whole last.

    Encoder             reads both ways                                       (BERT)
    Decoder             reads what came before, and writes on                 (GPT, Llama)
    EncoderDecoder      reads one text both ways and writes another           (T5, BART)
    VisionTransformer   an encoder over the patches of an image               (ViT)
    TextClassifier      an encoder, the mean of its tokens, and a label

Each is called with ids (or pixels) and answers with one vector per token, (B, T, C); what turns these into words or
labels is a method of its own. Dropout is off until somebody calls `train()`.

Dimensions: B batch, T tokens read now, S tokens read so far, S' tokens of the text that is translated, C model width,
V vocabulary, P patches.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.blocks import Cache, Stack, activation_of, norm_of
from engine.config import Config
from engine.errors import ModelError, ShapeError

_ON_TOP = {"head": "head that scores tokens", "pooler": "pooler", "classify": "classifier"}


class Head(nn.Module):
    """Scores for every token of the vocabulary: how well each one's embedding fits the vector."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.scale = config.head_scale
        if config.head == "own":
            self.own = nn.Parameter(torch.empty(config.vocabulary, config.width))  # filled by engine/presets.py
        self.tied = config.head == "tied"

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        """Score vectors (B, T, C) against the embedding (V, C) or the head's own matrix, (B, T, V)."""
        return F.linear(x * self.scale, embedding if self.tied else self.own)


class MaskedHead(nn.Module):
    """BERT's head for guessing hidden words: one more layer and norm before the scores, and a constant per word."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dense = nn.Linear(config.width, config.width)
        self.bend = activation_of(config.activation)
        self.norm = norm_of(config)
        self.head = Head(config)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary))

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        """Score vectors (B, T, C), (B, T, V)."""
        return self.head(self.norm(self.bend(self.dense(x))), embedding) + self.bias


def _embedding(config: Config) -> nn.Embedding:
    """Make the table in which every token of the vocabulary has a vector, (V, C)."""
    if config.vocabulary < 1:
        raise ShapeError("A model of text needs a vocabulary of one token at least.")
    return nn.Embedding(config.vocabulary, config.width)


def _part(model: nn.Module, name: str) -> nn.Module:
    """Find what sits on top of a model's layers, which not every model has."""
    if not hasattr(model, name):
        raise ModelError(f"This {type(model).__name__} has no {_ON_TOP[name]}: ask for it in its configuration.")
    return cast(nn.Module, getattr(model, name))


class Encoder(nn.Module):
    """Reads a text both ways and answers with one vector per token, as BERT does (Devlin et al. 2018, 1810.04805)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.tokens = _embedding(config)
        if config.segments:
            self.segments = nn.Embedding(config.segments, config.width)
        self.stack = Stack(config, "encoder", causal=False, layers=config.layers)
        if config.pooler:
            self.pooler = nn.Linear(config.width, config.width)
        if config.head != "none":
            self.head = MaskedHead(config)
        self.eval()

    def forward(self, ids: Tensor, padding: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Read texts.

        Args:
            ids: tokens, (B, T).
            padding: True for real tokens, (B, T); None where all are real.
            segments: the type of each token, (B, T); None for 0 throughout.

        Returns:
            One vector per token, (B, T, C).

        Raises:
            ShapeError: the text is longer than the table of positions.
        """
        x = self.tokens(ids)
        if self.config.segments:
            x = x + self.segments(torch.zeros_like(ids) if segments is None else segments)
        return self.stack(x, padding)

    def logits(self, vectors: Tensor) -> Tensor:
        """Score every word of the vocabulary at every place, (B, T, C) to (B, T, V)."""
        return _part(self, "head")(vectors, self.tokens.weight)

    def pooled(self, vectors: Tensor) -> Tensor:
        """Let the first token stand for the text: one more layer and a tanh, (B, T, C) to (B, C)."""
        return torch.tanh(_part(self, "pooler")(vectors[:, 0]))


class Decoder(nn.Module):
    """Reads what came before and scores what comes next, as GPT does (Radford et al. 2019) and Llama (2302.13971)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.tokens = _embedding(config)
        self.stack = Stack(config, "decoder", causal=True, layers=config.layers)
        if config.head != "none":
            self.head = Head(config)
        self.eval()

    def forward(self, ids: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """Read texts, or with a cache go on reading them.

        Args:
            ids: tokens, (B, T): with a cache only the new ones.
            padding: True for real tokens, old and new, (B, S); None where all are real.
            cache: what was read before; it grows by these tokens.

        Returns:
            One vector per token, (B, T, C).

        Raises:
            ShapeError: the text is longer than the table of positions.
        """
        return self.stack(self.tokens(ids), padding, cache=cache)

    def logits(self, vectors: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one, (B, T, C) to (B, T, V)."""
        return _part(self, "head")(vectors, self.tokens.weight)

    @torch.inference_mode()
    def generate(self, ids: Tensor, count: int) -> Tensor:
        """Write on greedily: read the text once, then only the newest token, with a cache of keys and values.

        Args:
            ids: tokens, (B, T), without padding.
            count: how many tokens to write.

        Returns:
            The text with its continuation, (B, T + count).
        """
        cache, new = Cache(), ids
        for _ in range(count):
            last = self(new, cache=cache)[:, -1:]  # (B, 1, C)
            new = self.logits(last).argmax(dim=-1)  # (B, 1)
            ids = torch.cat([ids, new], dim=1)
        return ids


class EncoderDecoder(nn.Module):
    """Reads one text both ways and writes another, looking across at the first (Vaswani et al. 2017, 1706.03762)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.tokens = _embedding(config)
        self.encoder = Stack(config, "encoder", causal=False, layers=config.layers)
        depth = config.layers if config.decoder_layers is None else config.decoder_layers
        self.decoder = Stack(config, "decoder", causal=True, layers=depth, crosses=True)
        if config.head != "none":
            self.head = Head(config)
        self.eval()

    def forward(
        self, ids: Tensor, target: Tensor, padding: Tensor | None = None, target_padding: Tensor | None = None
    ) -> Tensor:
        """Read a text and its translation so far.

        Args:
            ids: tokens of the text, (B, S').
            target: tokens of the translation, (B, T).
            padding: True for real tokens of the text, (B, S'); None where all are real.
            target_padding: the same for the translation, (B, T).

        Returns:
            One vector per token of the translation, (B, T, C).

        Raises:
            ShapeError: either is longer than the table of positions.
        """
        return self.decode(target, self.encode(ids, padding), padding, target_padding)

    def encode(self, ids: Tensor, padding: Tensor | None = None) -> Tensor:
        """Read the text, (B, S') to (B, S', C)."""
        return self.encoder(self.tokens(ids), padding)

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        padding: Tensor | None = None,
        target_padding: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Read the translation so far, or with a cache its newest tokens, beside what `encode` made of the text.

        Returns:
            One vector per token of `target`, (B, T, C).
        """
        x = self.tokens(target)
        return self.decoder(x, target_padding, memory=memory, memory_padding=padding, cache=cache)

    def logits(self, vectors: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one, (B, T, C) to (B, T, V)."""
        return _part(self, "head")(vectors, self.tokens.weight)

    @torch.inference_mode()
    def generate(self, ids: Tensor, start: Tensor, count: int, padding: Tensor | None = None) -> Tensor:
        """Write a translation greedily: read the text once, then write token by token with a cache.

        Args:
            ids: tokens of the text, (B, S').
            start: what the translation begins with, (B, T).
            count: how many tokens to write.
            padding: True for real tokens of the text, (B, S'); None where all are real.

        Returns:
            The start with its continuation, (B, T + count).
        """
        memory, cache, new = self.encode(ids, padding), Cache(), start
        for _ in range(count):
            last = self.decode(new, memory, padding, cache=cache)[:, -1:]  # (B, 1, C)
            new = self.logits(last).argmax(dim=-1)  # (B, 1)
            start = torch.cat([start, new], dim=1)
        return start


class VisionTransformer(nn.Module):
    """An encoder that reads an image as a sentence of patches (Dosovitskiy et al. 2020, 2010.11929)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.patches = nn.Linear(config.channels * config.patch**2, config.width)
        self.first = nn.Parameter(torch.zeros(1, 1, config.width))  # the class token: no patch, it gathers from them
        room = replace(config, length=1 + config.patches)
        self.stack = Stack(room, "vision", causal=False, layers=config.layers)
        if config.pooler:
            self.pooler = nn.Linear(config.width, config.width)
        if config.classes:
            self.classify = nn.Linear(config.width, config.classes)
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        """Look at images.

        Args:
            images: (B, colours, side, side).

        Returns:
            One vector for the class token, then one per patch, row by row, (B, 1 + P, C).

        Raises:
            ShapeError: the images do not have the size that the model was made for.
        """
        config = self.config
        if images.shape[1:] != (config.channels, config.image, config.image):
            raise ShapeError(
                f"Images of shape {tuple(images.shape[1:])} do not fit a model for "
                f"{(config.channels, config.image, config.image)} (colours, height, width)."
            )
        cut = F.unfold(images, config.patch, stride=config.patch).mT  # (B, P, colours · patch²)
        x = torch.cat([self.first.expand(len(images), -1, -1), self.patches(cut)], dim=1)  # (B, 1 + P, C)
        return self.stack(x)

    def logits(self, vectors: Tensor) -> Tensor:
        """Score every label by the class token, (B, 1 + P, C) to (B, classes)."""
        return _part(self, "classify")(vectors[:, 0])

    def pooled(self, vectors: Tensor) -> Tensor:
        """Let the class token stand for the image: one more layer and a tanh, (B, 1 + P, C) to (B, C)."""
        return torch.tanh(_part(self, "pooler")(vectors[:, 0]))


class TextClassifier(nn.Module):
    """An encoder, the mean of its tokens, and one score per label."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.classes < 1:
            raise ShapeError("A classifier tells labels apart: give the configuration some classes.")
        self.config = config
        self.encoder = Encoder(config)
        self.classify = nn.Linear(config.width, config.classes)
        self.eval()

    def forward(self, ids: Tensor, padding: Tensor | None = None) -> Tensor:
        """Read texts, (B, T) to one vector per token, (B, T, C); arguments as for Encoder."""
        return self.encoder(ids, padding)

    def logits(self, vectors: Tensor, padding: Tensor | None = None) -> Tensor:
        """Score every label by the mean of the real tokens, (B, T, C) to (B, classes)."""
        return self.classify(sentence_embedding(vectors, padding))


def sentence_embedding(vectors: Tensor, padding: Tensor | None = None, how: str = "mean") -> Tensor:
    """Make one vector of a text's.

    Args:
        vectors: one per token, (B, T, C).
        padding: True for real tokens, (B, T); None where all are real.
        how: "mean" averages the real tokens, "first" takes the first real one, such as [CLS].

    Returns:
        One vector per text, (B, C); zeros for a text that is all padding.

    Raises:
        ShapeError: there is no such way.
    """
    if how not in ("mean", "first"):
        raise ShapeError(f'A text\'s vector is its tokens\' "mean" or its "first" token, not {how!r}.')
    real = torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device) if padding is None else padding
    if how == "first":
        real = real & (real.cumsum(dim=1) == 1)
    weight = real.to(vectors.dtype).unsqueeze(-1)  # (B, T, 1)
    return (vectors * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1)
