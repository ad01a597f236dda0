"""little-vit: a picture in, a trace and an answer out; how well it does, and how it was trained.

B pictures, L layers, H heads, P patches, T = 1 + P tokens.
"""

from dataclasses import replace
from functools import cache
from itertools import islice

import pytest
import torch

from engine import InterventionError, ModelError, ShapeError
from engine.interventions import Silence
from engine.pictures import ACROSS, COLOURS, PATCH, SHAPES, SIDE, pictures
from engine.trained import card_of, write
from engine.training.vision import RECIPES, TEST, Seen, measure, object_head, scores_of, see, train
from engine.transformer import VisionTransformer
from engine.vision import (
    CLASS_TOKEN,
    LABELS,
    VisionModel,
    as_begun,
    centred,
    load_vision,
    split_logits,
    untrained_vision,
)

SMALL = replace(RECIPES[0].config, width=16, heads=2, layers=2, feed_forward=16)


@cache
def little() -> VisionModel:
    """The model that comes with the app, loaded once."""
    return load_vision("little-vit")


@cache
def drawn() -> torch.Tensor:
    """One picture, (3, SIDE, SIDE)."""
    return pictures(1, 5).images[0]


def test_a_trace_names_every_patch_by_row_and_column_after_the_class_token() -> None:
    trace = little().look(drawn())
    names = [token.text for token in trace.tokens]
    assert names[0] == CLASS_TOKEN
    assert names[1 + 3 * ACROSS + 5] == "r3 c5"
    assert len(names) == 1 + ACROSS**2
    assert trace.kinds == ("vision",)
    assert (trace.layers(), trace.heads()) == (little().card.layers, little().card.heads)
    assert trace.queries() == trace.keys() == trace.tokens


def test_the_shown_weights_are_what_was_computed() -> None:
    trace = little().look(drawn())
    audit = trace.audit()
    assert audit.rows == "all"
    assert audit.relative is not None
    assert audit.relative < 1e-5
    torch.testing.assert_close(trace.weights(1).sum(dim=-1), torch.ones(trace.heads(), 1 + ACROSS**2))


def test_the_answer_is_two_questions_with_probabilities_of_their_own() -> None:
    answer = little().predict(drawn())
    assert (tuple(answer.shapes), tuple(answer.colours)) == (SHAPES, tuple(COLOURS))
    for shares in (answer.shapes, answer.colours):
        assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
    with torch.inference_mode():
        module = little().module
        logits = module.logits(module(centred(drawn())[None]))[0]
    shapes, colours = split_logits(logits)
    assert answer.shape == SHAPES[int(shapes.argmax())]
    assert answer.colours[answer.colour] == pytest.approx(float(colours.softmax(0).max()), abs=1e-6)


def test_a_silenced_head_looks_where_it_looked_and_hands_on_nothing() -> None:
    """Its own layer's weights stay; what comes after has to do without it, which is as if its values were zeros."""
    layer, head = little().trained.heads["object"]
    plain, without = (little().look(drawn(), silenced) for silenced in ((), (Silence(layer, head),)))
    torch.testing.assert_close(plain.weights(layer), without.weights(layer))
    assert little().predict(drawn()) != little().predict(drawn(), (Silence(layer, head),))
    assert little().predict(drawn()) == little().predict(drawn())


@pytest.mark.parametrize(
    ("silence", "said"),
    [(Silence(9, 0), "no layer 9"), (Silence(0, 9), "no head 9"), (Silence(0, 0, "cross"), "cross")],
)
def test_a_head_that_is_not_there_cannot_be_silenced(silence: Silence, said: str) -> None:
    with pytest.raises(InterventionError, match=said):
        little().predict(drawn(), (silence,))


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((3, SIDE, SIDE - PATCH), "Images of shape"),
        ((1, SIDE, SIDE), "Images of shape"),
        ((SIDE, SIDE), "A picture has colours, rows and columns"),
        ((1, 3, SIDE, SIDE), "A picture has colours, rows and columns"),
    ],
    ids=str,
)
def test_a_picture_of_another_size_is_refused(shape: tuple[int, ...], said: str) -> None:
    with pytest.raises(ShapeError, match=said):
        little().look(torch.zeros(shape))


def test_a_model_that_was_trained_on_something_else_is_refused(tmp_path, monkeypatch) -> None:
    module = as_begun(VisionTransformer(SMALL), 0)
    write(module, replace(card_of("little-vit"), id="other", config=SMALL, labels=("cat", "dog")), tmp_path)
    monkeypatch.setattr("engine.vision.card_of", lambda id: card_of(id, tmp_path))
    monkeypatch.setattr("engine.vision.module_of", lambda *_: module)
    with pytest.raises(ModelError, match="does not tell the shapes and colours apart"):
        load_vision("other")
    with pytest.raises(ModelError, match="missing or broken"):
        load_vision("nobody")


