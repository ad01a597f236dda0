"""What a pass holds in memory: counted without numbers, and the same as what PyTorch hands out in a run with numbers.

B batch, L layers, H heads, G key-value heads, T tokens, D head width, C model width.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from engine import PRESETS, Cache, Config, Decoder, Encoder, EncoderDecoder, ShapeError, Site, build
from engine._textbook import spelt_out
from engine.activations import Kernel, activation_bytes
from engine.cost import BYTES, Job
from engine.presets import Transformer
from engine.sizes import Sizes, sizes_of_preset
from tests.passes import PATCHES, loss, read, shrunk, text

# Kernels have a little memory of their own for each thread, which these sizes would notice.
torch.set_num_threads(1)

T = 40
KERNELS: tuple[Kernel, ...] = ("standard", "flash")
DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# In half precision they have some more, for what they convert on the side.
SCRATCH = 16_384


def made(sizes: Sizes, dtype: str) -> Transformer:
    """The model itself, with numbers."""
    return build(sizes.make, sizes.config).to(DTYPES[dtype])


def handed_out(run: Callable[[], object]) -> int:
    """The most memory that PyTorch's allocator has out at once while something runs, in bytes."""
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        run()
    now, most = 0, 0
    for event in watched.profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    return most


def kept(model: Transformer, ids: Tensor) -> int:
    """What autograd keeps of a run with numbers, each piece of memory once, without parameters and the text itself."""
    held: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        held[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        end = loss(model, ids)
    for given in (*model.parameters(), ids):
        held.pop(given.untyped_storage().data_ptr(), None)
    del end
    return sum(held.values())


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """Either kernel; with the standard one, whatever runs with numbers spells its attention out."""
    if request.param == "standard":

        def standard(q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor | None, is_causal: bool, **more: Any):
            return spelt_out(q, k, v, mask=attn_mask, causal=is_causal, scale=more["scale"])

        monkeypatch.setattr(F, "scaled_dot_product_attention", standard)
    chosen: Kernel = request.param
    return chosen


DIFFERENT = ("bert-base", "gpt2", "llama-2-7b", "llama-3-8b", "vit-b16", "t5-small", "bart-base", "course-classifier")


@pytest.mark.parametrize("name", DIFFERENT)
def test_reading_holds_what_the_allocator_hands_out(name: str, kernel: Kernel):
    """To the byte in float32, as PyTorch's own profiler adds it up; the image is given, so a ViT reads 37 tokens.

    T5's matrix of position biases is laid out anew by the flash kernel on its way in, once per run.
    """
    sizes = shrunk(name)
    tokens, ids, model = PATCHES if name == "vit-b16" else T, text(T), made(sizes, "float32")
    expected = handed_out(lambda: read(model, ids)) - (3 * 96 * 96 * 4 if name == "vit-b16" else 0)
    counted = activation_bytes(sizes, Job(tokens), "float32", kernel)
    again = 4 * T * T if (name, kernel) == ("t5-small", "flash") else 0
    assert counted == expected - again


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", ["gpt2", "llama-3-8b", "bert-base"])
def test_reading_in_another_precision_holds_that_and_a_little_scratch(name: str, dtype: str, kernel: Kernel):
    """In half precision PyTorch's kernels convert pieces on the side; never more than a few kilobytes."""
    sizes = shrunk(name)
    model, ids = made(sizes, dtype), text(T)
    found = handed_out(lambda: read(model, ids))
    counted = activation_bytes(sizes, Job(T), dtype, kernel)
    assert counted <= found <= counted + SCRATCH


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "float32") for name in DIFFERENT), ("gpt2", "bfloat16"), ("llama-3-8b", "bfloat16")]
)
def test_training_keeps_what_autograd_keeps(name: str, dtype: str, kernel: Kernel):
    """To the byte, as a run with numbers shows.

    A learned bias cannot be trained through PyTorch's flash kernel on a CPU: a T5 spells its self-attention out
    under either, and so it is run here.
    """
    sizes = shrunk(name)
    tokens = PATCHES if name == "vit-b16" else T
    counted = activation_bytes(sizes, Job(tokens, training=True), dtype, kernel)
    if (name, kernel) == ("t5-small", "flash"):
        assert activation_bytes(shrunk(name, positions="none"), Job(T, training=True), dtype, "flash") < counted
        assert counted < activation_bytes(sizes, Job(T, training=True), dtype, "standard")
    else:
        assert counted == kept(made(sizes, dtype), text(T))


