"""What the reader sees of a trace: words or tokens, special tokens or not, one head or a mean.

Everything here is exact; what is pooled, averaged or rescaled says so in `Shown.remarks`.
Dimensions: L layers, H heads, T queries shown, S keys shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from app.components.payload import pooled_thumbnails
from app.phrases import brief, pieces_remark
from app.view import View
from engine import CaptureError, Kind, Token, Trace, attention_entropy, group_words, pool_words
from engine.tokens import Group, group_tokens

# Up to this many tokens every head's map is made from words; beyond it thumbnails are pooled from tokens.
EXACT_THUMBNAILS = 128
POOLED_SIDE = 48  # pixels; about what a head has on the screen
SINK_SHARE = 0.5


@dataclass(frozen=True)
class Shown:
    """One map as it was asked for.

    Attributes:
        queries: labels of the T rows.
        keys: labels of the S columns.
        weights: (T, S), float32.
        visible: (T, S), False where the query may not see the key.
        hidden_share: for each query, how much of its attention goes to keys that are not shown, (T,).
        entropy: for each query, how widely it spreads over all tokens, hidden ones too, in bits, (T,).
        remarks: what was pooled, averaged, hidden or rescaled, in short phrases.
    """

    queries: tuple[Group, ...]
    keys: tuple[Group, ...]
    weights: np.ndarray
    visible: np.ndarray
    hidden_share: np.ndarray
    entropy: np.ndarray
    remarks: tuple[str, ...]


def groups(tokens: Sequence[Token], view: View) -> tuple[Group, ...]:
    """Put tokens on an axis as the view asks: by word or one by one, special tokens in or out."""
    every = group_words(tokens) if view.unit == "words" else group_tokens(tokens)
    kept = tuple(group for group in every if (view.specials and not view.renormalise) or not group.special)
    return kept or every


def shown(trace: Trace, view: View, kind: Kind) -> Shown:
    """Make the map that the view asks for.

    Raises:
        CaptureError: it holds numbers that are not finite.
    """
    queries, keys = groups(trace.queries(kind), view), groups(trace.keys(kind), view)
    weights = _averaged(trace, view, kind)
    if not bool(weights.isfinite().all()):
        raise CaptureError(f"{_place(view)} holds numbers that are not finite, so it cannot be shown.{_advice(trace)}")
    pooled = pool_words(weights, queries, keys).numpy()
    rows = pool_words(weights, queries, group_tokens(trace.keys(kind)))  # (T, all tokens)
    hidden = np.clip(rows.sum(dim=-1).numpy() - pooled.sum(axis=1), 0.0, 1.0)
    entropy = attention_entropy(rows).numpy()
    if view.renormalise:
        pooled = _rescaled(pooled)
    visible = _visible(trace, view, kind, queries, keys)
    remarks = _remarks(trace, view, kind, queries, keys)
    return Shown(queries, keys, pooled.astype(np.float32), visible, hidden, entropy, remarks)


def thumbnails(trace: Trace, view: View, kind: Kind) -> np.ndarray:
    """Make a small map of every head, (L, H, height, width), on the same axes as the large one where it is short."""
    queries, keys = trace.queries(kind), trace.keys(kind)
    if max(len(queries), len(keys)) > EXACT_THUMBNAILS:
        return trace.overview(POOLED_SIDE, kind).numpy()
    rows, columns = groups(queries, view), groups(keys, view)
    every = pool_words(trace.rows(range(len(queries)), kind), rows, columns).numpy()  # (L, H, T, S)
    return pooled_thumbnails(_rescaled(every) if view.renormalise else every)


def between(trace: Trace, kind: Kind, query: Group, key: Group, among: Sequence[Group] = ()) -> np.ndarray:
    """Say in every head how much of `query`'s attention goes to `key`, (L, H).

    Args:
        trace: the run.
        kind: which attention.
        query: the word that attends.
        key: the word attended to.
        among: the keys whose weights are to sum to 1, as where special tokens are left out; empty for the model's own.
    """
    rows = trace.rows(query.indices, kind).mean(dim=2)  # (L, H, S)
    weights = rows[..., list(key.indices)].sum(dim=-1).numpy()
    if not among:
        return weights
    total = rows[..., [index for group in among for index in group.indices]].sum(dim=-1).numpy()
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def can_see(trace: Trace, kind: Kind, query: Group, key: Group) -> bool:
    """Say whether any head may look from one word to another."""
    rows, columns = list(query.indices), list(key.indices)
    return any(
        bool(trace.visible(layer, head, kind)[rows][:, columns].any())
        for layer in range(trace.layers(kind))
        for head in range(trace.heads(kind))
    )


def _rescaled(weights: np.ndarray) -> np.ndarray:
    """Let every row sum to 1; a row of nothing stays as it is."""
    sums = weights.sum(axis=-1, keepdims=True)
    return np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)


def resting_share(trace: Trace, view: View, kind: Kind) -> tuple[float, str]:
    """Say how much of a head's attention rests on tokens that carry little meaning, and on which.

    Returns:
        The mean share over all queries, 0 to 1, of special keys, or, without any, of the first token; and its name.
    """
    weights, keys = _averaged(trace, view, kind), trace.keys(kind)
    special = [place for place, token in enumerate(keys) if token.special]
    names = " and ".join(dict.fromkeys(brief(keys[place].text) for place in special))
    names = names or f"the first token, {brief(keys[0].text)}"
    return float(weights[:, special or [0]].sum(dim=-1).mean()), names


def _place(view: View) -> str:
    if view.average == "all":
        return "The mean of all heads"
    return f"Layer {view.layer}, head {view.head}" if view.average == "head" else f"The mean of layer {view.layer}"


def _advice(trace: Trace) -> str:
    return " It overflowed in float16; float32 may work." if trace.card.dtype == "float16" else ""


def _averaged(trace: Trace, view: View, kind: Kind) -> torch.Tensor:
    if view.average == "head":
        return trace.weights(view.layer, view.head, kind)
    return trace.mean(view.layer if view.average == "layer" else None, kind)


def _visible(trace: Trace, view: View, kind: Kind, queries: Sequence[Group], keys: Sequence[Group]) -> np.ndarray:
    layers = range(trace.layers(kind)) if view.average == "all" else [view.layer]
    seen = trace.visible(view.layer, view.head, kind)
    if view.average != "head":
        for layer in layers:
            for head in range(trace.heads(kind)):
                seen = seen | trace.visible(layer, head, kind)
    counts = pool_words(seen.float(), queries, keys)
    return (counts > 0).numpy()


def _remarks(trace: Trace, view: View, kind: Kind, queries: Sequence[Group], keys: Sequence[Group]) -> tuple[str, ...]:
    remarks = []
    if view.average == "layer":
        remarks.append(f"mean of {trace.heads(kind)} heads")
    if view.average == "all":
        remarks.append(f"mean of all {trace.layers(kind)} × {trace.heads(kind)} heads")
    pieces = pieces_remark((*queries, *keys))
    if pieces:
        remarks.append(pieces)
    if view.renormalise:
        remarks.append("rescaled: each row's shown weights sum to 100 %")
    return tuple(remarks)
