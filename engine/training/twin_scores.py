"""What the twins have learned: every head and every relation, chosen on one split and reported on another.

Baselines stand beside each number: the most recent noun, always the giver, always equally far, the best head of random
weights.

Dimensions: L layers, H heads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from engine.grammar import REASON_FRAMES, Sentence, Split, parse, sentences
from engine.interventions import Silence
from engine.presets import Transformer
from engine.recording import recording
from engine.sites import Kind
from engine.trained import Head
from engine.training.batches import VOCABULARY, Batch, Reads, batch_of, referents
from engine.training.heads import Followed, equally_far, followed, joint, preferred, weights_of

PER_FRAME = 300  # sentences of each frame with a reason, in each split
MIXED = 600  # sentences of all frames, for the other relations
SEED = 1000  # of the sentences that are measured on
HEADLINES = {
    "The shopkeeper gave the customer a discount because she was a regular": "customer",
    "The shopkeeper gave the customer a discount because she was generous": "shopkeeper",
}


@dataclass(frozen=True)
class Material:
    """The sentences of one split: for each frame with a reason, and of all frames."""

    frames: dict[str, Batch]
    mixed: Batch


def material(split: Split, reads: Reads, per_frame: int = PER_FRAME, mixed: int = MIXED) -> Material:
    """Draw the sentences of a split; those of a frame are decided by the reason alone, and nothing follows it."""
    frames = {
        frame.name: batch_of(islice(sentences(split, SEED, frame=frame.name, reason=True), per_frame), reads)
        for frame in REASON_FRAMES
    }
    return Material(frames, batch_of(islice(sentences(split, SEED), mixed), reads))


class Examined:
    """One model on one split, with everything that is counted of it, when it is asked for."""

    def __init__(self, model: Transformer, reads: Reads, held: Material) -> None:
        self.model, self.reads, self.held = model, reads, held
        self.kind: Kind = "encoder" if reads == "both ways" else "decoder"

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """The attention of each frame's sentences."""
        return {name: weights_of(self.model, batch, self.kind) for name, batch in self.held.frames.items()}

    @cached_property
    def pronoun(self) -> dict[str, Followed]:
        """For each frame, how heads find who is meant: at the pronoun, or left to right at the end of the reason."""
        return {
            name: followed(self.weights[name], referents(batch, self.reads)) for name, batch in self.held.frames.items()
        }

    @cached_property
    def others(self) -> dict[str, Followed]:
        """How heads follow the other relations, over all frames."""
        weights = weights_of(self.model, self.held.mixed, self.kind)
        links = {name: labels for name, labels in self.held.mixed.links.items() if name != "pronoun" and len(labels)}
        return {name: followed(weights, labels) for name, labels in links.items()}

    @property
    def relations(self) -> dict[str, Followed]:
        """All relations, the pronoun over all frames."""
        return {"pronoun": joint(list(self.pronoun.values())), **self.others}

    def at_the_pronoun(self, head: Head) -> float:
        """How often a head, at the pronoun, gives the person meant more than the other one: half the time is chance."""
        shares = []
        for name, batch in self.held.frames.items():
            labels, others = referents(batch, "both ways"), batch.at(lambda sentence: sentence.other)[:, 1]
            shares.append(preferred(self.weights[name], labels[:, :2], labels[:, 2], others)[head])
        return float(torch.stack(shares).mean())

    def said(self, silenced: Head | None = None) -> dict[str, float]:
        """For each frame, how often the model itself names who is meant, of all its words; with a head silenced."""
        return {name: self._named(batch, silenced) for name, batch in self.held.frames.items()}

    @torch.inference_mode()
    def _named(self, batch: Batch, silenced: Head | None) -> float:
        held, (sentence, place), gold = asked(batch, self.reads)
        silences = () if silenced is None else (Silence(*silenced),)
        with recording(silenced=silences):
            vectors = self.model(held.ids, held.real)
        words = self.model.logits(vectors[sentence, place]).argmax(dim=-1)
        return float((words == gold).float().mean())


def asked(batch: Batch, reads: Reads) -> tuple[Batch, tuple[Tensor, Tensor], Tensor]:
    """Ask who is meant: at the pronoun or, left to right, after ", so the".

    Returns:
        What is read; where the answer is looked at, sentence and column; and the ids that are right.
    """
    if reads == "left to right":
        batch = batch_of([_continued(sentence) for sentence in batch.sentences], reads)
        where = batch.at(lambda sentence: len(sentence.words) - 1)
    else:
        where = batch.at(lambda sentence: sentence.pronoun)
    names = [sentence.words[sentence.referent or 0] for sentence in batch.sentences]
    return batch, (where[:, 0], where[:, 1]), torch.tensor([VOCABULARY.ids(name)[0] for name in names])


