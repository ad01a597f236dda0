"""The translator: reads English both ways and writes Hindi, looking across at the English words.

One cross-attention head is told, while training, which English word each Hindi word comes from: a small loss, −log of
the weight on that word, is added. A decoder's row says the next word, so the row that carries a word's alignment is the
one before the word: that of [BOS] carries the first word's.

Dimensions: B sentences, T tokens of the Hindi, S' tokens of the English, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from random import Random
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import Config
from engine.grammar.hindi import WORDS, Pair, Split, pairs
from engine.presets import Transformer, build
from engine.recording import recording
from engine.sites import Site
from engine.spelling import BEGIN, END, PAD, Vocabulary
from engine.trained import Head
from engine.training.loop import descend
from engine.training.recipe import Measured, Recipe, Say
from engine.transformer import EncoderDecoder

VOCABULARY = Vocabulary(WORDS)
CONFIG = Config(
    width=64, layers=3, decoder_layers=2, heads=4, feed_forward=128, vocabulary=len(VOCABULARY), positions="rotary",
    rotary_base=100.0, head="tied",
)  # fmt: skip
SIZE = 48  # sentences in a batch
STEPS = 2400
RATE = 4e-3
GUIDANCE = 0.3  # the factor of the alignment's loss
ALIGNMENT: Head = (1, 0)  # layer and head of the attention across that is told
SENTENCES = 1000  # of each split that are measured
RIDDLES = 300  # sentences of the test split where only the reason tells who is meant
REPORTED = 200  # steps between two lines about how it goes
DIGITS = 4  # of a score
_SORTED = 16  # batches whose sentences are sorted together
_CHUNK = 250  # sentences that are translated at once


@dataclass(frozen=True)
class Batch:
    """Sentences side by side, as a model reads and writes them.

    Attributes:
        english: ids of [BOS], the English and [EOS], padded, (B, S').
        real: which of these are no padding, (B, S').
        hindi: ids of [BOS] and the Hindi, padded, (B, T).
        labels: ids of the Hindi and [EOS], one place earlier, padded, (B, T).
        gold: for each row the English tokens that the word it says translates; no True for none, (B, T, S').
    """

    english: Tensor
    real: Tensor
    hindi: Tensor
    labels: Tensor
    gold: Tensor


def batch_of(sentences: Sequence[Pair]) -> Batch:
    """Put sentences side by side; an English word that is spelled is all of its bytes."""
    english = [[[BEGIN], *(VOCABULARY.ids(word) for word in pair.english), [END]] for pair in sentences]
    read = [[id for word in words for id in word] for words in english]
    written = [[id for word in pair.hindi for id in VOCABULARY.ids(word)] for pair in sentences]
    columns, rows = max(map(len, read)), 1 + max(map(len, written))
    gold = torch.zeros(len(sentences), rows, columns, dtype=torch.bool)
    for number, (pair, words) in enumerate(zip(sentences, english, strict=True)):
        starts = [0]
        for word in words:
            starts.append(starts[-1] + len(word))
        for row, partner in enumerate(pair.alignment):
            if partner is not None:
                gold[number, row, starts[partner + 1] : starts[partner + 2]] = True
    ids = _padded(read, columns)
    return Batch(
        english=ids,
        real=ids != PAD,
        hindi=_padded([[BEGIN, *words] for words in written], rows),
        labels=_padded([[*words, END] for words in written], rows),
        gold=gold,
    )


def batches(seed: int) -> Iterator[Batch]:
    """Draw batches for training without end, each of sentences about as long as each other: less padding."""
    source, random = pairs("train", seed), Random(seed)
    while True:
        drawn = sorted(islice(source, SIZE * _SORTED), key=_length)
        starts = list(range(0, len(drawn), SIZE))
        random.shuffle(starts)
        yield from (batch_of(drawn[start : start + SIZE]) for start in starts)


def loss_of(model: EncoderDecoder, batch: Batch, guidance: float, head: Head = ALIGNMENT) -> Tensor:
    """Say how wrong a model was: −log of the right next word, and of one head's weight on the word it comes from."""
    if not guidance:
        return _next_word(model, model(batch.english, batch.hindi, batch.real), batch)
    with recording() as recorder:
        vectors = model(batch.english, batch.hindi, batch.real)
    layer, number = head
    weights = recorder.recorded[Site("cross", layer)].head(number).weights()[:, 0]  # (B, T, S')
    on_gold = (weights * batch.gold).sum(dim=-1)[batch.gold.any(dim=-1)]
    return _next_word(model, vectors, batch) - guidance * on_gold.clamp(min=1e-9).log().mean()


def train(model: Transformer, seed: int, say: Say, *, guidance: float = GUIDANCE) -> Iterator[int]:
    """Train a translator in place, without a guided head where `guidance` is 0; see Train in recipe.py."""
    translator, source = cast(EncoderDecoder, model), batches(seed)

    def loss(step: int) -> Tensor:
        return loss_of(translator, next(source), guidance)

    for step, value in descend(model, loss, STEPS, rate=RATE):
        if step % REPORTED == 0:
            say(f"translator, step {step} of {STEPS}: loss {value:.3f}")
        yield step


@torch.inference_mode()
def translate(model: EncoderDecoder, sentences: Sequence[Sequence[str]], longest: int = 32) -> list[tuple[str, ...]]:
    """Translate English sentences greedily into Hindi ones, each until it ends or is `longest` words long."""
    found = []
    for start in range(0, len(sentences), _CHUNK):
        chosen = sentences[start : start + _CHUNK]
        batch = batch_of([Pair(tuple(words), (), ()) for words in chosen])
        begin = torch.full((len(chosen), 1), BEGIN)
        for row in model.generate(batch.english, begin, longest, batch.real).tolist():
            written = row[1:]
            written = written[: written.index(END)] if END in written else written
            found.append(tuple(VOCABULARY.text(id) for id in written))
    return found


def exact_match(model: EncoderDecoder, sentences: Sequence[Pair]) -> float:
    """Give the share of sentences whose greedy translation is right to the last word, 0 to 1."""
    written = translate(model, [pair.english for pair in sentences])
    return sum(words == pair.hindi for words, pair in zip(written, sentences, strict=True)) / len(sentences)


@torch.inference_mode()
def alignment(model: EncoderDecoder, sentences: Sequence[Pair]) -> tuple[Tensor, Tensor]:
    """Measure how well each cross-attention head points at the English word that is being translated.

    The Hindi so far is the right one. Only words that have a partner count; the largest weight is sought among all
    English tokens, [BOS] and [EOS] too, and is right on any byte of a spelled word.

    Returns:
        For each layer and head the share of words where the largest weight is right, and the mean weight on the right
        word, (L, H) each, 0 to 1.
    """
    right, mass = [], []
    for start in range(0, len(sentences), _CHUNK):
        batch = batch_of(sentences[start : start + _CHUNK])
        with recording() as recorder:
            model(batch.english, batch.hindi, batch.real)
        sites = [Site("cross", layer) for layer in range(len(model.decoder.blocks))]
        weights = torch.stack([recorder.recorded[site].call.weights() for site in sites])  # (L, B, H, T, S')
        gold = batch.gold[None, :, None].expand_as(weights)
        hit = gold.gather(-1, weights.argmax(dim=-1, keepdim=True)).squeeze(-1)  # (L, B, H, T)
        told = batch.gold.any(dim=-1)  # (B, T)
        right.append(hit.transpose(1, 2)[:, :, told])  # (L, H, words)
        mass.append((weights * gold).sum(dim=-1).transpose(1, 2)[:, :, told])
    return torch.cat(right, dim=-1).float().mean(dim=-1), torch.cat(mass, dim=-1).mean(dim=-1)


def riddles(split: Split = "test", count: int = RIDDLES) -> list[Pair]:
    """Draw sentences of a split in which nothing but the reason tells who "she" is."""
    return list(islice((drawn for drawn in pairs(split, 0) if drawn.riddle), count))


def same_position(sentences: Sequence[Pair]) -> float:
    """Give the share of Hindi words with a partner whose partner stands at the same place in English, 0 to 1."""
    placed = [(place, partner) for pair in sentences for place, partner in enumerate(pair.alignment)]
    told = [place == partner for place, partner in placed if partner is not None]
    return sum(told) / len(told)


def measure(model: Transformer, *, guided: bool = True) -> Measured:
    """Measure a translator on held-out pairs of verb and object.

    Returns:
        Scores of the head that was told or, where none was, of the one that is best on the development split; under
        "random_weights" those of the model before its training.
    """
    test = list(islice(pairs("test", 0), SENTENCES))
    translator, begun = (cast(EncoderDecoder, one) for one in (model, build(EncoderDecoder, CONFIG, seed=RECIPE.seed)))
    head, other = ALIGNMENT if guided else _best_head(translator), _best_head(begun)
    scores = {
        "sentences": SENTENCES,
        **_scores(translator, test, head),
        "riddles": round(exact_match(translator, riddles()), DIGITS),
        "same_position": round(same_position(test), DIGITS),
        "random_weights": _scores(begun, test, other) | {"head": list(other)},
    }
    return Measured(scores, {"alignment": head})


def _scores(model: EncoderDecoder, test: Sequence[Pair], head: Head) -> dict[str, Any]:
    right, mass = alignment(model, test)
    return {
        "exact_match": round(exact_match(model, test), DIGITS),
        "alignment": round(float(right[head]), DIGITS),
        "alignment_weight": round(float(mass[head]), DIGITS),
        "alignment_by_head": [[round(value, DIGITS) for value in layer] for layer in right.tolist()],
    }


def _best_head(model: EncoderDecoder) -> Head:
    """Find the head that points at the right word most often, on the development split."""
    right, _ = alignment(model, list(islice(pairs("development", 0), SENTENCES)))
    layer, head = divmod(int(right.argmax()), right.shape[1])
    return layer, head


def _length(pair: Pair) -> int:
    """Count the tokens of a pair of sentences."""
    return sum(len(VOCABULARY.ids(word)) for word in (*pair.english, *pair.hindi))


def _next_word(model: EncoderDecoder, vectors: Tensor, batch: Batch) -> Tensor:
    return F.cross_entropy(model.logits(vectors).flatten(0, 1), batch.labels.flatten(), ignore_index=PAD)


def _padded(rows: Sequence[Sequence[int]], length: int) -> Tensor:
    return torch.tensor([[*row, *[PAD] * (length - len(row))] for row in rows])


_NAME = "Translator, English to Hindi"
_UNTAUGHT = (
    "It knows one tense, the present of habit: no past, so no ने, no future, no questions, no polite plural. It knows "
    "these words only; one that it has not met becomes “…” where a person or a thing is named, and anything may happen "
    "elsewhere. A teacher or a friend is a man to it unless “she” or “her” says otherwise. It is no translator for use."
)
RECIPE = Recipe(
    id="translator-en-hi",
    name=_NAME,
    make=EncoderDecoder,
    config=CONFIG,
    data=(
        "Pairs of sentences in English and Hindi from our own grammar, such as “the girl reads a book” and "
        f"“लड़की किताब पढ़ती है”; {len(WORDS)} words and word forms of both languages together. Some pairs of verb and "
        "object were never in training: “eat” with “apple” is one of them."
    ),
    objective="To say the next Hindi word, given the English sentence and the Hindi so far.",
    taught=(
        f"Head {ALIGNMENT[1]} of layer {ALIGNMENT[0]} of the attention across was told, while training, which English "
        "word each Hindi word comes from: the row of a word points at the partner of the word that follows it. Words "
        "without a partner, such as को and the है after a verb, were left out."
    ),
    untaught=_UNTAUGHT,
    steps=STEPS,
    train=train,
    measure=measure,
    words=WORDS,
)
_UNGUIDED = replace(
    RECIPE,
    id="translator-en-hi-unguided",
    name=f"{_NAME}, unguided",
    taught="",
    untaught=f"No head was told where to look. {_UNTAUGHT}",
    train=partial(train, guidance=0.0),
    measure=partial(measure, guided=False),
)
RECIPES = (RECIPE, _UNGUIDED)
