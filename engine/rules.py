"""Rules of visibility: structures that know only positions, from which masks are made.

Dimensions: T queries, S keys. A boolean is True where a key is visible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from engine.errors import MaskError


@dataclass(frozen=True)
class Rule:
    """The plainest rule: every query sees every key, as in BERT. The others narrow it.

    Attributes:
        keyword: the word for it that `Mask.parse` reads, before any numbers.
        title: what a person would call it, with a place for its numbers.
    """

    keyword: ClassVar[str] = "bidirectional"
    title: ClassVar[str] = "BERT-style (bidirectional)"

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers that belong to it, as text."""
        return ()

    @property
    def name(self) -> str:
        """What a person would call it."""
        return self.title.format(", ".join(self.numbers))

    @property
    def spec(self) -> str:
        """How `Mask.parse` reads it."""
        return f"{self.keyword}:{','.join(self.numbers)}" if self.numbers else self.keyword

    def visible(self, query: Tensor, key: Tensor) -> Tensor:
        """Say for query positions (T, 1) and key positions (1, S) what is visible, (T, S)."""
        return torch.ones_like(query + key, dtype=torch.bool)


@dataclass(frozen=True)
class Native(Rule):
    """Whatever the model was built with; a mask asks the model instead of this rule."""

    keyword = "native"
    title = "as trained"


@dataclass(frozen=True)
class Causal(Rule):
    """A query sees itself and what came before, as in GPT."""

    keyword = "causal"
    title = "GPT-style (causal)"

    def visible(self, query: Tensor, key: Tensor) -> Tensor:
        """Say what is visible, (T, S)."""
        return key <= query


@dataclass(frozen=True)
class Prefix(Rule):
    """Everyone sees the first keys; beyond them it is causal."""

    keyword = "prefix"
    title = "prefix of {}"
    length: int

    @property
    def numbers(self) -> tuple[str, ...]:
        """The length."""
        return (str(self.length),)

    def visible(self, query: Tensor, key: Tensor) -> Tensor:
        """Say what is visible, (T, S)."""
        return (key <= query) | (key < min(self.length, key.shape[-1]))


@dataclass(frozen=True)
class Window(Rule):
    """Query t sees key s where |t - s| < width."""

    keyword = "window"
    title = "window of {}"
    width: int

    @property
    def numbers(self) -> tuple[str, ...]:
        """The width."""
        return (str(self.width),)

    def visible(self, query: Tensor, key: Tensor) -> Tensor:
        """Say what is visible, (T, S)."""
        # A width of any size is a number that tensors can hold, and from S on it hides nothing.
        return (query - key).abs() < min(self.width, key.shape[-1])


@dataclass(frozen=True)
class Document(Rule):
    """Consecutive documents see only themselves."""

    keyword = "document"
    title = "separate documents of {}"
    lengths: tuple[int, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        """The lengths."""
        return tuple(map(str, self.lengths))

    def visible(self, query: Tensor, key: Tensor) -> Tensor:
        """Say what is visible, (T, S).

        Raises:
            MaskError: the lengths do not add up to S.
        """
        total, keys = sum(self.lengths), key.shape[-1]
        if total != keys:
            listed = ", ".join(self.numbers)
            raise MaskError(f"The document lengths {listed} add up to {total}, not to the {keys} tokens.")
        counts = torch.tensor(self.lengths, device=key.device)
        document = torch.arange(len(self.lengths), device=key.device).repeat_interleave(counts)
        return document[query] == document[key]


@dataclass(frozen=True)
class Blocking(Rule):
    """Everything is visible but some pairs of a query and a key."""

    keyword = "blocking"
    pairs: tuple[tuple[int, int], ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        """The pairs, each as query>key."""
        return tuple(f"{query}>{key}" for query, key in self.pairs)

    @property
    def name(self) -> str:
        """How many pairs are blocked."""
        return f"{len(self.pairs)} blocked pair" + ("s" if len(self.pairs) != 1 else "")

    @property
    def spec(self) -> str:
        """How `Mask.parse` reads it; the colon stands even before no pair at all."""
        return f"{self.keyword}:{','.join(self.numbers)}"

    def visible(self, query: Tensor, key: Tensor) -> Tensor:
        """Say what is visible, (T, S); pairs outside the text hide nothing."""
        seen = super().visible(query, key)
        offset = key.shape[-1] - query.shape[0]  # the position of the first query
        for blocked_query, blocked_key in self.pairs:
            if offset <= blocked_query < key.shape[-1] and blocked_key < key.shape[-1]:
                seen[blocked_query - offset, blocked_key] = False
        return seen
