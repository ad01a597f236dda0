"""The task "who is she?", to be watched: a small model learns whom a pronoun means, taught where to look or not.

It reads sentences of the grammar in which somebody gives, and at every word it is to say that word; only at the pronoun
it is to say who is meant: "The shopkeeper gave the customer a discount because she was a regular". Taught, one head of
the last layer is also told, by a small loss, to look at that person. What is measured is measured on pairs of people
that it has never met together.

Dimensions: B sentences, L layers, H heads, T tokens, V vocabulary.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.errors import TextError
from engine.grammar import REASON_FRAMES, Sentence, Split, lexicon, parse, sentences
from engine.interventions import Silence
from engine.presets import initialise
from engine.recording import recording
from engine.sites import Site
from engine.trained import Head
from engine.training.adam import Adam
from engine.training.batches import VOCABULARY, Batch, Reads, batch_of, referents
from engine.training.heads import followed, weights_of
from engine.training.loop import CLIP
from engine.training.twins import CONFIG, missed
from engine.transformer import Encoder

READS: Reads = "both ways"
TAUGHT: Head = (CONFIG.layers - 1, 0)
GUIDANCE = 0.5  # of the loss that tells the head where to look
REPEATING = 0.3  # of the loss of saying all other words
GIVING = REASON_FRAMES[:3]  # the kinds of sentences in which somebody gives
PER_FRAME = 11  # sentences in a batch
TESTED_PER_FRAME = 24  # each of them twice, with either reason
SIGMAS = 2  # within which chance stays in 95 of 100 cases
TEST_SEED = 2000
WARMUP = 50  # steps until the whole rate
STRIDE = 1_000_003  # the batches of two seeds share no step
SHOWN = "The shopkeeper gave the customer a discount because she was a regular"


@dataclass(frozen=True)
class Referent:
    """What is chosen about a model that learns whom a pronoun means.

    Attributes:
        taught: whether a head is told where to look.
        rate: how far a step goes: Adam's learning rate, after the first steps.
        seed: decides the random weights and the sentences.
    """

    kind: ClassVar[str] = "pronoun"

    taught: bool = True
    rate: float = 3e-3
    seed: int = 0

    @property
    def tokens(self) -> tuple[str, ...]:
        """The sentence that the maps are drawn on."""
        return tuple(VOCABULARY.text(id) for id in shown().ids[0].tolist())

    def task(self) -> ReferentTask:
        """Make the untrained model with its random weights."""
        return ReferentTask(self)


class ReferentTask:
    """A model that learns whom a pronoun means; a Task, see engine/training/task.py."""

    def __init__(self, setting: Referent) -> None:
        self.setting = setting
        self.model = Encoder(CONFIG)
        initialise(self.model, seed=setting.seed)
        self.adam = Adam(self.model, betas=(0.9, 0.98), decay=0.01)

    def step(self) -> float:
        """Learn from the sentences of this step, and give the loss of the answer in bits."""
        setting, steps = self.setting, self.adam.steps
        batch = batch_of(_drawn("training", setting.seed * STRIDE + steps, PER_FRAME), READS)
        with recording() as recorder:
            vectors = self.model(batch.ids, batch.real)
        scores, wanted = self.model.logits(vectors), _answers(batch)
        gold = referents(batch, READS)
        sentence, row, _ = gold.unbind(1)
        answer = F.cross_entropy(scores[sentence, row], wanted[sentence, row])
        loss = answer + REPEATING * F.cross_entropy(scores[batch.real], wanted[batch.real])
        if setting.taught:
            weights = recorder.recorded[Site("encoder", TAUGHT[0])].head(TAUGHT[1]).weights()[:, 0]  # (B, T, T)
            loss = loss + GUIDANCE * missed(weights[tuple(gold.unbind(1))])
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.adam.step(setting.rate * min(1.0, (steps + 1) / WARMUP))
        return answer.item() / math.log(2)

    @torch.no_grad()
    def scores(self) -> dict[str, float]:
        """Measure on pairs of people that no training sentence has.

        Returns:
            "loss" in bits; "answer": how often the person meant gets more than the other one, and "silenced", how often
            without the head that may be taught; per head "pronoun 2.0", how often it gives that person the most weight
            of all tokens.
        """
        batch = held_out()
        with recording() as recorder:
            loss, answer = self._answered(batch)
        with recording(silenced=(Silence(*TAUGHT),)):
            _, silenced = self._answered(batch)
        layers = [recorder.recorded[Site("encoder", layer)].call.weights() for layer in range(CONFIG.layers)]
        shares = followed(torch.stack(layers), referents(batch, READS)).right.tolist()  # (L, H)
        return {"loss": loss, "answer": answer, "silenced": silenced} | {
            f"pronoun {layer}.{head}": share for layer, row in enumerate(shares) for head, share in enumerate(row)
        }

    def _answered(self, batch: Batch) -> tuple[float, float]:
        """Give the loss of the answers in bits, and the share of them that is right."""
        sentence, row, _ = referents(batch, READS).unbind(1)
        vectors = self.model(batch.ids, batch.real)
        scores, (right_one, other) = self.model.logits(vectors[sentence, row]), _people(batch)  # (B, V)
        right = scores.gather(1, right_one[:, None]) > scores.gather(1, other[:, None])
        return F.cross_entropy(scores, right_one).item() / math.log(2), right.float().mean().item()

    def maps(self) -> Tensor:
        """Give every head's attention on the opening sentence, (L, H, T, T)."""
        return weights_of(self.model, shown(), "encoder")[:, 0].clone()

    def state(self) -> dict[str, Tensor]:
        """Give copies of the weights and of what Adam remembers."""
        return self.adam.state()

    def restore(self, state: Mapping[str, Tensor], steps: int) -> None:
        """Go back to what was given after so many steps."""
        self.adam.restore(state, steps)


