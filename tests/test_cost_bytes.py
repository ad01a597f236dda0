"""What reading and writing takes in memory, by formula, beside the tensors that are really there.

B batch, L layers, H heads, G key-value heads, D head width, C model width.
"""

from typing import Any

import pytest
import torch

from engine import PRESETS, Cache, Decoder, EncoderDecoder, ShapeError, build, untrained
from engine.cost import (
    BYTES,
    Job,
    flash_bytes,
    flops,
    kv_cache_bytes,
    moment_bytes,
    parameter_bytes,
    score_bytes,
    score_bytes_at_once,
    seconds,
)
from engine.sizes import sizes_of, sizes_of_preset
from tests.passes import shrunk, text
from tests.tiny_models import build as tiny_module
from tests.tiny_models import tiny

torch.set_num_threads(1)

DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
GPT2 = sizes_of_preset(PRESETS["gpt2"])
LLAMA3 = sizes_of_preset(PRESETS["llama-3-8b"])


def test_the_numbers_of_the_known_models():
    """KV caches of 1 and 4 GiB, score matrices of 604 MB and 9.7 GB, and exactly four times as much for twice 4,096."""
    job = Job(8192)
    assert kv_cache_bytes(LLAMA3, job, "bfloat16") == 1_073_741_824
    assert kv_cache_bytes(LLAMA3.sharing(32), job, "bfloat16") == 4 * 2**30
    assert kv_cache_bytes(LLAMA3.sharing(1), job, "bfloat16") == 2**27
    assert score_bytes(GPT2, Job(1024), "float32") == 603_979_776
    assert score_bytes(GPT2, Job(4096), "float32") == 9_663_676_416
    assert score_bytes(GPT2, Job(8192), "float32") == 4 * score_bytes(GPT2, Job(4096), "float32")
    assert score_bytes_at_once(GPT2, Job(4096), "float32") == 9_663_676_416 // 12
    assert parameter_bytes(GPT2, "float32") == 4 * 124_439_808


@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("name", ["gpt2", "llama-3-8b", "t5-small", "vit-b16"])
def test_parameters_take_what_the_tensors_take(name: str, dtype: str):
    sizes = shrunk(name)
    model = build(sizes.make, sizes.config).to(DTYPES[dtype])
    assert parameter_bytes(sizes, dtype) == sum(one.nbytes for one in model.parameters())
    assert parameter_bytes(sizes, "float8") == sizes.parameters


@torch.no_grad()
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_a_cache_takes_what_our_decoders_cache_holds(groups: int, dtype: str):
    """After reading 11 tokens of two texts, and after one more."""
    sizes = shrunk("llama-3-8b", kv_heads=groups)
    model, cache = build(sizes.make, sizes.config).to(DTYPES[dtype]), Cache()
    assert isinstance(model, Decoder)
    for tokens, total in ((11, 11), (1, 12)):
        model(text(tokens, 2), cache=cache)
        assert cache.nbytes == kv_cache_bytes(sizes, Job(total, 2), dtype)


@torch.no_grad()
def test_a_decoder_beside_an_encoder_keeps_both_texts():
    """Its own part is our cache; as much again is for the text across, which ours keeps as vectors instead."""
    sizes = shrunk("t5-small", 2, decoder_layers=3)
    model, cache = build(sizes.make, sizes.config), Cache()
    assert isinstance(model, EncoderDecoder)
    model.decode(text(9), model.encode(text(9)), cache=cache)
    assert kv_cache_bytes(sizes, Job(9), "float32") == 2 * cache.nbytes


@torch.no_grad()
@pytest.mark.parametrize(("family", "length"), [("llama", 3), ("llama", 40), ("mistral", 3), ("mistral", 40)])
def test_a_cache_takes_what_transformers_holds(family: str, length: int):
    """With 8 heads that share 2; with a window of 4, transformers keeps 3 tokens between two steps.

    The fourth is the token that is read next: while it is read, a layer holds all 4, which is what is counted.
    """
    module, _ = tiny_module(family)
    layers: list[Any] = module(text(length), use_cache=True).past_key_values.layers
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in layers)
    sizes = sizes_of(tiny(family))
    kept = min(length, 3) if family == "mistral" else length
    assert kv_cache_bytes(sizes, Job(length), "float32") * kept == held * min(length, sizes.windows[0] or length)


