"""The sizes that decide what a model costs: those of known models, and of any model that is loaded.

Dimensions: L layers, H heads, G key-value heads, D head width, C model width, F feed-forward width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from engine.card import Card
from engine.config import GATED, Config
from engine.errors import ModelError
from engine.huggingface import HuggingFaceModel
from engine.model import Model
from engine.presets import Preset, Transformer, build, count_parameters
from engine.scratch import ScratchModel
from engine.transformer import Decoder, Encoder, EncoderDecoder
from engine.weights import rebuilt_config

# What families call the width inside a feed-forward layer.
INNER = (
    "intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "hidden_dim", "d_inner", "n_inner", "ffn_hidden_size",
)  # fmt: skip
# How far the numbers in a model's matrices may be from what its sizes say before a reader is told.
CLOSE = 0.01


@dataclass(frozen=True)
class Sizes:
    """What a model's cost depends on.

    Attributes:
        name: what a person calls the model.
        make: which of our classes it is built like.
        config: its sizes.
        windows: for each self-attention layer of the stack that writes, or of the only one, how many positions a query
            reaches back, itself included; None where it reaches everything.
        parameters: how many numbers it has learned.
        note: where our parts differ from the model's own; empty where they do not.
    """

    name: str
    make: Callable[[Config], Transformer]
    config: Config
    windows: tuple[int | None, ...]
    parameters: int
    note: str = ""

    @property
    def writes(self) -> bool:
        """Whether it writes token by token, with a cache of keys and values."""
        return self.make in (Decoder, EncoderDecoder)

    @property
    def attention_numbers(self) -> int:
        """Numbers in the four matrices of one attention: queries and output 2·H·D·C, keys and values 2·G·D·C."""
        config = self.config
        return 2 * (config.heads + config.G) * config.D * config.width

    @property
    def feed_forward_numbers(self) -> int:
        """Numbers in the matrices of one feed-forward layer: 2·C·F, or 3·C·F with a gate."""
        config = self.config
        return (3 if config.activation in GATED else 2) * config.width * config.feed_forward

    @property
    def attentions(self) -> int:
        """How many attentions there are, those across two texts counted as well."""
        config = self.config
        if self.make is not EncoderDecoder:
            return config.layers
        return config.layers + 2 * self.decoder_layers

    @property
    def layers(self) -> int:
        """Layers of all stacks."""
        return self.config.layers + (self.decoder_layers if self.make is EncoderDecoder else 0)

    @property
    def decoder_layers(self) -> int:
        """Layers of the stack that writes; 0 where nothing writes."""
        if self.make is Decoder:
            return self.config.layers
        if self.make is EncoderDecoder:
            return self.config.layers if self.config.decoder_layers is None else self.config.decoder_layers
        return 0

    def sharing(self, kv_heads: int) -> Sizes:
        """Give the same model with another number of key-value heads.

        Args:
            kv_heads: G: the number of heads for multi-head attention, 1 for multi-query, a divisor between.

        Raises:
            ShapeError: the heads cannot share so many evenly.
        """
        config = replace(self.config, kv_heads=kv_heads)
        other = replace(self, config=config)
        constants = 2 * (config.G - self.config.G) * config.D if config.bias else 0
        change = other.attention_numbers - self.attention_numbers + constants
        name = self.name if config.G == self.config.G else f"{self.name}, {config.sharing}"
        return replace(other, name=name, parameters=self.parameters + self.attentions * change)

    def windowed(self, window: int | None) -> Sizes:
        """Give the same model with the same window in every self-attention layer, or with none."""
        return replace(self, config=replace(self.config, window=window), windows=(window,) * len(self.windows))


def sizes_of_preset(known: Preset) -> Sizes:
    """Read off the sizes of a known model; its parameters are counted without making it."""
    total = sum(count_parameters(build(known.make, known.config, device="meta")).values())
    sizes = Sizes(known.title, known.make, known.config, (), total)
    return replace(sizes, windows=(known.config.window,) * (sizes.decoder_layers or known.config.layers))


def sizes_of(model: Model) -> Sizes:
    """Read off the sizes of a model that is loaded: its own heads, key-value heads, head width and windows.

    Raises:
        ModelError: its sizes are not to be found in its configuration.
    """
    card = model.card
    if isinstance(model, ScratchModel):
        config = model.module.config
        layers = card.layers if "cross" not in card.kinds else config.decoder_layers or config.layers
        return Sizes(card.name, type(model.module), config, (config.window,) * layers, card.parameters)
    if not isinstance(model, HuggingFaceModel):
        raise ModelError(f"The sizes of {card.name} cannot be read off.")
    make: Callable[[Config], Transformer]
    try:
        make, config = rebuilt_config(model.module)
        note = ""
    except ModelError:
        make, config = _alike(model.module, card)
        note = _difference(model.module, config, card)
    spans = _reach(card)
    layers = config.decoder_layers or config.layers if make is EncoderDecoder else config.layers
    windows = spans if len(spans) == layers else (None,) * layers
    return Sizes(card.name, make, config, windows, card.parameters, note)


def _reach(card: Card) -> tuple[int | None, ...]:
    """Turn how many keys a layer's window spans into how far it reaches back: half as far where it looks both ways."""
    both_ways = card.kinds == ("encoder",)
    return tuple(span if span is None or not both_ways else (span + 1) // 2 for span in card.windows)


def _alike(module: PreTrainedModel, card: Card) -> tuple[Callable[[Config], Transformer], Config]:
    """Describe a model of any family by the sizes of the nearest transformer that is built from our parts."""
    config = module.config.get_text_config()
    width, inner = _first(config, "hidden_size", "d_model"), _first(config, *INNER)
    if width is None:
        raise ModelError(f"The configuration of {card.name} does not say how wide it is.")
    head = _first(config, "head_dim", "d_kv")
    output = module.get_output_embeddings()
    make = EncoderDecoder if "cross" in card.kinds else Decoder if "decoder" in card.kinds else Encoder
    made = Config(
        width=width,
        layers=card.layers,
        heads=card.heads,
        kv_heads=_groups(config, card),
        head_width=head if head is not None else width // card.heads,
        feed_forward=inner if inner is not None else 4 * width,
        vocabulary=int(config.vocab_size),
        decoder_layers=_first(config, "num_decoder_layers", "decoder_layers") if make is EncoderDecoder else None,
        positions="none",
        bias=any(part.bias is not None for part in _linears(module)),
        head="none" if output is None else "tied",
    )
    gated = replace(made, activation="swiglu")
    return make, gated if _has_gate(module, made, gated, make) else made


def _groups(config: Any, card: Card) -> int:
    """Say how many key-value heads there are: as seen when it was probed, or else as its configuration says."""
    if not card.reason:
        return card.kv_heads
    if getattr(config, "multi_query", False) and not getattr(config, "new_decoder_architecture", False):
        return 1  # Falcon's first models, whatever else their configuration says
    return _first(config, "num_key_value_heads", "num_kv_heads") or card.kv_heads


def _has_gate(module: PreTrainedModel, plain: Config, gated: Config, make: Callable[[Config], Transformer]) -> bool:
    """Say whether feed-forward layers have a third matrix: the layers are nearer to that, and enough is as wide."""
    found = sum(matrix.numel() for matrix in _matrices(module))
    if abs(found - _expected(plain, make)) <= abs(found - _expected(gated, make)):
        return False
    wide = {plain.feed_forward, 2 * plain.feed_forward}  # both halves may be one matrix
    inner = sum(matrix.numel() for matrix in _matrices(module) if wide & set(matrix.shape))
    parts = Sizes("", make, gated, (), 0)
    return 2 * inner > (2 + 3) * plain.width * plain.feed_forward * parts.layers


def _first(config: Any, *names: str) -> int | None:
    return next((int(value) for name in names if (value := getattr(config, name, None)) is not None), None)


def _matrices(module: PreTrainedModel) -> list[Tensor]:
    """List the matrices of a model's layers, whose path has a layer's number; tables that are looked up are none."""
    tables = {id(part.weight) for part in module.modules() if isinstance(part, nn.Embedding)}
    return [
        parameter
        for name, parameter in module.named_parameters()
        if parameter.dim() > 1 and _in_a_layer(name) and id(parameter) not in tables
    ]


def _linears(module: PreTrainedModel) -> list[nn.Linear | Conv1D]:
    return [part for name, part in module.named_modules() if isinstance(part, nn.Linear | Conv1D) and _in_a_layer(name)]


def _in_a_layer(path: str) -> bool:
    return any(step.isdigit() for step in path.split("."))


def _expected(config: Config, make: Callable[[Config], Transformer]) -> int:
    sizes = Sizes("", make, config, (), 0)
    return sizes.attentions * sizes.attention_numbers + sizes.layers * sizes.feed_forward_numbers


def _difference(module: PreTrainedModel, config: Config, card: Card) -> str:
    make = EncoderDecoder if "cross" in card.kinds else Decoder if "decoder" in card.kinds else Encoder
    found, expected = sum(matrix.numel() for matrix in _matrices(module)), _expected(config, make)
    if abs(found - expected) <= CLOSE * expected:
        return ""
    return (
        f"The layers of {card.name} hold {found:,} numbers in matrices; counted as attention and one feed-forward part "
        f"each, they would hold {expected:,}: it has parts that are not counted here, or shares some."
    )
