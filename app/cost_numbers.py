"""The numbers of the page Cost: all of them the engine's; here they are only asked for and put side by side.

Dimensions: L layers, N lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from app import cache
from app.cost_plan import CostPlan
from app.view_cost import MOST_TOKENS
from engine import EncoderDecoder, ShapeError
from engine.activations import Kernel, activation_bytes
from engine.cost import (
    Job,
    Part,
    flash_bytes,
    flops,
    kv_cache_bytes,
    moment_bytes,
    overtaking,
    parameter_bytes,
    score_bytes,
    score_bytes_at_once,
    softmax_steps,
)

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
# Counting activations runs the model, so they are counted at a few lengths, beside n and 2n: more where the line bends.
CORNERS = (1, 300, 10_000, 100_000, MOST_TOKENS)


@dataclass(frozen=True)
class Row:
    """One line of the table: a cost at n tokens and at 2n.

    Attributes:
        name: what costs.
        per_layer: of one layer that runs; the mean where layers differ; None for what is in no layer.
        whole: of the model.
        doubled: of the model at twice the length.
        unit: "FLOP" or "B".
        share: of the model's total, from 0 to 1; None for what is no part of it.
        is_sum: whether the rows above it are added up here.
        held: whether it is really there; False for what another kernel would need.
        chosen: whether it is what the chosen kernel keeps instead.
    """

    name: str
    per_layer: float | None
    whole: int
    doubled: int
    unit: str
    share: float | None = None
    is_sum: bool = False
    held: bool = True
    chosen: bool = False

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


def layers_of(plan: CostPlan) -> int:
    """Count the layers that run: of both stacks where two texts are read, of the decoder alone where it writes on."""
    return plan.sizes.decoder_layers if plan.job.step == "write" else plan.sizes.layers


def layers_differ(plan: CostPlan) -> bool:
    """Say whether one layer costs more than another, so that there is only a mean."""
    two = plan.sizes.make is EncoderDecoder and plan.job.step == "read"
    return two or len(set(plan.sizes.windows)) > 1


def operation_rows(plan: CostPlan) -> list[Row]:
    """List what each part costs at n and at 2n, the layers together, and all; scores and mixing apart."""
    now, later = flops(plan.sizes, plan.job), flops(plan.sizes, plan.doubled)
    everything, layers = sum(now.values()), layers_of(plan)

    def row(name: str, parts: tuple[Part, ...], *, inside: bool, is_sum: bool = False) -> Row:
        count, doubled = (sum(counts[part] for part in parts) for counts in (now, later))
        each = count / layers if inside else None
        return Row(name, each, count, doubled, "FLOP", count / everything, is_sum)

    inside: tuple[Part, ...] = ("projections", "scores", "mixing", "feed-forward")
    outside: dict[str, Part] = {"patches": "embedding", "head": "head"}
    softmax = softmax_steps(plan.sizes, plan.job), softmax_steps(plan.sizes, plan.doubled)
    return [
        *(row(part, (part,), inside=True) for part in inside),
        row("all layers", inside, inside=True, is_sum=True),
        *(row(name, (part,), inside=False) for name, part in outside.items() if now[part]),
        row("in all", tuple(now), inside=False, is_sum=True),
        Row("softmax, not counted above", softmax[0] / layers, *softmax, "FLOP"),
    ]


PARAMETERS = "parameters"
GRADIENTS = "gradients"
MOMENTS = "Adam’s two moments, in float32"
KEPT = "attention weights (n × n), if every layer’s are kept"
AT_ONCE = "attention weights (n × n), one layer"
FLASH = "FlashAttention’s sums"
CACHE = "cache of keys and values"
ACTIVATIONS = "activations"
IN_LAYERS = frozenset({KEPT, FLASH, CACHE})


def shown_name(name: str, plan: CostPlan) -> str:
    """Name a thing in memory: one new token has a single row of weights."""
    return name.replace("n × n", "1 × n") if plan.job.step == "write" else name


def is_held(name: str, plan: CostPlan) -> bool:
    """Say whether a thing is in memory with the chosen kernel, rather than with another."""
    if name in (KEPT, AT_ONCE):
        return plan.builds_matrix
    return name != FLASH or not plan.builds_matrix


def memory_rows(plan: CostPlan) -> list[Row]:
    """List what is in memory at n and at 2n; what takes nothing, or cannot be known, is left out."""
    rows = []
    for name, measure in _memory(plan).items():
        count, doubled = measure(plan.job), measure(plan.doubled)
        if count and doubled:
            layers = plan.sizes.decoder_layers if name == CACHE else layers_of(plan)
            each = count / layers if name in IN_LAYERS else None
            held = is_held(name, plan)
            rows.append(
                Row(shown_name(name, plan), each, count, doubled, "B", held=held, chosen=held and name == FLASH)
            )
    return rows


def memory_curves(plan: CostPlan, lengths: list[int]) -> dict[str, dict[int, int]]:
    """Measure everything in memory, by name and length; what takes nothing, or cannot be known, is left out."""
    made = {}
    for name, measure in _memory(plan).items():
        drawn = counted_lengths(plan) if name == ACTIVATIONS else lengths
        made[name] = {length: count for length in drawn if (count := measure(plan.at(length)))}
    return {name: values for name, values in made.items() if values}


def counted_lengths(plan: CostPlan) -> list[int]:
    """List the lengths at which activations are counted: some corners, n, 2n, and where a window is full."""
    bend = plan.bound if plan.job.step == "write" and plan.bound is not None else 1
    return sorted({*CORNERS, bend, plan.job.tokens, min(2 * plan.job.tokens, MOST_TOKENS)})


def _memory(plan: CostPlan) -> dict[str, Callable[[Job], int | None]]:
    """Give what measures each thing in memory, in bytes."""
    sizes, dtype = plan.sizes, plan.dtype
    measures: dict[str, Callable[[Job], int | None]] = {
        KEPT: lambda job: score_bytes(sizes, job, dtype),
        AT_ONCE: lambda job: score_bytes_at_once(sizes, job, dtype),
        FLASH: lambda job: flash_bytes(sizes, job),
        CACHE: lambda job: kv_cache_bytes(sizes, job, dtype),
        ACTIVATIONS: lambda job: activations(plan, job),
        PARAMETERS: lambda job: parameter_bytes(sizes, dtype),
    }
    if plan.job.training:
        measures |= {GRADIENTS: lambda job: parameter_bytes(sizes, dtype), MOMENTS: lambda job: moment_bytes(sizes)}
        del measures[CACHE]
    return measures


def activations(plan: CostPlan, job: Job, kernel: Kernel | None = None) -> int | None:
    """Measure what a run holds beside the parameters, in bytes, once for each question.

    Where every layer has a window whose hidden pairs are skipped, a new token meets no more than that many others.

    Args:
        plan: the question.
        job: what is to be done.
        kernel: another one than that of the plan.

    Returns:
        Bytes; None where the model cannot be run, as one for images of another size.
    """
    sizes, how = plan.sizes, kernel or plan.kernel
    if job.step == "write" and plan.bound is not None:
        job = plan.at(min(job.tokens, max(plan.bound - 1, 1)))
    job = replace(job, visible_only=False)  # a mask saves no memory here, so it is the same question
    key = ("activations", sizes.make.__name__, str(sizes.config), str(job), plan.dtype, how)
    try:
        return cache.derived(key, lambda: activation_bytes(sizes, job, plan.dtype, how), lambda made: INT_BYTES)
    except ShapeError:
        return None


def same_either_way(plan: CostPlan) -> bool:
    """Say whether a run holds as much at once with the matrix as without it."""
    other: Kernel = "flash" if plan.kernel == "standard" else "standard"
    here = activations(plan, plan.job)
    return here is not None and here == activations(plan, plan.job, other)
