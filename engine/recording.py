"""Recording: what `attend` reports while a model runs, and what is imposed on it meanwhile.

    with recording(mask=Mask.causal()) as recorder:
        model(ids)
    recorder.recorded[Site("encoder", 5)].weights()

The recorder lives in a context variable, so that threads never see each other's; enter it in the thread that runs
the model. Nothing T x S large is kept: only q, k, v, the output, and the rule or tensor that masked them.

Dimensions: B batch, H heads, T queries, S keys, D head width.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.errors import CaptureError
from engine.interventions import Silence, without_heads
from engine.masks import Mask, Visibility
from engine.sites import Kind, Site

if TYPE_CHECKING:
    from engine.attention import Call

# Up to this many queries every row of the output is kept; beyond it only the rows that an audit looks at.
KEEP_ALL_ROWS = 2048
SAMPLED_ROWS = 64


@dataclass(frozen=True)
class Recorded:
    """One recorded call of attention, of one sentence.

    Attributes:
        call: what attention was given, with a batch of 1.
        output: what it returned, (1, H, R, E).
        rows: which queries the R rows of the output belong to; None where they are all there.
    """

    call: Call
    output: Tensor
    rows: Tensor | None = None

    @property
    def heads(self) -> int:
        """H, the number of query heads."""
        return self.call.q.shape[1]

    @property
    def kv_heads(self) -> int:
        """G, the number of key-value heads."""
        return self.call.k.shape[1]

    @property
    def queries(self) -> int:
        """T, the number of queries."""
        return self.call.queries

    @property
    def keys(self) -> int:
        """S, the number of keys."""
        return self.call.keys

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Everything held, for counting memory."""
        call = self.call
        parts = (call.q, call.k, call.v, self.output, self.rows, call.visibility.tensor, call.bias, call.sinks)
        return tuple(part for part in parts if part is not None)

    def head(self, head: int) -> Call:
        """Cut one head out of the call, with the key-value head it uses."""
        call, group = self.call, head // (self.heads // self.kv_heads)
        seen = call.visibility
        if seen.tensor is not None:
            seen = replace(seen, tensor=_one_head(seen.tensor, head))
        return replace(
            call,
            q=call.q[:, head : head + 1],
            k=call.k[:, group : group + 1],
            v=call.v[:, group : group + 1],
            visibility=seen,
            bias=None if call.bias is None else _one_head(call.bias, head),
            sinks=None if call.sinks is None else call.sinks[head : head + 1],
        )

    def weights(self, head: int | None = None, rows: Tensor | None = None) -> Tensor:
        """Compute weights exactly: (R, S) for one head, (H, R, S) for all."""
        if head is None:
            return self.call.weights(rows)[0]
        return self.head(head).weights(rows)[0, 0]

    def visible(self, head: int, rows: Tensor | None = None) -> Tensor | None:
        """Say what one head sees, broadcastable to (R, S); None where it sees everything."""
        seen = self.head(head).visible(rows)
        return None if seen is None else seen.reshape(seen.shape[-2:])

    def item(self, index: int, queries: slice, keys: slice) -> Recorded:
        """Cut one sentence out of a batch, without its padding."""
        call = self.call
        seen = call.visibility
        if seen.tensor is not None:
            seen = replace(seen, tensor=_crop(seen.tensor, index, queries, keys))
        cropped = replace(
            call,
            q=call.q[index : index + 1, :, queries],
            k=call.k[index : index + 1, :, keys],
            v=call.v[index : index + 1, :, keys],
            visibility=seen,
            bias=None if call.bias is None else _crop(call.bias, index, queries, keys),
        )
        if self.rows is None:
            return Recorded(cropped, self.output[index : index + 1, :, queries])
        start, stop, _ = queries.indices(self.queries)
        kept = (self.rows >= start) & (self.rows < stop)
        return Recorded(cropped, self.output[index : index + 1][:, :, kept], self.rows[kept] - start)


class Recorder:
    """Collects what `attend` reports, and says what is imposed on each call.

    Args:
        mask: the mask to impose; `Mask.native()` leaves every model its own.
        padding: for each kind of site, True for real keys, (B, S); kinds left out have no padding.
        silenced: heads that hand on zeros; what they looked at is recorded like any other's.
    """

    def __init__(self, mask: Mask, padding: Mapping[Kind, Tensor], silenced: Sequence[Silence] = ()) -> None:
        self.mask = mask
        self.padding = dict(padding)
        self.silenced = tuple(silenced)
        self.recorded: dict[Site, Recorded] = {}
        self._resolved: dict[Hashable, tuple[Visibility, Visibility]] = {}

    def impose(self, site: Site, call: Call) -> Visibility:
        """Work out what this call may see under the recorder's mask."""
        shape, native = (call.q.shape[1], call.queries, call.keys), call.visibility
        # Layers under the same mask share one tensor; the native one is held, so that its id stays its own.
        key = (site.kind, self.mask.reaching(site), shape, native.causal, id(native.tensor))
        if key not in self._resolved:
            resolved = self.mask.resolve(site, native, self.padding.get(site.kind), shape, call.q.device)
            self._resolved[key] = (native, resolved)
        return self._resolved[key][1]

    def record(self, site: Site, call: Call, output: Tensor) -> Tensor:
        """Keep one call as it was, and hand its output on with zeros for silenced heads.

        Raises:
            CaptureError: this site has reported already.
            InterventionError: a head that is to be silenced is not there.
        """
        if site in self.recorded:
            raise CaptureError(f"Attention at {site} ran twice in one pass, so it is unclear which run to show.")
        rows = audit_rows(call.queries, output.device) if call.queries > KEEP_ALL_ROWS else None
        self.recorded[site] = Recorded(call, output if rows is None else output[:, :, rows], rows)
        silenced = [one.head for one in self.silenced if one.reaches(site)]
        return without_heads(output, silenced) if silenced else output


_current: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


def current() -> Recorder | None:
    """The recorder of this thread or task, if one is listening."""
    return _current.get()


@contextmanager
def recording(
    mask: Mask = Mask.native(), padding: Mapping[Kind, Tensor] | None = None, silenced: Sequence[Silence] = ()
) -> Iterator[Recorder]:
    """Listen to every `attend` inside this block; gradients flow as they would without.

    Args:
        mask: the mask to impose on self-attention.
        padding: for each kind of site, True for real keys, (B, S).
        silenced: heads that hand on zeros.

    Yields:
        The recorder, whose `recorded` fills as the model runs.
    """
    recorder = Recorder(mask, padding or {}, silenced)
    token = _current.set(recorder)
    try:
        yield recorder
    finally:
        _current.reset(token)


def audit_rows(queries: int, device: torch.device) -> Tensor:
    """Choose the rows that stand for a long input: 64, evenly spaced, the first and the last among them."""
    return torch.linspace(0, queries - 1, SAMPLED_ROWS, device=device).round().long()


def _one_head(tensor: Tensor, head: int) -> Tensor:
    return tensor if tensor.shape[1] == 1 else tensor[:, head : head + 1]


def _crop(tensor: Tensor, index: int, queries: slice, keys: slice) -> Tensor:
    """Crop a tensor broadcastable to (B, H, T, S); an axis of length 1 stands for the whole axis."""
    if tensor.shape[0] > 1:
        tensor = tensor[index : index + 1]
    if tensor.shape[-2] > 1:
        tensor = tensor[..., queries, :]
    return tensor[..., keys] if tensor.shape[-1] > 1 else tensor
