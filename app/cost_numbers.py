"""The numbers of the page Cost: all of them the engine's; here they are only asked for and put side by side.

Dimensions: L layers, N lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app import cache
from app.cost_plan import CostPlan
from app.view_cost import MOST_TOKENS
from engine import EncoderDecoder, ShapeError
from engine.activations import activation_bytes
from engine.cost import (
    Job,
    Part,
    flash_bytes,
    flops,
    kv_cache_bytes,
    overtaking,
    parameter_bytes,
    score_bytes,
    score_bytes_at_once,
    softmax_steps,
)
from engine.sizes import Sizes

BOOK = 120_000  # tokens: a novel of some 90,000 English words
STEPS = 10  # lengths in each power of ten, on the curves
PARTS: dict[str, tuple[Part, ...]] = {
    "patches": ("embedding",),
    "projections": ("projections",),
    "scores + mixing": ("scores", "mixing"),
    "feed-forward": ("feed-forward",),
    "head": ("head",),
}
QUADRATIC = "scores + mixing"
LAYER_PARTS = ("projections", QUADRATIC, "feed-forward")
INT_BYTES = 8
# Counting activations runs the model, so they are counted at a few lengths: more where the line bends.
CORNERS = (1, 10, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, MOST_TOKENS)


@dataclass(frozen=True)
class Row:
    """One line of the table: a cost at n tokens and at 2n.

    Attributes:
        name: what costs.
        per_layer: of one layer; the mean where layers differ; None for what is in no layer.
        whole: of the model.
        doubled: of the model at twice the length.
        unit: "FLOP" or "B".
        share: of the model's total, from 0 to 1; None for what is no part of it.
        is_sum: whether the rows above it are added up here.
    """

    name: str
    per_layer: float | None
    whole: int
    doubled: int
    unit: str
    share: float | None = None
    is_sum: bool = False

    @property
    def factor(self) -> float | None:
        """How many times as much twice the length costs; None where it costs nothing."""
        return self.doubled / self.whole if self.whole else None


def lengths_drawn(*also: int | None) -> list[int]:
    """List the lengths of the curves, evenly spread over a logarithmic axis, and some more."""
    spread = {round(10 ** (step / STEPS)) for step in range(STEPS * 6 + 1)}
    return sorted(spread | {length for length in also if length is not None and length <= MOST_TOKENS})


def by_part(plan: CostPlan, job: Job) -> dict[str, int]:
    """Count the operations of a job by the parts that a reader is told of; parts that cost nothing are left out."""
    counts = flops(plan.sizes, job)
    summed = {name: sum(counts[part] for part in parts) for name, parts in PARTS.items()}
    return {name: count for name, count in summed.items() if count}


def total(plan: CostPlan, job: Job) -> int:
    """Count all operations of a job."""
    return sum(flops(plan.sizes, job).values())


def in_layers(counts: dict[str, int]) -> int:
    """Add up what the layers cost, the head aside."""
    return sum(counts.get(name, 0) for name in LAYER_PARTS)


def overtakes(plan: CostPlan) -> int | None:
    """Find the length from which scores and mixing cost as much as the rest of the layers; None for never."""
    return overtaking(plan.sizes, plan.job)


def layers_of(sizes: Sizes) -> int:
    """Count the layers, of both stacks where there are two."""
    own = sizes.config.layers
    return own + sizes.decoder_layers if sizes.make is EncoderDecoder else own


def operation_rows(plan: CostPlan) -> list[Row]:
    """List what each part costs at n and at 2n, the layers together, and all."""
    now, later = by_part(plan, plan.job), by_part(plan, plan.doubled)
    everything, layers = sum(now.values()), layers_of(plan.sizes)

    def row(name: str, count: int, doubled: int, *, inside: bool, is_sum: bool = False) -> Row:
        each = count / layers if inside else None
        return Row(name, each, count, doubled, "FLOP", count / everything, is_sum)

    parts = {name: row(name, count, later[name], inside=name in LAYER_PARTS) for name, count in now.items()}
    layered = row("all layers", in_layers(now), in_layers(later), inside=True, is_sum=True)
    outside = [made for name, made in parts.items() if name not in LAYER_PARTS]
    softmax = softmax_steps(plan.sizes, plan.job), softmax_steps(plan.sizes, plan.doubled)
    return [
        *(parts[name] for name in LAYER_PARTS),
        layered,
        *outside,
        row("in all", everything, sum(later.values()), inside=False, is_sum=True),
        Row("softmax, not counted above", softmax[0] / layers, *softmax, "FLOP"),
    ]


PARAMETERS = "parameters"
KEPT = "weights, if every layer’s are kept"
AT_ONCE = "weights, one layer at a time"
FLASH = "FlashAttention’s sums"
CACHE = "cache of keys and values"
ACTIVATIONS = "activations"


def memory_rows(plan: CostPlan) -> list[Row]:
    """List what is in memory at n and at 2n; what takes nothing, or cannot be known, is left out."""
    rows = []
    for name, measure in _memory(plan).items():
        count, doubled = measure(plan.job), measure(plan.doubled)
        if count and doubled:
            rows.append(Row(name, count / layers_of(plan.sizes) if name in IN_LAYERS else None, count, doubled, "B"))
    return rows


def memory_curves(plan: CostPlan, lengths: list[int]) -> dict[str, dict[int, int]]:
    """Measure everything in memory, by name and length; what takes nothing, or cannot be known, is left out."""
    made = {}
    for name, measure in _memory(plan).items():
        drawn = sorted({*CORNERS, plan.job.tokens}) if name == ACTIVATIONS else lengths
        made[name] = {length: count for length in drawn if (count := measure(plan.at(length)))}
    return {name: values for name, values in made.items() if values}


IN_LAYERS = frozenset({KEPT, FLASH, CACHE})


def _memory(plan: CostPlan) -> dict[str, Callable[[Job], int | None]]:
    """Give what measures each thing in memory, in bytes."""
    sizes, dtype = plan.sizes, plan.dtype
    return {
        KEPT: lambda job: score_bytes(sizes, job, dtype),
        AT_ONCE: lambda job: score_bytes_at_once(sizes, job, dtype),
        FLASH: lambda job: flash_bytes(sizes, job),
        CACHE: lambda job: kv_cache_bytes(sizes, job, dtype),
        ACTIVATIONS: lambda job: activations(plan, job),
        PARAMETERS: lambda job: parameter_bytes(sizes, dtype),
    }


def activations(plan: CostPlan, job: Job) -> int | None:
    """Measure what a run holds beside the parameters, in bytes, once for each question.

    Returns:
        Bytes; None where the model cannot be run, as one for images of another size.
    """
    sizes, kernel = plan.sizes, plan.kernel
    key = ("activations", sizes.make, sizes.config, job, plan.dtype, kernel)
    try:
        return cache.derived(key, lambda: activation_bytes(sizes, job, plan.dtype, kernel), lambda made: INT_BYTES)
    except ShapeError:
        return None
