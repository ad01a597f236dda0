"""A trace: what one run left behind, read lazily and exactly.

Nothing T x S large is stored. Weights are computed from the recorded queries and keys when somebody looks, with the
softmax in float32; `audit` proves that they are the weights which the fast kernel used.

Dimensions: B batch, L layers, H heads, G key-value heads, T queries, S keys, D head width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.attention import BLOCK_SCORES, rows_at_once
from engine.audit import Audit, compared
from engine.card import Card
from engine.errors import ShapeError
from engine.interventions import Silence
from engine.masks import Mask
from engine.recording import Recorded
from engine.sites import KINDS, Kind, Site
from engine.tokens import Prompt, Token


@dataclass(frozen=True)
class Returned:
    """The attention of one site as an eagerly run model returned it, (1, H, T, S)."""

    returned: Tensor

    @property
    def heads(self) -> int:
        """H, the number of query heads."""
        return self.returned.shape[1]

    @property
    def kv_heads(self) -> int:
        """Not visible in returned weights, so it is taken to be H."""
        return self.heads

    @property
    def queries(self) -> int:
        """T, the number of queries."""
        return self.returned.shape[-2]

    @property
    def keys(self) -> int:
        """S, the number of keys."""
        return self.returned.shape[-1]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Everything held, for counting memory."""
        return (self.returned,)

    def weights(self, head: int | None = None, rows: Tensor | None = None) -> Tensor:
        """Read weights: (R, S) for one head, (H, R, S) for all."""
        chosen = self.returned[0] if head is None else self.returned[0, head]
        return (chosen if rows is None else chosen[..., rows, :]).float()

    def visible(self, head: int, rows: Tensor | None = None) -> Tensor:
        """Take the keys of weight exactly 0 as masked: the mask itself is not to be had."""
        return self.weights(head, rows) != 0  # what is no number at all was not masked