def test_writing_holds_one_token_and_a_copy_of_a_layers_cache(kernel: Kernel):
    """As the allocator hands it out: what was in the cache is not counted, and what is replaced is let go in turn.

    The flash kernel has less than a kilobyte of its own.
    """
    sizes = shrunk("llama-3-8b")
    model, length = made(sizes, "float32"), 200
    assert isinstance(model, Decoder)

    def write() -> None:
        cache = Cache({Site("decoder", layer): (torch.ones(old), torch.ones(old)) for layer in range(4)})
        model.logits(model(torch.zeros(1, 1, dtype=torch.long), cache=cache))

    old = (1, 2, length, 8)
    before = 4 * 2 * 2 * length * 8 * 4 + 8
    counted, found = activation_bytes(sizes, Job(length, step="write"), "float32", kernel), handed_out(write) - before
    assert counted <= found <= counted + (1024 if kernel == "flash" else 0)


@pytest.mark.parametrize("name", ["gpt2", "bart-base"])
@pytest.mark.parametrize("training", [True, False])
def test_layers_are_counted_on_from_three(name: str, training: bool, kernel: Kernel):
    """Five layers, and of an encoder-decoder seven more, hold what two and one more again and again come to."""
    sizes = shrunk(name, 5, decoder_layers=7 if name == "bart-base" else None)
    model, ids = made(sizes, "float32"), text(T)
    expected = kept(model, ids) if training else handed_out(lambda: read(model, ids))
    assert activation_bytes(sizes, Job(T, training=training), "float32", kernel) == expected


@pytest.mark.parametrize("layers", [1, 2])
def test_one_layer_or_two_are_counted_as_they_are(layers: int, kernel: Kernel):
    sizes = shrunk("llama-3-8b", layers)
    model, ids = made(sizes, "float32"), text(T)
    assert activation_bytes(sizes, Job(T), "float32", kernel) == handed_out(lambda: read(model, ids))


def squares(sizes: Sizes, kernel: Kernel, dtype: str = "float32", training: bool = True) -> float:
    """What every pair of tokens adds: half of how far three lengths are from a straight line."""
    n = 1024
    one, two, three = (activation_bytes(sizes, Job(times * n, training=training), dtype, kernel) for times in (1, 2, 3))
    return (three - 2 * two + one) / (2 * n * n)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["gpt2", "llama-3-8b", "bert-base"])
def test_a_pair_costs_a_weight_per_head_and_layer_to_train_and_nothing_with_flash(name: str, dtype: str):
    """Standard: H · bytes in each layer, and where a mask hides what comes later, one boolean; flash: linear."""
    sizes = sizes_of_preset(PRESETS[name])
    config = sizes.config
    mask = 1 if sizes.writes else 0
    assert squares(sizes, "standard", dtype) == config.layers * (config.heads * BYTES[dtype] + mask)
    assert squares(sizes, "flash", dtype) == 0


def test_a_pair_costs_two_matrices_of_one_layer_to_read():
    """The scores and what the softmax makes of them, and the mask; no layer waits for another."""
    sizes = replace(sizes_of_preset(PRESETS["gpt2"]), config=replace(PRESETS["gpt2"].config, head="none"))
    assert squares(sizes, "standard", training=False) == 2 * 12 * 4 + 1
    assert squares(sizes, "flash", training=False) == 0


def test_a_learned_bias_is_a_matrix_under_any_kernel():
    """T5's position biases grow with the square of the text even where nothing else does."""
    assert squares(sizes_of_preset(PRESETS["t5-small"]), "flash", training=False) > 0


