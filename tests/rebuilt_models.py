"""Tiny models of transformers beside our own with the same weights, and how both are made to read the same.

Everything is float32. Attention weights agree to 1e-5; hidden states and scores of words agree to 1e-5 of the largest
of them where that is above 1, since float32 has so many digits and no more.

Dimensions: B batch, H heads, T queries, S keys.
"""

import functools
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from engine import Site, recording
from engine.recording import Recorder
from engine.sites import Kind
from engine.transformer import EncoderDecoder
from engine.weights import rebuilt
from tests.tiny_models import build, enlarge

TOLERANCE = 1e-5
# The texts of a batch: the first fills it, the second is padded.
LENGTHS = (13, 7)


@dataclass(frozen=True)
class Case:
    """A tiny model and what it reads.

    Attributes:
        family: its family in tests/tiny_models.py.
        changes: what differs from it.
        model: its class, where it is not the family's own.
        tokens: how many it reads.
        own_head: whether its head is untied.
    """

    family: str
    changes: dict[str, Any]
    model: str = ""
    tokens: int = LENGTHS[0]
    own_head: bool = False


def case(family: str, model: str = "", tokens: int = LENGTHS[0], own_head: bool = False, **changes: Any) -> Case:
    """A case whose changes are written as keywords."""
    return Case(family, changes, model, tokens, own_head)


def scaled(kind: str, longest: int = 16, **parameters: Any) -> Case:
    """A Llama trained on 16 tokens that reads 40; slow turns, so that 40 tokens are many."""
    rope = {"rope_type": kind, "rope_theta": 100.0, "factor": 4.0, **parameters}
    if longest > 16:
        rope["original_max_position_embeddings"] = 16
    return case("llama", tokens=40, head_dim=16, max_position_embeddings=longest, rope_parameters=rope)


ENCODERS = {
    "bert": case("bert", "BertModel"),
    "bert without pooler": case("bert"),
    "bert with a head of its own": case("bert", tie_word_embeddings=False),
    "bert, one head, one layer": case("bert", num_attention_heads=1, num_hidden_layers=1),
    "bert, odd widths": case("bert", hidden_size=21, num_attention_heads=3, intermediate_size=37),
    "bert, other bends": case("bert", hidden_act="relu", layer_norm_eps=0.01),
    "bert, tanh bends": case("bert", hidden_act="gelu_new"),
}
DECODERS = {
    "gpt2": case("gpt2"),
    "gpt2 without head": case("gpt2", "GPT2Model"),
    "gpt2 with a head of its own": case("gpt2", own_head=True),
    "gpt2, one head, one layer": case("gpt2", n_head=1, n_layer=1),
    "gpt2, odd widths": case("gpt2", n_embd=21, n_head=3, n_inner=37, layer_norm_epsilon=0.01),
    "gpt2, scores as they are": case("gpt2", n_head=8, scale_attn_weights=False),
    "llama, 2 of 8 heads": case("llama"),
    "llama, 1 of 8 heads": case("llama", num_key_value_heads=1),
    "llama, 8 of 8 heads": case("llama", num_key_value_heads=8),
    "llama without head": case("llama", "LlamaModel"),
    "llama with a tied head": case("llama", tie_word_embeddings=True),
    "llama, one head, one layer": case(
        "llama", num_attention_heads=1, num_key_value_heads=1, num_hidden_layers=1, head_dim=None
    ),
    "llama, odd widths": case("llama", hidden_size=40, intermediate_size=37, head_dim=6, rms_norm_eps=0.01),
    "llama with constants": case("llama", attention_bias=True, mlp_bias=True),
    "llama, gated by gelu": case("llama", hidden_act="gelu"),
    "llama, another base": case("llama", rope_parameters={"rope_type": "default", "rope_theta": 500.0}),
    "llama, linear": scaled("linear"),
    "llama, dynamic": scaled("dynamic"),
    "llama, yarn": scaled("yarn", 64),
    "llama, yarn by hand": scaled("yarn", 64, beta_fast=2.0, beta_slow=0.5, attention_factor=1.3, truncate=False),
    "llama, yarn with magnitudes": scaled("yarn", 64, mscale=1.5, mscale_all_dim=0.7),
    "llama, llama 3": scaled("llama3", 64, low_freq_factor=1.0, high_freq_factor=4.0),
    "mistral, a window of 4": case("mistral"),
    "mistral, a window of 1": case("mistral", sliding_window=1),
    "mistral, no window": case("mistral", sliding_window=None),
    "qwen3": case("qwen3", rms_norm_eps=0.01),
    "qwen3, windows throughout": case("qwen3", use_sliding_window=True, sliding_window=3, max_window_layers=0),
    "smollm": case("smollm"),
}
BOTH = {
    "t5": case("t5", num_decoder_layers=3),
    "t5 without head": case("t5", "T5Model"),
    "t5, the head as in 1.1": case("t5", own_head=True, tie_word_embeddings=False),
    "t5, one head, one layer": case("t5", num_heads=1, num_layers=1, num_decoder_layers=1),
    "t5, odd widths": case("t5", d_model=21, d_kv=5, d_ff=37, num_heads=3, layer_norm_epsilon=0.01),
    "t5, far beyond its distances": case("t5", tokens=60),
    "t5, gated by silu": case("t5", feed_forward_proj="gated-silu"),
    "t5 1.1": case("t5", own_head=True, tie_word_embeddings=False, feed_forward_proj="gated-gelu"),
    "bart": case("bart"),
    "bart without head": case("bart", "BartModel"),
    "bart with a head of its own": case("bart", own_head=True),
    "bart, one head, one layer": case(
        "bart", encoder_attention_heads=1, decoder_attention_heads=1, encoder_layers=1, decoder_layers=1
    ),
    "bart, odd widths": case("bart", d_model=28, encoder_ffn_dim=37, decoder_ffn_dim=37),
}
TEXTS = {**ENCODERS, **DECODERS, **BOTH}

