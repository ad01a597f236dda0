"""Whole layers and models against PyTorch's own transformer modules, which know nothing of this code.

B batch, T tokens, S tokens of the other text, C model width.
"""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine import Site
from engine.blocks import Attention, Block, Reading, Stack
from engine.config import Config
from engine.masks import Visibility
from engine.positions import Positions
from engine.presets import build, preset
from engine.transformer import Decoder, Encoder, EncoderDecoder, TextClassifier
from tests.small_transformers import close, lively, maps_of, normal, small, some_ids

BOTH = [torch.float32, torch.float64]
PLACES, ACTIVATIONS = ("pre", "post"), ("relu", "gelu")
REAL = torch.arange(6) < torch.tensor([[6], [4], [1]])  # three texts of 6, 4 and 1 tokens
CAUSAL = torch.ones(6, 6).triu(1).bool()  # as PyTorch says it: True is hidden


def copied(theirs: nn.MultiheadAttention, ours: Attention) -> None:
    """Give PyTorch's attention our numbers."""
    parts = (ours.q, ours.k, ours.v)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.out_proj.weight.copy_(ours.out.weight)
    if theirs.in_proj_bias is not None:
        theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        theirs.out_proj.bias.copy_(ours.out.bias)


def loaded(theirs: nn.Module, ours: nn.Module) -> None:
    """Give a module of PyTorch's the numbers of one of ours whose parameters bear the same names."""
    theirs.load_state_dict(ours.state_dict())


@torch.no_grad()
def twin(block: Block, config: Config) -> nn.TransformerEncoderLayer | nn.TransformerDecoderLayer:
    """PyTorch's layer with the same numbers."""
    make = nn.TransformerDecoderLayer if block.crosses else nn.TransformerEncoderLayer
    layer = make(
        config.width,
        config.heads,
        config.feed_forward,
        activation=config.activation,
        layer_norm_eps=config.epsilon,
        batch_first=True,
        norm_first=config.norm_place == "pre",
        dtype=block.attention.q.weight.dtype,
    ).eval()
    norms = [block.attention_norm, block.feed_forward_norm]
    copied(layer.self_attn, block.attention)
    if isinstance(layer, nn.TransformerDecoderLayer):
        copied(layer.multihead_attn, block.cross)
        norms.insert(1, block.cross_norm)
    for number, norm in enumerate(norms, start=1):
        loaded(getattr(layer, f"norm{number}"), norm)
    loaded(layer.linear1, block.feed_forward.widen)
    loaded(layer.linear2, block.feed_forward.narrow)
    return layer


@torch.no_grad()
def encoder_twin(stack: Stack, config: Config) -> nn.TransformerEncoder:
    """PyTorch's stack of layers with the same numbers, and with the last norm where ours has one."""
    layers: Sequence[Any] = [twin(block, config) for block in stack.blocks]  # type: ignore[arg-type]
    dtype = layers[0].linear1.weight.dtype
    norm = nn.LayerNorm(config.width, config.epsilon, dtype=dtype) if config.final_norm else None
    theirs = nn.TransformerEncoder(layers[0], len(layers), norm=norm, enable_nested_tensor=False).eval()
    theirs.layers = nn.ModuleList(layers)
    if norm is not None:
        loaded(norm, stack.final_norm)
    return theirs


@torch.no_grad()
def decoder_twin(stack: Stack, config: Config) -> nn.TransformerDecoder:
    """The same for a decoder with cross-attention."""
    layers: Sequence[Any] = [twin(block, config) for block in stack.blocks]  # type: ignore[arg-type]
    dtype = layers[0].linear1.weight.dtype
    norm = nn.LayerNorm(config.width, config.epsilon, dtype=dtype) if config.final_norm else None
    theirs = nn.TransformerDecoder(layers[0], len(layers), norm=norm).eval()
    theirs.layers = nn.ModuleList(layers)
    if norm is not None:
        loaded(norm, stack.final_norm)
    return theirs


def reading(x: Tensor, causal: bool = False, real: Tensor | None = None, memory: Tensor | None = None) -> Reading:
    """What a layer is told where positions play no part."""
    visibility = Visibility(causal, None if real is None else real[:, None, None])
    return Reading(torch.arange(x.shape[1])[None], Positions(), visibility, memory=memory)


@torch.no_grad()
@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("norm_place", PLACES)
@pytest.mark.parametrize("masked", ["nothing", "padding", "future", "both"])
def test_a_block_is_pytorchs_encoder_layer(norm_place: Any, activation: Any, masked: str, dtype: torch.dtype):
    config = small(norm_place=norm_place, activation=activation, epsilon=0.1)
    block, x = lively(Block(config, Site("encoder", 0)), dtype=dtype), 2 * normal(3, 6, 16, dtype=dtype)
    padded, causal = masked in ("padding", "both"), masked in ("future", "both")
    expected = twin(block, config)(x, CAUSAL if causal else None, ~REAL if padded else None)
    close(block(x, reading(x, causal, REAL if padded else None)), expected)


@torch.no_grad()
@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("norm_place", PLACES)
def test_a_block_with_cross_attention_is_pytorchs_decoder_layer(norm_place: Any, activation: Any, dtype: torch.dtype):
    """First itself causally, then across to the real tokens of the memory, then feed-forward."""
    config = small(norm_place=norm_place, activation=activation)
    block = lively(Block(config, Site("decoder", 0), crosses=True), dtype=dtype)
    x, memory = normal(3, 5, 16, dtype=dtype), normal(3, 6, 16, seed=1, dtype=dtype)
    expected = twin(block, config)(x, memory, tgt_mask=CAUSAL[:5, :5], memory_key_padding_mask=~REAL)
    close(block(x, reading(x, causal=True), reading(x, real=REAL, memory=memory)), expected)


