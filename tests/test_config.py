"""The configuration: what it works out, and what it refuses with a sentence that names the values.

H heads, G key-value heads, D head width.
"""

from dataclasses import FrozenInstanceError, replace
from typing import Any, get_args

import pytest
import torch

from engine.config import Activation, Config, Head, NormKind, NormPlace, PositionKind
from engine.errors import ModelError, ShapeError
from engine.rotary import Layout
from engine.transformer import Decoder, Encoder, TextClassifier, VisionTransformer
from tests.small_transformers import small


@pytest.mark.parametrize(
    ("changes", "width", "groups", "sharing"),
    [
        ({}, 4, 4, "multi-head"),
        ({"kv_heads": 4}, 4, 4, "multi-head"),
        ({"kv_heads": 2}, 4, 2, "grouped-query"),
        ({"kv_heads": 1}, 4, 1, "multi-query"),
        ({"heads": 1}, 16, 1, "multi-head"),
        ({"head_width": 7}, 7, 4, "multi-head"),
        ({"width": 15, "heads": 4, "head_width": 3}, 3, 4, "multi-head"),
        ({"width": 15, "heads": 5}, 3, 5, "multi-head"),
    ],
)
def test_head_width_and_sharing_follow_from_the_sizes(changes: dict[str, Any], width: int, groups: int, sharing: str):
    config = small(**changes)
    assert (config.D, config.G, config.sharing) == (width, groups, sharing)


def test_an_image_of_224_pixels_has_196_patches_of_16():
    assert small(image=224, patch=16).patches == 196
    assert small(image=16, patch=16).patches == 1


@pytest.mark.parametrize("name", ["width", "layers", "heads", "feed_forward", "length", "patch", "channels"])
@pytest.mark.parametrize("value", [0, -1, 2.0, True, None, "4"])
def test_sizes_are_whole_numbers_of_at_least_1(name: str, value: object):
    with pytest.raises(ShapeError) as refusal:
        small(**{name: value})
    assert str(refusal.value) == f"{name} is {value!r}; it must be a whole number of at least 1."


@pytest.mark.parametrize("name", ["kv_heads", "head_width", "decoder_layers", "window"])
@pytest.mark.parametrize("value", [0, -3, 1.0, False])
def test_sizes_that_may_be_left_out_are_otherwise_at_least_1(name: str, value: object):
    with pytest.raises(ShapeError) as refusal:
        small(**{name: value})
    assert str(refusal.value) == f"{name} is {value!r}; it must be a whole number of at least 1."
    small(**{name: None})


@pytest.mark.parametrize("name", ["vocabulary", "segments", "classes", "reserved"])
def test_counts_may_be_0_but_not_below(name: str):
    small(**{name: 0})
    with pytest.raises(ShapeError) as refusal:
        small(**{name: -1})
    assert str(refusal.value) == f"{name} is -1; it must be a whole number of at least 0."


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("positions", "rope", PositionKind),
        ("activation", "GELU", Activation),
        ("norm", "batch", NormKind),
        ("norm_place", "both", NormPlace),
        ("head", None, Head),
        ("rotary_layout", "pairs", Layout),
    ],
)
def test_an_unknown_name_is_refused_with_those_that_exist(name: str, value: object, kind: Any):
    with pytest.raises(ShapeError) as refusal:
        small(**{name: value})
    assert str(refusal.value) == f"{name} is {value!r}; it may be {', '.join(get_args(kind))}."
    for allowed in get_args(kind):
        small(**{name: allowed})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"width": 16, "heads": 3}, ["16", "3 heads"]),
        ({"heads": 4, "kv_heads": 3}, ["4 heads", "3 key-value heads"]),
        ({"heads": 4, "kv_heads": 8}, ["4 heads", "8 key-value heads"]),
        ({"width": 15, "heads": 3, "positions": "rotary"}, ["head width of 5", "even"]),
        ({"head_width": 7, "positions": "rotary"}, ["head width of 7", "even"]),
        ({"dropout": 1}, ["dropout is 1", "below 1"]),
        ({"dropout": 1.5}, ["dropout is 1.5"]),
        ({"dropout": -0.1}, ["dropout is -0.1"]),
        ({"dropout": float("nan")}, ["dropout is nan"]),
        ({"softcap": 0.0}, ["softcap is 0.0", "above 0"]),
        ({"softcap": -30.0}, ["softcap is -30.0"]),
        ({"softcap": float("inf")}, ["softcap is inf", "None for no cap"]),
        ({"epsilon": -1e-5}, ["epsilon is -1e-05"]),
    ],
)
def test_sizes_that_do_not_fit_are_refused_with_the_values(changes: dict[str, Any], named: list[str]):
    with pytest.raises(ShapeError) as refusal:
        small(**changes)
    assert all(part in str(refusal.value) for part in named)


@pytest.mark.parametrize("make", [Encoder, Decoder])
@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"positions": "rotary", "rotary_base": 1.0}, "base of rotary positions has to be above 1; it is 1.0"),
        ({"positions": "relative", "buckets": 1}, "1 buckets are too few"),
        ({"positions": "relative", "buckets": 32, "furthest": 5}, "furthest distance is 5"),
    ],
)
def test_positions_that_do_not_work_are_refused_when_a_model_is_built(make: Any, changes: dict[str, Any], named: str):
    with pytest.raises(ShapeError, match=named):
        make(small(**changes))


def test_a_configuration_is_a_value():
    """Equal where its numbers are, of use as a key, and never changed."""
    config = small(kv_heads=2)
    assert config == small(kv_heads=2)
    assert len({config, small(kv_heads=2), small()}) == 2
    with pytest.raises(FrozenInstanceError):
        config.width = 8  # type: ignore[misc]


def test_the_smallest_of_all_has_one_of_everything():
    config = Config(width=1, layers=1, heads=1, feed_forward=1, vocabulary=1, length=1)
    assert (config.D, config.G, config.dropout) == (1, 1, 0.0)


def test_what_a_model_does_not_have_is_refused_by_name():
    """No head, no pooler, no labels, no vocabulary: a sentence instead of a missing attribute."""
    bare = Config(width=8, layers=1, heads=2, feed_forward=8, vocabulary=5)
    vectors = torch.zeros(1, 3, 8)
    with pytest.raises(ModelError, match="This Decoder has no head that scores tokens"):
        Decoder(bare).logits(vectors)
    with pytest.raises(ModelError, match="This Encoder has no pooler"):
        Encoder(bare).pooled(vectors)
    with pytest.raises(ModelError, match="This VisionTransformer has no classifier"):
        VisionTransformer(replace(bare, image=8, patch=4)).logits(vectors)
    with pytest.raises(ShapeError, match="a vocabulary of one token"):
        Encoder(replace(bare, vocabulary=0))
    with pytest.raises(ShapeError, match="give the configuration some classes"):
        TextClassifier(bare)
