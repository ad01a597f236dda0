"""Masks: which key each query may see.

Dimensions: B batch, H heads, T queries, S keys. A boolean is True where a key is visible.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.errors import MaskError
from engine.rules import Blocking, Causal, Document, Native, Prefix, Rule, Window
from engine.sites import Site


@dataclass(frozen=True)
class Visibility:
    """What one call of attention may see: a causal rule, a boolean tensor, or both at once.

    The rule is kept as a rule, so that a plain causal mask never becomes T x S numbers.

    Attributes:
        causal: query t sees keys up to its own position; the last query stands at the last key.
        tensor: booleans broadcastable to (B, H, T, S), or None where everything is visible.
    """

    causal: bool = False
    tensor: Tensor | None = None

    def rows(self, rows: Tensor, queries: int, keys: int) -> Tensor | None:
        """Spell the mask out for some queries.

        Args:
            rows: positions of the wanted queries, (R,), on the device of the scores.
            queries: T, the number of queries in the whole call.
            keys: S, the number of keys.

        Returns:
            Booleans broadcastable to (B, H, R, S), or None where everything is visible.
        """
        seen = None
        if self.tensor is not None:
            seen = self.tensor if self.tensor.shape[-2] == 1 else self.tensor[..., rows, :]
        if self.causal:
            past = torch.arange(keys, device=rows.device) <= rows[:, None] + (keys - queries)
            seen = past if seen is None else seen & past
        return seen


@dataclass(frozen=True)
class _Clause:
    """One rule and the sites it speaks about; None means every layer or every head."""

    rule: Rule
    layers: frozenset[int] | None = None
    heads: frozenset[int] | None = None

    def applies(self, site: Site) -> bool:
        """Whether it says anything of its own there; elsewhere the model's own mask holds."""
        if isinstance(self.rule, Native) or self.heads == frozenset():
            return False
        return self.layers is None or site.layer in self.layers


@dataclass(frozen=True)
class Mask:
    """Which keys each query may see, as a value: comparable, hashable, composable.

    `Mask.native()` is whatever the model was built with. Every other mask *replaces* the model's own structure,
    keeps the padding, and applies to self-attention only. `&` narrows: a key is visible where both masks show it.
    Write `Mask.native() & Mask.blocking(...)` to cut pairs out of what the model has.
    """

    clauses: tuple[_Clause, ...] = (_Clause(Native()),)

    @classmethod
    def native(cls) -> Mask:
        """The mask that the model was built with."""
        return cls()

    @classmethod
    def bidirectional(cls) -> Mask:
        """Every query sees every key, as in BERT."""
        return cls((_Clause(Rule()),))

    @classmethod
    def causal(cls) -> Mask:
        """Every query sees itself and what came before, as in GPT."""
        return cls((_Clause(Causal()),))

    @classmethod
    def prefix(cls, length: int) -> Mask:
        """Everyone sees the first `length` keys; beyond them it is causal.

        Raises:
            MaskError: the length is negative or no whole number.
        """
        return cls((_Clause(Prefix(_whole(length, "A prefix", 0))),))

    @classmethod
    def window(cls, width: int) -> Mask:
        """Query t sees key s where |t - s| < width: 1 is the token alone.

        Raises:
            MaskError: the width is below 1 or no whole number.
        """
        return cls((_Clause(Window(_whole(width, "A window", 1))),))

    @classmethod
    def document(cls, lengths: Iterable[int]) -> Mask:
        """Consecutive documents of these lengths see only themselves.

        Raises:
            MaskError: a length is below 1, or (when used) they do not add up to the number of tokens.
        """
        return cls((_Clause(Document(tuple(_whole(n, "A document", 1) for n in lengths))),))

    @classmethod
    def blocking(cls, pairs: Iterable[tuple[int, int]]) -> Mask:
        """Every query sees every key but for these (query, key) positions.

        Raises:
            MaskError: a position is negative or no whole number.
        """
        checked = {(_whole(query, "A query", 0), _whole(key, "A key", 0)) for query, key in pairs}
        return cls((_Clause(Blocking(tuple(sorted(checked)))),))

    @classmethod
    def parse(cls, text: str) -> Mask:
        """Read a mask as `spec` writes it: `causal`, `window:3`, `native & blocking:4>2`.

        Raises:
            MaskError: a part is not a mask that exists, or its numbers do not fit.
        """
        mask: Mask | None = None
        for part in text.split("&"):
            one = _parse_one(part.strip())
            mask = one if mask is None else mask & one
        return mask or cls.native()

    def __and__(self, other: Mask) -> Mask:
        return Mask(tuple(dict.fromkeys(self.clauses + other.clauses)))

    def only(self, *, layers: Iterable[int] | None = None, heads: Iterable[int] | None = None) -> Mask:
        """Limit this mask to some layers and heads; elsewhere the model's own mask holds."""
        return Mask(
            tuple(
                replace(clause, layers=_narrow(clause.layers, layers), heads=_narrow(clause.heads, heads))
                for clause in self.clauses
            )
        )

    @property
    def is_native(self) -> bool:
        """Whether this mask changes nothing anywhere."""
        return all(isinstance(clause.rule, Native) for clause in self.clauses)

    @property
    def layers(self) -> frozenset[int]:
        """The layers that some part of this mask is limited to; empty where nothing is limited."""
        return frozenset().union(*(clause.layers or () for clause in self.clauses))

    @property
    def name(self) -> str:
        """What a person would call it."""
        return " and ".join(clause.rule.name + _scope(clause) for clause in self.clauses)

    @property
    def spec(self) -> str:
        """The rules in the words that `parse` reads; limits to layers and heads are left out."""
        return " & ".join(clause.rule.spec for clause in self.clauses)

    def reaching(self, site: Site) -> tuple[_Clause, ...]:
        """The parts of this mask that say anything of their own at a site; the same parts give the same answer."""
        return tuple(clause for clause in self.clauses if site.is_self_attention and clause.applies(site))

    def visible(self, site: Site, native: Tensor, padding: Tensor | None = None, heads: int | None = None) -> Tensor:
        """Say which keys are visible at one site.

        Args:
            site: where attention happens.
            native: what the model's own mask shows there, boolean, broadcastable to (B, H, T, S) and exact in T, S.
            padding: True for real keys, (B, S); None where nothing is padded.
            heads: H, needed where the mask is limited to some heads.

        Returns:
            Four-dimensional booleans broadcastable to (B, H, T, S), True for visible.

        Raises:
            MaskError: lengths do not add up, or a head does not exist.
        """
        if not site.is_self_attention:
            return native[(None,) * (4 - native.dim())]
        queries, keys = native.shape[-2:]
        key = torch.arange(keys, device=native.device)[None, :]
        query = torch.arange(queries, device=native.device)[:, None] + (keys - queries)
        seen = torch.ones(queries, keys, dtype=torch.bool, device=native.device)
        for clause in self.clauses:
            seen = seen & _shown_by(clause, site, native, query, key, heads)
        seen = seen[(None,) * (4 - seen.dim())]
        return seen if padding is None else seen & padding[:, None, None, :]

    def resolve(
        self, site: Site, native: Visibility, padding: Tensor | None, shape: tuple[int, int, int], device: torch.device
    ) -> Visibility:
        """Work out this mask for one call, as a rule where a rule says it all.

        Args:
            site: where attention happens.
            native: what the model itself asked for.
            padding: True for real keys, (B, S); None where nothing is padded.
            shape: (H, T, S).
            device: where the scores are.

        Returns:
            What the call may see.
        """
        if not self.reaching(site):
            return native
        clause = self.clauses[0]
        plain = len(self.clauses) == 1 and clause.heads is None and (padding is None or bool(padding.all()))
        if plain and type(clause.rule) in (Rule, Causal):
            return Visibility(causal=isinstance(clause.rule, Causal))
        heads, queries, keys = shape
        own = native.rows(torch.arange(queries, device=device), queries, keys)
        if own is None:
            own = torch.ones(queries, keys, dtype=torch.bool, device=device)
        return Visibility(tensor=self.visible(site, own.expand(*own.shape[:-2], queries, keys), padding, heads))


