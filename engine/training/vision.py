"""little-vit: a vision transformer that learns to name one coloured shape among dots and lines.

It is told the right shape and the right colour of each picture and nothing else: where it looks is its own affair, and
is only measured. `little-vit-early` is the same run, stopped when it is sure of colours and not yet of shapes.

Dimensions: B pictures, L layers, H heads, P patches, T = 1 + P tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import Config
from engine.errors import ModelError
from engine.interventions import Silence
from engine.measures import attention_mass, attention_rollout
from engine.pictures import COLOURS, MOST_DISTRACTORS, PATCH, SHAPES, SIDE, Pictures, pictures
from engine.presets import Transformer
from engine.recording import recording
from engine.sites import Site
from engine.trained import Head
from engine.training.loop import descend
from engine.training.recipe import Measured, Recipe, Say
from engine.transformer import VisionTransformer
from engine.vision import LABELS, as_begun, centred, split_logits

CONFIG = Config(
    width=64, layers=3, heads=4, feed_forward=128, image=SIDE, patch=PATCH, classes=len(LABELS)
)  # fmt: skip
SEED = 0
STEPS, EARLY = 2200, 300
BATCH, RATE = 48, 2e-3
DEVELOPMENT, TEST = 1000, 2000  # pictures on which heads are chosen, and on which everything is reported
AT_ONCE = 100  # pictures in one forward pass while measuring
EVERY = 100  # steps between two lines of report
SEEDS_OF_A_RUN = 100_000  # pictures' seeds that one run may use, so that no two seeds see the same pictures


@dataclass(frozen=True)
class Seen:
    """What a model made of some pictures.

    Attributes:
        shape, colour: whether it was right, (B,).
        mass: what the class token's attention put on the shape's patches in every head, (B, L, H).
        rolled: by rollout, the share of every patch in the class token, (B, P).
        objects: True for the patches that the shape reaches into, (B, P).
    """

    shape: Tensor
    colour: Tensor
    mass: Tensor
    rolled: Tensor
    objects: Tensor


def train(model: Transformer, seed: int, say: Say) -> Iterator[int]:
    """Train a model in place on fresh pictures; see Train in recipe.py."""
    looking = _looking(model)
    as_begun(looking, seed)
    total = 0.0
    for step, loss in descend(looking, partial(_loss, looking, seed), STEPS, rate=RATE):
        total += loss
        if step % EVERY == 0:
            say(f"step {step}: loss {total / EVERY:.3f}")
            total = 0.0
        yield step


def measure(model: Transformer, *, development: int = DEVELOPMENT, test: int = TEST) -> Measured:
    """Measure a model on pictures that it has never seen; the head is chosen on others than it is reported on.

    Returns:
        As scores: what `scores_of` says of the model, under "silenced" of the model without that head, and under
        "random" of the model before its training; "pictures" is how many were looked at.
    """
    looking, begun = _looking(model), as_begun(VisionTransformer(_looking(model).config), SEED)
    tried, drawn = pictures(development, 0, "development"), pictures(test, 0, "test")
    chosen, other = (object_head(see(one, tried)) for one in (looking, begun))
    silenced = scores_of(see(looking, drawn, (Silence(*chosen),)), chosen)
    scores = {
        "pictures": test,
        **scores_of(see(looking, drawn), chosen),
        "silenced": {name: silenced[name] for name in ("shape", "colour")},
        "random": scores_of(see(begun, drawn), other),
    }
    return Measured(scores, {"object": chosen})


def scores_of(seen: Seen, head: Head) -> dict[str, Any]:
    """Sum up what a model made of pictures.

    Returns:
        shape, colour: share of right answers, 0 to 1; area: the share of the picture's patches that the shape reaches
        into; mass: what the head's class token puts on them; times: mass / area; top: how often rollout's largest patch
        is among them; heads: the mass of every head, (L, H).
    """
    area = seen.objects.float().mean()
    mass = seen.mass.mean(dim=0)  # (L, H)
    best = seen.rolled.argmax(dim=-1, keepdim=True)
    found = {
        "shape": seen.shape.float().mean(),
        "colour": seen.colour.float().mean(),
        "area": area,
        "mass": mass[head],
        "times": mass[head] / area,
        "top": seen.objects.gather(1, best).float().mean(),
    }
    told: dict[str, Any] = {name: round(float(value), 4) for name, value in found.items()}
    return told | {"heads": [[round(float(value), 4) for value in layer] for layer in mass]}


def object_head(seen: Seen) -> Head:
    """Find the head (layer, head) whose class token puts most on the shape."""
    mass = seen.mass.mean(dim=0)
    layer, head = divmod(int(mass.argmax()), mass.shape[1])
    return layer, head


@torch.no_grad()
def see(model: VisionTransformer, drawn: Pictures, silenced: Sequence[Silence] = ()) -> Seen:
    """Let a model look at pictures, some at a time, with some heads silenced."""
    parts = [_see(model, drawn.part(at), silenced) for at in torch.arange(len(drawn)).split(AT_ONCE)]
    return Seen(*(torch.cat(list(column)) for column in zip(*parts, strict=True)))


def _see(model: VisionTransformer, drawn: Pictures, silenced: Sequence[Silence]) -> tuple[Tensor, ...]:
    with recording(silenced=silenced) as recorder:
        logits = model.logits(model(centred(drawn.images)))
    sites = [Site("vision", layer) for layer in range(model.config.layers)]
    weights = torch.stack([recorder.recorded[site].call.weights() for site in sites], dim=1)  # (B, L, H, T, T)
    shapes, colours = split_logits(logits)
    mass = attention_mass(weights[..., 0, 1:], drawn.objects[:, None, None])
    rolled = attention_rollout(weights)[:, 0, 1:]
    right = (shapes.argmax(dim=-1) == drawn.shapes, colours.argmax(dim=-1) == drawn.colours)
    return (*right, mass, rolled, drawn.objects)


def _loss(model: VisionTransformer, seed: int, step: int) -> Tensor:
    drawn = pictures(BATCH, seed * SEEDS_OF_A_RUN + step, "training")
    shapes, colours = split_logits(model.logits(model(centred(drawn.images))))
    return F.cross_entropy(shapes, drawn.shapes) + F.cross_entropy(colours, drawn.colours)


def _looking(model: Transformer) -> VisionTransformer:
    if not isinstance(model, VisionTransformer):
        raise ModelError(f"A {type(model).__name__} does not look at pictures.")
    return model


_WHOLE = Recipe(
    id="little-vit",
    name="Little ViT",
    make=VisionTransformer,
    config=CONFIG,
    data=(
        f"Pictures of {SIDE} × {SIDE} pixels that are drawn here: one shape ({', '.join(SHAPES)}) in one of "
        f"{len(COLOURS)} colours ({', '.join(COLOURS)}), somewhere among up to {MOST_DISTRACTORS} dots and lines of "
        "any of these colours, on grey, with noise. No picture comes twice."
    ),
    objective="Name the shape and name its colour, from the class token’s vector.",
    taught="",
    untaught=(
        "It knows these shapes and colours on such pictures and nothing else: no photograph, no other shape, no "
        "picture of two shapes. Nothing taught it where to look; where its heads look was only measured."
    ),
    steps=STEPS,
    train=train,
    measure=measure,
    labels=LABELS,
    seed=SEED,
)
_BEGUN = replace(
    _WHOLE,
    id="little-vit-early",
    name=f"Little ViT after {EARLY} steps",
    steps=EARLY,
)
RECIPES = (_WHOLE, _BEGUN)
"""The model, and the same one early in the same run."""
