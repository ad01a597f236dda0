"""Our own transformers against transformers', weight for weight: the same numbers in, the same numbers out.

How near is near enough stands in tests/rebuilt_models.py.
"""

import pytest
import torch
from torch import Tensor
from transformers import AutoModel

from engine import HuggingFaceModel, Mask, Site, recording
from engine.catalogue import MINILM
from engine.sites import Kind
from engine.transformer import Encoder
from engine.weights import rebuilt
from tests.rebuilt_models import (
    DECODERS,
    IMAGES,
    TEXTS,
    TOLERANCE,
    Read,
    apart,
    furthest_apart,
    padding_of,
    pair,
    read_by_both,
    texts_of,
    weights_of,
)
from tests.test_minilm import CLS, CUSTOMER, KEEPER, MEASURED, SHE, SHOP, SHOPKEEPER

every_text = pytest.mark.parametrize("name", TEXTS)
every_image = pytest.mark.parametrize("name", IMAGES)


def check(name: str, ids: Tensor, real: Tensor | None = None) -> None:
    """Read the same with ours and theirs, and compare everything at real tokens."""
    difference, place = furthest_apart(*read_by_both(name, ids, real), real)
    assert difference <= TOLERANCE, place


@every_text
def test_scores_and_every_weight_of_attention_are_those_of_transformers(name: str):
    """Two texts in one batch, longer than the training where a scaling is to be tested."""
    check(name, texts_of(name))


@every_text
def test_one_token_is_read_as_transformers_reads_it(name: str):
    """A single token sees itself alone."""
    check(name, texts_of(name, 1))


@every_text
def test_padding_on_the_right_is_read_as_transformers_reads_it(name: str):
    """Compared at real tokens: what padding makes of itself is nobody's business."""
    ids = texts_of(name)
    check(name, ids, padding_of(ids, "right"))


@pytest.mark.parametrize("name", DECODERS)
def test_padding_on_the_left_is_read_as_transformers_reads_it(name: str):
    """Theirs is told the positions; ours counts from the first real token by itself."""
    ids = texts_of(name)
    check(name, ids, padding_of(ids, "left"))


@every_image
def test_an_image_is_seen_as_transformers_sees_it(name: str):
    """Patches cut and multiplied are the convolution; then every layer, the labels and the pooler."""
    module, model = pair(name)
    config = module.config
    shape = (2, config.num_channels, config.image_size, config.image_size)
    images = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    with torch.inference_mode(), recording() as recorder:
        theirs = module(images, output_attentions=True)
        vectors = model(images)
        output = model.logits(vectors) if model.config.classes else vectors
        pooled = model.pooled(vectors) if model.config.pooler else None
    expected = {Site("vision", layer): held for layer, held in enumerate(theirs.attentions)}
    difference, place = furthest_apart(Read(output, weights_of(recorder)), Read(theirs[0], expected))
    assert difference <= TOLERANCE, place
    if pooled is not None:
        assert apart(pooled, theirs.pooler_output) <= TOLERANCE


def test_the_pooler_and_the_second_segment_are_those_of_bert():
    """A pair of texts: the second has segment 1."""
    module, model = pair("bert")
    ids = texts_of("bert")
    segments = (torch.arange(ids.shape[1]) > 5).long().expand_as(ids)
    with torch.inference_mode():
        theirs = module(ids, token_type_ids=segments)
        vectors = model(ids, segments=segments)
        assert apart(vectors, theirs.last_hidden_state) <= TOLERANCE
        assert apart(model.pooled(vectors), theirs.pooler_output) <= TOLERANCE


@pytest.mark.parametrize("name", [name for name, case in DECODERS.items() if "without" not in name])
def test_what_a_decoder_writes_with_its_cache_is_what_transformers_writes(name: str):
    """Word by word with keys and values kept, against transformers reading everything anew for each word."""
    module, model = pair(name)
    ids = texts_of(name, 5)
    written, expected = model.generate(ids, 8), ids
    with torch.inference_mode():
        for _ in range(8):
            new = module(expected, use_cache=False).logits[:, -1:].argmax(dim=-1)
            expected = torch.cat([expected, new], dim=1)
    assert torch.equal(written, expected)


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_what_an_encoder_decoder_writes_with_its_cache_is_what_transformers_writes(name: str):
    """Likewise, beside a text that is read once."""
    module, model = pair(name)
    ids, expected = texts_of(name), texts_of(name, 2).flip(1)
    written = model.generate(ids, expected, 8)
    with torch.inference_mode():
        for _ in range(8):
            new = module(ids, decoder_input_ids=expected, use_cache=False).logits[:, -1:].argmax(dim=-1)
            expected = torch.cat([expected, new], dim=1)
    assert torch.equal(written, expected)


@pytest.fixture(scope="module")
def ours(minilm: HuggingFaceModel) -> Encoder:
    """Our encoder with MiniLM's weights."""
    model = rebuilt(minilm.module)
    assert isinstance(model, Encoder)
    return model


@pytest.fixture(scope="module")
def shopkeeper(minilm: HuggingFaceModel) -> Tensor:
    """The sentence as MiniLM reads it, (1, 15)."""
    return torch.tensor([minilm.prompt(SHOPKEEPER).ids])


def test_every_layer_and_head_of_minilm_is_that_of_transformers(ours: Encoder, shopkeeper: Tensor):
    """Real weights: what all six layers make of the sentence, and all 72 maps of attention."""
    eager = AutoModel.from_pretrained(str(MINILM.path), attn_implementation="eager").eval()
    layers: list[Tensor] = []
    hooks = [block.register_forward_hook(lambda *called: layers.append(called[2])) for block in ours.stack.blocks]
    with torch.inference_mode(), recording() as recorder:
        vectors = ours(shopkeeper)
        pooled = ours.pooled(vectors)
        theirs = eager(shopkeeper, output_attentions=True, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    torch.testing.assert_close(vectors, theirs.last_hidden_state, atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(torch.stack(layers), torch.stack(theirs.hidden_states[1:]), atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(pooled, theirs.pooler_output, atol=TOLERANCE, rtol=0)
    weights = torch.stack([recorder.recorded[Site("encoder", layer)].weights() for layer in range(6)])
    assert weights.shape == (6, 12, 15, 15)
    torch.testing.assert_close(weights, torch.cat(theirs.attentions), atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize(("mask", "layer", "head", "customer", "both_pieces", "cls"), MEASURED)
def test_she_attends_in_our_encoder_as_measured(
    ours: Encoder,
    shopkeeper: Tensor,
    mask: str,
    layer: int,
    head: int,
    customer: float,
    both_pieces: float,
    cls: float,
):
    """The numbers measured with transformers' own eager attention, as trained and with a causal mask imposed."""
    padding: dict[Kind, Tensor] = {"encoder": torch.ones_like(shopkeeper, dtype=torch.bool)}
    with torch.inference_mode(), recording(mask=Mask.parse(mask), padding=padding) as recorder:
        ours(shopkeeper)
    row = recorder.recorded[Site("encoder", layer)].weights(head)[SHE]
    shown = torch.stack([row[CUSTOMER], row[SHOP] + row[KEEPER], row[CLS]])
    torch.testing.assert_close(shown, torch.tensor([customer, both_pieces, cls]), atol=TOLERANCE, rtol=0)
