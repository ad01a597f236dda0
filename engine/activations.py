"""What a pass holds in memory beside the parameters, counted by running our own model without numbers.

PyTorch's meta device runs the model itself and keeps shapes only, so nothing is allocated, however long the text, and
nothing here is a formula that could differ from the code. Layers are alike: two and three of them tell what each adds.

Dimensions: B batch, L layers, H heads, G key-value heads, T queries, S keys, D head width, C model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import isqrt
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engine._textbook import spelt_out
from engine.blocks import Cache
from engine.config import Config
from engine.cost import Job
from engine.errors import ShapeError
from engine.presets import Transformer, build
from engine.sites import Site
from engine.sizes import Sizes
from engine.transformer import Encoder, EncoderDecoder, TextClassifier, VisionTransformer

Kernel = Literal["standard", "flash"]
DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float8": torch.bfloat16,  # weights may be stored in 8 bits; what is computed with them is not
}
ALIKE_FROM = 2
# A cache, and the vectors of the text that a decoder looks across at, (B, S', C); without an encoder S' is 0.
Written = tuple[Cache, Tensor]


def activation_bytes(sizes: Sizes, job: Job, dtype: str, kernel: Kernel = "flash") -> int:
    """Count what a pass through a model holds in memory, beside its parameters and what it is given.

    Reading and writing, that is the most that is alive at once, up to the scores of all tokens; training, everything
    that is kept for the way back from the loss, where the model scores tokens, or else from its last vectors. Dropout
    is off. What is given is the text's numbers and, to write, the cache.

    Args:
        sizes: of the model; a soft cap on its scores is left out.
        job: what is to be done.
        dtype: what is computed in; with weights in float8, bfloat16.
        kernel: "standard" holds the scores and the weights of a layer as matrices; "flash" does neither, and takes a
            window as a rule (Dao et al. 2022, 2205.14135). A learned bias per pair of positions, as in T5, is a
            matrix in any case, and to train it takes the standard kernel.

    Returns:
        Bytes.

    Raises:
        ShapeError: there is no such precision, a model that does not write is to write, or a matrix has more bytes than
            64 bits can count.
    """
    if dtype not in DTYPES:
        raise ShapeError(f"There is no precision {dtype!r}; there is {', '.join(DTYPES)}.")
    if job.step == "write" and not sizes.writes:
        raise ShapeError(f"{sizes.name} reads texts and does not write them, so there is no next token.")
    count = partial(_count, sizes.make, job=job, dtype=DTYPES[dtype], kernel=kernel)
    try:
        return _continued(sizes, _countable(sizes, job, kernel), count)
    except RuntimeError as error:
        if "overflow" not in str(error):
            raise
        raise ShapeError(f"{job.batch:,} × {job.tokens:,} tokens are too many to be counted; take fewer.") from error


def _continued(sizes: Sizes, config: Config, count: Callable[[Config], int]) -> int:
    """Count two layers and three, of each stack, and add as often as there are layers what the third one added.

    The first layer is no measure: what it reads is the embedding, which stays alive beside what later layers read.
    """
    crosses = sizes.make is EncoderDecoder
    layers, decoder = config.layers, sizes.decoder_layers if crosses else 1
    few, few_decoder = min(layers, ALIKE_FROM), min(decoder, ALIKE_FROM)

    def of(layers: int, decoder: int) -> int:
        return count(replace(config, layers=layers, decoder_layers=decoder))

    total = base = of(few, few_decoder)
    if layers > few:
        total += (layers - few) * (of(few + 1, few_decoder) - base)
    if decoder > few_decoder:
        total += (decoder - few_decoder) * (of(few, few_decoder + 1) - base)
    return total


def _countable(sizes: Sizes, job: Job, kernel: Kernel) -> Config:
    """Make room for any length, and take from a configuration what a kernel does without memory."""
    config, room = sizes.config, job.tokens + 1
    window = config.window if kernel == "standard" else None
    config = replace(config, length=max(config.length, room), window=window, softcap=None, dropout=0.0)
    return replace(config, image=config.patch * (isqrt(room) + 1)) if sizes.make is VisionTransformer else config


def _count(
    make: Callable[[Config], Transformer], config: Config, *, job: Job, dtype: torch.dtype, kernel: Kernel
) -> int:
    model = build(make, config, device="meta").to(dtype)
    ids = torch.zeros(job.batch, 1 if job.step == "write" else job.tokens, dtype=torch.long, device="meta")
    known = frozenset(tensor.untyped_storage()._cdata for tensor in (*model.parameters(), ids))
    with _Attention(kernel):
        if job.training:
            return _kept(partial(_read, model, ids, training=True), known)
        if job.step == "read":
            return _peak(lambda _: _read(model, ids), known)
        return _peak(partial(_write, model, ids), known, partial(_written, model, job))


def _read(model: Transformer, ids: Tensor, *, training: bool = False) -> Tensor:
    """Read a text, and in training compare the scores of its tokens with it."""
    if isinstance(model, VisionTransformer):
        return _scored(model, _seen(model, *ids.shape))
    scores = _scored(model, model(ids, ids) if isinstance(model, EncoderDecoder) else model(ids))
    if training and not isinstance(model, TextClassifier) and model.config.head != "none":
        return F.cross_entropy(scores.flatten(0, 1), ids.flatten())
    return scores


def _seen(model: VisionTransformer, batch: int, tokens: int) -> Tensor:
    """Look at so many patches as there are, which those of an image would be only if they made a square, (B, T, C)."""
    config = model.config
    cut = model.first.new_empty(batch, tokens - 1, config.channels * config.patch**2)
    return model.stack(torch.cat([model.first.expand(batch, -1, -1), model.patches(cut)], dim=1))


def _written(model: Transformer, job: Job) -> Written:
    """Make what stands before a model writes on."""
    config, like = model.config, next(model.parameters())
    crosses = isinstance(model, EncoderDecoder)
    layers = config.layers if config.decoder_layers is None or not crosses else config.decoder_layers
    shape = (job.batch, config.G, job.tokens, config.D)
    held = {Site("decoder", layer): (like.new_empty(shape), like.new_empty(shape)) for layer in range(layers)}
    return Cache(held), like.new_empty(job.batch, job.tokens if crosses else 0, config.width)


def _write(model: Transformer, ids: Tensor, before: Written) -> Tensor:
    cache, memory = before
    if isinstance(model, EncoderDecoder):
        return _scored(model, model.decode(ids, memory, cache=cache))
    return _scored(model, model(ids, cache=cache))


def _scored(model: Transformer, vectors: Tensor) -> Tensor:
    """Let a model say what it has to say about its vectors; some only have these."""
    config = model.config
    if isinstance(model, TextClassifier) or (isinstance(model, VisionTransformer) and config.classes):
        return model.logits(vectors)
    if not isinstance(model, VisionTransformer) and config.head != "none":
        return model.logits(vectors)
    return model.pooled(vectors) if isinstance(model, Encoder | VisionTransformer) and config.pooler else vectors


def _kept(run: Callable[[], Tensor], known: frozenset[int]) -> int:
    """Add up what autograd keeps: each storage once, however many views of it there are, and nothing that is known."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in known:
            kept[storage._cdata] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        end = run()  # as long as it lives, so does all that was kept, and no two storages are at one address
    total = sum(kept.values())
    del end
    return total


