"""The probe: models that cannot be recorded are run eagerly, with a reason, and wrong ones are found out."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from transformers import masking_utils
from transformers.models.bloom import modeling_bloom
from transformers.models.llama import modeling_llama

from engine import CaptureError, HuggingFaceModel, Mask, MaskError, ModelError, ShapeError, Site
from engine.backend import BACKEND
from engine.catalogue import load_huggingface
from engine.eager import returned_attention
from tests.tiny_models import FAMILIES, LONG, RETURNED, SHORT, checkpoint, inputs, padded, save, stock, tiny
from tests.tiny_tokenizers import wordpiece

every_eager_family = pytest.mark.parametrize("name", sorted(RETURNED))


@every_eager_family
def test_a_family_that_cannot_be_recorded_is_run_eagerly_and_says_why(name: str):
    card = tiny(name).card
    assert card.backend == "eager"
    assert len(card.reason.split()) > 4
    assert (card.kinds, card.layers, card.heads) == (FAMILIES[name].kinds, 2, 4)
    assert tiny(name).module.config._attn_implementation == "eager"


@every_eager_family
def test_an_eager_run_shows_the_weights_that_the_model_returns(name: str):
    model = tiny(name)
    trace = model.run(LONG)
    given = inputs(model, [trace.prompt])
    with torch.inference_mode():
        returned = stock(name)(**given, output_attentions=True).attentions
    assert trace.layers() == len(returned) == 2
    for layer, weights in enumerate(returned):
        torch.testing.assert_close(trace.weights(layer), weights[0], rtol=0, atol=1e-6)
        torch.testing.assert_close(trace.weights(layer, 3), weights[0, 3], rtol=0, atol=1e-6)
        torch.testing.assert_close(trace.weights(layer).sum(-1), torch.ones(4, len(trace.tokens)))


@every_eager_family
def test_an_eager_model_takes_no_mask_but_its_own_and_says_why(name: str):
    with pytest.raises(MaskError, match=r"No other mask can be imposed on .+: .+"):
        tiny(name).run(SHORT, mask=Mask.bidirectional())


@every_eager_family
def test_an_eager_run_has_no_audit_and_no_queries_and_keys_and_says_why(name: str):
    trace = tiny(name).run(SHORT)
    audit = trace.audit()
    assert (audit.relative, audit.passed) == (None, False)
    assert tiny(name).card.reason in str(audit)
    with pytest.raises(ShapeError, match="weights only"):
        trace.parts(0, 0)


@pytest.mark.parametrize("name", ["bloom", "mpt", "falcon", "gpt-neo"])
def test_an_eager_decoder_is_causal(name: str):
    trace = tiny(name).run(LONG)
    for layer in range(2):
        assert not bool(trace.weights(layer).triu(1).any())
        assert torch.equal(trace.visible(layer, 0), torch.ones(len(trace.tokens), len(trace.tokens)).tril() > 0) or (
            name == "gpt-neo" and layer == 1
        )


@pytest.mark.parametrize("side", ["left", "right"])
@every_eager_family
def test_padding_is_invisible_to_an_eager_model(name: str, side: str):
    model = tiny(name)
    prompts = padded(model, [LONG, SHORT], side)
    real = torch.tensor(prompts[1].real)
    short = model._run(prompts, [], Mask.native())[1]
    for layer in range(2):
        to_padding = short.weights(layer)[:, real][..., ~real]
        assert to_padding.numel() > 0
        assert bool((to_padding == 0).all())


def test_an_unknown_backend_accepted_without_complaint_is_noticed(monkeypatch: pytest.MonkeyPatch):
    """BLOOM, made to claim that it can be set, runs under any name, and never calls the hook."""
    bloom = modeling_bloom.BloomPreTrainedModel
    monkeypatch.setattr(bloom, "_can_set_attn_implementation", classmethod(lambda cls: True))
    card = load_huggingface(str(checkpoint("bloom")), device="cpu").card
    assert card.backend == "eager"
    assert not bool(load_huggingface(str(checkpoint("bloom")), device="cpu").run(LONG).weights(0).triu(1).any())


def _without_mask(original: Any) -> Any:
    def create(config: Any, *arguments: Any, **named: Any) -> Tensor | None:
        mask = original(config, *arguments, **named)
        return None if config._attn_implementation == BACKEND else mask

    return create


def test_a_model_that_drops_its_padding_when_recorded_is_found_out(monkeypatch: pytest.MonkeyPatch):
    """Its calls look right, and only the padded outputs differ: MPNet and MPT did that."""
    expected = tiny("llama").run(LONG).weights(1)  # loaded before anything is spoilt, since all tests share it
    monkeypatch.setattr(modeling_llama, "create_causal_mask", _without_mask(masking_utils.create_causal_mask))
    model = load_huggingface(str(checkpoint("llama")), device="cpu")
    assert (model.card.backend, model.card.kinds) == ("eager", ("decoder",))
    assert "output changes" in model.card.reason
    torch.testing.assert_close(model.run(LONG).weights(1), expected)


def test_a_model_that_is_no_longer_causal_when_recorded_is_found_out(monkeypatch: pytest.MonkeyPatch):
    """Every call is made and none fails: what BLOOM did."""
    forward = modeling_llama.LlamaAttention.forward

    def forgetful(self: Any, *arguments: Any, **named: Any) -> Any:
        self.is_causal = self.config._attn_implementation != BACKEND
        return forward(self, *arguments, **named)

    monkeypatch.setattr(modeling_llama.LlamaAttention, "forward", forgetful)
    model = load_huggingface(str(checkpoint("llama")), device="cpu")
    assert model.card.backend == "eager"
    assert "output changes" in model.card.reason
    assert not bool(model.run(LONG).weights(0).triu(1).any())


def test_a_model_that_attends_in_unexpected_places_is_run_eagerly(monkeypatch: pytest.MonkeyPatch):
    forward = modeling_llama.LlamaAttention.forward

    def twice(self: Any, *arguments: Any, **named: Any) -> Any:
        forward(self, *arguments, **named)
        return forward(self, *arguments, **named)

    monkeypatch.setattr(modeling_llama.LlamaAttention, "forward", twice)
    card = load_huggingface(str(checkpoint("llama")), device="cpu").card
    assert card.backend == "eager"
    assert "4 places where 2 were expected" in card.reason


@pytest.mark.parametrize(
    ("name", "sizes", "sentence"),
    [
        ("FNetModel", {"intermediate_size": 64}, "has no attention that can be shown"),
        ("RwkvModel", {"attention_hidden_size": 32}, "no attention weights at encoder layer 0"),
        ("BigBirdModel", {"num_attention_heads": 4, "block_size": 4, "num_random_blocks": 2}, "keeps its weights"),
        ("LongformerModel", {"num_attention_heads": 4, "attention_window": [4, 4]}, "6 × 5 at encoder layer 0, where"),
    ],
)
def test_attention_that_is_none_or_of_another_layout_is_refused(
    tmp_path: Path, name: str, sizes: dict[str, Any], sentence: str
):
    """Bands and blocks of keys are no map of every query and key, and are never labelled as one."""
    tokenizer, builder = wordpiece(), getattr(transformers, name)
    config = builder.config_class(vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, **sizes)
    builder(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=sentence):
        load_huggingface(str(tmp_path), device="cpu")


@pytest.mark.parametrize(("name", "path"), [("mpnet", "mpnet.encoder.layer"), ("bloom", "transformer.h")])
def test_an_eager_run_with_a_layer_less_than_when_loaded_raises(tmp_path: Path, name: str, path: str):
    model = load_huggingface(str(save(name, tmp_path / name)), device="cpu")
    keep_layers(model, path, [0])
    with pytest.raises(CaptureError, match="attention in 1 places, but in 2 when it was loaded"):
        model.run(SHORT)


def test_a_model_without_attention_is_refused_with_a_sentence():
    with pytest.raises(ModelError, match="no attention"):
        load_huggingface(str(checkpoint("mamba")), device="cpu")


def test_a_text_tower_of_clip_is_causal_and_recorded():
    trace = tiny("clip-text").run(LONG)
    assert (trace.card.backend, trace.kinds) == ("sdpa", ("decoder",))
    assert not bool(trace.weights(1).triu(1).any())


def test_xlnet_shows_one_stream_both_ways():
    """Its second stream exists only where targets are asked for, which reading a text never does."""
    trace = tiny("xlnet").run(LONG)
    assert trace.kinds == ("encoder",)
    assert bool(trace.visible(0, 0).all())


def keep_layers(model: HuggingFaceModel, path: str, numbers: list[int]) -> None:
    """Make a model's stack out of its own layers, in this order."""
    layers = list(model.module.get_submodule(path).children())
    model.module.set_submodule(path, nn.ModuleList([layers[number] for number in numbers]))


