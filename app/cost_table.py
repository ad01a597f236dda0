"""The numbers of the page Cost as a file, and as formulas with this model's own numbers in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.cost_numbers import Row, layers_of
from app.cost_plan import CostPlan
from app.cost_units import bytes_both, flop_text
from app.export import file_bytes, rows_csv
from app.phrases import SPACE
from engine import EncoderDecoder
from engine.config import GATED
from engine.cost import BYTES, Job, flops, kv_cache_bytes, score_bytes, visible_pairs
from engine.sizes import Sizes

HEADER = (
    "model", "job", "tokens", "batch", "dtype", "pairs_counted", "kernel", "part", "unit", "per_layer", "model_total",
    "share", "at_twice_the_tokens", "factor",
)  # fmt: skip


def cost_csv(plan: CostPlan, rows: Iterable[Row]) -> bytes:
    """Write the table as a file for spreadsheets, exact to the last operation and byte."""
    job = plan.job
    what = "training" if job.training else "one more token" if job.step == "write" else "reading"
    pairs = "visible" if job.visible_only else "all"
    kernel = plan.kernel if plan.window is None else f"window {plan.window}"
    start = (plan.sizes.name, what, job.tokens, job.batch, plan.dtype, pairs, kernel)
    lines = [(*start, row.name, row.unit, row.per_layer, row.whole, row.share, row.doubled, row.factor) for row in rows]
    return file_bytes(rows_csv(HEADER, lines), spreadsheet=True)


def formulas(plan: CostPlan) -> Iterator[tuple[str, str]]:
    """Give each formula with its symbols, then with this model's numbers: of one self-attention layer and one text.

    The last number of each line is that of `engine.cost` for the whole model, not this page's own arithmetic.
    """
    job = Job(plan.job.tokens, step=plan.job.step, visible_only=plan.job.visible_only)
    yield from _layer_formulas(plan, job)
    yield from _outer_formulas(plan, job)
    yield from _memory_formulas(plan, job)


def _ending(sizes: Sizes) -> str:
    """Say how often a layer's cost is counted: as many times as there are layers, where they are alike."""
    if sizes.make is EncoderDecoder or len(set(sizes.windows)) > 1:
        return r"\quad\text{in one layer; in all layers }"
    return rf"\times {_n(layers_of(sizes))}\text{{ layers}} ="


def _each(job: Job) -> tuple[str, str]:
    """Write how many tokens are read, as a factor: all of them, or the new one, which is no factor."""
    return ("", "") if job.step == "write" else (r"n \cdot ", rf"{_n(job.tokens)} \cdot ")


def _layer_formulas(plan: CostPlan, job: Job) -> Iterator[tuple[str, str]]:
    sizes, config, counts = plan.sizes, plan.sizes.config, flops(plan.sizes, job)
    H, G, D, C, F = config.heads, config.G, config.D, config.width, config.feed_forward
    (n, number), (pairs, pairs_number) = _each(job), _pairs(plan, job)
    matrices, ending = 3 if config.activation in GATED else 2, _ending(sizes)
    yield (
        "projections",
        rf"{n}2\,(2HDC + 2GDC) = {number}2\,(2 \cdot {H} \cdot {D} \cdot {_n(C)} + 2 \cdot {G} \cdot {D} \cdot {_n(C)})"
        rf"{_result(flop_text(counts['projections']), ending)}",
    )
    yield (
        "scores, and as much again for mixing",
        rf"2HD \cdot {pairs} = 2 \cdot {H} \cdot {D} \cdot {pairs_number}"
        rf"{_result(flop_text(counts['scores']), ending)}",
    )
    yield (
        "feed-forward" + (", with a gate" if matrices == 3 else ""),
        rf"{n}2 \cdot {matrices}\,CF = {number}2 \cdot {matrices} \cdot {_n(C)} \cdot {_n(F)}"
        rf"{_result(flop_text(counts['feed-forward']), ending)}",
    )


def _outer_formulas(plan: CostPlan, job: Job) -> Iterator[tuple[str, str]]:
    config, counts = plan.sizes.config, flops(plan.sizes, job)
    n, number = _each(job)
    if counts["embedding"]:
        patch = rf"{config.channels} \cdot {config.patch}^2"
        yield (
            "patches",
            rf"(n - 1) \cdot 2\,C \cdot {patch} = {_n(job.tokens - 1)} \cdot 2 \cdot {_n(config.width)} \cdot {patch}"
            rf"{_result(flop_text(counts['embedding']))}",
        )
    if counts["head"]:
        yield (
            "head, which scores every token of the vocabulary",
            rf"{n}2\,CV = {number}2 \cdot {_n(config.width)} \cdot {_n(config.vocabulary)}"
            rf"{_result(flop_text(counts['head']))}",
        )


def _memory_formulas(plan: CostPlan, job: Job) -> Iterator[tuple[str, str]]:
    sizes, config = plan.sizes, plan.sizes.config
    bytes_each, ending = BYTES[plan.dtype], _ending(sizes)
    square = "(n + 1)" if job.step == "write" else "n^2"
    keys = rf"{_n(job.tokens + 1)}" if job.step == "write" else rf"{_n(job.tokens)}^2"
    yield (
        "matrices of weights, if they are kept",
        rf"H \cdot {square} \cdot b = {config.heads} \cdot {keys} \cdot {bytes_each}"
        rf"{_result(bytes_both(score_bytes(sizes, job, plan.dtype)), ending)}",
    )
    if sizes.writes:
        window = sizes.windows[0] if len(set(sizes.windows)) == 1 else None
        kept = job.tokens if window is None else min(job.tokens, window)
        yield (
            "cache of keys and values" + (", bounded by the window w" if kept < job.tokens else ""),
            rf"2GD \cdot {'n' if kept == job.tokens else 'w'} \cdot b"
            rf" = 2 \cdot {config.G} \cdot {config.D} \cdot {_n(kept)} \cdot {bytes_each}"
            rf"{_result(bytes_both(kv_cache_bytes(sizes, job, plan.dtype)), ending)}",
        )


def _pairs(plan: CostPlan, job: Job) -> tuple[str, str]:
    """Write how many pairs of query and key are counted, in symbols and in numbers."""
    n, windows = job.tokens, set(plan.sizes.windows)
    if job.step == "write":
        return ("(n + 1)", _n(n + 1)) if not job.visible_only else (r"\text{pairs}", _n(_visible(plan, job)))
    if not job.visible_only:
        return "n^2", rf"{_n(n)}^2"
    if plan.sizes.writes and windows == {None}:
        return r"\tfrac{n(n+1)}{2}", rf"\tfrac{{{_n(n)} \cdot {_n(n + 1)}}}{{2}}"
    return r"\text{pairs}", _n(_visible(plan, job))


def _visible(plan: CostPlan, job: Job) -> int:
    queries, keys = (1, job.tokens + 1) if job.step == "write" else (job.tokens, job.tokens)
    return visible_pairs(queries, keys, causal=plan.sizes.writes, window=plan.sizes.windows[0])


def _n(number: int) -> str:
    """Write a number in LaTeX, its thousands apart."""
    return f"{number:,}".replace(",", "{,}")


def _result(text: str, ending: str = "=") -> str:
    size, _, unit = text.partition(SPACE)
    return rf"\;{ending} {size.replace(',', '{,}')}\text{{ {unit.replace(SPACE, ' ')}}}"
