"""Opening checkpoints: what fits is opened as it is, what does not is refused in a sentence, and nothing is run."""

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import ViTConfig, ViTModel

from engine import Mask, ModelError
from engine.catalogue import load_huggingface
from engine.huggingface import HuggingFaceModel
from tests.tiny_models import LONG, SHORT, copied, padded, save, tiny
from tests.tiny_tokenizers import wordpiece

Weights = dict[str, Tensor]


class Trap:
    """Unpickling this writes a file."""

    def __init__(self, sprung: Path) -> None:
        self.sprung = sprung

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch '{self.sprung}'",)


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A file that exists once a planted pickle or planted code was run."""
    return tmp_path / "sprung"


def plant_pickle(folder: Path, trap: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(trap)))


def plant_code(folder: Path, trap: Path) -> None:
    for name in ("configuration_own", "modeling_own", "tokenization_own"):
        code = f"from pathlib import Path\nPath({str(trap)!r}).touch()\nclass Own: pass\n"
        (folder / f"{name}.py").write_text(code)


def configure(folder: Path, **changes: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


def reweigh(folder: Path, change: Callable[[Weights], Weights]) -> Path:
    path = folder / "model.safetensors"
    weights = {name: tensor.clone() for name, tensor in load_file(path).items()}
    save_file(change(weights), path, metadata={"format": "pt"})
    return folder


def opened(folder: Path, **settings: Any) -> HuggingFaceModel:
    return load_huggingface(str(folder), device="cpu", **settings)


def test_a_pickle_alone_is_refused_and_never_opened(tmp_path: Path, trap: Path):
    folder = copied("bert", tmp_path / "bert")
    (folder / "model.safetensors").unlink()
    plant_pickle(folder, trap)
    with pytest.raises(ModelError, match=r"only as pytorch_model\.bin, a pickle, which can run code"):
        opened(folder)
    assert not trap.exists()


def test_the_planted_pickle_would_have_run(trap: Path):
    """Otherwise the tests around it would prove nothing."""
    pickle.loads(pickle.dumps(Trap(trap)))
    assert trap.exists()


def test_beside_safetensors_a_pickle_is_never_opened(tmp_path: Path, trap: Path):
    folder = copied("bert", tmp_path / "bert")
    plant_pickle(folder, trap)
    assert torch.equal(opened(folder).run(LONG).weights(1), tiny("bert").run(LONG).weights(1))
    assert not trap.exists()


def test_a_pickle_is_not_opened_where_the_safetensors_are_broken(tmp_path: Path, trap: Path):
    folder = copied("bert", tmp_path / "bert")
    plant_pickle(folder, trap)
    (folder / "model.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(ModelError, match="cannot be opened"):
        opened(folder)
    assert not trap.exists()


def test_a_sound_pickle_beside_safetensors_of_something_else_is_not_opened_either(tmp_path: Path):
    folder = copied("bert", tmp_path / "bert")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    with pytest.raises(ModelError, match="cannot be opened"):
        opened(folder)


def test_an_unknown_family_that_brings_its_own_code_is_refused_and_nothing_runs(tmp_path: Path, trap: Path):
    folder = copied("bert", tmp_path / "bert")
    own = {"AutoConfig": "configuration_own.Own", "AutoModel": "modeling_own.Own"}
    configure(folder, model_type="own", auto_map=own)
    plant_code(folder, trap)
    with pytest.raises(ModelError, match="needs code that comes with the checkpoint, and such code is never run"):
        opened(folder)
    assert not trap.exists()


def test_a_known_family_that_brings_its_own_code_is_opened_without_it_and_says_so(tmp_path: Path, trap: Path):
    folder = copied("bert", tmp_path / "bert")
    own = {"AutoConfig": "configuration_own.Own", "AutoModel": "modeling_own.Own"}
    configure(folder, auto_map=own)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["auto_map"] = {"AutoTokenizer": ["tokenization_own.Own", None]}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    plant_code(folder, trap)
    model = opened(folder)
    assert "code of its own, which is not run" in model.card.notes[0]
    assert torch.equal(model.run(LONG).weights(1), tiny("bert").run(LONG).weights(1))
    assert not trap.exists()


def test_weights_under_a_wrong_prefix_are_refused_instead_of_left_random(tmp_path: Path):
    folder = reweigh(
        copied("bert", tmp_path / "bert"), lambda weights: {f"wrong.encoder.{name}": weights[name] for name in weights}
    )
    with pytest.raises(ModelError, match=r"do not belong to its configuration.+'wrong\.encoder\."):
        opened(folder)


def test_a_partly_missing_checkpoint_opens_and_names_the_random_weights(tmp_path: Path):
    folder = reweigh(
        copied("bert", tmp_path / "bert"),
        lambda weights: {name: weights[name] for name in weights if ".layer.1." not in name},
    )
    card = opened(folder).card
    assert len(card.missing) == 16
    assert all(".layer.1." in name for name in card.missing)
    assert "weights are random" in card.banner
    assert "and 13 more" in card.banner
    assert tiny("bert").card.banner == ""


def test_tensors_that_fit_nowhere_are_named_on_the_card(tmp_path: Path):
    folder = reweigh(copied("bert", tmp_path / "bert"), lambda weights: {**weights, "extra.weight": torch.ones(2)})
    card = opened(folder).card
    assert (card.unexpected, card.missing) == (("extra.weight",), ())


def test_weights_of_other_shapes_are_refused_by_name(tmp_path: Path):
    name = "bert.encoder.layer.0.attention.self.query.weight"
    folder = reweigh(
        copied("bert", tmp_path / "bert"), lambda weights: {**weights, name: weights[name][:, :16].clone()}
    )
    with pytest.raises(ModelError, match=rf"other shapes.+{name} is \(32, 16\) instead of \(32, 32\)"):
        opened(folder)


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.5, 0.999])
def test_safetensors_that_broke_off_are_refused(tmp_path: Path, kept: float):
    folder = copied("bert", tmp_path / "bert")
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(ModelError, match=r"The weights of .+ cannot be opened: .+"):
        opened(folder)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("config.json", "holds no config.json"),
        ("model.safetensors", "holds no weights"),
    ],
)
def test_a_missing_file_is_named(tmp_path: Path, name: str, sentence: str):
    folder = copied("bert", tmp_path / "bert")
    (folder / name).unlink()
    with pytest.raises(ModelError, match=sentence):
        opened(folder)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "t5", "mbart", "marian"])
def test_a_missing_tokenizer_is_noticed(tmp_path: Path, name: str):
    """Transformers would make one up that knows no word at all for half of the families."""
    folder = copied(name, tmp_path / name)
    for path in folder.glob("token*"):
        path.unlink()
    with pytest.raises(ModelError, match="tokenizer"):
        opened(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
@pytest.mark.parametrize("text", ["{", "[]", '{"version": 7}', ""])
def test_a_broken_description_is_refused_in_a_sentence(tmp_path: Path, name: str, text: str):
    folder = copied("bert", tmp_path / "bert")
    (folder / name).write_text(text)
    with pytest.raises(ModelError, match=r"cannot be opened: .{8,}\."):
        opened(folder)


def test_an_unknown_family_is_refused_by_name(tmp_path: Path):
    with pytest.raises(ModelError, match="mystery"):
        opened(configure(copied("bert", tmp_path / "bert"), model_type="mystery"))


@pytest.mark.parametrize(
    ("name", "made_as", "opened_as"),
    [
        ("bert", "BertForSequenceClassification", "BertModel"),
        ("bert", "BertForMultipleChoice", "BertModel"),
        ("bert", "BertForTokenClassification", "BertForTokenClassification"),
        ("llama", "LlamaForSequenceClassification", "LlamaModel"),
        ("bart", "BartForSequenceClassification", "BartModel"),
    ],
)
def test_a_model_that_judges_texts_shows_its_attention_without_random_weights(
    tmp_path: Path, name: str, made_as: str, opened_as: str
):
    """Its head goes where it can: some take one text at a time, some several at once, none has attention."""
    model = opened(save(name, tmp_path / name, made_as))
    assert type(model.module).__name__ == opened_as
    assert (model.card.backend, model.card.missing) == ("sdpa", ())
    assert bool(model.card.notes) == bool(model.card.unexpected) == (made_as != opened_as)
    assert model.run(LONG, target=SHORT if name == "bart" else None).audit().passed


@pytest.mark.parametrize("made_as", ["BertModel", "BertForPreTraining", "BertForQuestionAnswering"])
def test_a_model_is_opened_as_it_was_made(tmp_path: Path, made_as: str):
    card = opened(save("bert", tmp_path / "bert", made_as)).card
    assert (card.backend, card.missing, card.unexpected, card.notes) == ("sdpa", (), (), ())


def test_the_decoder_of_an_encoder_decoder_alone_is_recorded(tmp_path: Path):
    card = opened(save("bart", tmp_path / "bart", "BartForCausalLM")).card
    assert (card.backend, card.kinds, card.layers) == ("sdpa", ("decoder",), 3)


def test_a_model_of_another_class_than_its_family_is_opened_as_its_family(tmp_path: Path):
    model = opened(configure(copied("bert", tmp_path / "bert"), architectures=["GPT2LMHeadModel"]))
    assert model.card.kinds == ("encoder",)
    assert type(model.module).__name__ == "BertModel"


def test_a_model_that_reads_images_is_refused_with_a_sentence(tmp_path: Path):
    config = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=8, patch_size=4
    )
    ViTModel(config).save_pretrained(tmp_path)
    wordpiece().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="reads pixel_values, and only models that read text work here"):
        opened(tmp_path)


@pytest.mark.parametrize("method", ["bitsandbytes", "gptq", "unheard-of"])
def test_a_quantised_checkpoint_is_refused_with_a_sentence(tmp_path: Path, method: str):
    folder = configure(copied("bert", tmp_path / "bert"), quantization_config={"quant_method": method, "bits": 4})
    with pytest.raises(ModelError, match=rf"quantised \({method}\), and attention is read from plain weights only"):
        opened(folder)


def test_a_folder_with_gguf_alone_is_refused_with_a_sentence(tmp_path: Path):
    folder = copied("bert", tmp_path / "bert")
    (folder / "model.safetensors").rename(folder / "model.gguf")
    with pytest.raises(ModelError, match=r"only as model\.gguf, and only safetensors are read"):
        opened(folder)


def test_a_tokenizer_that_knows_more_than_the_model_is_found_out(tmp_path: Path):
    model = opened(save("bert", tmp_path / "bert", vocab_size=40))
    with pytest.raises(ModelError, match="knows tokens beyond the model's 40"):
        model.run(LONG)


def test_an_unknown_precision_or_device_is_refused(tmp_path: Path):
    folder = copied("bert", tmp_path / "bert")
    with pytest.raises(ModelError, match=r"'int4' is not known; say one of float32, bfloat16, float16"):
        opened(folder, dtype="int4")
    with pytest.raises(ModelError, match="There is no device 'abacus' here"):
        load_huggingface(str(folder), device="abacus")


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "t5"])
@pytest.mark.parametrize(
    "saved",
    [
        {"_attn_implementation": "eager"},
        {"attn_implementation": "flash_attention_2"},
        {"_attn_implementation": "flash_attention_2"},
        {"_attn_implementation": "somebody/some-kernel"},
        {"output_attentions": True, "output_hidden_states": True},
        {"return_dict": False},
        {"return_dict": True, "use_cache": False},
    ],
)
def test_settings_saved_with_a_checkpoint_do_not_matter(tmp_path: Path, name: str, saved: dict[str, Any]):
    model = opened(configure(copied(name, tmp_path / name), **saved))
    target = SHORT if name == "t5" else None
    trace, expected = model.run(LONG, target=target), tiny(name).run(LONG, target=target)
    assert model.card.backend == "sdpa"
    for site in expected.sites:
        assert torch.equal(trace.weights(site.layer, kind=site.kind), expected.weights(site.layer, kind=site.kind))


@pytest.mark.parametrize("name", ["bloom", "xlnet"])
def test_settings_saved_with_an_eager_model_do_not_matter(tmp_path: Path, name: str):
    model = opened(configure(copied(name, tmp_path / name), return_dict=False, _attn_implementation="sdpa"))
    assert torch.equal(model.run(LONG).weights(1), tiny(name).run(LONG).weights(1))


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_dropout_is_off(tmp_path: Path, name: str):
    drops = {"attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.1}
    drops |= {"attn_pdrop": 0.1, "resid_pdrop": 0.1, "embd_pdrop": 0.1}
    model = opened(configure(copied(name, tmp_path / name), **drops))
    first, second = model.run(LONG), model.run(LONG)
    for layer in range(2):
        assert torch.equal(first.weights(layer), second.weights(layer))
        assert torch.equal(first.parts(layer, 0)["output"], second.parts(layer, 0)["output"])
        sums = first.weights(layer).sum(dim=-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "gemma3", "gpt-oss"])
def test_half_precision_is_recorded_within_its_own_tolerance(tmp_path: Path, name: str, dtype: str):
    model = opened(copied(name, tmp_path / name), dtype=dtype)
    assert (model.card.dtype, model.card.backend) == (dtype, "sdpa")
    audit = model.run(LONG).audit()
    assert audit.passed
    prompts = padded(model, [LONG, SHORT], "left")
    for trace, prompt in zip(model._run(prompts, [], Mask.native()), prompts, strict=True):
        assert trace.audit().passed
        for layer in range(model.card.layers):
            weights = trace.weights(layer)[:, list(prompt.real)]
            assert bool(weights.isfinite().all())
            if name != "gpt-oss":  # its sinks take a share
                torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]), rtol=0, atol=1e-3)
