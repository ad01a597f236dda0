"""Recipes: what one run leaves at several of its steps is what each recipe makes by itself."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from engine.config import Config
from engine.errors import ModelError
from engine.presets import Transformer
from engine.training import recipes
from engine.training.loop import descend
from engine.training.recipe import Measured, Recipe, Say, runs, trained
from engine.transformer import Encoder

MADE: list[int] = []


def train(model: Transformer, seed: int, say: Say) -> Iterator[int]:
    """Make the weights small, for six steps."""
    for step, _ in descend(model, lambda _: weights(model).square().sum(), 6):
        MADE.append(step)
        say(f"step {step}")
        yield step


LATE = Recipe(
    id="late", name="Late", make=Encoder, config=Config(width=8, layers=1, heads=2, feed_forward=8, vocabulary=5),
    data="", objective="", taught="", untaught="", steps=5, train=train, measure=lambda model: Measured({}, {}),
)  # fmt: skip
EARLY = replace(LATE, id="early", steps=2)


def weights(model: Transformer) -> torch.Tensor:
    return torch.cat([weight.flatten() for weight in model.parameters()])


def test_stations_of_one_run_are_made_in_one_and_are_what_each_would_be_alone():
    MADE.clear()
    late, early = trained((LATE, EARLY))
    assert MADE == [1, 2, 3, 4, 5]
    assert torch.equal(weights(late), weights(LATE.trained()))
    assert torch.equal(weights(early), weights(EARLY.trained()))
    assert not torch.equal(weights(late), weights(early))
    assert not late.training
    assert not early.training


def test_another_seed_makes_another_model_and_lines_are_told():
    told: list[str] = []
    one, other = EARLY.trained(0, told.append), EARLY.trained(1)
    assert told == ["step 1", "step 2"]
    assert not torch.equal(weights(one), weights(other))


def test_what_differs_in_more_than_its_steps_is_a_run_of_its_own():
    seeded = replace(LATE, id="seeded", seed=1)
    assert runs((LATE, seeded, EARLY)) == [(LATE, EARLY), (seeded,)]


def test_a_training_that_ends_too_soon_is_no_model():
    with pytest.raises(ModelError, match="The training of Late ended before step 7"):
        replace(LATE, steps=7).trained()


def test_the_early_model_of_pictures_is_a_station_of_the_other():
    found = [[recipe.id for recipe in run] for run in runs(recipes.RECIPES.values())]
    assert ["little-vit", "little-vit-early"] in found
    assert len(found) == len(recipes.RECIPES) - 1
