"""Known models made small, and one pass through them: to read, to train, to write.

B batch, T tokens, C model width.
"""

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine import (
    PRESETS,
    Config,
    Encoder,
    EncoderDecoder,
    TextClassifier,
    VisionTransformer,
    build,
    count_parameters,
)
from engine.presets import Transformer
from engine.sizes import Sizes

# The tokens of an image of 6 × 6 patches, with the class token: what a small ViT reads.
PATCHES = 37


def shrunk(name: str, layers: int = 4, **changes: Any) -> Sizes:
    """A known model, narrow and not very deep, whose parts are all still there; then something changed."""
    known = PRESETS[name]
    small: dict[str, Any] = {
        "width": 48, "layers": layers, "heads": 6, "head_width": 8, "kv_heads": 2 if known.config.kv_heads else None,
        "feed_forward": 96, "vocabulary": min(50, known.config.vocabulary), "dropout": 0.0, "image": 96,
    }  # fmt: skip
    return sized(name, replace(known.config, **{**small, **changes}))


def sized(name: str, config: Config) -> Sizes:
    """The sizes of a model built like a known one, its parameters counted."""
    make = PRESETS[name].make
    sizes = Sizes(name, make, config, (), sum(count_parameters(build(make, config, device="meta")).values()))
    return replace(sizes, windows=(config.window,) * (sizes.decoder_layers or config.layers))


def text(tokens: int, batch: int = 1, device: str = "cpu") -> Tensor:
    """Texts of one word again and again, (B, T)."""
    return torch.zeros(batch, tokens, dtype=torch.long, device=device)


def read(model: Transformer, ids: Tensor) -> Tensor:
    """Read texts to the last thing that the model says about them; a ViT looks at as many images instead."""
    config = model.config
    if isinstance(model, VisionTransformer):
        size = (len(ids), config.channels, config.image, config.image)
        vectors = model(torch.zeros(size, dtype=model.first.dtype, device=ids.device))
    else:
        vectors = model(ids, ids) if isinstance(model, EncoderDecoder) else model(ids)
    if isinstance(model, VisionTransformer | TextClassifier) and config.classes:
        return model.logits(vectors)
    if not isinstance(model, VisionTransformer) and config.head != "none":
        return model.logits(vectors)
    return model.pooled(vectors) if isinstance(model, Encoder | VisionTransformer) and config.pooler else vectors


def loss(model: Transformer, ids: Tensor) -> Tensor:
    """How wrong a model's scores of tokens are, or the sum of what it says where it scores none."""
    said = read(model, ids)
    scores_tokens = not isinstance(model, TextClassifier | VisionTransformer) and model.config.head != "none"
    return F.cross_entropy(said.flatten(0, 1), ids.flatten()) if scores_tokens else said.sum()
