"""What word order does to attention: one small layer, its scores taken apart, its words shuffled and moved.

The layer is the formula and nothing else, with random weights: a word's vector is looked up, queries, keys and values
are projected from it, and `engine.positions` says where the order comes in. Its numbers are float64, so that "does
not notice" means zero to fifteen digits and not zero to the eye.

Dimensions: H heads, T queries, S keys (T = S here), D head width, C model width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.attention import Call
from engine.errors import ShapeError
from engine.masks import Visibility
from engine.positions import Positions


@dataclass(frozen=True)
class SmallAttention:
    """One layer of attention with weights drawn at random.

    Word vectors have unit variance and projections keep it, so the scores of content, q·k / √D, have variance 1.

    Attributes:
        width: C, a multiple of the heads.
        heads: H.
        positions: how order enters.
        causal: each word sees itself and what came before.
        seed: of the weights; the same seed gives the same layer, whatever the positions.
        vocabulary: how many words there are; their numbers are 0 to vocabulary - 1.
    """

    width: int
    heads: int
    positions: Positions
    causal: bool = False
    seed: int = 0
    vocabulary: int = 1000

    def __post_init__(self) -> None:
        if min(self.width, self.heads) < 1 or self.width % self.heads:
            raise ShapeError(f"A width of {self.width} cannot be shared out among {self.heads} heads.")

    def words(self, ids: Tensor) -> Tensor:
        """Look up the words' vectors: ids (T,) -> (1, T, C).

        Raises:
            ShapeError: the ids are not one row of numbers, or one of them is no word.
        """
        if ids.dim() != 1 or not ids.numel():
            raise ShapeError(f"A sentence is one row of word numbers, not of shape {tuple(ids.shape)}.")
        if bool((wrong := (ids < 0) | (ids >= self.vocabulary)).any()):
            raise ShapeError(f"Word numbers run from 0 to {self.vocabulary - 1}; {int(ids[wrong][0])} is none.")
        return self._drawn(self.vocabulary, self.width, seed=2 * self.seed).to(ids.device)[ids][None]

    def projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Project vectors (1, T, C) to queries, keys and values, (1, H, T, D) each."""
        matrices = self._drawn(3, self.width, self.width, seed=2 * self.seed + 1).to(x.device) / self.width**0.5
        q, k, v = (x @ matrix for matrix in matrices)
        return self._in_heads(q), self._in_heads(k), self._in_heads(v)

    @torch.no_grad()
    def call(self, ids: Tensor, first: int = 0) -> Call:
        """Give all that this layer's attention computes from a sentence: scores, weights, output.

        Args:
            ids: word numbers, (T,).
            first: the place of the first word.

        Returns:
            One call of attention on a batch of one.

        Raises:
            ShapeError: a word number is no word, or the positions do not fit the layer or the sentence.
        """
        words = self.words(ids)
        places = torch.arange(first, first + len(ids), device=ids.device)[None]  # (1, T)
        q, k, v = self.projected(self.positions.add(words, places))
        q, k, bias = self.positions.turn(q, places), self.positions.turn(k, places), self.positions.bias(places, places)
        if bias is not None and bias.shape[1] != self.heads:
            raise ShapeError(f"These positions are for {bias.shape[1]} heads; the layer has {self.heads}.")
        return Call(q, k, v, Visibility(causal=self.causal), scale=q.shape[-1] ** -0.5, bias=bias)

    def _in_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (1, T, C) -> (1, T, H, D) -> (1, H, T, D)

    def _drawn(self, *shape: int, seed: int) -> Tensor:
        return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@dataclass(frozen=True)
class ScoreParts:
    """The scores of one sentence, split into what the words say and what their places say.

    Attributes:
        content: the scores of the same layer without positions, (H, T, S).
        position: what positions change, scores - content, (H, T, S).
        scores: before the mask, (H, T, S).
        weights: their softmax over the visible keys, (H, T, S); rows sum to 1.
        visible: which key each query sees, (T, S).
        word_position, position_word, position_position: where positions are added to the words, the three terms that
            `position` is the sum of: the query's word with the key's place, the query's place with the key's word,
            place with place, (H, T, S) each. None where order enters elsewhere.
    """

    content: Tensor
    position: Tensor
    scores: Tensor
    weights: Tensor
    visible: Tensor
    word_position: Tensor | None = None
    position_word: Tensor | None = None
    position_position: Tensor | None = None


