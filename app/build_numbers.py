"""The numbers of the page Build: counted and measured by the engine, nothing worked out here.

Dimensions: T words read, S keys, L layers, H heads, G key-value heads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from app import cache
from app.build_plan import Make, Plan
from engine import (
    Config,
    EncoderDecoder,
    Mask,
    Preset,
    Prompt,
    ScratchModel,
    Trace,
    build,
    count_parameters,
    number_words,
)
from engine.audit import Audit
from engine.shapes import Step, cache_numbers, nearest, steps

MOST_WORDS = 64
MOST_RUN = 30_000_000  # parameters of a model that is run while somebody waits; beyond, not even one layer is
QUICK_RUN = 16_000_000  # parameters up to which further layers are added to the first
WRITTEN = 4  # words that a decoder writes
OF_OTHER_TEXT = ("keys of the other text", "values of the other text")
FACT_BYTES = 20_000  # what one Facts takes, about


@dataclass(frozen=True)
class Facts:
    """What a plan comes to.

    Attributes:
        steps: everything that is computed for the sentence, with its shape; one layer stands for all. Of an
            encoder–decoder these are its decoder's.
        reading: the same of its encoder; empty for all others.
        parts: parameters by part.
        cached: numbers kept per written token by a cache of keys and values, over all layers; 0 for none.
        crossed: numbers kept beside them per token of the other text, over all layers; 0 without cross-attention.
        cached_multi_head: the same with as many key-value heads as heads.
        neighbour: the known model with the nearest number of parameters.
        neighbour_total: how many it has.
    """

    steps: tuple[Step, ...]
    reading: tuple[Step, ...]
    parts: dict[str, int]
    cached: int
    crossed: int
    cached_multi_head: int
    neighbour: Preset
    neighbour_total: int

    @property
    def total(self) -> int:
        """All parameters."""
        return sum(self.parts.values())


def words_of(text: str, plan: Plan) -> Prompt | None:
    """Read a sentence by words, the first 64 at most and no more than there are learned positions.

    Returns:
        What the model gets; None for a model that reads no text.

    Raises:
        TextError: there is nothing to read.
    """
    if not plan.reads_text:
        return None
    limit = min(MOST_WORDS, plan.places) if plan.word_order == "learned" else MOST_WORDS
    return number_words(text, plan.vocabulary, limit)


def facts_of(plan: Plan, tokens: int) -> Facts:
    """Count and measure a plan for a sentence of so many words, once."""
    make, config = plan.make, plan.config
    return cache.derived(
        ("built", make.__name__, str(config), tokens), lambda: _facts(make, config, tokens), lambda made: FACT_BYTES
    )


def _facts(make: Make, config: Config, tokens: int) -> Facts:
    parts = count_parameters(build(make, config, device="meta"))
    one = replace(config, layers=1, decoder_layers=None)  # all layers are alike: a deep model takes no longer
    made = steps(make, one, tokens)
    other = [prod(step.shape) // tokens for step in made if step.what in OF_OTHER_TEXT]  # for each of its tokens
    return Facts(
        made,
        steps(make, one, tokens, reading=True) if make is EncoderDecoder else (),
        parts,
        config.layers * cache_numbers(make, one),
        config.layers * sum(other),
        config.layers * cache_numbers(make, replace(one, kv_heads=None)),
        *nearest(sum(parts.values())),
    )


@dataclass(frozen=True)
class Drawn:
    """An untrained model's run on the sentence.

    Attributes:
        trace: the run.
        audit: whether the weights drawn are those that the fast kernel used.
        layers: how many of its layers were built.
        written: one trace for each step of writing with a cache, the first for the sentence; empty where nothing is
            written.
        whole: the run on the sentence and all that was written, at once; None where nothing is written.
        difference: the largest difference between a row computed with the cache and the same row of `whole`.
    """

    trace: Trace
    audit: Audit
    layers: int
    written: tuple[Trace, ...] = ()
    whole: Trace | None = None
    difference: float = 0.0

    @property
    def nbytes(self) -> int:
        """Memory that it holds, in bytes."""
        return sum(trace.nbytes for trace in (self.trace, *self.written, *([self.whole] if self.whole else [])))


def drawn(plan: Plan, prompt: Prompt) -> Drawn | None:
    """Run an untrained model on the sentence, once: as many of its layers as are quickly made.

    The vocabulary is cut to the sentence's different words, since no others are read: that decides which random numbers
    these get, and nothing else.

    Returns:
        The run; None where one layer alone is too large.
    """
    vocabulary = len(set(prompt.ids))
    small = replace(plan.config, vocabulary=vocabulary)
    layers = layers_run(plan.make, small)
    if not layers:
        return None
    config = replace(small, layers=layers)
    key = ("untrained", plan.make.__name__, str(config), prompt.text, len(prompt), plan.mask)
    return cache.derived(key, lambda: _run(plan, config, prompt), lambda made: made.nbytes)


def layers_run(make: Make, config: Config) -> int:
    """Count the layers that are quickly made and run; 0 where one alone is too large."""
    first, second = (
        sum(count_parameters(build(make, replace(config, layers=layers), device="meta")).values()) for layers in (1, 2)
    )
    if first > MOST_RUN:
        return 0
    return min(config.layers, 1 + max(0, QUICK_RUN - first) // (second - first))


def _run(plan: Plan, config: Config, prompt: Prompt) -> Drawn:
    model = ScratchModel(
        build(plan.make, config, seed=0),
        lambda text: prompt,
        id="untrained",
        name="Untrained",
        source="random numbers, seed 0",
        licence="none needed",
    )
    target = prompt if plan.family == "both" else None
    trace = model.run_prompt(prompt, target, plan.mask)
    room = WRITTEN if model.card.limit is None else min(WRITTEN, model.card.limit - len(prompt) - 1)
    if not writes(plan) or room < 1:
        return Drawn(trace, trace.audit(), config.layers)
    written = tuple(model.generate(prompt.text, room + 1))
    whole = model.run_prompt(written[-1].prompt, None, Mask.native())
    return Drawn(trace, trace.audit(), config.layers, written, whole, _difference(written, whole))


def writes(plan: Plan) -> bool:
    """Whether the page shows it writing: a decoder alone, with a head, that looks back only."""
    return plan.family == "decoder" and plan.output != "none" and plan.looks_back_only


def _difference(written: tuple[Trace, ...], whole: Trace) -> float:
    """Compare every row of every step with the same row of the run on everything at once."""
    largest = 0.0
    for layer in range(whole.layers()):
        full = whole.weights(layer).numpy()  # (H, S, S)
        for trace in written:
            rows = trace.weights(layer).numpy()  # (H, T, keys so far)
            same = full[:, trace.first : trace.first + rows.shape[1], : rows.shape[2]]
            largest = max(largest, float(np.abs(rows - same).max()))
    return largest
