"""The models that were trained here, as the catalogue lists them and as they are opened.

Their weights and cards are files of this repository, see engine/trained.py; none of them needs a download.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError, safe_open

from engine.card import Entry
from engine.checkpoints import DTYPES
from engine.errors import ModelError
from engine.scratch import ScratchModel
from engine.spelling import Vocabulary
from engine.tokens import Prompt
from engine.trained import FOLDER, TrainedCard, card_of, module_of
from engine.transformer import Decoder

WHERE = "comes with the app"
LICENCE = "Apache-2.0"
LIMIT = 512  # tokens that are read where positions set no limit
AGAIN = "Install this app anew, or make it again with: python -m engine.training"

# Family and style, said here so that a model whose card is lost is still listed as what it was.
SHIPPED = {
    "twin-encoder": ("encoder", "BERT-style"),
    "twin-decoder": ("decoder", "GPT-style"),
    "twin-encoder-unguided": ("encoder", "BERT-style"),
    "twin-decoder-unguided": ("decoder", "GPT-style"),
    "translator-en-hi": ("encoder–decoder", "encoder–decoder"),
    "translator-en-hi-unguided": ("encoder–decoder", "encoder–decoder"),
    "classifier": ("classifier", "BERT-style"),
    "little-vit": ("vision transformer", "vision"),
}


def entries() -> list[Entry]:
    """List the models that come with the app, without loading any."""
    return [_entry(id) for id in SHIPPED]


def open_shipped(id: str, *, device: str, dtype: str) -> ScratchModel:
    """Open one of the models of text that come with the app.

    Args:
        id: one of SHIPPED.
        device: "cpu", "cuda" or "mps".
        dtype: "float32", "bfloat16" or "float16".

    Raises:
        ModelError: its files are missing or broken, it reads no text, or the precision is not known.
    """
    check_precision(dtype)
    told = card_of(id, FOLDER)
    module = module_of(told, device, dtype, FOLDER)
    limit = module.config.length if module.config.positions == "learned" else LIMIT
    vocabulary = Vocabulary(told.words)
    if len(vocabulary) != module.config.vocabulary:
        raise ModelError(
            f"{told.name} has {module.config.vocabulary} tokens and its card names {len(vocabulary)}. {AGAIN} {id}."
        )
    model = ScratchModel(
        module, _reader(vocabulary, limit, ends=not isinstance(module, Decoder)), id=id, name=told.name,
        source=_source(told), licence=LICENCE, notes=[said for said in (told.taught, told.untaught) if said],
        vocabulary=vocabulary, labels=told.labels,
    )  # fmt: skip
    model.card = replace(model.card, limit=limit, trained=told)
    return model


def check_precision(dtype: str) -> None:
    """Make sure that a precision is one that models can be run in.

    Raises:
        ModelError: it is not.
    """
    if dtype not in DTYPES:
        raise ModelError(f"The precision {dtype!r} is not known; say one of {', '.join(DTYPES)}.")


def count_numbers(path: Path) -> int:
    """Count the numbers in a file of weights by its header.

    Raises:
        OSError: there is no such file.
        SafetensorError: it is broken.
    """
    with safe_open(path, framework="pt") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 - a safetensors file is no dict


def _reader(vocabulary: Vocabulary, limit: int, *, ends: bool) -> Callable[[str], Prompt]:
    return lambda text: vocabulary.read(text, limit, ends=ends)


def _source(told: TrainedCard) -> str:
    return f"trained by `python -m engine.training`, seed {told.seed}, sha256 {told.sha256[:12]}…"


def _entry(id: str) -> Entry:
    family, style = SHIPPED[id]
    entry = Entry(id, id, family, style, WHERE, None, None, None, LICENCE)
    try:
        told = card_of(id, FOLDER)
    except ModelError:
        return replace(entry, available=False, reason=f"its card is missing or broken. {AGAIN} {id}")
    layers = told.config.decoder_layers or told.config.layers  # of what is opened first: the attention across
    entry = replace(entry, name=told.name, layers=layers, heads=told.config.heads)
    try:
        return replace(entry, parameters=count_numbers(FOLDER / f"{id}.safetensors"))
    except (OSError, SafetensorError):
        return replace(entry, available=False, reason=f"its weights are missing or broken. {AGAIN} {id}")
