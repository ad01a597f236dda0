"""The numbers behind the lesson on masks: what a mask hides, and what it does to one head's scores.

Masks act on tokens, so everything here is by token, special tokens included.
Dimensions: T queries, S keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from app import cache
from app.scene import Scene
from engine import Kind, Mask, Prompt, Site, Token, Trace, attention_weights
from engine.audit import TOLERANCES
from engine.recording import Recorded

PAD = "[PAD]"
# A matrix of more tokens than this cannot be read at the size it has here.
TOKENS_SHOWN = 40
# Differences between weights up to here are rounding, in single precision.
ROUNDING = 1e-4
ABSOLUTE = frozenset({"learned", "sinusoidal"})
RELATIVE = frozenset({"rotary", "relative", "relative bias", "ALiBi"})


def token_of(scene: Scene) -> int:
    """Find the first token of the picked word."""
    return scene.sources[scene.pin].indices[0]


def around(token: int, count: int, most: int = TOKENS_SHOWN) -> slice:
    """Choose up to `most` of `count` tokens with one of them in the middle, as far as the ends allow."""
    first = max(min(token - most // 2, count - most), 0)
    return slice(first, min(first + most, count))


def drawn_note(drawn: slice, count: int) -> str:
    """Say which tokens are drawn, counted from 1; nothing where all are."""
    if drawn.stop - drawn.start >= count:
        return ""
    return f"Tokens {drawn.start + 1} to {drawn.stop} of {count} are drawn."


@dataclass(frozen=True)
class Matrix:
    """One mask over one sentence.

    Attributes:
        labels: the tokens on both axes.
        visible: (T, T), True where the query may see the key.
        padding: for each token, whether it is padding.
    """

    labels: tuple[str, ...]
    visible: np.ndarray
    padding: tuple[bool, ...]

    def seen_by(self, query: int) -> str:
        """Say how many tokens one query may see."""
        row = self.visible[query]
        return f"{int(row.sum())} of {row.size}"

    def part(self, places: Sequence[int]) -> Matrix:
        """Keep some tokens, on both axes."""
        rows = np.asarray(places, dtype=np.intp)
        labels, padding = (tuple(one[place] for place in places) for one in (self.labels, self.padding))
        return Matrix(labels, self.visible[np.ix_(rows, rows)], padding)  # type: ignore[arg-type]


def places_drawn(tokens: Sequence[Token], drawn: slice) -> list[int]:
    """Find the positions of the drawn real tokens, and of all padding, in order.

    Args:
        tokens: a sentence, padded or not.
        drawn: which of its real tokens are drawn.
    """
    real = [place for place, token in enumerate(tokens) if not token.padding]
    kept = frozenset(real[drawn])
    return [place for place, token in enumerate(tokens) if token.padding or place in kept]


def matrix(tokens: Sequence[Token], mask: Mask) -> Matrix:
    """Spell a mask out for a sentence; padding in it is never visible."""
    count = len(tokens)
    padding = tuple(token.padding for token in tokens)
    real = ~torch.tensor([padding])
    everything = torch.ones(1, 1, count, count, dtype=torch.bool)
    visible = mask.visible(Site("encoder", 0), everything, real)
    labels = tuple(token.text for token in tokens)
    return Matrix(labels, visible.expand(1, 1, count, count)[0, 0].numpy(), padding)


def padded(prompt: Prompt, count: int, side: str) -> Prompt:
    """Add padding to a sentence, on the "right" or the "left"."""
    return prompt.padded(len(prompt) + count, side=side, pad_text=PAD)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Stages:
    """One head's way from scores to weights under a mask that is put on this head alone.

    Attributes:
        scores: q · k / √D before the mask, (T, S).
        visible: what the mask shows, (T, S).
        unmasked: softmax of all scores.
        late: the same with hidden keys set to zero afterwards, which is wrong: rows no longer sum to 1.
        weights: softmax with −∞ on hidden keys, which is right.
    """

    scores: np.ndarray
    visible: np.ndarray
    unmasked: np.ndarray
    late: np.ndarray
    weights: np.ndarray

    def taken(self, row: int) -> float:
        """Say which share of one row the hidden keys have taken where they are zeroed after the softmax."""
        return float(self.unmasked[row].sum() - self.late[row].sum())


def stages(trace: Trace, layer: int, head: int, kind: Kind, mask: Mask) -> Stages:
    """Take one head of a run as trained, and mask it here.

    Raises:
        ShapeError: the model was run eagerly, so its scores were never seen.
    """
    scores = trace.scores(layer, head, kind)
    parts = trace.parts(layer, head, kind)
    given = {name: parts[name] for name in ("scale", "bias", "softcap", "sinks")}
    q, k = parts["q"][None, None].cpu(), parts["k"][None, None].cpu()
    everything = torch.ones(1, 1, *scores.shape, dtype=torch.bool)
    visible = mask.visible(Site(kind, layer), everything).expand(1, 1, *scores.shape)
    unmasked = attention_weights(q, k, **given)[0, 0]
    masked = attention_weights(q, k, mask=visible, **given)[0, 0]
    seen = visible[0, 0]
    late = unmasked * seen
    return Stages(*(tensor.numpy() for tensor in (scores, seen, unmasked, late, masked)))


@dataclass(frozen=True)
class PaddingTest:
    """A sentence read with and without padding.

    Attributes:
        tokens: the padded sentence.
        weights: one head's map of it, (T, T).
        visible: what that head saw.
        difference: the largest difference between the weights of real tokens with and without padding, over all
            heads of all layers.
    """

    tokens: tuple[Token, ...]
    weights: np.ndarray
    visible: np.ndarray
    difference: float


def padding_test(name: str, plain: Trace, layer: int, head: int, kind: Kind, count: int, side: str) -> PaddingTest:
    """Run the sentence of a trace again with padding, and compare."""
    prompt = padded(plain.prompt, count, side)
    key = ("padded", name, plain.prompt.text, plain.mask, count, side)
    trace = cache.derived(key, lambda: cache.model(name).run_prompt(prompt, None, plain.mask), lambda made: made.nbytes)
    worst = cache.derived((*key, "difference", kind), lambda: _difference(plain, trace, kind), lambda made: 32)
    weights, visible = trace.weights(layer, head, kind).numpy(), trace.visible(layer, head, kind).numpy()
    return PaddingTest(trace.tokens, weights, visible, worst)


def _difference(plain: Trace, padded: Trace, kind: Kind) -> float:
    """Find the largest difference between the weights of real tokens, over all heads of all layers."""
    real = [place for place, token in enumerate(padded.tokens) if not token.padding]
    worst = 0.0
    for layer in range(plain.layers(kind)):
        theirs = padded.weights(layer, kind=kind)[:, real][:, :, real]
        worst = max(worst, float((theirs - plain.weights(layer, kind=kind)).abs().max()))
    return worst


def fits_padding(trace: Trace, count: int) -> bool:
    """Whether the model can read a sentence with that much padding."""
    limit = trace.card.limit
    return limit is None or len(trace.prompt) + count <= limit


def verdict(trace: Trace, difference: float, side: str) -> str:
    """Say whether padding changed anything, by how much, and why, as far as that is known.

    Args:
        trace: the run without padding.
        difference: the largest difference between weights, from 0 to 1.
        side: where the padding stands, "right" or "left".
    """
    card = trace.card
    points = _points(difference * 100)
    if difference < max(ROUNDING, TOLERANCES[getattr(torch, card.dtype)]):
        no = f"**No**: the largest difference is {points} percentage points, which is rounding."
        if side == "right":
            return no
        if card.style == "GPT-style":
            return f"{no} Positions are counted from the first real token, so padding in front moves none of them."
        if card.positions in RELATIVE:
            return f"{no} Only distances between words count for this model (positions: {card.positions})."
        return no
    yes = f"**Yes**: by up to {points} percentage points"
    if side == "left" and card.positions in ABSOLUTE:
        return (
            f"{yes}, because padding in front moves every word to a later position, and this model knows word order "
            f"by absolute positions ({card.positions}). That is why BERT-style models are padded on the right."
        )
    return f"{yes}."


def _points(number: float) -> str:
    """Write percentage points as a plain decimal: one place, or where that is nothing, the first digit that counts."""
    if number == 0 or number >= 0.1:
        return f"{number:.1f}"
    return np.format_float_positional(number, precision=1, unique=False, fractional=False, trim="-")


def is_recorded(trace: Trace) -> bool:
    """Whether a run's queries and keys were seen, so that its scores can be shown."""
    return all(isinstance(held, Recorded) for held in trace.sites.values())