@dataclass(frozen=True, repr=False)
class Trace:
    """What one run left: the prompt, and at every site what was recorded.

    Attributes:
        card: which model ran.
        prompt: what it read.
        target: what the decoder of an encoder-decoder read; None elsewhere.
        mask: the mask asked for.
        sites: what was recorded where.
        milliseconds: wall time of the forward pass.
        first: the position of the first query: above 0 where the keys before it came from a cache, so that the maps
            have fewer rows than columns.
        interventions: what else was changed while it ran. The weights and the output of a silenced head are those that
            it had, though nobody was handed them.
    """

    card: Card
    prompt: Prompt
    target: Prompt | None
    mask: Mask
    sites: Mapping[Site, Recorded | Returned]
    milliseconds: float
    first: int = 0
    interventions: tuple[Silence, ...] = ()

    def __repr__(self) -> str:
        sizes = ", ".join(f"{kind} {self.layers(kind)} × {self.heads(kind)}" for kind in self.kinds)
        done = "".join(f", {one.name}" for one in self.interventions)
        return f"Trace({self.card.name}, {len(self.tokens)} tokens, {sizes}, {self.mask.name}{done}, {self.backend})"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention in this run, such as ("encoder", "decoder", "cross")."""
        present = {site.kind for site in self.sites}
        return tuple(kind for kind in KINDS if kind in present)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the prompt."""
        return self.prompt.tokens

    @property
    def backend(self) -> str:
        """How attention was read: "sdpa" recorded as it ran, "eager" returned by the model itself."""
        return self.card.backend

    @property
    def nbytes(self) -> int:
        """Memory held by what was recorded, in bytes; what several sites share counts once."""
        held = {(part.data_ptr(), part.nbytes) for recorded in self.sites.values() for part in recorded.tensors}
        return sum(size for _, size in held)

    def queries(self, kind: Kind | None = None) -> tuple[Token, ...]:
        """The tokens on the vertical axis: who attends."""
        return self._sequence(self._kind(kind) in ("decoder", "cross"))[self.first :]

    def keys(self, kind: Kind | None = None) -> tuple[Token, ...]:
        """The tokens on the horizontal axis: what is attended to."""
        return self._sequence(self._kind(kind) == "decoder")

    def layers(self, kind: Kind | None = None) -> int:
        """L, the number of layers of one kind."""
        kind = self._kind(kind)
        return sum(site.kind == kind for site in self.sites)

    def heads(self, kind: Kind | None = None) -> int:
        """H, the largest number of query heads in a layer."""
        kind = self._kind(kind)
        return max(recorded.heads for site, recorded in self.sites.items() if site.kind == kind)

    def weights(
        self,
        layer: int,
        head: int | None = None,
        kind: Kind | None = None,
        rows: slice | None = None,
        cols: slice | None = None,
    ) -> Tensor:
        """Compute the attention weights of one layer, exactly.

        Args:
            layer: counted from 0.
            head: counted from 0; None for every head.
            kind: needed only where a model has several kinds.
            rows: which queries; None for all.
            cols: which keys; the softmax still runs over all of them.

        Returns:
            Probabilities in float32 on the CPU, (T, S) for one head or (H, T, S).

        Raises:
            ShapeError: there is no such layer, head or kind.
        """
        recorded = self._site(layer, head, kind)
        chosen = None if rows is None else _positions(range(*rows.indices(recorded.queries)))
        weights = recorded.weights(head, _on_device(chosen, recorded))
        return weights[..., cols if cols is not None else slice(None)].float().cpu()

    def mean(self, layer: int | None = None, kind: Kind | None = None) -> Tensor:
        """Average the weights over the heads of one layer, or over all heads of all layers, (T, S)."""
        if layer is not None:
            return self.weights(layer, kind=kind).mean(dim=0)
        layers = self.layers(kind)
        total = self.weights(0, kind=kind).mean(dim=0)
        for number in range(1, layers):
            total += self.weights(number, kind=kind).mean(dim=0)
        return total / layers

    def rows(self, queries: Sequence[int], kind: Kind | None = None) -> Tensor:
        """Compute some queries' weights in every layer and head, (L, H, R, S); absent heads are zeros.

        Raises:
            ShapeError: there is no such query or kind.
        """
        kind, chosen = self._kind(kind), _positions(queries)
        count = len(self.queries(kind))
        if wrong := [query for query in queries if not 0 <= query < count]:
            raise ShapeError(f"Query {wrong[0]} does not exist: queries count from 0 to {count - 1}.")
        result = torch.zeros(self.layers(kind), self.heads(kind), len(chosen), len(self.keys(kind)))
        for layer in range(result.shape[0]):
            recorded = self._site(layer, None, kind)
            result[layer, : recorded.heads] = recorded.weights(None, _on_device(chosen, recorded)).float().cpu()
        return result

    def visible(self, layer: int, head: int, kind: Kind | None = None) -> Tensor:
        """Say which key each query saw in one head, booleans (T, S)."""
        recorded = self._site(layer, head, kind)
        seen = recorded.visible(head)
        shape = (recorded.queries, recorded.keys)
        return torch.ones(shape, dtype=torch.bool) if seen is None else seen.expand(shape).cpu()

    def scores(self, layer: int, head: int, kind: Kind | None = None) -> Tensor:
        """Compute one head's scores before the mask and the softmax, float32, (T, S).

        Raises:
            ShapeError: there is no such head, or the model was run eagerly and its scores were never seen.
        """
        recorded = self._site(layer, head, kind)
        if isinstance(recorded, Returned):
            raise ShapeError(f"{self.card.name} returns weights only, so its scores cannot be shown.")
        return recorded.head(head).scores()[0, 0].float().cpu()

    def parts(self, layer: int, head: int, kind: Kind | None = None) -> dict[str, Any]:
        """Hand out what was recorded for one head: q, k, v, output, scale, bias, mask, softcap, sinks.

        Raises:
            ShapeError: there is no such head, or the model was run eagerly.
        """
        recorded = self._site(layer, head, kind)
        if isinstance(recorded, Returned):
            raise ShapeError(f"{self.card.name} returns weights only, so its queries and keys cannot be shown.")
        call = recorded.head(head)
        parts = {"q": call.q[0, 0], "k": call.k[0, 0], "v": call.v[0, 0], "output": recorded.output[0, head]}
        return {
            **parts,
            "rows": recorded.rows,
            "scale": call.scale,
            "bias": call.bias,
            "mask": self.visible(layer, head, kind),
            "softcap": call.softcap,
            "sinks": call.sinks,
        }

    def overview(self, pixels: int = 64, kind: Kind | None = None) -> Tensor:
        """Make a thumbnail of every head: the maximum of each block of weights.

        Args:
            pixels: the longest side of a thumbnail; shorter inputs keep one cell for each pair of tokens. Of T
                tokens in n cells, token t falls into cell t · n // T and into no other.
            kind: needed only where a model has several kinds.

        Returns:
            Weights from 0 to 1, float32, (L, H, min(T, pixels), min(S, pixels)); absent heads are zeros.
        """
        kind = self._kind(kind)
        size = (min(len(self.queries(kind)), pixels), min(len(self.keys(kind)), pixels))
        result = torch.zeros(self.layers(kind), self.heads(kind), *size)
        for layer in range(result.shape[0]):
            recorded = self._site(layer, None, kind)
            result[layer, : recorded.heads] = _thumbnails(recorded, size)
        return result

    def audit(self) -> Audit:
        """Multiply the shown weights with V at every site and compare with what the kernel returned."""
        recorded = {site: held for site, held in self.sites.items() if isinstance(held, Recorded)}
        if not recorded or len(recorded) < len(self.sites):
            return Audit(None, None, "no", 0.0, self.card.reason or "the model returned its own weights")
        return compared(recorded)

    def _sequence(self, of_target: bool) -> tuple[Token, ...]:
        return self.target.tokens if of_target and self.target is not None else self.prompt.tokens

    def _kind(self, kind: Kind | None) -> Kind:
        if kind is None and len(self.kinds) == 1:
            return self.kinds[0]
        if kind is None or kind not in self.kinds:
            raise ShapeError(f"This run has attention of the kinds {', '.join(self.kinds)}; say one, not {kind!r}.")
        return kind

    def _site(self, layer: int, head: int | None, kind: Kind | None) -> Recorded | Returned:
        kind = self._kind(kind)
        recorded = self.sites.get(Site(kind, layer))
        if recorded is None:
            raise ShapeError(f"Layer {layer} does not exist: layers count from 0 to {self.layers(kind) - 1}.")
        if head is not None and not 0 <= head < recorded.heads:
            raise ShapeError(f"Head {head} does not exist: heads count from 0 to {recorded.heads - 1}.")
        return recorded


