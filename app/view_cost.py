"""What a link keeps of the page Cost: its choices, and how each is written in an address."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from app.parameters import Parameter, counted, matching, one_of, read_flag, write_flag
from engine.cost import BYTES

MOST_TOKENS = 1_000_000
MOST_TEXTS = 4096
MOST_GROUPS = 1024
MOST_SPEED = 1_000_000  # TFLOP/s, and GB/s
MOST_PRICE = 100_000
SECONDS = (3, 10, 30, 60)
LONGEST = (256, 512, 1024, 2048, 4096, 8192, 16_384)
DEVICES = ("laptop", "t4", "l4", "rtx4090", "a100", "h100", "h200", "own", "measured")


@dataclass(frozen=True)
class CostChoices:
    """What the reader has chosen on the page Cost."""

    cost_of: str = "gpt2"  # a preset's name, or "here:" and the id of a model that is loaded
    cost_from: str = "length"  # how long the text is: a "length", or as long as the "sentence"
    cost_tokens: int = 4096  # n, that length
    cost_job: str = "read"  # or "write" one more token, or "train"
    cost_batch: int = 1  # B, texts
    cost_dtype: str = "bfloat16"
    cost_pairs: str | None = None  # which pairs are counted: "all", only the "visible", or None as the kernel has it
    cost_kernel: str = "standard"  # or "flash", or a sliding "window"
    cost_window: int = 1024  # tokens that it spans
    cost_groups: int | None = None  # G, key-value heads; None for as many as the model has
    cost_device: str = "laptop"
    cost_speed: float | None = None  # TFLOP/s; None as the device has it
    cost_bandwidth: float | None = None  # GB/s; None as the device has it
    cost_price: float = 0.0  # per hour, in whatever money
    bench_what: str = "attention"  # what is measured: "attention" alone, or a whole "layer"
    bench_causal: bool | None = None  # whether a token sees no later one; None as the model has it
    bench_seconds: int = 30
    bench_longest: int = 4096  # tokens


def counted_far(limit: int) -> Callable[[str], int]:
    """Read a whole number from 1 to a limit of any size."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= limit:
            raise ValueError(text)
        return int(text)

    return read


def decimal(limit: float, *, least: float = 0.0) -> Callable[[str], float]:
    """Read a number with a point, from `least` to a limit."""

    def read(text: str) -> float:
        if not re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,4})?", text) or not least <= float(text) <= limit:
            raise ValueError(text)
        return float(text)

    return read


def write_decimal(number: float) -> str:
    """Write a number as `decimal` reads it: no exponent, no zeros at the end."""
    return f"{number:.4f}".rstrip("0").rstrip(".")


LEAST_SPEED = 0.001  # TFLOP/s, and GB/s

COST_PARAMETERS: dict[str, Parameter] = {
    "cost_of": Parameter("of", matching(r"[^\x00-\x1f]{1,210}")),
    "cost_from": Parameter("from", matching("length|sentence")),
    "cost_tokens": Parameter("tokens", counted_far(MOST_TOKENS)),
    "cost_job": Parameter("job", matching("read|write|train")),
    "cost_batch": Parameter("batch", counted(MOST_TEXTS)),
    "cost_dtype": Parameter("dtype", matching("|".join(BYTES))),
    "cost_pairs": Parameter("pairs", matching("all|visible")),
    "cost_kernel": Parameter("kernel", matching("standard|flash|window")),
    "cost_window": Parameter("reach", counted_far(MOST_TOKENS)),
    "cost_groups": Parameter("groups", counted(MOST_GROUPS)),
    "cost_device": Parameter("device", matching("|".join(DEVICES))),
    "cost_speed": Parameter("tflops", decimal(MOST_SPEED, least=LEAST_SPEED), write_decimal),
    "cost_bandwidth": Parameter("gbs", decimal(MOST_SPEED, least=LEAST_SPEED), write_decimal),
    "cost_price": Parameter("price", decimal(MOST_PRICE), write_decimal),
    "bench_what": Parameter("measure", matching("attention|layer")),
    "bench_causal": Parameter("causal", read_flag, write_flag),
    "bench_seconds": Parameter("seconds", one_of(*SECONDS)),
    "bench_longest": Parameter("longest", one_of(*LONGEST)),
}