def drawn(positions: Positions, seed: int = 0) -> Positions:
    """Fill the tables of new positions with unit-variance numbers from a seed, and give these positions back."""
    generator = torch.Generator().manual_seed(seed)
    for table in positions.parameters():
        torch.nn.init.normal_(table, generator=generator)
    return positions


def parts_of(layer: SmallAttention, ids: Tensor, first: int = 0) -> ScoreParts:
    """Split the scores of a sentence into content and position.

    Args:
        layer: the layer.
        ids: word numbers, (T,).
        first: the place of the first word.

    Returns:
        The parts, float64; content + position = scores.

    Raises:
        ShapeError: a word number is no word, or the positions do not fit the layer or the sentence.
    """
    call = layer.call(ids, first)
    content = replace(layer, positions=Positions()).call(ids).scores()[0]
    scores, visible = call.scores()[0], call.visible()
    if visible is None:
        visible = torch.ones(len(ids), len(ids), dtype=torch.bool, device=ids.device)
    terms = _terms(layer, ids, first) if layer.positions.enters == "input" else (None, None, None)
    return ScoreParts(content, scores - content, scores, call.weights()[0], visible, *terms)


@torch.no_grad()
def _terms(layer: SmallAttention, ids: Tensor, first: int) -> tuple[Tensor, Tensor, Tensor]:
    """Multiply (word + place) · (word + place) out, but for word with word."""
    words, places = layer.words(ids), torch.arange(first, first + len(ids), device=ids.device)[None]
    word_q, word_k, _ = layer.projected(words)
    place_q, place_k, _ = layer.projected(layer.positions.add(torch.zeros_like(words), places))
    scale = word_q.shape[-1] ** -0.5
    pairs = ((word_q, place_k), (place_q, word_k), (place_q, place_k))
    word_position, position_word, position_position = ((q @ k.mT)[0] * scale for q, k in pairs)  # (H, T, S) each
    return word_position, position_word, position_position


def noticed(layer: SmallAttention, ids: Tensor, order: Tensor) -> Tensor:
    """Measure how far each word's output moves when the sentence is shuffled.

    Args:
        layer: the layer.
        ids: word numbers, (T,).
        order: which word comes first, second, …: a permutation of 0 to T - 1, (T,).

    Returns:
        Per word, compared with itself wherever it went, relative to the longest output: 0 or above, (T,).

    Raises:
        ShapeError: the order is no permutation of the words, or the sentence does not fit the layer.
    """
    if not order.sort().values.equal(torch.arange(len(ids), device=ids.device)):
        raise ShapeError(f"The order {order.tolist()} does not name each of {len(ids)} words once.")
    shuffled = _outputs(layer, ids[order])
    return _moved(_outputs(layer, ids), shuffled[order.argsort()])


def shifted(layer: SmallAttention, ids: Tensor, by: int) -> Tensor:
    """Measure how far each word's output moves when the whole sentence stands `by` places later.

    Args:
        layer: the layer.
        ids: word numbers, (T,).
        by: how many places.

    Returns:
        Per word, relative to the longest output: 0 or above, (T,).

    Raises:
        ShapeError: the positions end before the moved sentence, or the sentence does not fit the layer.
    """
    return _moved(_outputs(layer, ids), _outputs(layer, ids, by))


def _outputs(layer: SmallAttention, ids: Tensor, first: int = 0) -> Tensor:
    return layer.call(ids, first).output()[0].transpose(0, 1).flatten(1)  # (H, T, D) -> (T, C)


def _moved(before: Tensor, after: Tensor) -> Tensor:
    return (after - before).norm(dim=-1) / before.norm(dim=-1).max()
