"""One measurement in a process of its own: `python -m tests.benchmarks.child WHAT TOKENS REPEATS` prints JSON.

The peak is what the process held at most while it ran, above what it held with the model ready; Linux forgets the peaks
before when it is told to. Threads are all that the machine has.

Dimensions: H heads, T queries, S keys.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from time import perf_counter, process_time

import torch
from transformers import GPT2Config, GPT2Model, PreTrainedModel

from engine.backend import Walk, guided
from engine.card import Card
from engine.masks import Mask
from engine.probe import probe
from engine.recording import Recorder, recording
from engine.sites import Kind, Site
from engine.tokens import Prompt, Token
from engine.trace import Trace
from tests.benchmarks.peaks import forget_peaks, held_bytes, peak_bytes

LONGEST = 4096


def model(attention: str) -> PreTrainedModel:
    """Make a GPT-2 of full size with random weights and room for 4,096 tokens."""
    torch.manual_seed(0)
    made: PreTrainedModel = GPT2Model(GPT2Config(n_positions=LONGEST, use_cache=False)).eval()
    made.set_attn_implementation(attention)
    return made


def recorded(tokens: int) -> Callable[[], object]:
    """A run whose attention is recorded."""
    module, ids = model("sdpa"), _ids(tokens)
    plan = probe(module).plan

    def run() -> Recorder:
        walk = Walk(plan)
        with torch.inference_mode(), guided(walk), recording(Mask.native(), {}) as recorder:
            module(ids)
        walk.finish()
        return recorder

    return run


def plain(tokens: int) -> Callable[[], object]:
    """The same model as transformers runs it."""
    module, ids = model("sdpa"), _ids(tokens)

    @torch.inference_mode()
    def run() -> object:
        return module(ids)

    return run


def eager(tokens: int) -> Callable[[], object]:
    """The usual way to see attention: every layer's weights, kept and returned."""
    module, ids = model("eager"), _ids(tokens)

    @torch.inference_mode()
    def run() -> object:
        return module(ids, output_attentions=True)

    return run


def head(tokens: int) -> Callable[[], object]:
    """One head's weights, exactly, from a run that is done."""
    trace = _trace(recorded(tokens)(), tokens)
    return lambda: trace.weights(6, 3)


def overview(tokens: int) -> Callable[[], object]:
    """A thumbnail of each of the 144 heads, from a run that is done."""
    trace = _trace(recorded(tokens)(), tokens)
    return trace.overview


KINDS = {"recorded": recorded, "plain": plain, "eager": eager, "head": head, "overview": overview}


def in_pairs(tokens: int, repeats: int) -> dict[str, list[float]]:
    """Run the model recorded and plain in turns; give the quotients of their processor times, round by round.

    What is kept needs fresh memory, which the system hands out page by page: "whole" counts its time too, "own" does
    not.
    """
    runs = recorded(tokens), plain(tokens)
    rounds = [[_worked(run) for run in runs] for _ in range(repeats + 1)][1:]  # the first one warms up
    return {
        "whole": [sum(ours) / sum(theirs) for ours, theirs in rounds],
        "own": [ours[0] / theirs[0] for ours, theirs in rounds],
    }


def _worked(run: Callable[[], object]) -> tuple[float, float]:
    """Give a run's processor time in seconds: its own, and the system's for it."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    kept = run()
    after = resource.getrusage(resource.RUSAGE_SELF)
    del kept
    return after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime


def main() -> int:
    """Run one kind several times, print its seconds and its peak in bytes."""
    what, tokens, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if what == "pair":
        print(json.dumps(in_pairs(tokens, repeats)))
        return 0
    run = KINDS[what](tokens)
    forget_peaks()
    before = held_bytes()  # before anything ran: later, an allocator may hold what a run has given back
    if repeats > 1:
        run()  # the first one warms up
    clock, processor = [], []
    for _ in range(repeats):
        started, worked = perf_counter(), process_time()
        kept = run()
        clock.append(perf_counter() - started)
        processor.append(process_time() - worked)
        del kept
    print(json.dumps({"clock": clock, "processor": processor, "peak": peak_bytes() - before}))
    return 0


def _ids(tokens: int) -> torch.Tensor:
    return torch.randint(0, 50_000, (1, tokens), generator=torch.Generator().manual_seed(1))


def _trace(recorder: object, tokens: int) -> Trace:
    """Wrap what was recorded in a trace, as the app holds it."""
    if not isinstance(recorder, Recorder):
        raise TypeError("Only a recorded run leaves a trace.")
    prompt = Prompt("", None, tuple(Token("x", "x", 0, None, False, None, None) for _ in range(tokens)), (), (), tokens)
    kinds: tuple[Kind, ...] = ("decoder",)
    card = Card(
        "gpt2", "GPT-2", "gpt2", kinds, 12, 12, 12, (None,) * 12, "learned", 0, LONGEST, "", "", "sdpa", "", "cpu",
        "float32",
    )  # fmt: skip
    if Site("decoder", 11) not in recorder.recorded:
        raise RuntimeError("Not every layer was recorded.")
    return Trace(card, prompt, None, Mask.native(), recorder.recorded, 0.0)


if __name__ == "__main__":
    sys.exit(main())
