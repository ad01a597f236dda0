"""What reading and writing costs: floating-point operations (FLOP) and bytes, by formula.

A product of matrices (m × k) · (k × n) is 2·m·k·n FLOP, a multiplication and an addition for each pair. Per layer and
token of a text of n tokens, that makes

    projections     2 · (2·H·D·C + 2·G·D·C)         queries, keys, values, output
    scores          2 · H · D · n                   every query with every key
    mixing          2 · H · D · n                   every weight with every value
    feed-forward    2 · 2·C·F, with a gate 2 · 3·C·F

so the middle two grow with the square of the text and the others with its length (Kaplan et al. 2020, 2001.08361,
count the same). Norms, activations and additions are left out of these: they are no products and next to nothing. The
softmax is counted apart. Training is counted as three times reading: backwards takes two products for each one.

Dimensions: B batch, L layers, H heads, G key-value heads, D head width, C model width, F feed-forward width, V
vocabulary, T queries, S keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from engine.errors import ShapeError
from engine.sizes import Sizes
from engine.transformer import EncoderDecoder, VisionTransformer

Part = Literal["embedding", "projections", "scores", "mixing", "feed-forward", "head"]
PARTS: tuple[Part, ...] = ("embedding", "projections", "scores", "mixing", "feed-forward", "head")
QUADRATIC: frozenset[Part] = frozenset({"scores", "mixing"})
# Finding the largest, subtracting it, the exponential, the sum, the division.
SOFTMAX_STEPS = 5
FARTHEST = 10**9
BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "float8": 1}


@dataclass(frozen=True)
class Job:
    """What is to be done.

    Attributes:
        tokens: n, how long the text is; for an encoder-decoder, each of its two texts.
        batch: B, how many such texts.
        step: "read" reads all n tokens at once; "write" adds one more to n that are in the cache.
        training: whether gradients are computed as well.
        visible_only: count only the pairs that the mask shows, as kernels do that skip the rest: half of them under a
            causal mask; otherwise all n², as kernels do that compute and hide.
    """

    tokens: int
    batch: int = 1
    step: Literal["read", "write"] = "read"
    training: bool = False
    visible_only: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be done.

        Raises:
            ShapeError: no tokens, no texts, or training token by token.
        """
        if self.tokens < 1 or self.batch < 1:
            raise ShapeError(f"A job needs a text and a token at least, not {self.batch} and {self.tokens}.")
        if self.training and self.step == "write":
            raise ShapeError("Training reads whole texts; it does not write them token by token.")


@dataclass(frozen=True)
class _Call:
    """Some layers of attention that do the same: how many, T queries, S keys, and what the mask shows."""

    layers: int
    queries: int
    keys: int
    causal: bool
    window: int | None
    crosses: bool = False

    def pairs(self, visible_only: bool) -> int:
        """Count the pairs of query and key that are computed, in one head of one layer."""
        if not visible_only:
            return self.queries * self.keys
        return visible_pairs(self.queries, self.keys, causal=self.causal, window=self.window)


def visible_pairs(queries: int, keys: int, *, causal: bool, window: int | None = None) -> int:
    """Count the pairs of query and key that a mask shows; the last query stands at the last key.

    Args:
        queries: T.
        keys: S.
        causal: a query sees no later key.
        window: query t sees key s where |t - s| < window; None for any distance.

    Returns:
        Pairs, from 0 to T·S: n·(n + 1)/2 for a causal square.
    """
    reach = keys if window is None else min(window, keys)
    past = _stairs(keys, reach) - _stairs(keys - queries, reach)  # the key at its own place and those before it
    return past if causal else past + _stairs(queries - 1, reach - 1)


def _stairs(steps: int, most: int) -> int:
    """Add up 1 + 2 + 3 + … over so many steps, none of them higher than `most`."""
    rising = min(steps, most)
    return rising * (rising + 1) // 2 + (steps - rising) * most