def _positions(numbers: Sequence[int]) -> Tensor:
    return torch.tensor(list(numbers), dtype=torch.long)


def _on_device(rows: Tensor | None, recorded: Recorded | Returned) -> Tensor | None:
    return None if rows is None else rows.to(_device(recorded))


def _device(recorded: Recorded | Returned) -> torch.device:
    return recorded.call.q.device if isinstance(recorded, Recorded) else recorded.returned.device


def _thumbnails(recorded: Recorded | Returned, size: tuple[int, int]) -> Tensor:
    """Pool one layer's weights by their maximum, a block of rows at a time, (H, height, width)."""
    (height, width), queries, keys = size, recorded.queries, recorded.keys
    cells = torch.arange(queries) * height // queries  # (T,)
    bands: list[Tensor | None] = [None] * height
    at_once = rows_at_once(BLOCK_SCORES, recorded.heads * keys, _device(recorded))
    for rows in torch.arange(queries).split(at_once):
        weights = recorded.weights(None, _on_device(rows, recorded))  # (H, R, S)
        numbers, counts = torch.unique_consecutive(cells[rows], return_counts=True)
        for number, part in zip(numbers.tolist(), weights.split(counts.tolist(), dim=1), strict=True):
            band, so_far = part.amax(dim=1), bands[number]  # (H, S)
            bands[number] = band if so_far is None else torch.maximum(so_far, band)
    pooled = torch.stack([band for band in bands if band is not None], dim=1)  # (H, height, S)
    columns = (torch.arange(keys) * width // keys).bincount().tolist()
    return torch.stack([part.amax(dim=2) for part in pooled.split(columns, dim=2)], dim=2).float().cpu()
