"""The sizes that decide what a model costs: read off known models, and off whatever is loaded.

L layers, H heads, G key-value heads, D head width, C model width, F feed-forward width, V vocabulary.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import (
    PRESETS,
    Decoder,
    Encoder,
    EncoderDecoder,
    HuggingFaceModel,
    ModelError,
    ShapeError,
    build,
    count_parameters,
    load,
    untrained,
)
from engine.catalogue import load_huggingface
from engine.config import GATED
from engine.sizes import sizes_of, sizes_of_preset
from tests.passes import shrunk, sized
from tests.tiny_models import FAMILIES, RECORDED, RETURNED, save, tiny
from tests.tiny_models import build as tiny_module

torch.set_num_threads(1)

# What the tiny families were made with: H, G, F, whether there is a gate, how far each layer reaches back.
PLAIN = (4, 4, 64, False, (None, None))
EXPECTED: dict[str, tuple[int, int, int, bool, tuple[int | None, ...]]] = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "albert", "distilbert", "electra", "mpnet"), PLAIN),
    **dict.fromkeys(("gpt-neox", "opt", "phi", "t5", "deberta", "deberta-v2", "xlnet"), PLAIN),
    **dict.fromkeys(("gpt2", "gptj", "bloom", "mpt", "gpt-neo"), (4, 4, 128, False, (None, None))),
    **dict.fromkeys(("bart", "mbart", "pegasus", "marian", "m2m-100"), (4, 4, 64, False, (None, None, None))),
    "modernbert": (4, 4, 64, True, (None, 3, None)),
    "llama": (8, 2, 64, True, (None, None)),
    "mistral": (4, 2, 64, True, (4, 4)),
    **dict.fromkeys(("gemma2", "gemma3"), (4, 2, 64, True, (4, None, 4))),
    **dict.fromkeys(("qwen2", "qwen3", "olmo2"), (4, 2, 64, True, (None, None))),
    "smollm": (3, 1, 64, True, (None, None)),
    "gpt-oss": (4, 2, 64, True, (4, None, 4)),
    "mt5": (4, 4, 64, True, (None, None, None)),
    "falcon": (4, 1, 128, False, (None, None)),
}
# Whose layers are not attention and one feed-forward part each: shared layers, experts, matrices for distances.
DIFFERENT = {"albert", "gpt-oss", "deberta", "deberta-v2", "xlnet"}
WRITING = {name for name, family in FAMILIES.items() if "decoder" in family.kinds}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_sizes_of_a_loaded_model_are_its_configurations(name: str):
    """Heads, key-value heads, head width, feed-forward width, gate and windows, whatever a family calls them."""
    model, (heads, groups, inner, gate, windows) = tiny(name), EXPECTED[name]
    sizes = sizes_of(model)
    config = sizes.config
    width = 48 if name == "smollm" else 32
    assert (config.heads, config.G, config.feed_forward) == (heads, groups, inner)
    assert (config.width, config.D) == (width, 8 if name != "smollm" else 16)
    assert (config.activation in GATED) is gate
    assert sizes.windows == windows
    assert config.layers == (3 if len(windows) == 3 and "cross" not in model.card.kinds else 2)
    assert sizes.parameters == sum(one.numel() for one in model.module.parameters())
    assert sizes.writes is (name in WRITING)
    assert config.vocabulary == model.module.config.vocab_size
    assert (config.head == "none") is (model.module.get_output_embeddings() is None)


def test_every_family_is_tested():
    assert set(EXPECTED) == set(RECORDED) | set(RETURNED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_note_appears_only_where_parts_differ(name: str):
    """With both numbers; where it is silent, the layers' matrices are exactly what the sizes say."""
    model = tiny(name)
    sizes = sizes_of(model)
    assert bool(sizes.note) is (name in DIFFERENT)
    expected = sizes.attentions * sizes.attention_numbers + sizes.layers * sizes.feed_forward_numbers
    if sizes.note:
        assert f"they would hold {expected:,}: it has parts that are not counted here, or shares some." in sizes.note
        return
    tables = {id(part.weight) for part in model.module.modules() if isinstance(part, torch.nn.Embedding)}
    found = sum(
        one.numel()
        for path, one in model.module.named_parameters()
        if one.dim() == 2 and id(one) not in tables and any(step.isdigit() for step in path.split("."))
    )
    assert found == expected


def test_an_encoder_decoder_has_the_layers_of_both():
    """Two in the encoder and three in the decoder, with three attentions across."""
    sizes = sizes_of(tiny("bart"))
    assert sizes.make is EncoderDecoder
    assert (sizes.config.layers, sizes.decoder_layers, sizes.layers, sizes.attentions) == (2, 3, 5, 8)
    assert len(sizes.windows) == 3


@pytest.mark.parametrize(("name", "entry"), [("gptj", "n_inner"), ("falcon", "ffn_hidden_size")])
def test_a_feed_forward_width_of_ones_own_is_found(name: str, entry: str, tmp_path: Path):
    """Under the name that the family has for it."""
    changes: Any = {entry: 80}
    sizes = sizes_of(load_huggingface(str(save(name, tmp_path, **changes)), device="cpu"))
    assert (sizes.config.feed_forward, sizes.note) == (80, "")


def test_minilm_is_what_its_card_says(minilm: HuggingFaceModel):
    """Six layers, 12 heads of 32, a feed-forward part four times as wide, and 22.7 million parameters."""
    sizes = sizes_of(minilm)
    config = sizes.config
    assert (sizes.make, sizes.name, sizes.note) == (Encoder, "MiniLM", "")
    assert (config.layers, config.heads, config.D, config.width, config.feed_forward) == (6, 12, 32, 384, 1536)
    assert sizes.parameters == 22_713_216
    assert sizes.windows == (None,) * 6