@lru_cache(maxsize=1)
def held_out() -> Batch:
    """Give the sentences that the scores are measured on: each is followed by the one with the opposite reason."""
    drawn = _drawn("development", TEST_SEED, TESTED_PER_FRAME)
    return batch_of([one for sentence in drawn for one in (sentence, opposite(sentence))], READS)


def opposite(sentence: Sentence) -> Sentence:
    """Give the same sentence with a reason that speaks of the other person, in the same tense.

    Raises:
        TextError: no reason decides whom its pronoun means, or none speaks of the other one.
    """
    frame = next((frame for frame in GIVING if frame.name == sentence.frame), None)
    if frame is None or sentence.pronoun is None or sentence.reason_end is None:
        raise TextError(f"“{sentence.text}” has no reason that could be turned round.")
    start, end = sentence.pronoun + 1, sentence.reason_end + 1
    said = " ".join(sentence.words[start:end])
    own, others = (frame.of_a, frame.of_b) if frame.points[said] == "A" else (frame.of_b, frame.of_a)
    agreeing = lexicon.for_they if sentence.words[sentence.pronoun] == "they" else str
    is_past = said in map(agreeing, own)
    reason = agreeing(_one_of(others, sentence) if is_past else lexicon.present(_one_of(others, sentence)))
    turned = parse(" ".join((*sentence.words[:start], reason, *sentence.words[end:])))
    if turned is None or turned.referent == sentence.referent:
        raise TextError(f"“{sentence.text}” means the same person whatever the reason.")
    return turned


def _one_of(reasons: Sequence[str], sentence: Sentence) -> str:
    return random.Random(sentence.text).choice(reasons)


def strays(count: int) -> float:
    """Say how far from a half chance alone takes the share of right answers: two standard deviations of a fair coin.

    Args:
        count: of the answers, each one of two.
    """
    return SIGMAS * math.sqrt(0.25 / count)


@lru_cache(maxsize=1)
def shown() -> Batch:
    """Give the sentence that the maps are drawn on."""
    sentence = parse(SHOWN)
    return batch_of([] if sentence is None else [sentence], READS)


def shown_cell() -> tuple[int, int]:
    """Say where the pronoun of that sentence stands, and who it is."""
    _, row, column = referents(shown(), READS)[0].tolist()
    return row, column


def _drawn(split: Split, seed: int, per_frame: int) -> list[Sentence]:
    """Draw sentences whose people are words that the model knows; others are spelled, and it could not name them."""
    found: list[Sentence] = []
    for frame in GIVING:
        found += islice(_nameable(sentences(split, seed, frame=frame.name, reason=True)), per_frame)
    return found


def _nameable(source: Iterable[Sentence]) -> Iterable[Sentence]:
    for sentence in source:
        if all(len(VOCABULARY.ids(sentence.words[place])) == 1 for place in sentence.candidates or ()):
            yield sentence


def _answers(batch: Batch) -> Tensor:
    """Give what is to be said at each token: itself, and at the pronoun who is meant, (B, T)."""
    sentence, row, column = referents(batch, READS).unbind(1)
    wanted = batch.ids.clone()
    wanted[sentence, row] = batch.ids[sentence, column]
    return wanted


def _people(batch: Batch) -> tuple[Tensor, Tensor]:
    """Give the word for the person who is meant in each sentence, and for the other one, (B,) each."""
    sentence, _, column = referents(batch, READS).unbind(1)
    return batch.ids[sentence, column], batch.ids[sentence, batch.at(lambda sentence: sentence.other)[:, 1]]
