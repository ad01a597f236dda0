"""The classifier: what a sentence is about, from the mean of its tokens.

Dimensions: B sentences, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import Config
from engine.grammar import TOPICS, WORDS, Sentence, sentences
from engine.presets import Transformer, build, initialise
from engine.training.batches import VOCABULARY, Batch, batch_of
from engine.training.loop import descend
from engine.training.recipe import Measured, Recipe, Say
from engine.transformer import TextClassifier

CONFIG = Config(
    width=32, layers=2, heads=4, feed_forward=64, vocabulary=len(VOCABULARY), positions="sinusoidal",
    norm_place="post", final_norm=False, classes=len(TOPICS), dropout=0.1,
)  # fmt: skip
STEPS = 500
SIZE = 64
SPREAD = 0.1  # of the random weights; small vectors need larger ones to begin with
TESTED = 2000


def topic_batch(drawn: Sequence[Sentence]) -> tuple[Batch, Tensor]:
    """Put sentences side by side with the numbers of their topics, (B,)."""
    return batch_of(drawn, "both ways"), torch.tensor([TOPICS.index(sentence.topic) for sentence in drawn])


def scored(model: Transformer, batch: Batch) -> Tensor:
    """Score every topic, (B, classes)."""
    return cast(TextClassifier, model).logits(model(batch.ids, batch.real), batch.real)


@torch.inference_mode()
def accuracy(model: Transformer, drawn: Sequence[Sentence]) -> float:
    """Say how often the topic with the highest score is the right one."""
    batch, topics = topic_batch(drawn)
    return float((scored(model, batch).argmax(dim=-1) == topics).float().mean())


def train(model: Transformer, seed: int, say: Say) -> Iterator[int]:
    """Train in place on sentences as they come, each seen once; see Train in recipe.py."""
    initialise(model, seed=seed, spread=SPREAD)
    source = sentences("training", seed)
    for step, loss in fitted(model, iter(lambda: list(islice(source, SIZE)), []), STEPS):
        if step % 100 == 0:
            say(f"classifier, step {step} of {STEPS}: loss {loss:.3f}")
        yield step


def fitted(model: Transformer, drawn: Iterator[list[Sentence]], steps: int) -> Iterator[tuple[int, float]]:
    """Take one step on each batch of sentences; yields as `descend` does."""

    def loss_of(step: int) -> Tensor:
        batch, topics = topic_batch(next(drawn))
        return F.cross_entropy(scored(model, batch), topics)

    return descend(model, loss_of, steps)


def measure(model: Transformer) -> Measured:
    """Measure on sentences with pairs of nouns that were in no training sentence."""
    drawn = list(islice(sentences("test", 1000), TESTED))
    untrained = build(TextClassifier, CONFIG, seed=1)
    counts = [sum(sentence.topic == topic for sentence in drawn) for topic in TOPICS]
    scores: dict[str, Any] = {
        "right": round(accuracy(model, drawn), 4),
        "count": TESTED,
        "baselines": {
            "random weights": round(accuracy(untrained, drawn), 4),
            "always the most frequent topic": round(max(counts) / TESTED, 4),
        },
    }
    return Measured(scores, {})


RECIPES = (
    Recipe(
        id="classifier",
        name="Topic classifier",
        make=TextClassifier,
        config=CONFIG,
        data=f"Sentences of a small English grammar with {len(WORDS)} words, drawn at random.",
        objective=f"Say which of {len(TOPICS)} topics a sentence is about, from the mean of its tokens.",
        taught="",
        untaught="Where its heads look was left to itself. It knows these topics and words, and nothing else.",
        steps=STEPS,
        train=train,
        measure=measure,
        words=WORDS,
        labels=TOPICS,
    ),
)
