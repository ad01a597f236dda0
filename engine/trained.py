"""The small models that were trained here and come with the app: their weights, and a card that says what they learned.

    assets/models/<id>.safetensors    the weights
    assets/models/<id>.json           the card

`python -m engine.training all` makes both again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from engine.config import Config
from engine.errors import ModelError
from engine.presets import Transformer
from engine.transformer import Decoder, Encoder, EncoderDecoder, TextClassifier, VisionTransformer

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "models"
MAKERS = {make.__name__: make for make in (Encoder, Decoder, EncoderDecoder, VisionTransformer, TextClassifier)}
Head = tuple[int, int]


@dataclass(frozen=True)
class TrainedCard:
    """What there is to say about a model that was trained here.

    Attributes:
        id: the name it is loaded under.
        name: what a person calls it.
        make: its class in engine/transformer.py.
        config: its sizes.
        data: what it was trained on, in a sentence.
        objective: what it was trained to do, in a sentence.
        taught: what its heads were told beyond that, in a sentence; empty for nothing.
        untaught: what it can't do, in a sentence.
        seed: decides its weights and its data.
        steps: how many batches it has seen.
        versions: of the libraries that it was trained with.
        scores: what was measured on sentences or pictures that it had never seen, by name.
        heads: for each relation the head (layer, head) that follows it: as taught, or else the best on a development
            split.
        words: its vocabulary, where it reads text; see engine/spelling.py.
        labels: the names of its classes, where it has classes.
        sha256: of its weights.
    """

    id: str
    name: str
    make: str
    config: Config
    data: str
    objective: str
    taught: str
    untaught: str
    seed: int
    steps: int
    versions: Mapping[str, str]
    scores: Mapping[str, Any]
    heads: Mapping[str, Head]
    words: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    sha256: str = ""


def write(module: Transformer, card: TrainedCard, folder: Path = FOLDER) -> None:
    """Write the weights of a model and its card; the card gets their hash."""
    weights = save({name: value.contiguous().cpu() for name, value in module.state_dict().items()})
    told = {field.name: getattr(card, field.name) for field in fields(card)}
    told |= {"config": _told_sizes(card.config), "sha256": hashlib.sha256(weights).hexdigest()}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{card.id}.safetensors").write_bytes(weights)
    text = json.dumps(told, ensure_ascii=False, indent=1)
    (folder / f"{card.id}.json").write_text(f"{text}\n", encoding="utf-8")


def card_of(id: str, folder: Path = FOLDER) -> TrainedCard:
    """Read the card of a model that was trained here.

    Raises:
        ModelError: it is missing or cannot be read.
    """
    try:
        told = json.loads((folder / f"{id}.json").read_text(encoding="utf-8"))
        told["config"] = Config(**told["config"])
        told["heads"] = {relation: tuple(head) for relation, head in told["heads"].items()}
        told |= {name: tuple(told[name]) for name in ("words", "labels")}
        return TrainedCard(**told)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"The card of {id} is missing or broken: {error}. Install this app anew.") from error


def module_of(card: TrainedCard, device: str = "cpu", dtype: str = "float32", folder: Path = FOLDER) -> Transformer:
    """Build a model that was trained here, with its weights.

    Raises:
        ModelError: they are missing, or not those that the card speaks of.
    """
    path = folder / f"{card.id}.safetensors"
    try:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != card.sha256:
            raise ModelError(
                f"The weights of {card.name} are not those that its card speaks of. Install this app anew."
            )
        with torch.device("meta"):
            module: Transformer = MAKERS[card.make](card.config)
        module.load_state_dict(load(data), strict=True, assign=True)
    except (OSError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(f"The weights of {card.name} are missing or broken. Install this app anew.") from error
    return module.to(device=device, dtype=getattr(torch, dtype)).eval()


def _told_sizes(config: Config) -> dict[str, Any]:
    """Write the sizes that are not what they would be anyway."""
    plain = Config(width=1, layers=1, heads=1, feed_forward=1)
    sizes = {field.name: getattr(config, field.name) for field in fields(config)}
    return {name: value for name, value in sizes.items() if value != getattr(plain, name) or name in _NEEDED}


_NEEDED = ("width", "layers", "heads", "feed_forward")
