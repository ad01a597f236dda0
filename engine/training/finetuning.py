"""Fine-tuning against training from scratch: the same few sentences, three ways.

    frozen      a linear head on MiniLM, whose weights stay as they are
    unfrozen    the same head, and then MiniLM's layers as well
    scratch     our own classifier from random weights

All are shown the same sentences of the grammar with their topics, and measured on sentences with other pairs of nouns.

Dimensions: B sentences, T tokens, C model width.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.catalogue import load_huggingface
from engine.grammar import TOPICS, Sentence, sentences
from engine.huggingface import HuggingFaceModel
from engine.presets import build, initialise
from engine.training.classifier import CONFIG, SPREAD, accuracy, fitted
from engine.training.finetuned import Curves
from engine.training.loop import descend, one_thread
from engine.training.recipe import Say
from engine.transformer import TextClassifier, sentence_embedding

COUNTS = (22, 55, 110, 220, 440)  # sentences shown: two of each topic and more
TESTED = 440
SIZE, AT_ONCE = 22, 44  # sentences in a batch, and read at once while measuring
SCRATCH_STEPS, HEAD_STEPS, UNFROZEN_EPOCHS = 600, 200, 3
HEAD_RATE, UNFROZEN_RATE = 3e-2, 1e-4


@dataclass(frozen=True)
class Read:
    """Sentences as MiniLM gets them, with the numbers of their topics."""

    ids: Tensor  # (B, T)
    real: Tensor  # (B, T)
    topics: Tensor  # (B,)


def drawn(split: str, count: int, seed: int) -> list[Sentence]:
    """Draw sentences, the same number of each topic."""
    wanted = {topic: count // len(TOPICS) for topic in TOPICS}
    found = []
    for sentence in sentences("test" if split == "test" else "training", seed):
        if wanted[sentence.topic]:
            wanted[sentence.topic] -= 1
            found.append(sentence)
        if not any(wanted.values()):
            break
    random.Random(seed).shuffle(found)
    return found


def _tested() -> list[Sentence]:
    """Draw the sentences that are measured on, the shortest first: less padding."""
    return sorted(drawn("test", TESTED, 1), key=lambda sentence: len(sentence.text))


def curves(seed: int = 0, say: Say = lambda line: None) -> Curves:
    """Train all three on growing numbers of sentences."""
    with one_thread(seed):
        minilm = load_huggingface("minilm", device="cpu")
        test, pool = _tested(), drawn("training", COUNTS[-1], seed)
        read, seen = _read(minilm, test), _read(minilm, pool)
        vectors, tested = embedded(minilm.module, seen), embedded(minilm.module, read)
        told: dict[str, list[float]] = {"frozen": [], "unfrozen": [], "scratch": []}
        for count in COUNTS:
            head = _head(vectors[:count], seen.topics[:count], seed)
            told["frozen"].append(_right(head(tested), read.topics))
            told["unfrozen"].append(_unfrozen(minilm.module, head, seen, read, count))
            told["scratch"].append(_scratch(pool[:count], test, seed))
            say(f"{count} sentences: " + ", ".join(f"{name} {values[-1]:.3f}" for name, values in told.items()))
    return Curves(COUNTS, TESTED, seed, {way: tuple(shares) for way, shares in told.items()})


def frozen(count: int, seed: int = 0) -> float:
    """Train a head on MiniLM's vectors of so many sentences; return the share of test sentences that it gets right."""
    with one_thread(seed):
        minilm = load_huggingface("minilm", device="cpu")
        seen, test = _read(minilm, drawn("training", COUNTS[-1], seed)), _read(minilm, _tested())
        head = _head(embedded(minilm.module, seen)[:count], seen.topics[:count], seed)
        return _right(head(embedded(minilm.module, test)), test.topics)


def embedded(module: nn.Module, read: Read) -> Tensor:
    """Give MiniLM's vector of each sentence, the mean of its tokens, (B, C)."""
    with torch.inference_mode():
        parts = [_vectors(module, read.ids[at], read.real[at]) for at in torch.arange(len(read.ids)).split(AT_ONCE)]
    return torch.cat(parts).clone()


def _vectors(module: nn.Module, ids: Tensor, real: Tensor) -> Tensor:
    longest = int(real.sum(dim=1).max())
    ids, real = ids[:, :longest], real[:, :longest]
    last = module(input_ids=ids, attention_mask=real.long()).last_hidden_state
    return sentence_embedding(last, real)


def _head(vectors: Tensor, topics: Tensor, seed: int) -> nn.Linear:
    head = nn.Linear(vectors.shape[1], len(TOPICS))
    initialise(head, seed=seed)
    for _ in descend(head, lambda step: F.cross_entropy(head(vectors), topics), HEAD_STEPS, rate=HEAD_RATE):
        continue
    return head


def _unfrozen(pretrained: nn.Module, head: nn.Linear, seen: Read, test: Read, count: int) -> float:
    """Go on from a trained head with MiniLM's layers unfrozen; its embeddings stay as they are."""
    module = deepcopy(pretrained)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_("encoder.layer" in name)
    both = _Both(module, head)
    steps = UNFROZEN_EPOCHS * -(-count // SIZE)

    def loss_of(step: int) -> Tensor:
        both.eval()  # no dropout: on a few sentences it makes the figures noisy
        rows = torch.arange(step * SIZE, (step + 1) * SIZE) % count
        return F.cross_entropy(both(seen.ids[rows], seen.real[rows]), seen.topics[rows])

    for _ in descend(both, loss_of, steps, rate=UNFROZEN_RATE, warmup=min(10, steps // 4)):
        continue
    with torch.inference_mode():
        return _right(head(embedded(module, test)), test.topics)


class _Both(nn.Module):
    """MiniLM with a linear head on the mean of its tokens."""

    def __init__(self, module: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.module, self.head = module, head

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        """Score every topic, (B, classes)."""
        return cast(Tensor, self.head(_vectors(self.module, ids, real)))


def _scratch(shown: Sequence[Sentence], test: Sequence[Sentence], seed: int) -> float:
    model = build(TextClassifier, CONFIG, seed=seed)
    initialise(model, seed=seed, spread=SPREAD)
    for _ in fitted(model, _again(list(shown)), SCRATCH_STEPS):
        continue
    return round(accuracy(model, test), 4)


def _again(shown: list[Sentence]) -> Iterator[list[Sentence]]:
    """Show the same sentences over and over, a batch at a time."""
    while True:
        for start in range(0, len(shown), SIZE):
            yield list(islice(shown, start, start + SIZE))


def _read(minilm: HuggingFaceModel, shown: Sequence[Sentence]) -> Read:
    encoded = minilm.tokenizer([sentence.text for sentence in shown], padding=True, return_tensors="pt")
    topics = torch.tensor([TOPICS.index(sentence.topic) for sentence in shown])
    return Read(encoded["input_ids"], encoded["attention_mask"].bool(), topics)


def _right(scores: Tensor, topics: Tensor) -> float:
    return round(float((scores.argmax(dim=-1) == topics).float().mean()), 4)