def flops(sizes: Sizes, job: Job) -> dict[Part, int]:
    """Count the floating-point operations of a job, part by part, over all layers.

    Args:
        sizes: of the model.
        job: what is to be done.

    Returns:
        FLOP of each part. A head scores every token that is read. Looking up words costs none; patches of an image are
        multiplied with a matrix, and to train it no gradient goes back to the pixels. What else sits on top, a pooler
        or labels, is next to nothing.

    Raises:
        ShapeError: a model that does not write is to write.
    """
    config = sizes.config
    counts: dict[Part, int] = dict.fromkeys(PARTS, 0)
    for call in _calls(sizes, job):
        inward = 2 * config.heads * config.D * config.width  # queries and output, of the queries' text
        outward = 2 * config.G * config.D * config.width  # keys and values, of the keys' text
        source = call.queries if not call.crosses else call.keys if job.step == "read" else 0
        counts["projections"] += 2 * call.layers * (inward * call.queries + outward * source)
        products = 2 * call.layers * config.heads * config.D * call.pairs(job.visible_only)
        counts["scores"] += products
        counts["mixing"] += products
    for layers, tokens in _feed_forwards(sizes, job):
        counts["feed-forward"] += 2 * layers * sizes.feed_forward_numbers * tokens
    if sizes.make is VisionTransformer:
        counts["embedding"] = 2 * config.width * config.channels * config.patch**2 * (job.tokens - 1)
    if config.head != "none":
        counts["head"] = 2 * config.width * config.vocabulary * (1 if job.step == "write" else job.tokens)
    backwards: dict[Part, int] = dict.fromkeys(PARTS, 2 if job.training else 0)
    backwards["embedding"] //= 2
    return {part: count * job.batch * (1 + backwards[part]) for part, count in counts.items()}


def softmax_steps(sizes: Sizes, job: Job) -> int:
    """Count the softmax's operations, about five per score; they are no products, and not in `flops`."""
    pairs = sum(call.layers * call.pairs(job.visible_only) for call in _calls(sizes, job))
    return SOFTMAX_STEPS * pairs * sizes.config.heads * job.batch * (3 if job.training else 1)


def score_bytes(sizes: Sizes, job: Job, dtype: str) -> int:
    """Say what the matrices of weights take if every layer's is kept: B · H · T · S · bytes, summed over the layers.

    Training without FlashAttention keeps them all, and so does who asks a model to return its attention. Masks save
    nothing here: a hidden weight takes as many bytes as any other.

    Returns:
        Bytes.
    """
    return sum(_matrices(sizes, job, dtype))


def score_bytes_at_once(sizes: Sizes, job: Job, dtype: str) -> int:
    """Say what one layer's matrix of weights takes, in bytes: what standard attention needs at a time to read."""
    return max(_matrices(sizes, job, dtype))


def flash_bytes(sizes: Sizes, job: Job) -> int:
    """Say what FlashAttention keeps instead: one float32 per query and head (Dao et al. 2022, 2205.14135).

    Returns:
        Bytes, over all layers.
    """
    return sum(4 * job.batch * sizes.config.heads * call.queries * call.layers for call in _calls(sizes, job))


def kv_cache_bytes(sizes: Sizes, job: Job, dtype: str) -> int:
    """Say what the keys and values of a text take: 2 · L · G · D · n · bytes, per text.

    A layer with a window needs the last `window` tokens only. A decoder beside an encoder keeps the keys and values of
    the text that it looks across at as well.

    Returns:
        Bytes; 0 for a model that does not write.
    """
    if not sizes.writes:
        return 0
    config = sizes.config
    per_token = 2 * config.G * config.D * _bytes(dtype) * job.batch
    own = sum(min(job.tokens, window or job.tokens) for window in sizes.windows)
    across = sizes.decoder_layers * job.tokens if sizes.make is EncoderDecoder else 0
    return per_token * (own + across)


