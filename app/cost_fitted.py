"""What a measurement says, in sentences: the exponent it fits, how fast this machine was, what the matrix took."""

from __future__ import annotations

from app.cost_bench import Seen
from app.cost_units import bytes_text, scaled, time_text
from app.export import file_bytes, rows_csv
from engine.measuring import FITTED, Fit, Kernel, Point, exponent

NEARLY_QUADRATIC, MORE_THAN_QUADRATIC = 1.8, 2.2
WIDE = 0.8  # of an interval: the points scatter
KERNELS: tuple[Kernel, ...] = ("eager", "sdpa")
NAMES: dict[Kernel, str] = {"eager": "eager", "sdpa": "SDPA"}


def exponent_sentences(seen: Seen) -> list[str]:
    """Say with which power of the length each kernel's time grows, and why where that is not 2 yet."""
    return [_sentence(seen, kernel) for kernel in KERNELS if seen.of(kernel)]


def _sentence(seen: Seen, kernel: Kernel) -> str:
    points = seen.of(kernel)
    fit, name = exponent(points), NAMES[kernel]
    if fit is None:
        return f"**{name}**: {len(points)} point{'s' * (len(points) > 1)}, too few to fit an exponent."
    last = points[-1].tokens
    text = (
        f"**{name[:1].upper()}{name[1:]}: time grows with n to the power {fit.exponent:.2f}** (95\u202f% interval "
        f"{fit.low:.2f} to {fit.high:.2f}), from {fit.from_tokens:,} to {last:,} tokens; the formula nears 2 in long "
        "texts."
    )
    return " ".join(filter(None, [text, _why(seen, fit, last)]))


def _why(seen: Seen, fit: Fit, last: int) -> str:
    if fit.high - fit.low > WIDE:
        return "The points scatter: something else was running, or there are few of them. Measure again, or longer."
    if fit.exponent < NEARLY_QUADRATIC:
        return _not_yet(seen, last)
    if fit.exponent > MORE_THAN_QUADRATIC:
        return "That is more than 2: the longer the text, the less of its matrix fits into fast memory."
    return ""


def _not_yet(seen: Seen, last: int) -> str:
    if seen.plan.what == "layer":
        why = "the projections, the feed-forward part and fixed costs still dominate"
    else:
        why = "starting the kernel and reading queries, keys and values still dominate"
    return f"Up to {last:,} tokens this is not yet quadratic: {why}. Longer texts get nearer to 2."


def speed_sentence(seen: Seen) -> str:
    """Say how the lines were fitted, how fast that makes this machine, and what the fast kernel gains."""
    rates = {kernel: rate for kernel in KERNELS if (rate := seen.seconds_per_operation(kernel))}
    speeds = " and ".join(f"{scaled(1 / rate, 'FLOP/s')} {NAMES[kernel]}" for kernel, rate in rates.items())
    return (
        "The lines are the counted operations times **one** number for each kernel, the seconds that an operation "
        f"takes, fitted to its {FITTED} longest texts: this machine reached {speeds}, counting all pairs. {_gain(seen)}"
    )


def _gain(seen: Seen) -> str:
    eager, sdpa = ({point.tokens: point for point in seen.of(kernel)} for kernel in KERNELS)
    both = sorted(eager.keys() & sdpa.keys())
    if not both:
        return ""
    longest = both[-1]
    slow, fast = eager[longest], sdpa[longest]
    return (
        f"At {longest:,} tokens eager took {time_text(slow.seconds)} and {bytes_text(slow.peak_bytes)}, SDPA "
        f"{time_text(fast.seconds)} and {bytes_text(fast.peak_bytes)}."
    )


def points_table(seen: Seen) -> str:
    """List every point as a table in markdown."""
    held: dict[int, dict[str, Point]] = {}
    for point in seen.points:
        held.setdefault(point.tokens, {})[point.kernel] = point
    rows = ["| Tokens | Eager | SDPA | Eager, peak | SDPA, peak |", "|--:|--:|--:|--:|--:|"]
    for tokens, kernels in sorted(held.items()):
        found = [kernels.get(kernel) for kernel in KERNELS]
        cells = ["–" if one is None else time_text(one.seconds) for one in found]
        cells += ["–" if one is None else bytes_text(one.peak_bytes) for one in found]
        rows.append(f"| {tokens:,} | {' | '.join(cells)} |")
    return "\n".join(rows)


POINTS_HEADER = (
    "model", "what", "device", "dtype", "causal", "kernel", "tokens", "median_seconds", "peak_bytes", "runs",
)  # fmt: skip


def points_csv(seen: Seen) -> bytes:
    """Write every point as a line of a file for spreadsheets, exact."""
    plan = seen.plan
    start = (seen.title, plan.what, plan.device, plan.dtype, "yes" if plan.causal else "no")
    lines = [
        (*start, NAMES[kernel], point.tokens, point.seconds, point.peak_bytes, point.runs)
        for kernel in KERNELS
        for point in seen.of(kernel)
    ]
    return file_bytes(rows_csv(POINTS_HEADER, lines), spreadsheet=True)