def _continued(sentence: Sentence) -> Sentence:
    """Go on with ", so the", or ", so" before a name, as far as the answer does."""
    words = sentence.words[:-1] if sentence.words[-1] == "." else sentence.words
    determined = any(link.relation == "determiner" and link.target == sentence.referent for link in sentence.links)
    return replace(sentence, words=(*words, ",", "so", *(["the"] if determined else [])))


def report(model: Transformer, reads: Reads, untrained: Transformer, per_frame: int = PER_FRAME) -> dict[str, Any]:
    """Measure a twin: heads are chosen on the development split, and everything is reported on the test split.

    Args:
        model: one of the twins.
        reads: how it reads.
        untrained: the same with random weights, for a baseline.
        per_frame: sentences of each frame.
    """
    chosen = Examined(model, reads, material("development", reads, per_frame))
    tested = Examined(model, reads, material("test", reads, per_frame))
    random, held = Examined(untrained, reads, chosen.held), Examined(untrained, reads, tested.held)
    relations = {}
    for name, found in tested.relations.items():
        head, luck = chosen.relations[name].best, random.relations[name].best
        relations[name] = _told(found, head) | {
            "development": _share(chosen.relations[name].right[head]),
            "baselines": _baselines(name, chosen.held, tested.held, reads)
            | {"random weights, best head": _share(held.relations[name].right[luck])},
        }
    pronoun = chosen.relations["pronoun"].best
    relations["pronoun"]["frames"] = {
        name: _told(found, pronoun, every=False) for name, found in tested.pronoun.items()
    }
    spoken, silent = tested.said(), tested.said(pronoun)
    answer = {
        "right": _mean(spoken), "with the pronoun's head silenced": _mean(silent),
        "frames": {name: [_share(spoken[name]), _share(silent[name])] for name in spoken},
    }  # fmt: skip
    told: dict[str, Any] = {"relations": relations, "answer": answer, "headlines": headlines(model, reads, pronoun)}
    if reads == "left to right":
        told["at the pronoun itself, of the two"] = _share(tested.at_the_pronoun(pronoun))
    return told


def headlines(model: Transformer, reads: Reads, head: Head) -> dict[str, dict[str, Any]]:
    """Say where a head looks in the two opening sentences, and how much it gives each person."""
    found = {}
    for text, meant in HEADLINES.items():
        sentence = parse(text)
        if sentence is None or sentence.candidates is None:
            continue
        batch = batch_of([sentence], reads)
        weights = weights_of(model, batch, "encoder" if reads == "both ways" else "decoder")
        row = int(referents(batch, reads)[0, 1])
        weight = weights[head[0], 0, head[1], row]  # (T,)
        people = {sentence.words[place]: _share(weight[batch.places[0][place]]) for place in sentence.candidates}
        top = int(batch.ids[0, int(weight.argmax())])
        found[text] = {"meant": meant, "looks at": VOCABULARY.text(top), **people}
    return found


def _baselines(name: str, development: Material, test: Material, reads: Reads) -> dict[str, float]:
    if name != "pronoun":
        distance, right = equally_far(development.mixed.links[name], test.mixed.links[name])
        return {f"always {abs(distance)} {'back' if distance < 0 else 'on'}": _share(right)}
    every = [sentence for batch in test.frames.values() for sentence in batch.sentences]
    recent = [max(sentence.candidates or (0,)) == sentence.referent for sentence in every]
    giver = [(sentence.candidates or (0,))[0] == sentence.referent for sentence in every]
    return {
        "most recent of the two": _share(sum(recent) / len(every)),
        "always who gives or acts": _share(sum(giver) / len(every)),
    }


def _told(found: Followed, head: Head, *, every: bool = True) -> dict[str, Any]:
    told: dict[str, Any] = {
        "head": list(head), "right": _share(found.right[head]), "weight": _share(found.weight[head]),
        "count": found.count,
    }  # fmt: skip
    return told | {"every head": [[_share(one) for one in row] for row in found.right]} if every else told


def _share(value: float | Tensor) -> float:
    return round(float(value), 3)


def _mean(shares: dict[str, float]) -> float:
    return _share(sum(shares.values()) / len(shares))