def _shown_by(clause: _Clause, site: Site, native: Tensor, query: Tensor, key: Tensor, heads: int | None) -> Tensor:
    if not clause.applies(site):
        return native
    shown = clause.rule.visible(query, key)
    if clause.heads is None:
        return shown
    count = heads if heads is not None else max(clause.heads) + 1
    if max(clause.heads) >= count:
        raise MaskError(f"Head {max(clause.heads)} does not exist: this layer has heads 0 to {count - 1}.")
    chosen = torch.tensor([head in clause.heads for head in range(count)], device=native.device)
    return torch.where(chosen[:, None, None], shown, native)


def _whole(value: int, what: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise MaskError(f"{what} must be a whole number of at least {least}, not {value!r}.")
    return value


def _narrow(have: frozenset[int] | None, wanted: Iterable[int] | None) -> frozenset[int] | None:
    if wanted is None:
        return have
    chosen = frozenset(_whole(number, "A layer or head", 0) for number in wanted)
    return chosen if have is None else have & chosen


def _scope(clause: _Clause) -> str:
    parts = [
        f" in {what} {', '.join(map(str, sorted(numbers)))}"
        for what, numbers in (("layer", clause.layers), ("head", clause.heads))
        if numbers is not None
    ]
    return "".join(parts)


def _parse_one(text: str) -> Mask:
    name, _, argument = text.partition(":")
    plain = {"native": Mask.native, "bidirectional": Mask.bidirectional, "causal": Mask.causal}
    try:
        if name in plain and not argument:
            return plain[name]()
        if name == "prefix":
            return Mask.prefix(int(argument))
        if name == "window":
            return Mask.window(int(argument))
        if name == "document":
            return Mask.document([int(part) for part in argument.split(",")])
        if name == "blocking":
            pairs = [part.split(">") for part in argument.split(",")] if argument else []
            return Mask.blocking([(int(query), int(key)) for query, key in pairs])
    except ValueError as error:
        raise MaskError(f"The mask {text!r} does not read: after the colon come whole numbers.") from error
    known = "native, bidirectional, causal, prefix:N, window:N, document:N,N or blocking:Q>K"
    raise MaskError(f"There is no mask {text!r}. Say {known}, joined with &.")