def test_a_run_with_a_layer_less_than_when_loaded_raises(tmp_path: Path):
    model = load_huggingface(str(save("llama", tmp_path / "llama")), device="cpu")
    keep_layers(model, "model.layers", [0])
    with pytest.raises(CaptureError, match="1 times, but 2 times"):
        model.run(LONG)


def test_a_run_with_a_layer_more_than_when_loaded_raises(tmp_path: Path):
    model = load_huggingface(str(save("bert", tmp_path / "bert")), device="cpu")
    keep_layers(model, "bert.encoder.layer", [0, 1, 0])
    with pytest.raises(CaptureError, match="unexpected place"):
        model.run(LONG)


def test_a_run_whose_layers_changed_places_raises(tmp_path: Path):
    model = load_huggingface(str(save("bert", tmp_path / "bert")), device="cpu")
    keep_layers(model, "bert.encoder.layer", [1, 0])
    with pytest.raises(CaptureError, match="call 1 came from an unexpected place"):
        model.run(LONG)


def test_a_failed_run_leaves_the_model_fit_for_the_next():
    model = tiny("bert")
    with pytest.raises(MaskError):
        model.run(SHORT, mask=Mask.document([1, 2]))
    assert model.run(SHORT).audit().passed


@pytest.mark.parametrize("weights", [None, torch.ones(4, 3, 3)])
def test_attention_returned_for_some_layers_only_or_with_its_heads_merged_is_refused(weights: Tensor | None):
    outputs = SimpleNamespace(attentions=(torch.ones(1, 4, 3, 3), weights))
    with pytest.raises(ModelError, match="no attention weights at encoder layer 1"):
        returned_attention(outputs, False, "encoder")


def test_a_model_whose_cross_attention_is_an_empty_tuple_shows_the_rest():
    weights = (torch.ones(1, 4, 3, 3),)
    outputs = SimpleNamespace(encoder_attentions=weights, decoder_attentions=weights, cross_attentions=())
    assert set(returned_attention(outputs, True, "encoder")) == {Site("encoder", 0), Site("decoder", 0)}


def test_recorded_and_eager_models_live_together():
    """Loading and running one changes nothing for the other."""
    names = ("bert", "bloom", "llama", "mpnet", "t5")
    before = {name: tiny(name).run(SHORT, target="a cat" if name == "t5" else None) for name in names}
    load_huggingface(str(checkpoint("bloom")), device="cpu")
    load_huggingface(str(checkpoint("gpt2")), device="cpu")
    for name in reversed(names):
        after = tiny(name).run(SHORT, target="a cat" if name == "t5" else None)
        assert before[name].sites.keys() == after.sites.keys()
        assert all(
            torch.equal(before[name].weights(site.layer, kind=site.kind), after.weights(site.layer, kind=site.kind))
            for site in after.sites
        )
    assert Site("cross", 0) in before["t5"].sites