_vit = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 12,
    "patch_size": 4,
}
IMAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("ViTModel", {}),
    "vit with labels": ("ViTForImageClassification", {"num_labels": 5}),
    "vit, one head, one layer": ("ViTModel", {"num_attention_heads": 1, "num_hidden_layers": 1}),
    "vit, one patch": ("ViTModel", {"image_size": 4}),
    "vit, odd widths": ("ViTModel", {"hidden_size": 21, "num_attention_heads": 3, "intermediate_size": 37}),
    "vit, two colours": ("ViTModel", {"num_channels": 2, "patch_size": 3, "layer_norm_eps": 0.01}),
}


@functools.cache
def pair(name: str) -> tuple[Any, Any]:
    """One of theirs, eager, and ours with its weights; shared by all tests, never changed."""
    if name in IMAGES:
        model, changes = IMAGES[name]
        builder = getattr(transformers, model)
        sizes = {**_vit, "pooler_output_size": None, **changes}
        module = builder(builder.config_class(**sizes, attn_implementation="eager")).eval()
        enlarge(module, 0.3)
        return module, rebuilt(module)
    chosen = TEXTS[name]
    module, _ = build(chosen.family, chosen.model, **chosen.changes, attn_implementation="eager")
    if chosen.own_head:
        head: Any = module.get_output_embeddings()
        head.weight = nn.Parameter(0.3 * head.weight.detach().flip(0))
    return module, rebuilt(module)


def texts_of(name: str, count: int | None = None) -> Tensor:
    """Two texts of random tokens, (2, T)."""
    shape = (2, count or TEXTS[name].tokens)
    return torch.randint(pair(name)[0].config.vocab_size, shape, generator=torch.Generator().manual_seed(3))