def test_minilm_in_our_own_code_has_the_same_sizes(minilm: HuggingFaceModel):
    """Read off our module instead of a configuration of theirs."""
    own = sizes_of(load("minilm-scratch", device="cpu"))
    theirs = sizes_of(minilm)
    assert (own.config, own.parameters, own.windows) == (theirs.config, theirs.parameters, theirs.windows)


@pytest.mark.parametrize("name", ["gpt2", "mistral-7b", "bert-base", "t5-small", "course-classifier"])
def test_our_own_models_have_the_sizes_they_were_built_with(name: str):
    sizes = shrunk(name, 2, **({"decoder_layers": 3} if name == "t5-small" else {}), window=5)
    read = sizes_of(untrained(sizes.make, sizes.config))
    assert (read.make, read.config, read.parameters, read.windows) == (
        sizes.make,
        sizes.config,
        sizes.parameters,
        (5,) * (3 if name == "t5-small" else 2),
    )


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_known_model_has_its_parameters_and_windows(name: str):
    known = PRESETS[name]
    sizes = sizes_of_preset(known)
    assert sizes.parameters == sum(count_parameters(build(known.make, known.config, device="meta")).values())
    assert sizes.name == known.title
    assert sizes.windows == ((4096,) * 32 if name == "mistral-7b" else (None,) * known.config.layers)
    assert sizes.writes is (known.make in (Decoder, EncoderDecoder))


@pytest.mark.parametrize("name", ["gpt2", "llama-3-8b", "t5-small", "bart-base", "bert-base", "vit-b16"])
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@pytest.mark.parametrize("bias", [True, False])
def test_sharing_gives_the_parameters_of_the_model_built_so(name: str, groups: int, bias: bool):
    """Attention across included, with constants and without."""
    sizes = shrunk(name, 2, bias=bias, qk_norm=True, **({"decoder_layers": 3} if name == "t5-small" else {}))
    shared = sizes.sharing(groups)
    assert shared.parameters == sized(name, replace(sizes.config, kv_heads=groups)).parameters
    assert (shared.config.G, shared.windows, shared.make) == (groups, sizes.windows, sizes.make)
    assert shared.sharing(sizes.config.G).parameters == sizes.parameters


def test_sharing_goes_by_the_names_of_the_papers():
    """All heads for themselves, one for all, or groups; a model's own number needs no name."""
    sizes = sizes_of_preset(PRESETS["llama-3-8b"])
    names = {groups: sizes.sharing(groups).name for groups in (32, 8, 4, 1)}
    assert names == {
        32: "Llama 3 8B, multi-head",
        8: "Llama 3 8B",
        4: "Llama 3 8B, grouped-query",
        1: "Llama 3 8B, multi-query",
    }
    assert sizes.sharing(8) == sizes


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "gemma3", "qwen2", "qwen3"])
@pytest.mark.parametrize("groups", [1, 4])
def test_sharing_gives_the_parameters_of_transformers_model_built_so(name: str, groups: int):
    """Gemma has no constants, Qwen 2 has them in its queries, keys and values."""
    module, _ = tiny_module(name, num_key_value_heads=groups)
    expected = sum(one.numel() for one in module.parameters())
    assert sizes_of(tiny(name)).sharing(groups).parameters == expected


@pytest.mark.parametrize("groups", [5, 0, 13])
def test_heads_that_cannot_be_shared_evenly_are_refused(groups: int):
    with pytest.raises(ShapeError, match=f"12 heads cannot share {groups}|kv_heads is 0"):
        sizes_of_preset(PRESETS["gpt2"]).sharing(groups)


def test_a_window_can_be_put_on_every_layer_and_taken_off():
    mistral = sizes_of_preset(PRESETS["mistral-7b"])
    assert mistral.windowed(None).windows == (None,) * 32
    assert mistral.windowed(None).config.window is None
    assert mistral.windowed(7).windows == (7,) * 32
    assert mistral.windowed(7).config.window == 7
    assert mistral.windowed(4096) == mistral


def test_numbers_in_attention_and_feed_forward_are_those_of_the_matrices():
    """Queries and output 2·H·D·C, keys and values 2·G·D·C; two matrices of C·F, with a gate three."""
    for name in ("gpt2", "llama-3-8b", "t5-small"):
        sizes = shrunk(name, 3, bias=False)
        counts = count_parameters(build(sizes.make, sizes.config, device="meta"))
        attention = counts["attention"] + counts.get("cross-attention", 0)
        assert sizes.attentions * sizes.attention_numbers == attention
        assert sizes.layers * sizes.feed_forward_numbers == counts["feed-forward"]


class Strange:
    """A model of a kind that nobody has heard of."""

    card = tiny("bert").card


def test_a_model_of_no_known_kind_has_no_sizes():
    strange: Any = Strange()
    with pytest.raises(ModelError, match="The sizes of bert cannot be read off"):
        sizes_of(strange)


def test_a_model_that_does_not_say_how_wide_it_is_is_refused(monkeypatch: pytest.MonkeyPatch):
    class Silent:
        vocab_size = 5

    model = tiny("roberta")
    monkeypatch.setattr(type(model.module.config), "get_text_config", lambda self: Silent())
    with pytest.raises(ModelError, match="The configuration of roberta does not say how wide it is"):
        sizes_of(model)
