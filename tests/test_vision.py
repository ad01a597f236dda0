"""The vision transformer: how an image becomes a sentence of patches.

B batch, P patches, C model width.
"""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from engine import Site
from engine.config import Config
from engine.errors import ShapeError
from engine.transformer import VisionTransformer
from tests.small_transformers import close, lively, maps_of, normal, small

# Images of 6 × 6 pixels in three colours, cut into 3 × 3 patches of 2 × 2.
VISION = small(image=6, patch=2)


@torch.no_grad()
def read(model: VisionTransformer, images: Tensor) -> Tensor:
    """What the layers get: the class token and the patches, before positions, (B, 1 + P, C)."""
    given: list[Tensor] = []
    handle = model.stack.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    model(images)
    handle.remove()
    return given[0]


@torch.no_grad()
@pytest.mark.parametrize("row", range(3))
@pytest.mark.parametrize("column", range(3))
def test_patches_are_read_row_by_row_after_the_class_token(row: int, column: int):
    """An image dark but for one patch: only the token of that patch says anything."""
    model = lively(VisionTransformer(VISION))
    model.patches.weight.fill_(1.0)
    model.patches.bias.zero_()
    image = torch.zeros(1, 3, 6, 6).double()
    image[:, :, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2] = 0.5
    tokens = read(model, image)
    expected = torch.zeros(9, 16).double()
    expected[3 * row + column] = 0.5 * 3 * 2 * 2
    close(tokens[0, 1:], expected)
    close(tokens[:, 0], model.first[0])


@torch.no_grad()
def test_inside_a_patch_the_numbers_go_by_colour_then_row_then_column():
    """Weights that pick one number each hand the patch on as it lies in the image."""
    model = lively(VisionTransformer(small(image=6, patch=2, width=12)))
    model.patches.weight.copy_(torch.eye(12))
    model.patches.bias.zero_()
    images = normal(2, 3, 6, 6)
    close(read(model, images)[:, 1 + 3 + 2].view(2, 3, 2, 2), images[:, :, 2:4, 4:6])


@torch.no_grad()
@pytest.mark.parametrize("changes", [{}, {"channels": 1}, {"image": 12, "patch": 3, "channels": 4}, {"image": 2}])
def test_cutting_into_patches_is_pytorchs_convolution_with_a_stride(changes: dict[str, Any]):
    config = small(**{"image": 6, "patch": 2, **changes})
    model = lively(VisionTransformer(config))
    images = normal(2, config.channels, config.image, config.image)
    kernel = model.patches.weight.view(16, config.channels, config.patch, config.patch)
    expected = F.conv2d(images, kernel, model.patches.bias, stride=config.patch).flatten(2).mT
    close(read(model, images)[:, 1:], expected)
    vectors, maps = maps_of(model, images)
    assert vectors.shape == (2, 1 + config.patches, 16)
    assert maps[Site("vision", 1)].shape == (2, 4, 1 + config.patches, 1 + config.patches)
    assert (maps[Site("vision", 1)] > 0).all()  # every patch sees every patch


@torch.no_grad()
def test_the_class_token_speaks_for_the_image():
    model = lively(VisionTransformer(small(image=6, patch=2, pooler=True, classes=5)))
    vectors = model(normal(2, 3, 6, 6))
    close(model.logits(vectors), vectors[:, 0] @ model.classify.weight.T + model.classify.bias)
    close(model.pooled(vectors), torch.tanh(vectors[:, 0] @ model.pooler.weight.T + model.pooler.bias))


def test_there_is_a_position_for_each_patch_and_the_class_token_whatever_the_length():
    for length in (3, 500):
        model = VisionTransformer(small(image=6, patch=2, length=length))
        assert model.stack.positions.limit == 10


@pytest.mark.parametrize("shape", [(3, 5, 6), (3, 6, 8), (1, 6, 6), (3, 7, 7)])
def test_images_of_another_size_are_refused_with_both_sizes(shape: tuple[int, ...]):
    with pytest.raises(ShapeError) as refusal:
        VisionTransformer(VISION)(torch.zeros(2, *shape))
    expected = f"Images of shape {shape} do not fit a model for (3, 6, 6) (colours, height, width)."
    assert str(refusal.value) == expected


@pytest.mark.parametrize(("image", "patch"), [(7, 2), (224, 15), (8, 16)])
def test_an_image_that_is_no_whole_number_of_patches_is_refused_when_the_model_is_built(image: int, patch: int):
    """Nothing at the edge is left out in silence."""
    config: Config = small(image=image, patch=patch)
    with pytest.raises(ShapeError, match=f"An image {image} pixels wide cannot be cut into patches of {patch}"):
        VisionTransformer(config)