def test_a_window_is_a_rule_to_flash_and_a_mask_to_the_standard_kernel():
    """Mistral under flash holds what it would without its window."""
    mistral = sizes_of_preset(PRESETS["mistral-7b"])
    for training in (True, False):
        job = Job(8192, training=training)
        without = mistral.windowed(None)
        assert activation_bytes(mistral, job, "bfloat16") == activation_bytes(without, job, "bfloat16")
    assert squares(mistral, "flash") == 0


def test_a_batch_holds_as_much_as_its_texts():
    """But for what they share: the positions, 8 bytes a token, and the sum's own two numbers."""
    sizes = shrunk("gpt2")
    one, four = (activation_bytes(sizes, Job(T, batch, training=True), "float32", "flash") for batch in (1, 4))
    shared = 8 * T + 4
    assert four - shared == 4 * (one - shared)


def test_dropout_and_a_soft_cap_are_left_out():
    """A kernel that caps its scores does so on the way; dropout is a choice of who trains."""
    plain = shrunk("gpt2")
    changed = replace(plain, config=replace(plain.config, dropout=0.5, softcap=30.0))
    for training in (True, False):
        job = Job(T, training=training)
        assert activation_bytes(changed, job, "float32") == activation_bytes(plain, job, "float32")


def test_weights_in_8_bits_are_computed_with_in_16():
    sizes = shrunk("gpt2")
    assert activation_bytes(sizes, Job(T), "float8") == activation_bytes(sizes, Job(T), "bfloat16")


@pytest.mark.parametrize("name", ["gpt2", "llama-3-8b"])
def test_a_million_tokens_are_counted_at_once(name: str):
    """Far more than any machine has; a page waits for this, so it takes a fraction of a second even where others work.

    Undisturbed it is 20 to 50 ms.
    """
    sizes = sizes_of_preset(PRESETS[name])
    activation_bytes(sizes, Job(10), "float32")
    took = []
    for training in (True, False) * 3:
        start = time.perf_counter()
        total = activation_bytes(sizes, Job(1_000_000, training=training), "float32", "standard")
        took.append(time.perf_counter() - start)
        assert total > 10**13
    assert min(took) < 0.15


def test_it_leaves_attention_as_it_was_for_everybody_else(monkeypatch: pytest.MonkeyPatch):
    """While it counts, another thread attends as ever, and PyTorch's switches, the whole process's, are not touched."""
    q = torch.randn(1, 2, 5, 4)
    expected, before = F.scaled_dot_product_attention(q, q, q), torch.backends.cuda.flash_sdp_enabled()
    seen: list[tuple[bool, bool]] = []
    real = Decoder.forward

    def elsewhere() -> None:
        same = torch.equal(F.scaled_dot_product_attention(q, q, q), expected)
        seen.append((same, torch.backends.cuda.flash_sdp_enabled() == before))

    def watched(self: Decoder, *given: Any, **more: Any) -> Tensor:
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()
        return real(self, *given, **more)

    monkeypatch.setattr(Decoder, "forward", watched)
    activation_bytes(shrunk("gpt2"), Job(T), "float32", "standard")
    assert seen == [(True, True)] * 2


@pytest.mark.parametrize(
    ("name", "job", "dtype", "said"),
    [
        ("gpt2", Job(5), "int4", "There is no precision 'int4'; there is float64, float32, bfloat16, float16, float8."),
        ("bert-base", Job(5, step="write"), "float32", "bert-base reads texts and does not write them, so there is no"),
        ("gpt2", Job(10**10, training=True), "float32", "1 × 10,000,000,000 tokens are too many to be counted"),
    ],
)
def test_what_cannot_be_counted_is_refused(name: str, job: Job, dtype: str, said: str):
    with pytest.raises(ShapeError) as refusal:
        activation_bytes(shrunk(name), job, dtype, "standard")
    assert str(refusal.value).startswith(said)


def test_a_model_of_another_make_can_be_counted():
    """Sizes that were read off a configuration, without positions, are enough."""
    config = Config(width=32, layers=2, heads=4, feed_forward=64, vocabulary=20, positions="none", head="tied")
    for make in (Encoder, Decoder, EncoderDecoder):
        assert activation_bytes(Sizes("one", make, config, (None, None), 0), Job(T), "float32") > 0
