"""Reading the sizes of Hugging Face models, moving their weights, and refusing what does not fit."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers
from torch import nn
from transformers import (
    BartConfig,
    BertConfig,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    Qwen3Config,
    T5Config,
    ViTConfig,
)

from engine.config import Config
from engine.errors import ModelError
from engine.presets import PRESETS, llama_3_1
from engine.rotary import DynamicNTK, Linear, Scaling, YaRN
from engine.weights import FAMILIES, config_from, rebuilt
from engine.weights_names import Laid
from tests.rebuilt_models import IMAGES, TEXTS, apart, pair, read_by_ours, texts_of
from tests.tiny_models import build

LLAMA_3: dict[str, Any] = {
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-5,
}
BASE: dict[str, Any] = {
    "encoder_layers": 6,
    "decoder_layers": 6,
    "d_model": 768,
    "encoder_ffn_dim": 3072,
    "decoder_ffn_dim": 3072,
}
KNOWN: dict[str, PreTrainedConfig] = {
    "bert-base": BertConfig(),
    "gpt2": GPT2Config(),
    "gpt2-xl": GPT2Config(n_embd=1600, n_layer=48, n_head=25),
    "llama-2-7b": LlamaConfig(max_position_embeddings=4096, rms_norm_eps=1e-5),
    "llama-3-8b": LlamaConfig(
        **LLAMA_3,
        vocab_size=128_256,
        max_position_embeddings=8192,
        rope_parameters={"rope_type": "default", "rope_theta": 500_000.0},
    ),
    "mistral-7b": MistralConfig(max_position_embeddings=32_768, rms_norm_eps=1e-5),
    "vit-b16": ViTConfig(),
    "t5-small": T5Config(),
    "bart-base": BartConfig(**BASE, encoder_attention_heads=12, decoder_attention_heads=12),
}


def spelled_out(config: Config) -> Config:
    """The same sizes with nothing left to be worked out, and without what sits on top of the layers."""
    depth = config.layers if config.decoder_layers is None else config.decoder_layers
    bare = replace(config, head="none", pooler=False)
    return replace(bare, kv_heads=config.G, head_width=config.D, decoder_layers=depth)


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_models_configuration_gives_the_preset_of_its_name(name: str):
    """Two independent readings of the same model: transformers' own configuration and our list."""
    make, config = config_from(KNOWN[name])
    preset = PRESETS[name]
    assert make is preset.make
    assert spelled_out(config) == spelled_out(preset.config)


def rope(kind: str, **parameters: Any) -> PreTrainedConfig:
    """A Llama for 64 tokens with these rotary positions."""
    given = {"rope_type": kind, "rope_theta": 10_000.0, **parameters}
    return LlamaConfig(max_position_embeddings=64, rope_parameters=given)


