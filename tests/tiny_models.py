"""Tiny transformers of many families with random weights, saved as real checkpoints so that loading is tested too.

Weights are drawn much larger than a training run would begin with: attention of nearly uniform weights would look
right under almost any fault.
"""

import functools
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from engine import HuggingFaceModel, Prompt
from engine.catalogue import load_huggingface
from tests.tiny_tokenizers import byte_level, metaspace, wordpiece

# Matrices this small gain nothing from threads, and where other programs are busy they lose most of their time to them.
torch.set_num_threads(1)

Tokens = Callable[[], PreTrainedTokenizerFast]

LONG = "The shopkeeper gave the customer a discount because she was a regular"
SHORT = "The cat sat on the mat."


@dataclass(frozen=True)
class Family:
    """How one family's tiny model is made.

    Attributes:
        model: the name of its class in transformers; its configuration class follows from it.
        tokens: what makes its tokenizer.
        sizes: the configuration beside the vocabulary and the special ids.
        kinds: the kinds of attention that it has.
        spread: standard deviation of its matrices; smaller where scores are not divided by the root of the width.
    """

    model: str
    tokens: Tokens
    sizes: dict[str, Any]
    kinds: tuple[str, ...]
    spread: float = 0.3
    specials: dict[str, int] = field(default_factory=dict)


ENCODER, DECODER, BOTH = ("encoder",), ("decoder",), ("encoder", "decoder", "cross")

_bert = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 80,
}
_gpt2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 80}
_llama = {**_bert, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 8}
_windowed = {**_bert, "num_hidden_layers": 3, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 4}
_t5 = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
}
_bart = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 80,
}
_alternating = ["sliding_attention", "full_attention", "sliding_attention"]
_mamba = {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}
_seq2seq = {"pad_token_id": 0, "bos_token_id": 3, "eos_token_id": 1, "forced_eos_token_id": 1}
_start_eos = {**_seq2seq, "decoder_start_token_id": 1}
_start_pad = {**_seq2seq, "decoder_start_token_id": 0}