@torch.no_grad()
@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("final_norm", [True, False])
@pytest.mark.parametrize("norm_place", PLACES)
def test_an_encoder_is_pytorchs_encoder(norm_place: Any, final_norm: bool, dtype: torch.dtype):
    """Three layers of different numbers, of which the order matters, and the norm after them."""
    config = small(layers=3, norm_place=norm_place, final_norm=final_norm, positions="none")
    encoder, ids = lively(Encoder(config), dtype=dtype), some_ids(3, 6)
    expected = encoder_twin(encoder.stack, config)(encoder.tokens(ids), src_key_padding_mask=~REAL)
    close(encoder(ids, REAL)[REAL], expected[REAL])


@torch.no_grad()
@pytest.mark.parametrize("norm_place", PLACES)
def test_a_decoder_is_pytorchs_encoder_read_causally(norm_place: Any):
    config = small(layers=3, norm_place=norm_place, head="tied")
    decoder, ids = lively(Decoder(config)), some_ids(3, 6)
    embedded = decoder.tokens(ids) + decoder.stack.positions.table.weight[:6]  # type: ignore[union-attr,index]
    expected = encoder_twin(decoder.stack, config)(embedded, mask=CAUSAL)
    close(decoder(ids), expected)
    close(decoder.logits(decoder(ids)), expected @ decoder.tokens.weight.T)


@torch.no_grad()
@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("norm_place", PLACES)
def test_an_encoder_decoder_is_pytorchs_encoder_and_decoder(norm_place: Any, dtype: torch.dtype):
    """Two layers read, three write; both texts padded."""
    config = small(layers=2, decoder_layers=3, norm_place=norm_place, positions="none")
    model = lively(EncoderDecoder(config), dtype=dtype)
    ids, target = some_ids(3, 6), some_ids(3, 5, seed=1)
    target_real = torch.arange(5) < torch.tensor([[3], [5], [2]])
    memory = encoder_twin(model.encoder, config)(model.tokens(ids), src_key_padding_mask=~REAL)
    close(model.encode(ids, REAL)[REAL], memory[REAL])
    expected = decoder_twin(model.decoder, config)(
        model.tokens(target),
        memory,
        tgt_mask=CAUSAL[:5, :5],
        tgt_key_padding_mask=~target_real,
        memory_key_padding_mask=~REAL,
    )
    close(model(ids, target, REAL, target_real)[target_real], expected[target_real])


class CourseClassifier(nn.Module):
    """What a first course builds: embeddings, PyTorch's encoder, the mean over the real tokens, a linear layer."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.length, config.width)
        layer = nn.TransformerEncoderLayer(
            config.width, config.heads, config.feed_forward, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, config.layers, enable_nested_tensor=False)
        self.classify = nn.Linear(config.width, config.classes)

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        x = self.encoder(x, src_key_padding_mask=~real)
        x = x.masked_fill(~real[:, :, None], 0.0)
        return self.classify(x.sum(dim=1) / real.sum(dim=1, keepdim=True))


@torch.no_grad()
def course_twin(model: TextClassifier, config: Config) -> CourseClassifier:
    """The course's classifier with the numbers of ours."""
    theirs = CourseClassifier(config).to(model.classify.weight.dtype).eval()
    loaded(theirs.tokens, model.encoder.tokens)
    loaded(theirs.places, model.encoder.stack.positions.table)  # type: ignore[arg-type]
    loaded(theirs.classify, model.classify)
    theirs.encoder = encoder_twin(model.encoder.stack, config)
    return theirs


@torch.no_grad()
@pytest.mark.parametrize(
    "changes", [{}, {"layers": 1, "heads": 1}, {"width": 15, "heads": 5, "classes": 7}], ids=["2x4", "1x1", "2x5"]
)
@pytest.mark.parametrize("dtype", BOTH)
def test_a_text_classifier_is_the_one_built_from_pytorchs_modules(changes: dict[str, Any], dtype: torch.dtype):
    sizes: dict[str, Any] = {"norm_place": "post", "final_norm": False, "classes": 2, **changes}
    config = small(**sizes)
    model, ids = lively(TextClassifier(config), dtype=dtype), some_ids(3, 6)
    close(model.logits(model(ids, REAL), REAL), course_twin(model, config)(ids, REAL))


@torch.no_grad()
def test_the_course_classifier_is_the_one_built_from_pytorchs_modules():
    """At its full size, 1,069,570 numbers, in PyTorch's own as many, and every head's map with it."""
    config = preset("course-classifier").config
    model = build(TextClassifier, config)
    assert isinstance(model, TextClassifier)
    lively(model, dtype=torch.float32)
    theirs = course_twin(model, config)
    assert sum(parameter.numel() for parameter in theirs.parameters()) == 1_069_570
    ids, real = some_ids(3, 40, vocabulary=5000), torch.arange(40) < torch.tensor([[40], [25], [3]])
    vectors, maps = maps_of(model, ids, real)
    close(model.logits(vectors, real), theirs(ids, real))
    x = theirs.tokens(ids) + theirs.places(torch.arange(40))
    for number, layer in enumerate(theirs.encoder.layers):
        assert isinstance(layer, nn.TransformerEncoderLayer)
        _, weights = layer.self_attn(x, x, x, key_padding_mask=~real, average_attn_weights=False)
        ours = maps[Site("encoder", number)]
        close(ours.transpose(1, 2)[real], weights.transpose(1, 2)[real])  # PyTorch computes no rows for padding
        x = layer(x, src_key_padding_mask=~real)
