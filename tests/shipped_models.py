"""Models like those that come with the app, made here: random weights, written as real files with real cards."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from engine import (
    Config,
    Decoder,
    Encoder,
    EncoderDecoder,
    ScratchModel,
    TextClassifier,
    VisionTransformer,
    build,
    load,
)
from engine.presets import Transformer
from engine.spelling import BYTES, FIRST_WORD, MASK, Vocabulary
from engine.trained import TrainedCard, write

WORDS = (
    "the",
    "she",
    "customer",
    "shopkeeper",
    "gave",
    "a",
    "discount",
    "was",
    "regular",
    "because",
    ".",
    "ग्राहक",
    "को",
)
# Matrices this small gain nothing from threads, and where other programs are busy they lose most of their time to them.
torch.set_num_threads(1)

LABELS = ("gifts", "thanks")
MAKES: Mapping[str, Callable[[Config], Transformer]] = {
    "twin-encoder": Encoder,
    "twin-decoder": Decoder,
    "translator-en-hi": EncoderDecoder,
    "classifier": TextClassifier,
    "little-vit": VisionTransformer,
}
WRITERS = ("twin-decoder", "translator-en-hi")


def sizes(id: str, **changes: Any) -> Config:
    """The sizes of a small model of one kind."""
    told: dict[str, Any] = {
        "width": 32, "layers": 2, "heads": 4, "feed_forward": 48, "vocabulary": len(Vocabulary(WORDS)),
        "positions": "rotary", "head": "tied",
    }  # fmt: skip
    if id in WRITERS:
        told |= {"head": "own"}
    if id == "classifier":
        told |= {"head": "none", "classes": len(LABELS)}
    if id == "little-vit":
        told |= {"head": "none", "classes": 2, "vocabulary": 0, "positions": "learned", "image": 8, "patch": 4}
    return Config(**{**told, **changes})


def module_of(id: str, seed: int = 0, **changes: Any) -> Transformer:
    """A model whose attention is far from uniform, and whose own head leaves only words and [EOS] to be written."""
    module = build(MAKES[id], sizes(id, **changes), seed=seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(12 if parameter.dim() > 1 else 1)
        if isinstance(module, Decoder | EncoderDecoder):
            module.head.own[[0, 1, MASK, *range(BYTES, FIRST_WORD)]] *= 0.05
    return module


def card_for(id: str, module: Transformer, **changes: Any) -> TrainedCard:
    """A card that says something in every field."""
    told: dict[str, Any] = {
        "id": id, "name": f"Small {id}", "make": type(module).__name__, "config": module.config, "data": "Some data.",
        "objective": "Some objective.", "taught": "These heads were taught where to look.", "untaught": "No language.",
        "seed": 7, "steps": 3, "versions": {"torch": torch.__version__}, "scores": {"pronoun": 0.99},
        "heads": {"pronoun": (1, 2)}, "words": () if id == "little-vit" else WORDS,
        "labels": LABELS if id == "classifier" else (),
    }  # fmt: skip
    return TrainedCard(**{**told, **changes})


def write_all(folder: Path, **changes: Any) -> None:
    """Write one model of each kind into a folder."""
    for id in MAKES:
        module = module_of(id)
        write(module, card_for(id, module, **changes), folder)


def opened(id: str) -> ScratchModel:
    """One of the models of text, as the catalogue opens it."""
    model = load(id, device="cpu")
    assert isinstance(model, ScratchModel)
    return model