RECORDED: dict[str, Family] = {
    "bert": Family("BertForMaskedLM", wordpiece, _bert, ENCODER),
    "roberta": Family("RobertaForMaskedLM", wordpiece, _bert, ENCODER),
    "xlm-roberta": Family("XLMRobertaForMaskedLM", metaspace, _bert, ENCODER),
    "albert": Family("AlbertForMaskedLM", wordpiece, {**_bert, "embedding_size": 16}, ENCODER),
    "distilbert": Family(
        "DistilBertForMaskedLM",
        wordpiece,
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 80},
        ENCODER,
    ),
    "electra": Family("ElectraModel", wordpiece, {**_bert, "embedding_size": 16}, ENCODER),
    "modernbert": Family(
        "ModernBertForMaskedLM",
        wordpiece,
        {**_bert, "num_hidden_layers": 3, "local_attention": 4, "global_attn_every_n_layers": 2},
        ENCODER,
        specials={"cls_token_id": 2, "sep_token_id": 3},
    ),
    "gpt2": Family("GPT2LMHeadModel", byte_level, _gpt2, DECODER),
    "gptj": Family("GPTJForCausalLM", byte_level, {**_gpt2, "rotary_dim": 4}, DECODER),
    "gpt-neox": Family("GPTNeoXForCausalLM", byte_level, _bert, DECODER),
    "opt": Family(
        "OPTForCausalLM",
        byte_level,
        {
            "hidden_size": 32,
            "ffn_dim": 64,
            "word_embed_proj_dim": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 80,
        },
        DECODER,
    ),
    "llama": Family("LlamaForCausalLM", byte_level, _llama, DECODER),
    "mistral": Family(
        "MistralForCausalLM",
        metaspace,
        {**_bert, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 4},
        DECODER,
    ),
    "gemma2": Family(
        "Gemma2ForCausalLM",
        metaspace,
        {**_windowed, "attn_logit_softcapping": 3.0, "query_pre_attn_scalar": 16},
        DECODER,
    ),
    "gemma3": Family(
        "Gemma3ForCausalLM",
        metaspace,
        {**_windowed, "layer_types": _alternating, "query_pre_attn_scalar": 16},
        DECODER,
    ),
    "qwen2": Family(
        "Qwen2ForCausalLM",
        byte_level,
        {**_bert, "num_key_value_heads": 2, "use_sliding_window": False},
        DECODER,
    ),
    "qwen3": Family("Qwen3ForCausalLM", byte_level, {**_bert, "num_key_value_heads": 2, "head_dim": 8}, DECODER),
    "phi": Family("PhiForCausalLM", byte_level, _bert, DECODER),
    "olmo2": Family("Olmo2ForCausalLM", byte_level, {**_bert, "num_key_value_heads": 2}, DECODER),
    "smollm": Family(
        "LlamaForCausalLM",
        byte_level,
        {**_bert, "num_attention_heads": 3, "num_key_value_heads": 1, "hidden_size": 48, "tie_word_embeddings": True},
        DECODER,
    ),
    "gpt-oss": Family(
        "GptOssForCausalLM",
        byte_level,
        {
            **_windowed,
            "layer_types": _alternating,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
        },
        DECODER,
    ),
    # Transformers' cache, needed for writing, fails where T5's two stacks differ in depth: mT5 here only reads.
    "t5": Family("T5ForConditionalGeneration", metaspace, {**_t5, "num_decoder_layers": 2}, BOTH, 0.15, _start_pad),
    "mt5": Family("MT5ForConditionalGeneration", metaspace, _t5, BOTH, 0.15, _start_pad),
    "bart": Family("BartForConditionalGeneration", metaspace, _bart, BOTH, specials=_start_eos),
    "mbart": Family("MBartForConditionalGeneration", metaspace, _bart, BOTH, specials=_start_eos),
    "pegasus": Family("PegasusForConditionalGeneration", metaspace, _bart, BOTH, specials=_start_pad),
    "marian": Family("MarianMTModel", metaspace, _bart, BOTH, specials=_start_pad),
    "m2m-100": Family("M2M100ForConditionalGeneration", metaspace, _bart, BOTH, specials=_start_eos),
}
"""Families whose attention is recorded as it runs."""

RETURNED: dict[str, Family] = {
    "bloom": Family("BloomForCausalLM", byte_level, {"hidden_size": 32, "n_layer": 2, "n_head": 4}, DECODER),
    "mpnet": Family("MPNetForMaskedLM", wordpiece, _bert, ENCODER),
    "mpt": Family(
        "MptForCausalLM", byte_level, {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 80}, DECODER
    ),
    "deberta": Family(
        "DebertaForMaskedLM",
        wordpiece,
        {**_bert, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0},
        ENCODER,
    ),
    "deberta-v2": Family(
        "DebertaV2ForMaskedLM",
        wordpiece,
        {**_bert, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
        ENCODER,
    ),
    "falcon": Family(
        "FalconForCausalLM",
        byte_level,
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 80},
        DECODER,
    ),
    "gpt-neo": Family(
        "GPTNeoForCausalLM",
        byte_level,
        {
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
            "max_position_embeddings": 80,
        },
        DECODER,
        0.15,
    ),
    "xlnet": Family("XLNetLMHeadModel", wordpiece, {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}, ENCODER),
}
"""Families that must be run eagerly, because recording them fails or changes them."""

OTHERS: dict[str, Family] = {
    "mamba": Family("MambaForCausalLM", byte_level, _mamba, ()),
    "clip-text": Family("CLIPTextModel", wordpiece, _bert, DECODER, specials={"eos_token_id": 3}),
}

FAMILIES = {**RECORDED, **RETURNED, **OTHERS}

