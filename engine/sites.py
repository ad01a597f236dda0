"""One place where attention happens, named the same way for every model."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["encoder", "decoder", "cross", "vision"]

KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross", "vision")


@dataclass(frozen=True, order=True)
class Site:
    """Where attention happens: the kind of stack and the layer in it, counted from 0."""

    kind: Kind
    layer: int

    @property
    def is_self_attention(self) -> bool:
        """Whether queries and keys come from the same sequence."""
        return self.kind != "cross"

    def __str__(self) -> str:
        return f"{self.kind} layer {self.layer}"
