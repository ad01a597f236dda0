"""Known transformers by name, built from the parts here: how large they are, and where their numbers sit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn

from engine.config import Config
from engine.errors import ModelError
from engine.rotary import Llama3, Scaling
from engine.transformer import Decoder, Encoder, EncoderDecoder, TextClassifier, VisionTransformer

Transformer = Encoder | Decoder | EncoderDecoder | VisionTransformer | TextClassifier
SPREAD = 0.02  # standard deviation of matrices before training, as BERT and GPT-2 have it


@dataclass(frozen=True)
class Preset:
    """A known model.

    Attributes:
        name: what `build` and the command line take.
        title: what a person calls it.
        make: the class that builds it.
        config: its sizes.
        counted: what its number of parameters includes beside the embeddings and the layers.
        source: where the sizes come from.
    """

    name: str
    title: str
    make: Callable[[Config], Transformer]
    config: Config
    counted: str
    source: str


_BERT = Config(
    width=768, layers=12, heads=12, feed_forward=3072, vocabulary=30_522, length=512, norm_place="post",
    epsilon=1e-12, embedding_norm=True, final_norm=False, segments=2, pooler=True, dropout=0.1,
)  # fmt: skip
_GPT2 = Config(
    width=768, layers=12, heads=12, feed_forward=3072, vocabulary=50_257, length=1024, activation="gelu_tanh",
    head="tied", dropout=0.1,
)  # fmt: skip
_LLAMA2 = Config(
    width=4096, layers=32, heads=32, feed_forward=11_008, vocabulary=32_000, length=4096, positions="rotary",
    norm="rms", activation="swiglu", bias=False, head="own",
)  # fmt: skip
_LLAMA3 = replace(
    _LLAMA2, kv_heads=8, feed_forward=14_336, vocabulary=128_256, length=8192, rotary_base=500_000.0
)  # fmt: skip
_MISTRAL = replace(_LLAMA2, kv_heads=8, feed_forward=14_336, length=32_768, window=4096)
_VIT = Config(width=768, layers=12, heads=12, feed_forward=3072, epsilon=1e-12, pooler=True, image=224, patch=16)
_T5 = Config(
    width=512, layers=6, heads=8, feed_forward=2048, head_width=64, vocabulary=32_128, positions="relative",
    norm="rms", epsilon=1e-6, activation="relu", bias=False, scale=1.0, head="tied", head_scale=512**-0.5, dropout=0.1,
)  # fmt: skip
_BART = Config(
    width=768, layers=6, heads=12, feed_forward=3072, vocabulary=50_265, length=1024, reserved=2, norm_place="post",
    embedding_norm=True, final_norm=False, head="tied", dropout=0.1,
)  # fmt: skip
_COURSE = Config(
    width=128, layers=2, heads=4, feed_forward=512, vocabulary=5000, length=256, norm_place="post", final_norm=False,
    classes=2, dropout=0.1,
)  # fmt: skip

_DOSOVITSKIY = "Dosovitskiy et al. 2020, 2010.11929"
_TIED = "the head, tied to the embedding"
_GPT2_SOURCE = "Radford et al. 2019, and the released checkpoints"


def _gpt2(name: str, title: str, width: int, layers: int, heads: int) -> Preset:
    config = replace(_GPT2, width=width, layers=layers, heads=heads, feed_forward=4 * width)
    return Preset(name, title, Decoder, config, _TIED, _GPT2_SOURCE)


_LIST = (
    Preset("bert-base", "BERT-base", Encoder, _BERT, "the pooler, no head", "Devlin et al. 2018, 1810.04805"),
    Preset(
        "bert-large",
        "BERT-large",
        Encoder,
        replace(_BERT, width=1024, layers=24, heads=16, feed_forward=4096),
        "the pooler, no head",
        "Devlin et al. 2018, 1810.04805",
    ),
    _gpt2("gpt2", "GPT-2", 768, 12, 12),
    _gpt2("gpt2-medium", "GPT-2 medium", 1024, 24, 16),
    _gpt2("gpt2-large", "GPT-2 large", 1280, 36, 20),
    _gpt2("gpt2-xl", "GPT-2 XL", 1600, 48, 25),
    Preset("llama-2-7b", "Llama 2 7B", Decoder, _LLAMA2, "a head of its own", "Touvron et al. 2023, 2307.09288"),
    Preset("llama-3-8b", "Llama 3 8B", Decoder, _LLAMA3, "a head of its own", "Grattafiori et al. 2024, 2407.21783"),
    Preset("mistral-7b", "Mistral 7B", Decoder, _MISTRAL, "a head of its own", "Jiang et al. 2023, 2310.06825"),
    Preset("vit-b16", "ViT-B/16", VisionTransformer, _VIT, "the pooler, no head", _DOSOVITSKIY),
    Preset("t5-small", "T5-small", EncoderDecoder, _T5, _TIED, "Raffel et al. 2019, 1910.10683"),
    Preset(
        "bart-base",
        "BART-base",
        EncoderDecoder,
        _BART,
        "the head, tied to the embedding",
        "Lewis et al. 2019, 1910.13461",
    ),
    Preset("course-classifier", "Course classifier", TextClassifier, _COURSE, "the classifier", "a first course's own"),
)
PRESETS: dict[str, Preset] = {preset.name: preset for preset in _LIST}


def preset(name: str) -> Preset:
    """Find a known model.

    Raises:
        ModelError: there is none of that name.
    """
    if name not in PRESETS:
        raise ModelError(f"There is no preset {name!r}. There is: {', '.join(PRESETS)}.")
    return PRESETS[name]


def build(make: Callable[[Config], Transformer], config: Config, *, device: str = "cpu", seed: int = 0) -> Transformer:
    """Build an untrained transformer.

    Args:
        make: its class, such as `Decoder`.
        config: its sizes.
        device: "meta" gives shapes and counts alone, which take no memory.
        seed: decides its random weights; the same seed gives the same ones.

    Returns:
        The model, with dropout off.
    """
    with torch.device("meta"):
        model = make(config)
    if device == "meta":
        return model
    model.to_empty(device="cpu")
    initialise(model, seed=seed)
    return model.to(device)


@torch.no_grad()
def initialise(model: nn.Module, *, seed: int, spread: float = SPREAD) -> None:
    """Draw all matrices from a normal distribution; norms begin at 1, constants at 0.

    Args:
        model: on the CPU; its weights are replaced.
        seed: decides the draw.
        spread: the standard deviation.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            parameter.normal_(0.0, spread, generator=generator)
        else:
            parameter.fill_(0.0 if name.endswith("bias") else 1.0)


# What a step of a parameter's path says about its part, in the order in which a token meets them.
_PARTS = {
    "tokens": "token embedding",
    "patches": "patch embedding",
    "first": "class token",
    "segments": "segment embedding",
    "positions": "positions",
    "attention": "attention",
    "cross": "cross-attention",
    "feed_forward": "feed-forward",
    "pooler": "pooler",
    "head": "head",
    "classify": "classifier",
}
_REST = "norms"


def count_parameters(model: nn.Module) -> dict[str, int]:
    """Count a model's parameters by part; tied weights count once.

    Args:
        model: one of those in engine/transformer.py, on any device, "meta" too.

    Returns:
        How many numbers each part has, in the order in which a token meets them; the norms come last.
    """
    counts = dict.fromkeys((*_PARTS.values(), _REST), 0)
    for name, parameter in model.named_parameters():
        counts[_part_of(name)] += parameter.numel()
    return {part: count for part, count in counts.items() if count}


def _part_of(name: str) -> str:
    return next((_PARTS[step] for step in name.split(".") if step in _PARTS), _REST)


def llama_3_1() -> Scaling:
    """The scaling with which Llama 3.1 reads 131,072 tokens (2407.21783)."""
    return Llama3(factor=8.0, trained=8192)
