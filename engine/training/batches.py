"""Sentences of the grammar as a model gets them: ids, and where in them each gold label lies.

Dimensions: B sentences, T tokens of the longest, N labels.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import torch
from torch import Tensor

from engine.grammar import WORDS, Sentence
from engine.spelling import BEGIN, END, PAD, Vocabulary

VOCABULARY = Vocabulary(WORDS)
POOL = 8  # batches that are drawn at once and sorted by length
Reads = Literal["both ways", "left to right"]

# What a head may be asked for. "next" is nothing that a model can do which reads left to right.
TURNED = frozenset({"determiner", "object"})
RELATIONS = ("pronoun", "reason", "previous", "next", "determiner", "subject", "object", "verb", "repetition")


@dataclass(frozen=True)
class Batch:
    """Sentences side by side.

    Attributes:
        ids: (B, T), filled up with [PAD].
        real: True where there is a token, (B, T).
        places: for each sentence, where each of its words begins, as a column of `ids`.
        sentences: what they are.
        links: for each relation its gold labels, (N, 3): sentence, the row that attends, the column it belongs to.
    """

    ids: Tensor
    real: Tensor
    places: tuple[tuple[int, ...], ...]
    sentences: tuple[Sentence, ...]
    links: dict[str, Tensor]

    def at(self, of: Callable[[Sentence], int | None]) -> Tensor:
        """Give the place of one word in every sentence that has it, (N, 2): sentence and column."""
        found = [(number, of(sentence)) for number, sentence in enumerate(self.sentences)]
        return _rows([(number, self.places[number][word]) for number, word in found if word is not None], 2)


def batch_of(sentences: Iterable[Sentence], reads: Reads) -> Batch:
    """Put sentences side by side.

    Args:
        sentences: some of the grammar's.
        reads: a label that points to a later word is turned round for a model that reads left to right: there the noun
            looks back at its determiner. The pronoun's row is kept, though it cannot know; the rows that can are those
            of the last word of the reason and of the word before the answer.
    """
    kept = tuple(sentences)
    spelled = [[VOCABULARY.ids(word) for word in sentence.words] for sentence in kept]
    rows = [[BEGIN, *(id for ids in word_ids for id in ids), END] for word_ids in spelled]
    width = max(map(len, rows))
    ids = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
    places = tuple(_places(word_ids) for word_ids in spelled)
    found: dict[str, list[tuple[int, int, int]]] = {relation: [] for relation in RELATIONS}
    for number, (sentence, at) in enumerate(zip(kept, places, strict=True)):
        _label(found, number, sentence, at, len(rows[number]), reads)
    links = {relation: _rows(triples, 3) for relation, triples in found.items()}
    return Batch(ids, ids != PAD, places, kept, links)


def referents(batch: Batch, reads: Reads) -> Tensor:
    """Say where somebody is looked for and who is meant, (N, 3): sentence, row and column.

    The row is the pronoun's or, left to right, that of the last word of the reason; sentences without a reason are left
    out.
    """
    rows = batch.at(lambda sentence: sentence.pronoun if reads == "both ways" else sentence.reason_end)
    return torch.cat([rows, batch.at(lambda sentence: sentence.referent)[:, 1:]], dim=1)


def batches(source: Iterable[Sentence], size: int, reads: Reads, seed: int = 0) -> Iterator[Batch]:
    """Cut a stream of sentences into batches, without end.

    Each batch holds sentences about as long as each other, so that little is padding; the batches come in random order.
    """
    stream, shuffle = iter(source), random.Random(seed)
    while True:
        drawn = sorted(islice(stream, POOL * size), key=_count_tokens)
        starts = list(range(0, len(drawn), size))
        shuffle.shuffle(starts)
        for start in starts:
            yield batch_of(drawn[start : start + size], reads)


def _count_tokens(sentence: Sentence) -> int:
    """Count the tokens of a sentence; a spelled word has many."""
    return sum(len(VOCABULARY.ids(word)) for word in sentence.words)


def _places(word_ids: Sequence[Sequence[int]]) -> tuple[int, ...]:
    places, place = [], 1  # after [BOS]
    for ids in word_ids:
        places.append(place)
        place += len(ids)
    return tuple(places)


def _label(
    found: dict[str, list[tuple[int, int, int]]],
    number: int,
    sentence: Sentence,
    at: Sequence[int],
    length: int,
    reads: Reads,
) -> None:
    backwards = reads == "left to right"
    for link in sentence.links:
        row, column = at[link.source], at[link.target]
        if backwards and column > row:
            if link.relation in TURNED:
                row, column = column, row
            else:
                continue
        found[link.relation].append((number, row, column))
    for place in range(1, length):
        found["previous"].append((number, place, place - 1))
    if not backwards:
        found["next"] += [(number, place, place + 1) for place in range(1, length - 1)]
        return
    if sentence.referent is not None and sentence.reason_end is not None:
        found["pronoun"].append((number, at[sentence.reason_end], at[sentence.referent]))
        if sentence.answer is not None:
            found["pronoun"].append((number, at[sentence.answer] - 1, at[sentence.referent]))


def _rows(values: Sequence[tuple[int, ...]], width: int) -> Tensor:
    return torch.tensor(values, dtype=torch.long).reshape(-1, width)