_folders = tempfile.TemporaryDirectory(prefix="tiny-models-", ignore_cleanup_errors=True)


def build(name: str, model: str = "", **changes: Any) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Make a tiny model of one family with large random weights, the same every time, and its tokenizer.

    Args:
        name: one of FAMILIES.
        model: another class of the same family, such as one with another head.
        changes: entries of the configuration that shall differ.
    """
    family = FAMILIES[name]
    tokenizer = family.tokens()
    ids = {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    builder = getattr(transformers, model or family.model)
    settings = {"vocab_size": len(tokenizer), **ids, **family.specials, **family.sizes, **changes}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # what `enlarge` adds to, such as sinks, is drawn as well
        module = builder(builder.config_class(**settings)).eval()
    enlarge(module, family.spread)
    return module, tokenizer


def enlarge(model: nn.Module, spread: float) -> None:
    """Redraw all weights of a model, the same every time, wide enough that its attention is far from uniform."""
    generator = torch.Generator().manual_seed(7)
    tables = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.requires_grad:
                continue
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() < 2:
                parameter.add_(0.1 * noise)
            else:
                parameter.copy_(noise * (1.0 if id(parameter) in tables else spread))


def save(name: str, folder: Path, model: str = "", **changes: Any) -> Path:
    """Write a tiny model of one family and its tokenizer as a checkpoint, see `build`; return the folder."""
    module, tokenizer = build(name, model, **changes)
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_overflowing(folder: Path) -> Path:
    """Write a tiny GPT-2 whose second layer is too large for float16, and fine in float32; return the folder."""
    module, tokenizer = build("gpt2")
    with torch.no_grad():
        module.get_submodule("transformer.h.1.attn.c_attn").weight.mul_(1e4)  # type: ignore[operator]
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@functools.cache
def checkpoint(name: str) -> Path:
    """A folder with the checkpoint of one family, written once and only to be read."""
    folder = Path(_folders.name) / name
    folder.mkdir()
    return save(name, folder)


@functools.cache
def tiny(name: str) -> HuggingFaceModel:
    """The engine's model of one family, loaded once and shared by all tests: never change it."""
    return load_huggingface(str(checkpoint(name)), device="cpu")


@functools.cache
def stock(name: str, implementation: str = "eager") -> PreTrainedModel:
    """The same weights as transformers itself runs them, loaded once and shared by all tests."""
    builder = getattr(transformers, FAMILIES[name].model)
    model = builder.from_pretrained(checkpoint(name), attn_implementation=implementation, dtype=torch.float32)
    return model.eval()


def copied(name: str, folder: Path) -> Path:
    """A copy of one family's checkpoint that a test may spoil."""
    shutil.copytree(checkpoint(name), folder)
    return folder


def padded(model: HuggingFaceModel, texts: Sequence[str], side: Any = "right") -> list[Prompt]:
    """Prompts for several texts, filled up on one side to the longest."""
    prompts = [model.prompt(text) for text in texts]
    longest = max(map(len, prompts))
    pad = model.tokenizer.pad_token_id or 0
    return [prompt.padded(longest, side, pad_id=pad) for prompt in prompts]


def inputs(model: HuggingFaceModel, prompts: Sequence[Prompt], targets: Sequence[Prompt] = ()) -> dict[str, Tensor]:
    """What transformers' documentation says a model is to be given for these prompts."""
    real = torch.tensor([prompt.real for prompt in prompts])
    given = {"input_ids": torch.tensor([prompt.ids for prompt in prompts]), "attention_mask": real.long()}
    if targets:
        given["decoder_input_ids"] = torch.tensor([target.ids for target in targets])
        given["decoder_attention_mask"] = torch.tensor([target.real for target in targets]).long()
    elif model.card.style == "GPT-style" and not bool(real[:, 0].all()):
        given["position_ids"] = (real.long().cumsum(dim=1) - 1).clamp(min=0)
    return given