def test_the_card_says_what_was_learned_and_that_nothing_was_taught_of_where_to_look() -> None:
    trained = little().trained
    assert trained.taught == ""
    assert "Nothing taught it where to look" in trained.untaught
    assert all(word in trained.data for word in (*SHAPES, *COLOURS))
    assert trained.labels == LABELS
    assert little().card.trained is trained
    assert little().card.parameters < 300_000


def test_untrained_it_is_what_training_begins_with() -> None:
    """One step of the recipe moves no weight by more than a thousandth from there; the whole of it does."""
    begun = untrained_vision(little().trained)
    model = VisionTransformer(RECIPES[0].config)
    next(train(model, RECIPES[0].seed, lambda line: None))
    for name, value in begun.module.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value, rtol=0, atol=1e-3)
    assert not torch.allclose(begun.module.classify.weight, little().module.classify.weight)
    assert begun.card.name.endswith("untrained")


def test_the_scores_on_the_card_are_those_of_the_weights_and_meet_what_is_asked() -> None:
    """Measured again on the whole test split: shape, colour, the head's mass over the shape's area, rollout."""
    card, drawn = little().trained, pictures(TEST, 0, "test")
    scores = scores_of(see(little().module, drawn), card.heads["object"])
    assert card.scores["pictures"] == TEST
    for name in ("shape", "colour", "area", "mass", "top"):
        assert scores[name] == pytest.approx(card.scores[name], abs=2e-3)
    assert scores["shape"] >= 0.93
    assert scores["colour"] >= 0.99
    assert scores["times"] >= 4
    assert scores["top"] >= 0.95


def test_the_baseline_on_the_card_is_that_of_random_weights() -> None:
    """At chance on both questions; on a part of the test split, so a little off."""
    held = little().trained.scores["random"]
    seen = see(untrained_vision(little().trained).module, pictures(TEST, 0, "test").part(torch.arange(400)))
    scores = scores_of(seen, (0, 0))
    for name in ("shape", "colour", "top"):
        assert scores[name] == pytest.approx(held[name], abs=0.06)
    assert scores["heads"][0] == pytest.approx(held["heads"][0], abs=0.02)
    assert held["shape"] == pytest.approx(1 / len(SHAPES), abs=0.05)
    assert held["colour"] == pytest.approx(1 / len(COLOURS), abs=0.05)
    assert held["times"] < 2


def test_measuring_chooses_the_head_on_other_pictures_than_it_reports() -> None:
    """On a few pictures of each split; what is reported is what the parts say one by one."""
    found = measure(little().module, development=60, test=40)
    chosen = object_head(see(little().module, pictures(60, 0, "development")))
    assert found.heads == {"object": chosen}
    drawn = pictures(40, 0, "test")
    assert found.scores["pictures"] == 40
    assert found.scores["mass"] == scores_of(see(little().module, drawn), chosen)["mass"]
    without = scores_of(see(little().module, drawn, (Silence(*chosen),)), chosen)
    assert found.scores["silenced"] == {"shape": without["shape"], "colour": without["colour"]}
    assert found.scores["random"]["colour"] < 0.5


def test_early_in_training_it_knows_colours_and_looks_at_shapes_that_it_cannot_name() -> None:
    early = load_vision("little-vit-early").trained.scores
    assert early["colour"] > 0.95
    assert early["shape"] < 0.75
    assert early["times"] > 4
    assert early["top"] > 0.95


def test_training_makes_the_same_model_again_and_another_one_for_another_seed() -> None:
    def made(seed: int) -> VisionTransformer:
        model = VisionTransformer(SMALL)
        for _ in islice(train(model, seed, lambda line: None), 2):
            continue
        return model

    first, again, other = made(3), made(3), made(4)
    assert torch.equal(first.patches.weight, again.patches.weight)
    assert not torch.equal(first.patches.weight, other.patches.weight)


def test_scores_by_hand() -> None:
    """Two pictures of four patches: the shape right once, a mass of 0.6 and 0.2 on a quarter of the area."""
    seen = Seen(
        shape=torch.tensor([True, False]),
        colour=torch.tensor([True, True]),
        mass=torch.tensor([[[0.1, 0.6]], [[0.2, 0.2]]]),
        rolled=torch.tensor([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]),
        objects=torch.tensor([[True, False, False, False], [True, False, False, False]]),
    )
    assert object_head(seen) == (0, 1)
    assert scores_of(seen, (0, 1)) == {
        "shape": 0.5, "colour": 1.0, "area": 0.25, "mass": 0.4, "times": 1.6, "top": 0.5, "heads": [[0.15, 0.4]],
    }  # fmt: skip


def test_looking_in_parts_is_looking_at_all() -> None:
    model, some = as_begun(VisionTransformer(SMALL), 0).eval(), pictures(7, 0)
    whole = see(model, some)
    parts = [see(model, some.part(torch.tensor([index]))) for index in range(7)]
    torch.testing.assert_close(whole.mass, torch.cat([part.mass for part in parts]))
    torch.testing.assert_close(whole.rolled, torch.cat([part.rolled for part in parts]))
    assert whole.mass.shape == (7, 2, 2)
