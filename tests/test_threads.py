"""One model, many readers at once: nobody gets another's attention."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from time import sleep
from typing import Any

import pytest
import torch
from torch import Tensor

from engine import Mask
from tests.tiny_models import tiny

THREADS, CALLS = 16, 200
MASKS = (Mask.native(), Mask.causal(), Mask.window(2))
WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "it", "was", "a", "regular", "customer")
TEXTS = tuple(" ".join(WORDS[start : start + length]) for start in range(5) for length in (3, 5, 8))


def fingerprint(text: str, mask: Mask) -> tuple[tuple[int, ...], Tensor]:
    trace = tiny("bert").run(text, mask=mask)
    return trace.prompt.ids, torch.stack([trace.weights(layer) for layer in range(2)])


def test_sixteen_threads_get_what_one_thread_gets():
    """3,200 calls with different texts and masks, all on one model."""
    jobs = [(text, mask) for text in TEXTS for mask in MASKS]
    expected = {job: fingerprint(*job) for job in jobs}
    assert len({ids for ids, _ in expected.values()}) == len(TEXTS)

    def worker(number: int) -> int:
        right = 0
        for call in range(CALLS):
            job = jobs[(number * 7 + call) % len(jobs)]
            ids, weights = fingerprint(*job)
            right += ids == expected[job][0] and torch.equal(weights, expected[job][1])
        return right

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(worker, range(THREADS))) == [CALLS] * THREADS


def test_one_forward_at_a_time_runs_in_a_model_and_two_in_a_process(monkeypatch: pytest.MonkeyPatch):
    """Rotary code of transformers changes a buffer that all calls of a model share."""
    names = ("bert", "gpt2", "llama")
    models = [tiny(name) for name in names]
    running, most, guard = Counter[str](), Counter[str](), Lock()

    def watched(name: str, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def watch(inputs: Any) -> Any:
            with guard:
                running.update([name, "all"])
                most.update({which: 1 for which in (name, "all") if running[which] > most[which]})
            sleep(0.002)
            outputs = call(inputs)
            with guard:
                running.subtract([name, "all"])
            return outputs

        return watch

    for name, model in zip(names, models, strict=True):
        monkeypatch.setattr(model, "_call", watched(name, model._call))
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda number: models[number % 3].run(TEXTS[number % len(TEXTS)]), range(60)))
    assert [most[name] for name in names] == [1, 1, 1]
    assert most["all"] == 2


def test_masks_of_different_threads_differ_in_effect():
    """Otherwise the test above could not tell them apart."""
    _, native = fingerprint(TEXTS[2], MASKS[0])
    _, causal = fingerprint(TEXTS[2], MASKS[1])
    _, window = fingerprint(TEXTS[2], MASKS[2])
    assert not torch.equal(native, causal)
    assert not torch.equal(native, window)
    assert not torch.equal(causal, window)
