"""A vision transformer of our own behind an interface like the other models': a picture in, Trace and answer out.

Dimensions: P patches, row by row; T = 1 + P tokens, the class token first.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.card import Card
from engine.errors import ModelError, ResourceError, ShapeError
from engine.forwards import FORWARDS
from engine.interventions import Silence, checked
from engine.masks import Mask
from engine.pictures import COLOURS, SHAPES
from engine.presets import initialise
from engine.recording import recording
from engine.sites import Site
from engine.tokens import Prompt, Token
from engine.trace import Trace
from engine.trained import TrainedCard, card_of, module_of
from engine.transformer import VisionTransformer

CLASS_TOKEN = "[CLS]"
LABELS = (*SHAPES, *COLOURS)
SPREAD = 0.1  # standard deviation of matrices before training; with less, shapes are learned more slowly


@dataclass(frozen=True)
class Answer:
    """What a model takes a picture to be.

    Attributes:
        shapes: the probability of each of SHAPES, from 0 to 1; together 1.
        colours: the same for each of COLOURS.
    """

    shapes: dict[str, float]
    colours: dict[str, float]

    @property
    def shape(self) -> str:
        """The likeliest shape."""
        return max(self.shapes, key=self.shapes.__getitem__)

    @property
    def colour(self) -> str:
        """The likeliest colour."""
        return max(self.colours, key=self.colours.__getitem__)


def centred(images: Tensor) -> Tensor:
    """Turn pixels from 0 to 1 into numbers from −1 to 1, which is what the model reads."""
    return 2 * images - 1


def split_logits(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Take the scores of LABELS apart into those of SHAPES and those of COLOURS, (..., labels)."""
    return logits[..., : len(SHAPES)], logits[..., len(SHAPES) :]


def as_begun(module: VisionTransformer, seed: int) -> VisionTransformer:
    """Give a model the random weights that training begins with, and return it."""
    initialise(module, seed=seed, spread=SPREAD)
    return module


class VisionModel:
    """A vision transformer that was trained on engine/pictures.py; shared by all who use it, changed by nobody.

    Attributes:
        card: what it is.
        trained: what it learned and what was measured.
        module: the transformer itself, with dropout off.
    """

    def __init__(self, module: VisionTransformer, trained: TrainedCard) -> None:
        self.module = module.eval()
        self.trained = trained
        self.card = _card(module, trained)

    def look(self, image: Tensor, interventions: Sequence[Silence] = ()) -> Trace:
        """Look at a picture once and record all attention.

        Args:
            image: red, green and blue of every pixel, each from 0 to 1, (3, side, side).
            interventions: heads to silence meanwhile.

        Returns:
            The trace; its tokens are the class token and the patches, named by row and column: "r2 c3".

        Raises:
            ShapeError: the picture has not the size that the model was made for.
            InterventionError: there is no such head.
        """
        return self._seen(image, interventions)[0]

    def predict(self, image: Tensor, interventions: Sequence[Silence] = ()) -> Answer:
        """Say what a picture shows; arguments and errors as for `look`."""
        _, logits = self._seen(image, interventions)
        shapes, colours = (scores.softmax(dim=-1).tolist() for scores in split_logits(logits))
        return Answer(dict(zip(SHAPES, shapes, strict=True)), dict(zip(COLOURS, colours, strict=True)))

    def prompt(self) -> Prompt:
        """Name the tokens of any picture: the class token, then each patch by its row and column."""
        across = self.module.config.image // self.module.config.patch
        places = [f"r{row} c{column}" for row in range(across) for column in range(across)]
        tokens = [Token(CLASS_TOKEN, CLASS_TOKEN, 0, None, True, None, None)]
        tokens += [Token(place, place, 1 + index, None, False, None, None) for index, place in enumerate(places)]
        return Prompt("", None, tuple(tokens), (), (), len(tokens))

    def _seen(self, image: Tensor, interventions: Sequence[Silence]) -> tuple[Trace, Tensor]:
        if image.dim() != 3:
            raise ShapeError(f"A picture has colours, rows and columns, not the shape {tuple(image.shape)}.")
        sites = {Site("vision", layer): self.card.heads for layer in range(self.card.layers)}
        silenced = checked(interventions, sites, self.card.name)
        weights = self.module.patches.weight
        given = centred(image)[None].to(weights)
        with FORWARDS, torch.inference_mode(), recording(silenced=silenced) as recorder:
            start = time.perf_counter()
            try:
                logits = self.module.logits(self.module(given))[0]  # (labels,)
            except (torch.OutOfMemoryError, MemoryError) as error:
                raise ResourceError(f"There is not enough memory on {self.card.device} for this picture.") from error
            logits = logits.float().cpu()
            milliseconds = 1000 * (time.perf_counter() - start)
        return Trace(self.card, self.prompt(), None, Mask.native(), recorder.recorded, milliseconds), logits


def load_vision(id: str, device: str = "cpu", dtype: str = "float32") -> VisionModel:
    """Load a vision transformer that was trained here.

    Args:
        id: its name, such as "little-vit".
        device: such as "cpu" or "cuda".
        dtype: such as "float32".

    Raises:
        ModelError: there is no such model, or its files are missing or broken.
    """
    trained = card_of(id)
    module = module_of(trained, device, dtype)
    if not isinstance(module, VisionTransformer) or trained.labels != LABELS:
        raise ModelError(f"{trained.name} does not tell the shapes and colours apart that are drawn here.")
    return VisionModel(module, trained)


def untrained_vision(trained: TrainedCard) -> VisionModel:
    """Build a model as it was before its training."""
    module = as_begun(VisionTransformer(trained.config), trained.seed)
    nothing = replace(trained, name=f"{trained.name}, untrained", steps=0, scores=trained.scores.get("random", {}))
    return VisionModel(module, nothing)


def _card(module: VisionTransformer, trained: TrainedCard) -> Card:
    config, weights = module.config, module.patches.weight
    return Card(
        id=trained.id,
        name=trained.name,
        family="vision transformer",
        kinds=("vision",),
        layers=config.layers,
        heads=config.heads,
        kv_heads=config.G,
        windows=(None,) * config.layers,
        positions=config.positions,
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        limit=1 + config.patches,
        licence="Apache-2.0",
        source=f"trained by `python -m engine.training`, seed {trained.seed}",
        backend="sdpa",
        reason="",
        device=str(weights.device),
        dtype=str(weights.dtype).removeprefix("torch."),
        trained=trained,
    )