def _peak(run: Callable[[Any], Tensor], known: frozenset[int], prepare: Callable[[], Any] = tuple) -> int:
    """Note the most that is alive at once, above what was prepared and may be let go on the way."""
    with torch.no_grad(), _Alive(known) as alive:
        prepared = [prepare()]
        before = alive.now
        run(prepared.pop())
    return alive.peak - before


class _Attention(TorchFunctionMode):
    """Carry out attention in a given way, in this thread alone; PyTorch's own choice of kernels is the process's."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self._kernel = kernel

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not F.scaled_dot_product_attention:
            return func(*args, **kwargs)
        q, k, v = args
        mask, causal, scale = kwargs["attn_mask"], kwargs["is_causal"], kwargs["scale"]
        if self._kernel == "standard" or (mask is not None and mask.requires_grad):
            return spelt_out(q, k, v, mask=mask, causal=causal, scale=scale)
        if mask is not None and mask.dtype == torch.bool:  # as PyTorch does it
            mask = torch.where(mask, 0.0, float("-inf")).to(q.dtype)
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        return flash(q, k, v, 0.0, causal, attn_mask=mask, scale=scale)[0]


class _Alive(TorchDispatchMode):
    """Follow which memory is alive while operations are carried out, and note the most."""

    def __init__(self, known: frozenset[int]) -> None:
        super().__init__()
        self._known = known
        self._held: dict[int, tuple[StorageWeakRef, int]] = {}
        self.now = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for key, (storage, size) in list(self._held.items()):
            if storage.expired():
                del self._held[key]
                self.now -= size
        for made in tree_leaves(out):
            if isinstance(made, Tensor):
                self._hold(made.untyped_storage())
        self.peak = max(self.peak, self.now)
        return out

    def _hold(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata not in self._known and storage._cdata not in self._held:
            self._held[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
            self.now += storage.nbytes()
