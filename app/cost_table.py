"""The numbers of the page Cost as a file, and as formulas with this model's own numbers in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from app.cost_numbers import Row, layers_of
from app.cost_plan import CostPlan
from app.cost_units import bytes_both, flop_text
from app.export import file_bytes, rows_csv
from app.phrases import SPACE
from engine import EncoderDecoder
from engine.config import GATED
from engine.cost import (
    BYTES,
    SOFTMAX_STEPS,
    Job,
    flash_bytes,
    flops,
    kv_cache_bytes,
    pairs_by_layer,
    parameter_bytes,
    score_bytes,
    softmax_steps,
)

HEADER = (
    "model", "job", "tokens", "batch", "dtype", "pairs_counted", "kernel", "part", "unit", "per_layer", "model_total",
    "share", "at_twice_the_tokens", "factor", "held",
)  # fmt: skip


def cost_csv(plan: CostPlan, rows: Iterable[Row]) -> bytes:
    """Write the table as a file for spreadsheets, exact to the last operation and byte."""
    job = plan.job
    what = "training" if job.training else "one more token" if job.step == "write" else "reading"
    kernel = plan.kernel if plan.window is None else f"window {plan.window}"
    start = (plan.sizes.name, what, job.tokens, job.batch, plan.dtype, plan.pairs, kernel)
    lines = [
        (*start, row.name, row.unit, row.per_layer, row.whole, row.share, row.doubled, row.factor,
         "yes" if row.held else "no")
        for row in rows
    ]  # fmt: skip
    return file_bytes(rows_csv(HEADER, lines), spreadsheet=True)


def formulas(plan: CostPlan) -> Iterator[tuple[str, str]]:
    """Give each formula with its symbols, then with this model's numbers, for one text.

    The last number of each line is that of `engine.cost` for the whole model, not this page's own arithmetic.
    """
    job = Job(plan.job.tokens, step=plan.job.step, visible_only=plan.job.visible_only)
    yield _projections(plan, job)
    yield from _pair_formulas(plan, job)
    yield _feed_forward(plan, job)
    yield from _outer_formulas(plan, job)
    yield from _memory_formulas(plan, job)


def _each(job: Job) -> tuple[str, str]:
    """Write how many tokens are read, as a factor: all of them, or the new one, which is no factor."""
    return ("", "") if job.step == "write" else (r"n \cdot ", rf"{_n(job.tokens)} \cdot ")


def _in_all(count: int, what: str) -> str:
    """Write how often something is counted, before its sign of equality."""
    return rf"\times {_n(count)}\text{{ {what}}} ="


def _projections(plan: CostPlan, job: Job) -> tuple[str, str]:
    """Write the projections: of a decoder beside an encoder, those across two texts as well.

    A new token finds the keys and values of the other text in the cache, and projects its query and output alone.
    """
    sizes, config = plan.sizes, plan.sizes.config
    H, G, D, C = config.heads, config.G, config.D, config.width
    n, number = _each(job)
    crosses, writes = sizes.make is EncoderDecoder, job.step == "write"
    inward = 4 if crosses and writes else 2
    what = "attentions" if crosses and not writes else "layers"
    count = sizes.attentions if crosses and not writes else layers_of(plan)
    return (
        "projections" + (", those across two texts too" if crosses else ""),
        rf"{n}2\,({inward}HDC + 2GDC) = {number}2\,({inward} \cdot {H} \cdot {D} \cdot {_n(C)}"
        rf" + 2 \cdot {G} \cdot {D} \cdot {_n(C)})"
        rf"{_result(flop_text(flops(sizes, job)['projections']), _in_all(count, what))}",
    )


def _pair_formulas(plan: CostPlan, job: Job) -> Iterator[tuple[str, str]]:
    sizes, config = plan.sizes, plan.sizes.config
    pairs, number, ending = _pairs(plan, job)
    H, D = config.heads, config.D
    yield (
        "scores, and as much again for mixing",
        rf"2HD \cdot {pairs} = 2 \cdot {H} \cdot {D} \cdot {number}"
        rf"{_result(flop_text(flops(sizes, job)['scores']), ending)}",
    )
    yield (
        "softmax, about five operations for each pair, not counted with the products",
        rf"{SOFTMAX_STEPS} \cdot H \cdot {pairs} = {SOFTMAX_STEPS} \cdot {H} \cdot {number}"
        rf"{_result(flop_text(softmax_steps(sizes, job)), ending)}",
    )


def _feed_forward(plan: CostPlan, job: Job) -> tuple[str, str]:
    config = plan.sizes.config
    n, number = _each(job)
    matrices = 3 if config.activation in GATED else 2
    return (
        "feed-forward" + (", with a gate" if matrices == 3 else ""),
        rf"{n}2 \cdot {matrices}\,CF = {number}2 \cdot {matrices} \cdot {_n(config.width)} \cdot "
        rf"{_n(config.feed_forward)}"
        rf"{_result(flop_text(flops(plan.sizes, job)['feed-forward']), _in_all(layers_of(plan), 'layers'))}",
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
    sizes, config, bytes_each = plan.sizes, plan.sizes.config, BYTES[plan.dtype]
    pairs, number, ending = _pairs(plan, replace(job, visible_only=False))
    writes = job.step == "write"
    yield (
        "attention weights, if every layer’s are kept",
        rf"H \cdot {pairs} \cdot b = {config.heads} \cdot {number} \cdot {bytes_each}"
        rf"{_result(bytes_both(score_bytes(sizes, job, plan.dtype)), ending)}",
    )
    attentions = 2 * sizes.decoder_layers if writes and sizes.make is EncoderDecoder else sizes.attentions
    n, tokens = ("", "") if writes else (r" \cdot n", rf" \cdot {_n(job.tokens)}")
    yield (
        "FlashAttention’s sums, a float32 for each query and head",
        rf"4 \cdot H{n} = 4 \cdot {config.heads}{tokens}"
        rf"{_result(bytes_both(flash_bytes(sizes, job)), _in_all(attentions, 'attentions'))}",
    )
    if sizes.writes and not plan.job.training:
        yield _cache(plan, job)
    yield (
        "parameters, P of them",
        rf"P \cdot b = {_n(sizes.parameters)} \cdot {bytes_each}"
        rf"{_result(bytes_both(parameter_bytes(sizes, plan.dtype)))}",
    )


def _cache(plan: CostPlan, job: Job) -> tuple[str, str]:
    """Write the cache: a layer with a window keeps w tokens, and one that looks across keeps the other text too."""
    sizes, config, n = plan.sizes, plan.sizes.config, job.tokens
    spans = dict.fromkeys(sizes.windows)
    terms = [(sizes.windows.count(window), min(n, window or n)) for window in spans]
    bounded = ", bounded by the window w" if any(kept < n for _, kept in terms) else ""
    if sizes.make is EncoderDecoder:
        terms.append((sizes.decoder_layers, n))
    across = ", those of the text across too" if sizes.make is EncoderDecoder else ""
    tokens, number, ending = _summed(terms, "w" if bounded else "n", _n)
    return (
        f"cache of keys and values{bounded}{across}",
        rf"2GD \cdot {tokens} \cdot b = 2 \cdot {config.G} \cdot {config.D} \cdot {number} \cdot "
        rf"{BYTES[plan.dtype]}{_result(bytes_both(kv_cache_bytes(sizes, job, plan.dtype)), ending)}",
    )


def _pairs(plan: CostPlan, job: Job) -> tuple[str, str, str]:
    """Write how many pairs of query and key are counted, in symbols and in numbers, and how often."""
    n, terms = job.tokens, pairs_by_layer(plan.sizes, job)
    if len(terms) > 1 and len({pairs for _, pairs in terms}) == 1:
        terms = ((sum(layers for layers, _ in terms), terms[0][1]),)
    if terms[0][1] == n * n:
        symbol, number = "n^2", rf"{_n(n)}^2"
    elif job.step == "write" and terms[0][1] == n + 1:
        symbol, number = "(n + 1)", _n(n + 1)
    elif 2 * terms[0][1] == n * (n + 1):
        symbol, number = r"\tfrac{n(n+1)}{2}", rf"\tfrac{{{_n(n)} \cdot {_n(n + 1)}}}{{2}}"
    else:
        symbol, number = r"\text{pairs}", _n(terms[0][1])
    what = "attentions" if plan.sizes.make is EncoderDecoder else "layers"
    return _summed(terms, symbol, lambda pairs: number, what)


def _summed(
    terms: Sequence[tuple[int, int]], symbol: str, write: Callable[[int], str], what: str = "layers"
) -> tuple[str, str, str]:
    """Write one number times the layers, or the sum over layers where there are several kinds of them.

    Args:
        terms: how many attentions, and the number of each.
        symbol: what that number is called where all are alike.
        write: writes the number where all are alike.
        what: what they are called.

    Returns:
        The symbols, the numbers, and what stands before the sign of equality.
    """
    if len(terms) == 1:
        ((count, number),) = terms
        return symbol, write(number), _in_all(count, what)
    added = " + ".join(rf"{_n(count)} \cdot {_n(number)}" for count, number in terms)
    sign = (
        r"\textstyle\sum_{\text{layers}}\text{tokens}"
        if symbol in "nw"
        else r"\textstyle\sum_{\text{layers}}\text{pairs}"
    )
    return sign, f"({added})", "="


def _n(number: int) -> str:
    """Write a number in LaTeX, its thousands apart."""
    return f"{number:,}".replace(",", "{,}")


def _result(text: str, ending: str = "=") -> str:
    size, _, unit = text.partition(SPACE)
    return rf"\;{ending} {size.replace(',', '{,}')}\text{{ {unit.replace(SPACE, ' ')}}}"
