"""A model's card: what it is, where it came from, and how its attention is read; and its entry in the list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.sites import Kind

if TYPE_CHECKING:
    from engine.trained import TrainedCard


@dataclass(frozen=True)
class Card:
    """What there is to say about a loaded model.

    Attributes:
        id: the name it was loaded under.
        name: what a person calls it.
        family: the architecture, such as "bert" or "gpt2".
        kinds: the kinds of attention it has.
        layers: layers of its first kind.
        heads: query heads in a layer.
        kv_heads: key-value heads in a layer; fewer than `heads` where heads share keys.
        windows: for each layer of the first kind, how many keys its sliding window spans; None where it sees all.
        positions: how it knows word order, such as "learned" or "rotary".
        parameters: how many numbers were learned.
        limit: how many tokens it can read; None where nothing says so.
        licence: the licence of the weights, as far as it is known.
        source: where the weights came from.
        backend: "sdpa" where attention is recorded as it runs, "eager" where the model returns its own weights.
        reason: why the backend is eager; empty where it is not.
        device: where it runs, such as "cpu".
        dtype: the precision it runs in, such as "float32".
        missing: weights that the checkpoint lacks, so that they are random.
        unexpected: weights in the checkpoint that the model has no place for.
        notes: sentences a reader should know.
        trained: what a model that was trained here learned, from what, and how well; None for others.
    """

    id: str
    name: str
    family: str
    kinds: tuple[Kind, ...]
    layers: int
    heads: int
    kv_heads: int
    windows: tuple[int | None, ...]
    positions: str
    parameters: int
    limit: int | None
    licence: str
    source: str
    backend: str
    reason: str
    device: str
    dtype: str
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    trained: TrainedCard | None = field(default=None, hash=False)

    @property
    def style(self) -> str:
        """How it reads: BERT-style both ways, GPT-style left to right, with an encoder and a decoder, or pictures."""
        if "cross" in self.kinds:
            return "encoder–decoder"
        if "vision" in self.kinds:
            return "vision"
        return "GPT-style" if "decoder" in self.kinds else "BERT-style"

    @property
    def banner(self) -> str:
        """A warning for weights that are random; empty where every weight was loaded."""
        if not self.missing:
            return ""
        shown = ", ".join(self.missing[:3]) + (f" and {len(self.missing) - 3} more" if len(self.missing) > 3 else "")
        return f"These weights are random, because the checkpoint does not have them: {shown}."


@dataclass(frozen=True)
class Entry:
    """One model in the list.

    Attributes:
        id: what `load` takes.
        name: what a person calls it.
        family: its architecture, such as "bert".
        style: "BERT-style", "GPT-style", "encoder–decoder" or "vision".
        where: "comes with the app", "packaged", "local folder" or "hub cache".
        parameters: how many, or None where its files do not say.
        layers: how many, or None.
        heads: query heads in a layer, or None.
        licence: the licence of the weights, as far as it is known.
        available: whether it can be loaded now.
        reason: why not; empty where it can.
    """

    id: str
    name: str
    family: str
    style: str
    where: str
    parameters: int | None
    layers: int | None
    heads: int | None
    licence: str
    available: bool = True
    reason: str = ""