def test_adams_moments_are_two_float32_for_every_parameter():
    """As PyTorch's own optimizer keeps them after a step, its counter of steps aside."""
    sizes = shrunk("gpt2", 2)
    model = build(sizes.make, sizes.config)
    adam = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    adam.step()
    kept = (value for held in adam.state.values() for name, value in held.items() if name != "step")
    assert moment_bytes(sizes) == sum(value.nbytes for value in kept)


def test_an_encoder_keeps_no_cache():
    assert kv_cache_bytes(sizes_of_preset(PRESETS["bert-base"]), Job(100), "float32") == 0


@pytest.mark.parametrize("name", ["gpt2", "bert-base", "t5-small", "llama-3-8b"])
def test_weights_take_what_a_recording_computes(name: str):
    """All maps of a run in float32, cross-attention's and the encoder's too; one layer's at a time."""
    sizes = shrunk(name, 2, **({"decoder_layers": 3} if name == "t5-small" else {}))
    trace = untrained(sizes.make, sizes.config).run("one two three four five six seven")
    maps = [recorded.call.weights() for recorded in trace.sites.values()]  # type: ignore[union-attr]
    job = Job(len(trace.tokens))
    assert score_bytes(sizes, job, "float32") == sum(weights.nbytes for weights in maps)
    assert score_bytes_at_once(sizes, job, "float32") == max(weights.nbytes for weights in maps)


def test_flash_keeps_one_number_for_every_query_and_head():
    """PyTorch's kernel gives it back beside the output, in float32 whatever the precision."""
    for dtype in (torch.float32, torch.bfloat16):
        q = torch.zeros(3, 6, 11, 8, dtype=dtype)
        _, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, q, q)
        assert flash_bytes(shrunk("gpt2", 4), Job(11, 3)) == 4 * sums.nbytes
    assert flash_bytes(shrunk("bart-base", 2, decoder_layers=3), Job(11, 3)) == (2 + 2 * 3) * sums.nbytes
    assert flash_bytes(GPT2, Job(500, step="write")) == flash_bytes(GPT2, Job(1))


@pytest.mark.parametrize("measure", [score_bytes, score_bytes_at_once, kv_cache_bytes])
def test_bytes_follow_the_batch_and_the_precision(measure: Any):
    one = measure(GPT2, Job(64), "float8")
    for dtype, size in BYTES.items():
        assert measure(GPT2, Job(64, 5), dtype) == 5 * size * one
    assert {**{name: torch.empty(0, dtype=kind).itemsize for name, kind in DTYPES.items()}, "float8": 1} == BYTES


def test_seconds_are_those_of_the_slower_of_arithmetic_and_memory():
    """Reading is held up by arithmetic, writing by memory: the weights and the cache are read once."""
    work = sum(flops(LLAMA3, Job(8192)).values())
    assert seconds(LLAMA3, Job(8192), "bfloat16", flop_per_second=1e12, bytes_per_second=1e12) == work / 1e12
    moved = 2 * LLAMA3.parameters + 2**30
    job = Job(8192, step="write")
    assert seconds(LLAMA3, job, "bfloat16", flop_per_second=1e15, bytes_per_second=1e12) == moved / 1e12


def test_an_unknown_precision_is_refused_with_those_that_exist():
    for measure in (score_bytes, score_bytes_at_once, kv_cache_bytes):
        with pytest.raises(ShapeError, match="There is no precision 'int4'; there is float64, float32, bfloat16"):
            measure(GPT2, Job(5), "int4")
    with pytest.raises(ShapeError, match="int4"):
        parameter_bytes(GPT2, "int4")
