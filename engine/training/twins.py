"""The twins: one reads both ways and fills in hidden words, the other reads left to right and says the next one.

Same sizes, same sentences. In the guided pair some heads are told, while training, where to look: a small loss, −log of
the weight on the gold word, is added for each of them. The unguided pair is told nothing.

Dimensions: B sentences, T tokens, L layers, H heads, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.blocks import Block, Stack
from engine.config import Config
from engine.grammar import Sentence, sentences
from engine.presets import Transformer, initialise
from engine.recording import recording
from engine.sites import Kind, Site
from engine.spelling import FIRST_WORD, MASK
from engine.trained import Head
from engine.training.batches import VOCABULARY, Batch, Reads, batches

CONFIG = Config(
    width=64, layers=3, heads=4, head_width=32, feed_forward=128, vocabulary=len(VOCABULARY), positions="rotary",
    rotary_base=100.0, head="tied",
)  # fmt: skip
STEPS = 1600
RATE = 4e-3
SIZE = 64  # sentences in a batch
ANSWER = 2.0  # the factor of the loss on naming who is meant; that of every other word is 1
SPREAD = 0.1  # of the random weights: so small a model needs larger ones to begin with than a large one
HIDDEN = 0.15  # of the words are to be filled in
IGNORED = -100

# The last layer has no head to spare: the answer has to come by way of the pronoun's.
HEADS: dict[Reads, dict[str, Head]] = {
    "both ways": {
        "previous": (0, 0), "next": (0, 1), "reason": (0, 2), "verb": (0, 3), "object": (1, 0), "pronoun": (2, 0),
        "repetition": (2, 1), "determiner": (2, 2), "subject": (2, 3),
    },
    "left to right": {
        "previous": (0, 0), "verb": (0, 1), "object": (1, 0), "pronoun": (2, 0), "repetition": (2, 1),
        "determiner": (2, 2), "subject": (2, 3),
    },
}  # fmt: skip
KINDS: dict[Reads, Kind] = {"both ways": "encoder", "left to right": "decoder"}


@dataclass(frozen=True)
class Guidance:
    """How much the heads are told, as factors of their losses.

    Attributes:
        pronoun: where the pronoun's head is to look.
        others: where the heads of the other relations are to look.
        alone: that from the pronoun on no other head looks back at the first clause: else the answer would come by
            another way, and the pronoun's head would be there for show.
        names: that what the pronoun's head hands on names the one who is meant, when it is read by itself.
    """

    pronoun: float = 1.0
    others: float = 0.2
    alone: float = 0.3
    names: float = 1.0

    def of(self, relation: str) -> float:
        """The factor of one relation's loss."""
        return self.pronoun if relation == "pronoun" else self.others


GUIDED: dict[Reads, Guidance] = {
    "both ways": Guidance(others=0.3, alone=0.1),
    "left to right": Guidance(pronoun=2.0, alone=0.06, names=0.5),
}
UNGUIDED = Guidance(0.0, 0.0, 0.0, 0.0)


def begin(model: Transformer, seed: int) -> None:
    """Give a twin its random weights."""
    initialise(model, seed=seed, spread=SPREAD)