def padding_of(ids: Tensor, side: str) -> Tensor:
    """The second text is shorter and filled up on one side: True for real tokens, (2, T)."""
    real = torch.ones_like(ids, dtype=torch.bool)
    filled = slice(LENGTHS[1], None) if side == "right" else slice(0, ids.shape[1] - LENGTHS[1])
    real[1, filled] = False
    return real


@dataclass(frozen=True)
class Read:
    """What one model made of a batch: its main output, (B, T, ...), and its attention weights, (B, H, T, S)."""

    output: Tensor
    weights: dict[Site, Tensor]


def read_by_theirs(name: str, ids: Tensor, target: Tensor | None, real: Tensor | None) -> Read:
    """Let transformers read, as its documentation says it is to be asked."""
    given: dict[str, Any] = {"input_ids": ids, "attention_mask": None if real is None else real.long()}
    if target is not None:
        given |= {"decoder_input_ids": target, "use_cache": False}
        given["decoder_attention_mask"] = None if real is None else real[:, : target.shape[1]].long()
    if name in DECODERS:
        given["use_cache"] = False
        given["position_ids"] = None if real is None else (real.long().cumsum(dim=1) - 1).clamp(min=0)
    with torch.inference_mode():
        outputs = pair(name)[0](**given, output_attentions=True)
    returned: dict[Kind, str] = {"decoder" if name in DECODERS else "encoder": "attentions"}
    if target is not None:
        returned = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
    weights: dict[Site, Tensor] = {}
    for kind, entry in returned.items():
        weights |= {Site(kind, layer): held for layer, held in enumerate(getattr(outputs, entry))}
    return Read(outputs[0], weights)


def read_by_ours(model: Any, ids: Tensor, target: Tensor | None, real: Tensor | None) -> Read:
    """Let our model read while its attention is recorded."""
    with torch.inference_mode(), recording() as recorder:
        if isinstance(model, EncoderDecoder) and target is not None:
            vectors = model(ids, target, real, None if real is None else real[:, : target.shape[1]])
        else:
            vectors = model(ids, real)
        output = model.logits(vectors) if model.config.head != "none" else vectors
    return Read(output, weights_of(recorder))


def weights_of(recorder: Recorder) -> dict[Site, Tensor]:
    """All weights that were recorded, for the whole batch."""
    return {site: held.call.weights() for site, held in recorder.recorded.items()}


def read_by_both(name: str, ids: Tensor, real: Tensor | None = None, model: Any = None) -> tuple[Read, Read]:
    """Let ours and theirs read the same; an encoder-decoder also writes another text that is shorter by two.

    Args:
        name: which pair.
        ids: (B, T).
        real: True for real tokens, (B, T); None where all are.
        model: one of ours to stand in for the pair's.
    """
    target = ids[:, : max(1, ids.shape[1] - 2)].flip(0) if name in BOTH else None
    ours = read_by_ours(pair(name)[1] if model is None else model, ids, target, real)
    return ours, read_by_theirs(name, ids, target, real)


def furthest_apart(ours: Read, theirs: Read, real: Tensor | None = None) -> tuple[float, str]:
    """Where two readings differ most at real tokens, and by how much: in weights, or in the output as `apart` says."""
    if ours.weights.keys() != theirs.weights.keys():
        return float("inf"), "there are other sites"
    found = [(apart(_real(ours.output, real), _real(theirs.output, real)), "output")]
    for site, expected in theirs.weights.items():
        mine, yours = (weights.transpose(1, 2) for weights in (ours.weights[site], expected))  # (B, T, H, S)
        found.append((apart(_real(mine, real), _real(yours, real)), str(site)))
    return max(found)


def apart(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference, relative to the largest number where that is above 1; infinite where one is missing."""
    if ours.shape != theirs.shape:
        return float("inf")
    difference = (ours - theirs).abs().nan_to_num(nan=float("inf"))
    return float(difference.max() / theirs.abs().max().clamp(min=1))


def _real(tensor: Tensor, real: Tensor | None) -> Tensor:
    return tensor if real is None else tensor[real[:, : tensor.shape[1]]]
