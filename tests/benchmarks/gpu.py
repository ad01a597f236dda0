"""What recording costs on a GPU: a Llama-shaped stack with grouped heads, in bfloat16, up to 128 k tokens.

Times are of a synchronised device, with the first round left out; peaks are the device's own count. Eager attention is
run only where its matrices fit.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from time import perf_counter

import torch
from torch import Tensor

from engine import Config, Decoder, attention_weights, build, recording
from engine.recording import Recorder
from engine.sites import Site
from tests.benchmarks.rows import Row

PART = "gpu"
LENGTHS = (4_096, 16_384, 65_536, 131_072)
REPEATS = 3
STACK = Config(
    width=2048, layers=4, heads=32, kv_heads=8, feed_forward=5632, vocabulary=1000, positions="rotary", norm="rms",
    activation="swiglu", bias=False,
)  # fmt: skip
FITS = 0.7  # of the free memory


def long_texts(lengths: tuple[int, ...] = LENGTHS) -> list[Row]:
    """Measure recorded against plain runs, one head's rows, and eager weights where they fit."""
    if not torch.cuda.is_available():
        return [Row(PART, "left out: there is no GPU", 0.0, "runs")]
    model = build(Decoder, STACK).to("cuda", torch.bfloat16)
    rows: list[Row] = []
    for tokens in lengths:
        ids = torch.randint(0, STACK.vocabulary, (1, tokens), device="cuda")
        plain, plain_peak = _measured(lambda ids=ids: model(ids))  # type: ignore[misc]
        ours, our_peak = _measured(lambda ids=ids: _recorded(model, ids))  # type: ignore[misc]
        rows += [
            Row(PART, "plain run", plain * 1000, "ms", tokens),
            Row(PART, "recorded run", ours * 1000, "ms", tokens),
            Row(PART, "recorded over plain, time", ours / plain, "×", tokens, aim=1.05),
            Row(PART, "recorded run, peak per token", our_peak / tokens / 1000, "KB", tokens),
            Row(PART, "recorded over plain, peak", our_peak / plain_peak, "×", tokens),
            *_looking(model, ids, ours),
        ]
    return rows


def _recorded(model: Callable[[Tensor], Tensor], ids: Tensor) -> Recorder:
    with recording() as recorder:
        model(ids)
    return recorder


def _looking(model: Callable[[Tensor], Tensor], ids: Tensor, run: float) -> list[Row]:
    """Measure one head's weights on 256 rows, and all weights of all layers where they fit."""
    tokens = ids.shape[1]
    with torch.inference_mode():
        held = _recorded(model, ids).recorded[Site("decoder", 0)]
    chosen = torch.linspace(0, tokens - 1, 256, device="cuda").long()
    seconds, _ = _measured(lambda: held.weights(3, chosen))
    rows = [Row(PART, "256 rows of one head over the run", seconds / run, "×", tokens, aim=0.03)]
    needed = 3 * STACK.heads * tokens**2 * 4
    if needed < FITS * torch.cuda.mem_get_info()[0]:
        call = held.call
        seconds, peak = _measured(lambda: attention_weights(call.q, call.k, mask=call.visibility))
        rows.append(Row(PART, "one layer's weights, all heads: peak", peak / 1e6, "MB", tokens))
        rows.append(Row(PART, "one layer's weights, all heads: time over the run", seconds / run, "×", tokens))
    return rows


@torch.inference_mode()
def _measured(run: Callable[[], object]) -> tuple[float, int]:
    """Give the median seconds and the peak bytes above what was held before."""
    run()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before, seconds = torch.cuda.memory_allocated(), []
    for _ in range(REPEATS):
        start = perf_counter()
        kept = run()
        torch.cuda.synchronize()
        seconds.append(perf_counter() - start)
        del kept
    return statistics.median(seconds), torch.cuda.max_memory_allocated() - before
