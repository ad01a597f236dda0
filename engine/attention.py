"""The formula of attention, written twice: once to be seen, once to be fast.

    Attention(Q, K, V) = softmax(Q Kᵀ / √D + bias, hidden scores −∞) V          (Vaswani et al. 2017, 1706.03762)

`attention_weights` spells it out and returns the matrix that is drawn. `attend` is what every model here calls:
PyTorch's scaled_dot_product_attention, which gives the same answer without ever building the matrix of weights. What it
was given is a `Call`, from which a recording computes the weights of the rows that somebody looks at.

Dimensions: B batch, H heads, G key-value heads (G divides H), T queries, S keys, D head width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.errors import ShapeError
from engine.masks import Mask, Visibility
from engine.recording import current
from engine.sites import Site

# Rows are taken in blocks of at most this many scores, so that a long input needs little memory at a time.
BLOCK_SCORES = 16_000_000
# A CPU is two to three times faster with blocks that stay in its cache, as long as each reading of the keys serves
# some rows.
CACHED_SCORES = 250_000
LEAST_ROWS = 32

# A Mask is a wish, such as "causal"; a Visibility is what it comes to for one call; booleans are one spelt out.
AnyMask = Mask | Visibility | Tensor | None


@dataclass(frozen=True)
class Call:
    """Everything that one call of attention was given.

    Attributes:
        q: queries, (B, H, T, D).
        k: keys, (B, G, S, D).
        v: values, (B, G, S, E); E is usually D.
        visibility: which key each query sees.
        scale: what the dot products are multiplied with, 1/√D unless the model says otherwise.
        bias: added to the scaled scores, broadcastable to (B, H, T, S).
        softcap: c in c · tanh(score / c), as in Gemma 2; None for none.
        sinks: one extra logit per head that takes its share of the softmax and gives nothing, (H,).
    """

    q: Tensor
    k: Tensor
    v: Tensor
    visibility: Visibility
    scale: float
    bias: Tensor | None = None
    softcap: float | None = None
    sinks: Tensor | None = None

    @property
    def queries(self) -> int:
        """T, the number of queries."""
        return self.q.shape[-2]

    @property
    def keys(self) -> int:
        """S, the number of keys."""
        return self.k.shape[-2]

    def weights(self, rows: Tensor | None = None) -> Tensor:
        """Compute the attention weights of this call.

        Args:
            rows: positions of the wanted queries, (R,); None for all.

        Returns:
            Probabilities in float32 (float64 where q is), (B, H, R, S).
        """
        scores, seen = self.scores(rows), self.visible(rows)
        if seen is None:
            return _softmax(scores, self.sinks)
        weights = _softmax(scores.masked_fill(~seen, float("-inf")), self.sinks)
        # To the formula a row that sees nothing is 0/0; it mixes nothing, so its weights are zeros.
        return weights.masked_fill(~seen.any(dim=-1, keepdim=True), 0.0)

    def scores(self, rows: Tensor | None = None) -> Tensor:
        """Compute the scores before the mask: scaled, capped and biased, (B, H, R, S)."""
        q = self.q if rows is None else self.q[..., rows, :]
        scores = _dot_products(q, self.k) * self.scale
        if self.softcap is not None:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        if self.bias is not None:
            bias = self.bias if rows is None or self.bias.shape[-2] == 1 else self.bias[..., rows, :]
            scores = scores + bias
        return scores

    def visible(self, rows: Tensor | None = None) -> Tensor | None:
        """Say which keys are visible, broadcastable to (B, H, R, S); None where all are."""
        if rows is None:
            rows = torch.arange(self.queries, device=self.q.device)
        return self.visibility.rows(rows, self.queries, self.keys)

    def output(self) -> Tensor:
        """Mix the values with the weights, (B, H, T, E), without keeping the weights."""
        if self.softcap is None and self.sinks is None:
            return _sdpa(self)
        return _in_blocks(self)


def attention_weights(
    q: Tensor,
    k: Tensor,
    *,
    mask: AnyMask = None,
    scale: float | None = None,
    bias: Tensor | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    site: Site = Site("encoder", 0),
) -> Tensor:
    """Compute attention weights, the matrix that is drawn: softmax(q kᵀ · scale + bias), masked keys left out.

    Args:
        q: queries, (B, H, T, D).
        k: keys, (B, G, S, D), where G divides H.
        mask: a Mask, a Visibility or booleans broadcastable to (B, H, T, S); None shows everything.
        scale: multiplies the dot products; None means 1/√D.
        bias: added after scaling, broadcastable to (B, H, T, S).
        softcap: c in c · tanh(score / c), applied before the bias.
        sinks: a logit per head that joins the softmax without a key, (H,).
        site: the place to ask a Mask about.

    Returns:
        Probabilities, (B, H, T, S). A row sums to 1, to less with sinks, and to 0 where nothing is visible.

    Raises:
        ShapeError: q, k, mask and bias do not fit each other.
    """
    return _call(site, q, k, k, mask, scale, bias, softcap, sinks).weights()


def attend(
    site: Site | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: AnyMask = None,
    scale: float | None = None,
    bias: Tensor | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """Attend: the one function through which every model's attention goes.

    Inside `with recording(...)` the call is reported, and what the recorder imposes (a foreign mask, a silenced
    head) is imposed here.

    Args:
        site: where in the model this happens; None keeps the call out of any recording.
        q: queries, (B, H, T, D).
        k: keys, (B, G, S, D).
        v: values, (B, G, S, E).
        mask, scale, bias, softcap, sinks: as in `attention_weights`.

    Returns:
        The mixed values, (B, H, T, E).

    Raises:
        ShapeError: the tensors do not fit each other.
        CaptureError: the recorder has already seen this site.
        InterventionError: a head that is to be silenced is not there.
    """
    call = _call(site, q, k, v, mask, scale, bias, softcap, sinks)
    recorder = current()  # whoever listens in this thread
    if recorder is None or site is None:
        return call.output()
    call = replace(call, visibility=recorder.impose(site, call))  # another mask than the model's own, if one is wished
    return recorder.record(site, call, call.output())  # keeps the call; hands its output on, silenced heads as zeros


def _call(
    site: Site | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: AnyMask,
    scale: float | None,
    bias: Tensor | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> Call:
    if not _fit(q, k, v):
        raise ShapeError(
            f"Queries {tuple(q.shape)}, keys {tuple(k.shape)} and values {tuple(v.shape)} do not fit: they are "
            "(batch, heads, tokens, width), the widths of queries and keys agree, and key heads divide query heads."
        )
    scores = (*q.shape[:3], k.shape[2])
    if isinstance(mask, Mask):
        everything = Visibility()  # a Mask given here stands alone: there is no mask of the model's to start from
        mask = mask.resolve(
            site or Site("encoder", 0), native=everything, padding=None, shape=scores[1:], device=q.device
        )
    elif not isinstance(mask, Visibility):
        mask = Visibility(tensor=mask)
    if mask.tensor is not None:
        if mask.tensor.dtype != torch.bool:
            raise ShapeError("A mask holds booleans, True for visible; numbers added to the scores are a bias.")
        mask = replace(mask, tensor=_four_dimensional(mask.tensor, scores, "mask"))
    if bias is not None:
        bias = _four_dimensional(bias, scores, "bias")
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return Call(q, k, v, mask, scale, bias, softcap, sinks)


def _fit(q: Tensor, k: Tensor, v: Tensor) -> bool:
    if not q.dim() == k.dim() == v.dim() == 4:
        return False
    same = q.shape[0] == k.shape[0] and k.shape[:3] == v.shape[:3] and q.shape[3] == k.shape[3]
    return same and q.shape[1] % k.shape[1] == 0


def _four_dimensional(tensor: Tensor, scores: tuple[int, int, int, int], what: str) -> Tensor:
    """Give a mask or bias all four axes, so that one head or sentence can be cut out of it later."""
    full = tensor[(None,) * (4 - tensor.dim())]
    if full.dim() != 4 or any(have not in (1, wanted) for have, wanted in zip(full.shape, scores, strict=True)):
        raise ShapeError(f"A {what} of shape {tuple(tensor.shape)} does not fit scores of shape {scores}.")
    return full


def _dot_products(q: Tensor, k: Tensor) -> Tensor:
    """Multiply every query with every key, (B, H, T, S); query heads that share a key head are grouped."""
    precise = torch.float64 if q.dtype == torch.float64 else torch.float32
    grouped = q.to(precise).unflatten(1, (k.shape[1], -1))  # (B, G, H/G, T, D)
    return (grouped @ k.to(precise).unsqueeze(2).mT).flatten(1, 2)  # (B, H, T, S)


def _softmax(scores: Tensor, sinks: Tensor | None) -> Tensor:
    if sinks is not None:
        extra = sinks.to(scores.dtype)[:, None, None].expand(*scores.shape[:-1], 1)
        return torch.softmax(torch.cat([scores, extra], dim=-1), dim=-1)[..., :-1]
    return torch.softmax(scores, dim=-1)


def _sdpa(call: Call) -> Tensor:
    mask, causal = call.visibility.tensor, call.visibility.causal
    if call.queries == 1:
        causal = False  # a single query stands at the last key, so it sees them all
    # SDPA takes the causal rule only alone, and only for a square: it would put the first query at the first key.
    if causal and (mask is not None or call.bias is not None or call.queries != call.keys):
        mask, causal = call.visible(), False
        if mask is not None and mask.dim() == 2:
            mask = mask[None, None]  # (T, S) to (1, 1, T, S)
    # A query that sees nothing gets zeros from SDPA, as it does from `weights`.
    if call.bias is not None:
        bias = call.bias.to(call.q.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
    k, v, grouped = call.k, call.v, call.q.shape[1] != call.k.shape[1]
    if grouped and mask is not None:
        # With a mask, SDPA's own grouping falls back to a slow kernel on GPUs.
        repeats = call.q.shape[1] // k.shape[1]
        k, v, grouped = k.repeat_interleave(repeats, dim=1), v.repeat_interleave(repeats, dim=1), False
    return F.scaled_dot_product_attention(
        call.q, k, v, attn_mask=mask, is_causal=causal, scale=call.scale, enable_gqa=grouped
    )


def rows_at_once(most: int, row: int, device: torch.device) -> int:
    """Say how many rows, of `row` scores each, to compute at a time: of `most` scores together, but at least one."""
    if device.type == "cpu":
        most = min(most, max(CACHED_SCORES, LEAST_ROWS * row))
    return max(1, most // row)


def _in_blocks(call: Call) -> Tensor:
    """Do what SDPA cannot, soft caps and sinks, a block of rows at a time."""
    at_once = rows_at_once(BLOCK_SCORES, call.q.shape[0] * call.q.shape[1] * call.keys, call.q.device)
    repeats = call.q.shape[1] // call.v.shape[1]
    v = call.v.repeat_interleave(repeats, dim=1) if repeats > 1 else call.v
    rows = torch.arange(call.queries, device=call.q.device)
    blocks = [call.weights(block).to(v.dtype) @ v for block in rows.split(at_once)]
    return torch.cat(blocks, dim=-2)