@pytest.mark.parametrize(
    ("config", "scaling"),
    [
        (rope("default"), Scaling()),
        (rope("linear", factor=4.0), Linear(4.0)),
        (rope("dynamic", factor=4.0), DynamicNTK(4.0, 64)),
        (rope("yarn", factor=4.0, original_max_position_embeddings=16), YaRN(4.0, 16)),
        (rope("yarn", factor=None, original_max_position_embeddings=16), YaRN(4.0, 16)),
        (rope("yarn", factor=4.0), YaRN(4.0, 64)),
        (
            rope("yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=8.0, beta_slow=2.0, truncate=False),
            YaRN(4.0, 16, fast=8.0, slow=2.0, truncate=False),
        ),
        (
            rope("yarn", factor=4.0, original_max_position_embeddings=16, mscale=1.5, mscale_all_dim=0.7),
            YaRN(4.0, 16, magnitude=1.5, magnitude_all=0.7),
        ),
        (
            rope("yarn", factor=4.0, original_max_position_embeddings=16, attention_factor=1.3),
            YaRN(4.0, 16, attention=1.3),
        ),
        (
            LlamaConfig(
                max_position_embeddings=131_072,
                rope_parameters={
                    "rope_type": "llama3",
                    "rope_theta": 500_000.0,
                    "factor": 8.0,
                    "low_freq_factor": 1.0,
                    "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 8192,
                },
            ),
            llama_3_1(),
        ),
    ],
)
def test_every_rope_scaling_becomes_ours(config: PreTrainedConfig, scaling: Scaling):
    """The trained length of dynamic scaling is the longest text, that of the others stands beside it."""
    assert config_from(config)[1].rotary_scaling == scaling


@pytest.mark.parametrize(
    "config",
    [
        BertConfig(hidden_dropout_prob=0.35),
        GPT2Config(resid_pdrop=0.35),
        ViTConfig(hidden_dropout_prob=0.35),
        T5Config(dropout_rate=0.35),
        BartConfig(dropout=0.35),
    ],
    ids=lambda config: config.model_type,
)
def test_dropout_comes_along_for_who_goes_on_training(config: PreTrainedConfig):
    """It is off until then."""
    assert config_from(config)[1].dropout == 0.35


REFUSED: list[tuple[PreTrainedConfig, str]] = [
    (transformers.RobertaConfig(), "family 'roberta'.*bert, gpt2, llama"),
    (transformers.MixtralConfig(), "family 'mixtral'"),
    (transformers.Gemma2Config(), "family 'gemma2'"),
    (BertConfig(is_decoder=True), "is_decoder set to True"),
    (BertConfig(add_cross_attention=True), "add_cross_attention"),
    (BertConfig(hidden_act="quick_gelu"), "'quick_gelu' in the feed-forward layers"),
    (GPT2Config(scale_attn_by_inverse_layer_idx=True), "scale_attn_by_inverse_layer_idx"),
    (GPT2Config(add_cross_attention=True), "add_cross_attention"),
    (GPT2Config(n_embd=10, n_head=3), "no multiple of 3 heads"),
    (LlamaConfig(attention_bias=True), "constants in some"),
    (LlamaConfig(hidden_act="relu"), "'relu' in the gate"),
    (LlamaConfig(num_attention_heads=8, num_key_value_heads=3), "8 heads cannot share 3"),
    (rope("default", partial_rotary_factor=0.5), "part of each head"),
    (rope("longrope", factor=2.0, short_factor=[1.0] * 64, long_factor=[2.0] * 64), "'longrope'"),
    (Qwen3Config(use_sliding_window=True, max_window_layers=3), "layers that see differently"),
    (ViTConfig(qkv_bias=False), "qkv_bias set to False"),
    (ViTConfig(pooler_output_size=5), "pooler_output_size set to 5"),
    (ViTConfig(pooler_act="relu"), "pooler_act"),
    (ViTConfig(image_size=30, patch_size=8), "30 pixels in patches of 8"),
    (ViTConfig(image_size=(32, 16)), "ours are squares"),
    (BartConfig(scale_embedding=True), "scale_embedding set to True"),
    (BartConfig(decoder_attention_heads=8), "another attention_heads"),
    (BartConfig(decoder_ffn_dim=8), "another ffn_dim"),
]


@pytest.mark.parametrize(("config", "message"), REFUSED)
def test_what_our_parts_cannot_do_is_refused_by_name(config: PreTrainedConfig, message: str):
    """Never approximated: a model that nearly fits is no proof of anything."""
    with pytest.raises(ModelError, match=message):
        config_from(config)


def test_a_scaling_without_its_numbers_is_refused():
    """Transformers itself only warns until such a model is built."""
    config = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
    del config.rope_parameters["low_freq_factor"]
    with pytest.raises(ModelError, match="lacks the entry 'low_freq_factor'"):
        config_from(config)


def test_different_bases_for_different_layers_are_refused():
    """As Gemma 3 has them."""
    config = rope("default")
    config.rope_parameters = {"full_attention": {"rope_type": "default", "rope_theta": 1e4}}
    with pytest.raises(ModelError, match="another rotary base"):
        config_from(config)


@pytest.mark.parametrize("name", [*TEXTS, *IMAGES])
def test_ours_has_as_many_numbers_as_theirs_and_every_one_is_filled(name: str):
    """What BERT keeps without reading, where its head is untied, is the one exception."""
    module, model = pair(name)
    unread = module.cls.predictions.bias.numel() if name == "bert with a head of its own" else 0
    theirs = sum(parameter.numel() for parameter in module.parameters())
    assert sum(parameter.numel() for parameter in model.parameters()) == theirs - unread
    assert all(parameter.device == module.device for parameter in model.parameters())
    assert not any(part.training for part in model.modules())


@pytest.mark.parametrize("family", FAMILIES)
def test_no_part_of_theirs_is_given_to_two_of_ours(family: str):
    """Save GPT-2's queries, keys and values, which lie side by side in one."""
    sources = FAMILIES[family].names.values()
    once = [source for source in sources if not (isinstance(source, Laid) and "c_attn" in source.name)]
    names = [source.name if isinstance(source, Laid) else source for source in once]
    assert len(set(names)) == len(names)


def test_what_sits_on_top_is_found_in_the_model():
    """A configuration does not tell: the same one serves models with and without a head."""
    found = {name: pair(name)[1].config for name in ("bert", "bert without pooler", "gpt2", "vit", "vit with labels")}
    assert [config.pooler for config in found.values()] == [True, False, False, True, False]
    assert [config.head for config in found.values()] == ["none", "tied", "tied", "none", "none"]
    assert [config.classes for config in found.values()] == [0, 0, 0, 0, 5]
    assert pair("gpt2 with a head of its own")[1].config.head == "own"


def test_weights_are_copies():
    """Training ours leaves theirs alone."""
    module, _ = build("gpt2")
    model = rebuilt(module)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    assert all(parameter.requires_grad and parameter.is_contiguous() for parameter in model.parameters())


def test_a_model_that_is_being_trained_gives_one_that_is_not():
    """Dropout would make every run another."""
    module, _ = build("bert")
    assert not any(part.training for part in rebuilt(module.train()).modules())


@pytest.mark.parametrize("name", ["bert", "llama, 2 of 8 heads", "t5", "bart"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_precision_is_theirs_and_costs_no_more_than_it_does_there(name: str, dtype: torch.dtype):
    """Double precision agrees far beyond float32; bfloat16 strays from it about as far as theirs does."""
    module, ours = pair(name)
    ids = texts_of(name)
    target = ids.flip(0) if module.config.is_encoder_decoder else None
    given = {"input_ids": ids} if target is None else {"input_ids": ids, "decoder_input_ids": target}
    exact = read_by_ours(ours, ids, target, None).output
    coarse = type(module)(module.config).eval()
    coarse.load_state_dict(module.state_dict())
    coarse = coarse.to(dtype)
    model: Any = rebuilt(coarse)
    assert {parameter.dtype for parameter in model.parameters()} == {dtype}
    output = read_by_ours(model, ids, target, None).output
    with torch.inference_mode():
        theirs = coarse(**given, use_cache=False)[0] if name != "bert" else coarse(**given)[0]
    assert output.dtype == theirs.dtype == dtype
    if dtype == torch.float64:
        assert apart(output, theirs) <= 1e-6
    else:
        assert apart(output.float(), exact) <= 2 * apart(theirs.float(), exact)


def nothing(module: Any) -> None:
    return


def untie_the_decoder(module: Any) -> None:
    module.model.decoder.embed_tokens.weight = nn.Parameter(module.model.shared.weight.clone())


def narrow_a_layer(module: Any) -> None:
    module.bert.encoder.layer[1].intermediate.dense.weight = nn.Parameter(torch.zeros(3, 32))


def add_to_the_scores(module: Any) -> None:
    module.final_logits_bias.add_(1.0)


def raise_the_precision_of_a_norm(module: Any) -> None:
    module.transformer.ln_f.double()


def forget_all_weights(module: Any) -> None:
    module.to("meta")


LEFT_OVER: list[tuple[str, str, Callable[[Any], None], str]] = [
    ("bert", "BertForSequenceClassification", nothing, "64 numbers of classifier.weight 0 find a place"),
    ("bert", "BertForPreTraining", nothing, "cls.seq_relationship.weight"),
    ("gpt2", "GPT2ForSequenceClassification", nothing, "numbers of score.weight 0 find"),
    ("t5", "T5EncoderModel", nothing, "no weight for decoder.positions.table.weight"),
    ("bart", "", untie_the_decoder, "numbers of decoder.embed_tokens.weight 0 find"),
    ("bart", "", add_to_the_scores, "final_logits_bias is not zero"),
    ("bert", "", narrow_a_layer, r"has the shape \(3, 32\), but stack.blocks.1.feed_forward.widen"),
    ("gpt2", "", raise_the_precision_of_a_norm, "come in float32, float64"),
    ("gpt2", "", forget_all_weights, "shapes but no weights"),
]


@pytest.mark.parametrize(("family", "model", "change", "message"), LEFT_OVER)
def test_a_weight_left_over_on_either_side_is_an_error(
    family: str, model: str, change: Callable[[Any], None], message: str
):
    """A model that was rebuilt in part would be wrong without saying so."""
    module, _ = build(family, model)
    with torch.no_grad():
        change(module)
    with pytest.raises(ModelError, match=message):
        rebuilt(module)


def test_a_part_of_a_weight_left_over_is_an_error_too(monkeypatch: pytest.MonkeyPatch):
    """Were GPT-2's keys taken from elsewhere, a third of what holds them would be left."""
    family = FAMILIES["gpt2"]
    names = {**family.names, "stack.blocks.*.attention.k": "h.*.attn.c_proj"}
    monkeypatch.setitem(FAMILIES, "gpt2", replace(family, names=names))
    with pytest.raises(ModelError, match=r"Of the 3,072 numbers of h.0.attn.c_attn.weight 2,048 find a place"):
        rebuilt(build("gpt2")[0])
