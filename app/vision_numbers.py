"""What the page Vision shows, computed: the picture, the model's answer, its attention, and rollout.

Dimensions: L layers, H heads, P patches, T = 1 + P tokens, the class token first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from app import cache
from app.charts_inputs import Bools, Floats
from app.view import View
from engine.interventions import Silence
from engine.measures import attention_mass, attention_rollout
from engine.pictures import COLOURS, SHAPES, Pictures, pictures
from engine.vision import Answer, VisionModel, load_vision, untrained_vision

IDS = {"trained": "little-vit", "early": "little-vit-early"}
MODEL_BYTES = 2_000_000  # more than any of them takes


@dataclass(frozen=True)
class Looked:
    """One picture, and what one model made of it.

    Attributes:
        image: red, green and blue from 0 to 1, (side, side, 3).
        objects: True for the patches that the shape reaches into, (P,).
        weights: attention of all heads, (L, H, T, T).
        rolled: rollout, (T, T).
        answer: what the model takes it to be.
        mass: what the class token puts on the shape in every head, (L, H).
        milliseconds: how long looking took.
    """

    image: Floats
    objects: Bools
    weights: Floats
    rolled: Floats
    answer: Answer
    mass: Floats
    milliseconds: float

    @property
    def area(self) -> float:
        """The share of the patches that the shape reaches into, 0 to 1."""
        return float(self.objects.mean())

    def mass_by_rollout(self) -> float:
        """What of the patches' share in the class token, by rollout, is the shape's, 0 to 1."""
        patches = self.rolled[0, 1:]
        return float(patches[self.objects].sum() / patches.sum())

    @property
    def nbytes(self) -> int:
        """Memory that it takes, in bytes."""
        return self.image.nbytes + self.weights.nbytes + self.rolled.nbytes + 10_000


def vision_model(stage: str) -> VisionModel:
    """Load the model as it is after its training, early in it, or before; one copy for everybody.

    Raises:
        ModelError: its files are missing or broken.
    """

    def make() -> VisionModel:
        return untrained_vision(vision_model("trained").trained) if stage == "untrained" else load_vision(IDS[stage])

    return cache.derived(("vision model", stage), make, lambda _: MODEL_BYTES)


def drawn(view: View) -> Pictures:
    """Draw the picture that is asked for."""
    return pictures(
        1, view.vit_picture, shape=SHAPES.index(view.vit_shape), colour=list(COLOURS).index(view.vit_colour),
        distractors=view.vit_distractors,
    )  # fmt: skip


def looked(view: View) -> Looked:
    """Draw the picture and let the model look at it, or fetch what it saw before.

    Raises:
        EngineError: the model cannot be loaded.
    """
    return cache.derived(("vision", view.vit_stage, *_asked(view)), lambda: _look(view), lambda made: made.nbytes)


def answer_without(view: View, layer: int, head: int) -> Answer:
    """Say what the model takes the picture to be with one head silenced."""
    model = vision_model(view.vit_stage)
    return cache.derived(
        ("vision silenced", view.vit_stage, layer, head, *_asked(view)),
        lambda: model.predict(drawn(view).images[0], (Silence(layer, head),)),
        lambda _: 2_000,
    )


def best_head(model: VisionModel) -> tuple[int, int]:
    """The head whose class token looks most at the shape, as measured on other pictures; untrained, the trained one."""
    layer, head = model.trained.heads["object"]
    return layer, head


def _asked(view: View) -> tuple[str, str, int, int]:
    return view.vit_shape, view.vit_colour, view.vit_distractors, view.vit_picture


def _look(view: View) -> Looked:
    model, made = vision_model(view.vit_stage), drawn(view)
    image, objects = made.images[0], made.objects[0]
    trace = model.look(image)
    weights = torch.stack([trace.weights(layer) for layer in range(trace.layers())])  # (L, H, T, T)
    return Looked(
        image=image.permute(1, 2, 0).numpy(),
        objects=objects.numpy(),
        weights=weights.numpy(),
        rolled=attention_rollout(weights).numpy(),
        answer=model.predict(image),
        mass=attention_mass(weights[:, :, 0, 1:], objects).numpy(),
        milliseconds=trace.milliseconds,
    )
