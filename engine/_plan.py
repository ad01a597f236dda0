"""What is to be measured, what that will need, and whether it fits; what comes out of it.

Dimensions: H heads, G key-value heads, T tokens, D head width, C model width, F feed-forward width.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from engine._memory import free_bytes
from engine.config import GATED
from engine.errors import ShapeError

if TYPE_CHECKING:  # what a process that only measures does not need to read
    from engine.sizes import Sizes

Kernel = Literal["eager", "sdpa"]
KERNELS: tuple[Kernel, ...] = ("sdpa", "eager")
BYTES: dict[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16_384)
# Of the free memory, so much is left for everybody else.
SPARED = 0.2


@dataclass(frozen=True)
class Point:
    """What one kernel took for one length.

    Attributes:
        kernel: which.
        tokens: T.
        seconds: of one run, the median of all.
        peak_bytes: the most memory held at once, above what stood before: what goes in and comes out, and all between;
            0 where that is less than the system notices.
        runs: how many were timed.
    """

    kernel: Kernel
    tokens: int
    seconds: float
    peak_bytes: int
    runs: int


@dataclass(frozen=True)
class Plan:
    """What is to be measured: one layer's attention, or the whole layer, for growing lengths.

    Attributes:
        heads, kv_heads, head_width, width, feed_forward: H, G, D, C and F.
        gated: whether the feed-forward layer has a gate.
        what: "attention" from given queries, keys and values on; "layer" with projections, norms and feed-forward.
        lengths: T, growing.
        dtype: "float32", "bfloat16" or "float16".
        device: "cpu" or "cuda".
        causal: whether a token sees no later one.
        most_seconds: after so long it ends; a kernel has its share, and what others left of theirs. Until a process is
            ready takes a second or two more.
        most_bytes: no length is tried that needs more; None for whatever is free.
    """

    heads: int
    kv_heads: int
    head_width: int
    width: int
    feed_forward: int
    gated: bool = False
    what: Literal["attention", "layer"] = "attention"
    lengths: tuple[int, ...] = LENGTHS
    dtype: str = "float32"
    device: str = "cpu"
    causal: bool = True
    most_seconds: float = 60.0
    most_bytes: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be measured.

        Raises:
            ShapeError: names the size, and what it has to be.
        """
        for name in ("heads", "kv_heads", "head_width", "width", "feed_forward"):
            if getattr(self, name) < 1:
                raise ShapeError(f"{name} is {getattr(self, name)}; it must be 1 at least.")
        if self.heads % self.kv_heads:
            raise ShapeError(f"{self.heads} heads cannot share {self.kv_heads} key-value heads evenly: give a divisor.")
        lengths = self.lengths
        if not lengths or lengths[0] < 1 or any(one >= next for one, next in pairwise(lengths)):
            raise ShapeError(f"The lengths {', '.join(map(str, lengths))} do not grow; the peaks would not be theirs.")
        if self.dtype not in BYTES:
            raise ShapeError(f"There is no measuring in {self.dtype!r}; there is {', '.join(BYTES)}.")
        if self.device.split(":")[0] not in ("cpu", "cuda"):
            raise ShapeError(f"There is no measuring on {self.device!r}; there is cpu and cuda.")
        if self.what not in ("attention", "layer"):
            raise ShapeError(f'What is measured is "attention" or "layer", not {self.what!r}.')

    @classmethod
    def of(cls, sizes: Sizes, **changes: Any) -> Plan:
        """Plan to measure a layer of a known model; `changes` are further attributes."""
        config = sizes.config
        return cls(
            heads=config.heads,
            kv_heads=config.G,
            head_width=config.D,
            width=config.width,
            feed_forward=config.feed_forward,
            gated=config.activation in GATED,
            causal=sizes.writes,
            **changes,
        )


def needed_bytes(plan: Plan, kernel: Kernel, tokens: int) -> int:
    """Predict the most memory that a kernel holds at once, before anything is held.

    Returns:
        Bytes: queries, keys, values and output, T·(2·H + 2·G)·D numbers; eager beside them two H·T·T matrices, keys
        and values for every head, and T·T booleans of the mask; a whole layer its tokens and what it widens them to.
    """
    size, H, G, D = BYTES[plan.dtype], plan.heads, plan.kv_heads, plan.head_width
    inside = 2 * (H + G) * D * tokens
    if kernel == "eager":
        inside += 2 * H * tokens**2 + (2 * H * D * tokens if H > G else 0)
    if plan.what == "layer":
        widened = (3 if plan.gated else 2) * plan.feed_forward
        inside = 3 * plan.width * tokens + max(inside + H * D * tokens, widened * tokens)
    return size * inside + (tokens**2 if kernel == "eager" and plan.causal else 0)


def refusal(plan: Plan, kernel: Kernel, tokens: int) -> str:
    """Say why a length is not tried: what it needs and what there is; nothing where it fits.

    Raises:
        ResourceError: the system does not say how much memory it has.
    """
    needed, free = needed_bytes(plan, kernel, tokens), int((1 - SPARED) * free_bytes(plan.device))
    allowed = free if plan.most_bytes is None else min(free, plan.most_bytes)
    if needed <= allowed:
        return ""
    have = f"{_large(allowed)} are free" if allowed == free else f"no more than {_large(allowed)} may be taken"
    return f"{kernel} at {tokens:,} tokens would need {_large(needed)}, and {have}."


@dataclass(frozen=True)
class Fitting:
    """Which lengths of a plan fit, by what is free now, and why the next does not; nothing where all do."""

    lengths: tuple[int, ...]
    refused: str = ""


def fitting(plan: Plan, kernel: Kernel) -> Fitting:
    """Say which of a plan's lengths a kernel can be measured at.

    Raises:
        ResourceError: the system does not say how much memory it has.
    """
    for place, tokens in enumerate(plan.lengths):
        if why := refusal(plan, kernel, tokens):
            return Fitting(plan.lengths[:place], why)
    return Fitting(plan.lengths)


def _large(count: int) -> str:
    for power, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= power:
            return f"{count / power:,.1f} {unit}"
    return f"{count} bytes"