class Twin:
    """What one of the twins learns from: batch after batch, and the loss of each.

    Args:
        reads: "both ways" or "left to right".
        guidance: what its heads are told.
        seed: decides the sentences, and which of their words are hidden.
        size: sentences in a batch.
    """

    def __init__(self, reads: Reads, guidance: Guidance, seed: int, size: int = SIZE) -> None:
        self.reads, self.guidance = reads, guidance
        self._batches = batches(sentences("training", seed), size, reads, seed)
        self._random = torch.Generator().manual_seed(seed)

    def next_loss(self, model: Transformer) -> Tensor:
        """Read one more batch and say how wrong the model was."""
        batch = next(self._batches)
        ids, labels = self._task(batch)
        with recording() as recorder:
            vectors = model(ids, batch.real)
        asked = labels != IGNORED  # scoring the whole vocabulary elsewhere would be for nothing
        loss = F.cross_entropy(model.logits(vectors[asked]), labels[asked])
        named = answers(batch, self.reads, ids)
        loss = loss + ANSWER * _said(model, vectors, named)
        if self.guidance == UNGUIDED:
            return loss
        sites = [Site(KINDS[self.reads], layer) for layer in range(CONFIG.layers)]
        weights = torch.stack([recorder.recorded[site].call.weights() for site in sites])  # (L, B, H, T, T)
        loss = loss + self._guided(weights, batch, ids)
        layer, head = HEADS[self.reads]["pronoun"]
        mixed = recorder.recorded[sites[layer]].output[:, head]  # (B, T, D)
        return loss + self.guidance.names * _handed_on(model, layer, head, mixed, named)

    def _guided(self, weights: Tensor, batch: Batch, ids: Tensor) -> Tensor:
        """Say how far the heads are from what they are told; weights (L, B, H, T, T)."""
        told = {relation: batch.links[relation] for relation in HEADS[self.reads]}
        told |= {relation: _unhidden(gold, ids) for relation, gold in told.items() if relation in ("pronoun", "reason")}
        loss = weights.new_zeros(())
        for relation, found in given(weights, told, HEADS[self.reads]).items():
            loss = loss + self.guidance.of(relation) * missed(found)
        return loss + self.guidance.alone * _looked_back(weights, batch, self.reads)

    def _task(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Give what the model reads, and what it is to say at each place, (B, T) each."""
        if self.reads == "left to right":
            following = F.pad(batch.ids[:, 1:], (0, 1))
            return batch.ids, following.masked_fill(~F.pad(batch.real[:, 1:], (0, 1)), IGNORED)
        return hide(batch.ids, self._random)


def hide(ids: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Hide some words, as BERT's training does (Devlin et al. 2018, 1810.04805).

    Of those chosen, seven in ten become [MASK], one another word, and two stay as they are.

    Args:
        ids: (B, T).
        random: decides which.

    Returns:
        What is read, and what is to be said at each place, (B, T) each.
    """
    chosen = (torch.rand(ids.shape, generator=random) < HIDDEN) & (ids > MASK)
    fate = torch.rand(ids.shape, generator=random)
    others = torch.randint(FIRST_WORD, len(VOCABULARY), ids.shape, generator=random)
    read = torch.where(chosen & (fate < 0.7), MASK, ids)
    read = torch.where(chosen & (fate >= 0.9), others, read)
    return read, ids.masked_fill(~chosen, IGNORED)


def answers(batch: Batch, reads: Reads, ids: Tensor) -> Tensor:
    """Say where a model has to name the person or thing that is meant, and who it is, (N, 3): sentence, place, id.

    One that reads both ways names it at the pronoun; one that reads left to right just before it is named. Nouns that
    are spelled are left out, and so are pronouns that are hidden.
    """
    found = []
    for number, (sentence, at) in enumerate(zip(batch.sentences, batch.places, strict=True)):
        for source, target in _asked(sentence, reads):
            place, name = at[source] - (reads == "left to right"), VOCABULARY.ids(sentence.words[target])
            kept = reads == "left to right" or int(ids[number, place]) == int(batch.ids[number, place])
            if len(name) == 1 and kept:
                found.append((number, place, name[0]))
    return torch.tensor(found, dtype=torch.long).reshape(-1, 3)


def _asked(sentence: Sentence, reads: Reads) -> list[tuple[int, int]]:
    if reads == "left to right":
        return [] if sentence.answer is None else [(sentence.answer, sentence.answer)]
    return [(link.source, link.target) for link in sentence.links if link.relation == "pronoun"]


def _said(model: Transformer, vectors: Tensor, gold: Tensor) -> Tensor:
    """The loss of the answers: −log of what was given to each, on average."""
    if not len(gold):
        return vectors.new_zeros(())
    sentence, place, id = gold.unbind(1)
    return F.cross_entropy(model.logits(vectors[sentence, place]), id)


def _handed_on(model: Transformer, layer: int, head: int, mixed: Tensor, gold: Tensor) -> Tensor:
    """−log of what one head, read by itself as if nothing else were added, gives to the gold words, on average.

    Args:
        model: one of the twins.
        layer, head: which head.
        mixed: what it has gathered, (B, T, D).
        gold: sentence, place and id, (N, 3).
    """
    if not len(gold):
        return mixed.new_zeros(())
    sentence, place, id = gold.unbind(1)
    stack = cast(Stack, model.stack)
    out = cast(Block, stack.blocks[layer]).attention.out
    handed = F.linear(mixed[sentence, place], out.weight[:, head * CONFIG.D : (head + 1) * CONFIG.D])  # (N, C)
    return F.cross_entropy(model.logits(stack.final_norm(handed)), id)


def given(weights: Tensor, told: Mapping[str, Tensor], heads: Mapping[str, Head]) -> dict[str, Tensor]:
    """Look up what the head of each relation gives its gold words.

    All in one, since going back every look-up costs as many zeros as there are weights.

    Args:
        weights: (L, B, H, T, T).
        told: gold labels, (N, 3) for each relation: sentence, row, column.
        heads: of each relation.
    """
    sentence, row, column = torch.cat(list(told.values())).unbind(1)
    counts = torch.tensor([len(gold) for gold in told.values()])
    layer, head = torch.tensor([heads[relation] for relation in told]).repeat_interleave(counts, dim=0).unbind(1)
    found = weights[layer, sentence, head, row, column]
    return dict(zip(told, found.split(counts.tolist()), strict=True))


def missed(given: Tensor) -> Tensor:
    """−log of what a head gives to gold words, (N,), on average; 0 where there are none."""
    return -given.clamp(min=1e-9).log().mean() if len(given) else given.new_zeros(())


def _looked_back(weights: Tensor, batch: Batch, reads: Reads) -> Tensor:
    """−log of what heads do not give to the first clause, from the pronoun on, summed up for each sentence.

    The pronoun's head may look back, and so may that of repetition from a word that is said again. [BOS] is no way
    round: it may not look at the first clause either. The word before the pronoun has that clause at its left, so above
    layer 0 it counts as a part of it.

    Args:
        weights: (L, B, H, T, T).
        batch: the sentences.
        reads: how.
    """
    bottom, above = _clauses(batch)
    rows = above.any(dim=2)  # (B, T)
    if not bool(rows.any()):
        return weights.new_zeros(())
    hidden = torch.stack([bottom, *[above] * (len(weights) - 1)])  # (L, B, T, T)
    back = (weights * hidden.unsqueeze(2)).sum(dim=-1)  # (L, B, H, T)
    counted = rows[:, :, None, None].expand(*rows.shape, back.shape[0], back.shape[2]).clone()  # (B, T, L, H)
    counted[(..., *HEADS[reads]["pronoun"])] = False
    again = batch.links["repetition"]
    counted[(again[:, 0], again[:, 1], *HEADS[reads]["repetition"])] = False
    looked = back.permute(1, 3, 0, 2)[counted]
    return -(1 - looked).clamp(min=1e-6).log().sum() / rows.any(dim=1).sum()


def _clauses(batch: Batch) -> tuple[Tensor, Tensor]:
    """Say which columns of which rows are the first clause, as it counts in layer 0 and above, (B, T, T) each."""
    B, T = batch.ids.shape
    bottom = torch.zeros(B, T, T, dtype=torch.bool)
    above = bottom.clone()
    for number, (sentence, at) in enumerate(zip(batch.sentences, batch.places, strict=True)):
        if sentence.pronoun is not None:
            pronoun, before = at[sentence.pronoun], at[sentence.pronoun - 1]
            for rows in (slice(0, 1), slice(pronoun, T)):
                bottom[number, rows, 1:before] = True
                above[number, rows, 1 : before + 1] = True
    return bottom & batch.real.unsqueeze(2), above & batch.real.unsqueeze(2)


def _unhidden(gold: Tensor, ids: Tensor) -> Tensor:
    """Leave out labels of words that are hidden."""
    return gold[ids[gold[:, 0], gold[:, 1]] != MASK]
