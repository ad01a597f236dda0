"""Known models: their numbers of parameters to the last one, and how untrained ones are drawn.

L layers, H heads, G key-value heads, D head width, C model width, V vocabulary, F feed-forward width, T tokens.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from engine import Site, recording
from engine.config import Config
from engine.errors import ModelError
from engine.presets import PRESETS, SPREAD, build, count_parameters, initialise, llama_3_1, preset
from engine.rotary import Llama3, Scaling
from engine.transformer import Decoder, Encoder, EncoderDecoder, TextClassifier, VisionTransformer
from tests.small_transformers import small, some_ids

PUBLISHED = {
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama-2-7b": 6_738_415_616,
    "llama-3-8b": 8_030_261_248,
    "mistral-7b": 7_241_732_096,
    "vit-b16": 86_389_248,
    "t5-small": 60_506_624,
    "bart-base": 139_420_416,
    "course-classifier": 1_069_570,
}
EVERY: list[tuple[Any, Config]] = [
    (Encoder, small(head="tied", pooler=True, segments=2, embedding_norm=True)),
    (Decoder, small(head="own", kv_heads=2, positions="relative", qk_norm=True, activation="swiglu")),
    (EncoderDecoder, small(head="tied", bias=False, norm="rms")),
    (VisionTransformer, small(image=6, patch=2, classes=3)),
    (TextClassifier, small(classes=2)),
]


def on_meta(name: str) -> nn.Module:
    """A known model, shapes only."""
    known = preset(name)
    return build(known.make, known.config, device="meta")


def test_every_preset_has_its_published_number():
    assert set(PRESETS) == set(PUBLISHED)
    assert all(known.name == name and known.title and known.counted and known.source for name, known in PRESETS.items())


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_parameters_are_those_published_and_the_parts_add_up(name: str):
    """Counted on the meta device, where the largest takes no memory at all."""
    model = on_meta(name)
    assert sum(parameter.numel() for parameter in model.parameters()) == PUBLISHED[name]
    assert sum(count_parameters(model).values()) == PUBLISHED[name]
    assert all(parameter.is_meta for parameter in model.parameters())
    assert not list(model.buffers())
    assert not model.training


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "gpt2",
            {
                "token embedding": 50_257 * 768,
                "positions": 1024 * 768,
                "attention": 12 * 4 * (768 * 768 + 768),
                "feed-forward": 12 * (2 * 768 * 3072 + 3072 + 768),
                "norms": 25 * 2 * 768,
            },
        ),
        (
            "bert-base",
            {
                "token embedding": 30_522 * 768,
                "segment embedding": 2 * 768,
                "positions": 512 * 768,
                "attention": 12 * 4 * (768 * 768 + 768),
                "feed-forward": 12 * (2 * 768 * 3072 + 3072 + 768),
                "pooler": 768 * 768 + 768,
                "norms": 25 * 2 * 768,
            },
        ),
        (
            "llama-3-8b",
            {
                "token embedding": 128_256 * 4096,
                "attention": 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024),
                "feed-forward": 32 * 3 * 4096 * 14_336,
                "head": 128_256 * 4096,
                "norms": 65 * 4096,
            },
        ),
        (
            "t5-small",
            {
                "token embedding": 32_128 * 512,
                "positions": 2 * 32 * 8,
                "attention": 12 * 4 * 512 * 512,
                "cross-attention": 6 * 4 * 512 * 512,
                "feed-forward": 12 * 2 * 512 * 2048,
                "norms": (6 * 2 + 1 + 6 * 3 + 1) * 512,
            },
        ),
        (
            "vit-b16",
            {
                "patch embedding": 3 * 16 * 16 * 768 + 768,
                "class token": 768,
                "positions": 197 * 768,
                "attention": 12 * 4 * (768 * 768 + 768),
                "feed-forward": 12 * (2 * 768 * 3072 + 3072 + 768),
                "pooler": 768 * 768 + 768,
                "norms": 25 * 2 * 768,
            },
        ),
        (
            "course-classifier",
            {
                "token embedding": 5000 * 128,
                "positions": 256 * 128,
                "attention": 2 * 4 * (128 * 128 + 128),
                "feed-forward": 2 * (2 * 128 * 512 + 512 + 128),
                "classifier": 2 * 128 + 2,
                "norms": 4 * 2 * 128,
            },
        ),
    ],
)
def test_each_part_has_the_numbers_that_its_sizes_say(name: str, expected: dict[str, int]):
    """In the order in which a token meets them."""
    assert list(count_parameters(on_meta(name)).items()) == list(expected.items())


@pytest.mark.parametrize(
    ("name", "positions", "norm", "norm_place", "activation", "epsilon", "others"),
    [
        ("bert-base", "learned", "layer", "post", "gelu", 1e-12, {}),
        ("bert-large", "learned", "layer", "post", "gelu", 1e-12, {}),
        ("gpt2", "learned", "layer", "pre", "gelu_tanh", 1e-5, {}),
        ("gpt2-xl", "learned", "layer", "pre", "gelu_tanh", 1e-5, {}),
        ("llama-2-7b", "rotary", "rms", "pre", "swiglu", 1e-5, {"length": 4096}),
        ("llama-3-8b", "rotary", "rms", "pre", "swiglu", 1e-5, {"rotary_base": 500_000.0, "length": 8192}),
        ("mistral-7b", "rotary", "rms", "pre", "swiglu", 1e-5, {"window": 4096, "length": 32_768}),
        ("vit-b16", "learned", "layer", "pre", "gelu", 1e-12, {}),
        ("t5-small", "relative", "rms", "pre", "relu", 1e-6, {"scale": 1.0, "head_scale": 512**-0.5}),
        ("bart-base", "learned", "layer", "post", "gelu", 1e-5, {"reserved": 2}),
        ("course-classifier", "learned", "layer", "post", "gelu", 1e-5, {}),
    ],
)
def test_what_no_count_can_tell_is_as_published(
    name: str, positions: str, norm: str, norm_place: str, activation: str, epsilon: float, others: dict[str, Any]
):
    """Where the norms sit, what bends, how far a token looks: what is not said is as plain as it can be."""
    config = preset(name).config
    said = (config.positions, config.norm, config.norm_place, config.activation, config.epsilon)
    assert said == (positions, norm, norm_place, activation, epsilon)
    plain = {
        "window": None, "softcap": None, "scale": None, "qk_norm": False, "head_scale": 1.0, "reserved": 0,
        "rotary_base": 10_000.0, "rotary_layout": "half", "rotary_scaling": Scaling(),
    }  # fmt: skip
    assert {key: getattr(config, key) for key in plain | others} == plain | others


@pytest.mark.parametrize("tokens", [1, 11])
@pytest.mark.parametrize("name", ["gpt2-xl", "llama-2-7b", "llama-3-8b", "mistral-7b"])
def test_a_large_model_runs_on_the_meta_device_with_the_right_shapes(name: str, tokens: int):
    config = preset(name).config
    model = on_meta(name)
    assert isinstance(model, Decoder)
    with recording() as recorder:
        vectors = model(torch.zeros(1, tokens, dtype=torch.long, device="meta"))
    assert vectors.shape == (1, tokens, config.width)
    logits = model.logits(vectors)
    assert logits.is_meta
    assert logits.shape == (1, tokens, config.vocabulary)
    assert set(recorder.recorded) == {Site("decoder", layer) for layer in range(config.layers)}
    for recorded in recorder.recorded.values():
        assert recorded.call.q.shape == (1, config.heads, tokens, config.D)
        assert recorded.call.k.shape == (1, config.G, tokens, config.D)


def test_llama_3_8b_shares_a_key_head_among_four_query_heads():
    config = preset("llama-3-8b").config
    assert (config.heads, config.G, config.D, config.sharing) == (32, 8, 128, "grouped-query")
    assert preset("llama-2-7b").config.sharing == "multi-head"


def test_sharing_keys_and_values_saves_their_matrices_alone():
    """With 32 key-value heads Llama 3 8B would have 32 · 2 · 24 · 128 · 4096 more numbers, all in attention."""
    grouped, config = count_parameters(on_meta("llama-3-8b")), preset("llama-3-8b").config
    every = count_parameters(build(Decoder, replace(config, kv_heads=None), device="meta"))
    assert every.pop("attention") - grouped.pop("attention") == 32 * 2 * (32 - 8) * 128 * 4096
    assert every == grouped


def test_an_unknown_preset_is_refused_with_those_that_exist():
    with pytest.raises(ModelError, match="There is no preset 'gpt-5'") as refusal:
        preset("gpt-5")
    assert all(name in str(refusal.value) for name in PRESETS)


def test_llama_3_1_goes_eight_times_as_far():
    assert llama_3_1() == Llama3(factor=8.0, trained=8192, low=1.0, high=4.0)


@pytest.mark.parametrize(("make", "config"), EVERY)
def test_the_same_seed_draws_the_same_weights_and_another_others(make: Any, config: Config):
    torch.manual_seed(1)
    first = build(make, config, seed=3).state_dict()
    torch.manual_seed(2)
    again, other = build(make, config, seed=3).state_dict(), build(make, config, seed=4).state_dict()
    assert first.keys() == again.keys()
    assert all(torch.equal(first[name], again[name]) for name in first)
    drawn = [name for name, tensor in first.items() if tensor.dim() > 1]
    assert not any(torch.equal(first[name], other[name]) for name in drawn)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(("make", "config"), EVERY)
def test_building_leaves_pytorchs_own_random_numbers_alone(make: Any, config: Config, device: str):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    build(make, config, device=device)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("make", "config"), EVERY)
def test_an_untrained_model_begins_with_small_matrices_norms_of_1_and_constants_of_0(make: Any, config: Config):
    for name, parameter in build(make, config).named_parameters():
        assert parameter.device.type == "cpu"
        if parameter.dim() > 1:
            assert 0 < float(parameter.detach().abs().max()) < 6 * SPREAD
        else:
            assert torch.equal(parameter, torch.full_like(parameter, "bias" not in name))


def test_matrices_are_drawn_as_widely_as_asked():
    model = build(Decoder, small(width=128, feed_forward=512, vocabulary=1000))
    for spread in (SPREAD, 0.3):
        initialise(model, seed=0, spread=spread)
        assert float(model.get_parameter("tokens.weight").detach().std()) == pytest.approx(spread, rel=0.02)
        assert abs(float(model.get_parameter("tokens.weight").detach().mean())) < spread / 50


def test_a_built_model_is_ready_to_run():
    model = build(Decoder, small(head="tied", dropout=0.5), seed=1)
    assert isinstance(model, Decoder)
    assert not model.training
    assert model.logits(model(some_ids(2, 5))).isfinite().all()
    assert model.generate(some_ids(2, 5), 3).shape == (2, 8)
