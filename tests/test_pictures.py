"""The pictures that are drawn here: the same for the same seed, and what they say is on them is on them.

B pictures, P patches.
"""

from dataclasses import fields

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.errors import ShapeError
from engine.pictures import ACROSS, COLOURS, MOST_DISTRACTORS, PATCH, SHAPES, SIDE, SPLITS, Pictures, pictures

PALETTE = torch.tensor(list(COLOURS.values()))


def same(one: Pictures, other: Pictures) -> bool:
    """Whether all of it is equal, bit for bit."""
    return all(torch.equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(Pictures))


def colourful(images: Tensor) -> Tensor:
    """How far each pixel is from grey, (B, SIDE, SIDE)."""
    return images.amax(dim=1) - images.amin(dim=1)


def pixels(patches: Tensor) -> Tensor:
    """Say of every pixel what is said of its patch, (B, P) to (B, SIDE, SIDE)."""
    return patches.view(-1, ACROSS, ACROSS).repeat_interleave(PATCH, 1).repeat_interleave(PATCH, 2)


def near(chosen: Tensor) -> Tensor:
    """Take the neighbours of pixels as well: an edge is smoothed over one of them."""
    return F.max_pool2d(chosen.float(), 3, stride=1, padding=1) > 0


def test_a_seed_draws_the_same_pictures_again() -> None:
    assert same(pictures(5, 3, "test"), pictures(5, 3, "test"))


def test_no_split_shows_what_another_has_shown() -> None:
    drawn = [pictures(4, seed, split).images for split in SPLITS for seed in (0, 1, 2, 2**30 - 1)]
    flat = torch.stack(drawn).flatten(0, 1).flatten(1)
    distances = torch.cdist(flat, flat) + 1000 * torch.eye(len(flat))
    assert float(distances.min()) > 1


def test_the_global_random_numbers_are_left_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    pictures(2, 0)
    assert torch.equal(torch.rand(1), expected)


@given(st.integers(0, 10_000), st.sampled_from(SPLITS))
@settings(max_examples=20, deadline=None)
def test_pictures_have_the_shapes_and_ranges_that_they_promise(seed: int, split: str) -> None:
    drawn = pictures(3, seed, split)
    assert drawn.images.shape == (3, 3, SIDE, SIDE)
    assert drawn.images.dtype == torch.float32
    assert 0 <= float(drawn.images.min()) <= float(drawn.images.max()) <= 1
    assert drawn.objects.shape == (3, ACROSS**2)
    assert ((drawn.shapes >= 0) & (drawn.shapes < len(SHAPES))).all()
    assert ((drawn.colours >= 0) & (drawn.colours < len(COLOURS))).all()
    assert ((drawn.distractors >= 0) & (drawn.distractors <= MOST_DISTRACTORS)).all()


@pytest.mark.parametrize("shape", range(len(SHAPES)), ids=SHAPES)
@pytest.mark.parametrize("colour", range(len(COLOURS)), ids=list(COLOURS))
def test_what_is_asked_for_is_drawn_and_nothing_else_changes(shape: int, colour: int) -> None:
    """Alone on grey, all that has a colour lies in the shape's patches, and it is the colour that was asked for."""
    drawn = pictures(20, 7, shape=shape, colour=colour, distractors=0)
    assert (drawn.shapes == shape).all()
    assert (drawn.colours == colour).all()
    inside = pixels(drawn.objects)
    spread = colourful(drawn.images)
    assert float(spread[~near(inside)].mean()) < 0.12  # noise alone
    strong = spread > 0.75 * float(PALETTE[colour].max() - PALETTE[colour].min())
    assert not (strong & ~near(inside)).any()
    assert float((strong & inside).sum()) > 0.98 * float(strong.sum())
    for image, there in zip(drawn.images, strong, strict=True):
        mean = image[:, there].mean(dim=1)
        assert int((PALETTE - mean).norm(dim=1).argmin()) == colour


def test_another_shape_or_colour_stands_in_the_same_place_among_the_same_dots() -> None:
    red, blue = (pictures(10, 4, shape=1, colour=colour).images for colour in (0, 4))
    circle = pictures(10, 4, shape=0, colour=0)
    square = pictures(10, 4, shape=1, colour=0)
    outside = ~near(pixels(circle.objects | square.objects))
    for one, other in ((red, blue), (circle.images, square.images)):
        assert torch.equal(one.movedim(1, -1)[outside], other.movedim(1, -1)[outside])
        assert not torch.equal(one, other)


def test_more_dots_and_lines_leave_those_that_were_there() -> None:
    few, more = (pictures(30, 5, distractors=count).images for count in (3, 8))
    differing = ((few - more).abs().amax(dim=1) > 0.2).float().mean()
    assert 0 < float(differing) < 0.2


@pytest.mark.parametrize("shape", range(len(SHAPES)), ids=SHAPES)
def test_shapes_look_like_what_they_are_called(shape: int) -> None:
    """By the share of the smallest upright box that they fill, and by what is in their middle."""
    drawn = pictures(60, 1, shape=shape, colour=4, distractors=0)
    filled, middle = [], []
    for spread in colourful(drawn.images):
        there = (spread > 0.35).nonzero()
        (top, left), (bottom, right) = there.amin(dim=0).tolist(), there.amax(dim=0).tolist()
        filled.append(len(there) / ((bottom - top + 1) * (right - left + 1)))
        middle.append(float(spread[(top + bottom) // 2, (left + right) // 2]))
    low, high = {"circle": (0.7, 0.9), "square": (0.6, 1.0), "triangle": (0.4, 0.6)}.get(SHAPES[shape], (0.35, 0.75))
    assert low < sum(filled) / len(filled) < high
    assert (sum(middle) / len(middle) > 0.4) == (SHAPES[shape] != "ring")


def test_shapes_and_colours_come_equally_often_and_say_nothing_about_each_other() -> None:
    drawn = pictures(1200, 0, "test")
    table = torch.zeros(len(SHAPES), len(COLOURS))
    table.index_put_((drawn.shapes, drawn.colours), torch.ones(1200), accumulate=True)
    assert (table / 40 - 1).abs().max() < 0.7  # 40 expected, with a deviation of 6


def test_the_shape_covers_a_small_part_of_the_picture() -> None:
    share = pictures(500, 0, "test").objects.float().mean(dim=1)
    assert 0.08 < float(share.mean()) < 0.16
    assert float(share.min()) >= 4 / ACROSS**2
    assert float(share.max()) <= 16 / ACROSS**2


def test_part_takes_pictures_by_number() -> None:
    drawn = pictures(6, 2)
    part = drawn.part(torch.tensor([4, 1]))
    assert len(part) == 2
    assert torch.equal(part.images, drawn.images[[4, 1]])
    assert torch.equal(part.objects, drawn.objects[[4, 1]])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"count": 0}, "count is 0"),
        ({"shape": 5}, "shape is 5; it must be a whole number from 0 to 4"),
        ({"colour": -1}, "colour is -1"),
        ({"distractors": 11}, "distractors is 11"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**30}, "seed is 1073741824"),
        ({"split": "final"}, "Pictures are for training, development, test, shown, not for 'final'"),
    ],
    ids=str,
)
def test_what_cannot_be_drawn_is_refused_with_its_value(asked: dict[str, int | str], said: str) -> None:
    with pytest.raises(ShapeError, match=said):
        pictures(**{"count": 1, "seed": 0, **asked})  # type: ignore[arg-type]