def pairs_by_layer(sizes: Sizes, job: Job) -> tuple[tuple[int, int], ...]:
    """List how many attentions compute how many pairs of query and key, in one head; those that do the same are one.

    Args:
        sizes: of the model.
        job: what is to be done.

    Returns:
        Attentions and pairs of each: the writing stack's own first, then across, then the encoder's.
    """
    return tuple((call.layers, call.pairs(job.visible_only)) for call in _calls(sizes, job))


def moment_bytes(sizes: Sizes) -> int:
    """Say what the two moments of Adam take, a float32 each for every parameter (Kingma and Ba 2014, 1412.6980)."""
    return 2 * BYTES["float32"] * sizes.parameters


def parameter_bytes(sizes: Sizes, dtype: str) -> int:
    """Say what the learned numbers take, in bytes."""
    return sizes.parameters * _bytes(dtype)


def overtaking(sizes: Sizes, job: Job) -> int | None:
    """Find the length from which scores and mixing cost at least as much as the rest of the layers.

    Args:
        sizes: of the model.
        job: how to count; its length does not matter.

    Returns:
        Tokens: 6·C where the feed-forward part is four times as wide as the model and all pairs are counted; None
        where windows keep it from ever coming.
    """

    def overtakes(tokens: int) -> bool:
        counts = flops(sizes, replace(job, tokens=tokens))
        return counts["scores"] + counts["mixing"] >= counts["projections"] + counts["feed-forward"]

    low, high = 0, 1
    while not overtakes(high):
        low, high = high, 2 * high
        if high > FARTHEST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if overtakes(middle) else (middle, high)
    return high


def seconds(sizes: Sizes, job: Job, dtype: str, *, flop_per_second: float, bytes_per_second: float) -> float:
    """Estimate how long a job takes where arithmetic and memory are used perfectly: the slower of the two.

    Args:
        sizes: of the model.
        job: what is to be done.
        dtype: what numbers are stored in.
        flop_per_second: of the device.
        bytes_per_second: from its memory: the weights are read once, and to write, the cache as well.

    Returns:
        Seconds, which no real device reaches.
    """
    moved = parameter_bytes(sizes, dtype) + (kv_cache_bytes(sizes, job, dtype) if job.step == "write" else 0)
    return max(sum(flops(sizes, job).values()) / flop_per_second, moved / bytes_per_second)


def _bytes(dtype: str) -> int:
    if dtype not in BYTES:
        raise ShapeError(f"There is no precision {dtype!r}; there is {', '.join(BYTES)}.")
    return BYTES[dtype]


def _matrices(sizes: Sizes, job: Job, dtype: str) -> Iterator[int]:
    """Give the bytes of every layer's matrix of weights."""
    for call in _calls(sizes, job):
        for _ in range(call.layers):
            yield job.batch * sizes.config.heads * call.queries * call.keys * _bytes(dtype)


def _calls(sizes: Sizes, job: Job) -> Iterator[_Call]:
    """List the attention of a job: layers that do the same are one entry."""
    if job.step == "write" and not sizes.writes:
        raise ShapeError(f"{sizes.name} reads texts and does not write them, so there is no next token.")
    n, config = job.tokens, sizes.config
    queries, keys = (n, n) if job.step == "read" else (1, n + 1)
    for window in dict.fromkeys(sizes.windows):
        yield _Call(sizes.windows.count(window), queries, keys, sizes.writes, window)
    if sizes.make is EncoderDecoder:
        yield _Call(sizes.decoder_layers, queries, n, False, None, crosses=True)
        if job.step == "read":
            yield _Call(config.layers, n, n, False, config.window)


def _feed_forwards(sizes: Sizes, job: Job) -> Iterator[tuple[int, int]]:
    """List how many feed-forward layers read how many tokens."""
    own = 1 if job.step == "write" else job.tokens
    yield (sizes.decoder_layers or sizes.config.layers), own
    if sizes.make is EncoderDecoder and job.step == "read":
        yield sizes.config.layers, job.tokens
