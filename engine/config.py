"""One frozen configuration from which every transformer here is built.

Dimensions: L layers, H heads, G key-value heads, D head width, C model width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from engine.errors import ShapeError
from engine.rotary import Layout, Scaling

PositionKind = Literal["learned", "sinusoidal", "rotary", "alibi", "relative", "none"]
Activation = Literal["gelu", "gelu_tanh", "relu", "swiglu", "geglu", "geglu_tanh"]
NormKind = Literal["layer", "rms"]
NormPlace = Literal["pre", "post"]
Head = Literal["none", "tied", "own"]

AS_TRAINED = Scaling()

GATED: frozenset[str] = frozenset({"swiglu", "geglu", "geglu_tanh"})


@dataclass(frozen=True)
class Config:
    """Everything that decides a transformer's shape and arithmetic.

    Attributes:
        width: C, numbers per token between the layers.
        layers: L; of the encoder, where there is an encoder and a decoder.
        heads: H, query heads in a layer.
        feed_forward: numbers per token inside a feed-forward layer.
        vocabulary: how many different tokens there are; 0 where the input is no text.
        length: how many positions it is trained on, which is the size of a learned table.
        kv_heads: key-value heads: as many as heads is multi-head attention, fewer grouped-query, one multi-query;
            None for as many as heads.
        head_width: numbers per token and head; None for width / heads.
        decoder_layers: layers of the decoder beside an encoder; None for as many as the encoder has.
        positions: how word order enters.
        reserved: rows in front of a learned table that no token uses; BART keeps 2.
        rotary_base, rotary_layout, rotary_scaling: see engine/rotary.py.
        buckets, furthest: see RelativeBuckets in engine/positions.py.
        norm: "layer" subtracts the mean and divides by the deviation, "rms" only divides by the root mean square.
        norm_place: "pre" norms what goes into a part, "post" norms what has been added up.
        epsilon: added to the variance, so that nothing is divided by zero.
        embedding_norm: whether the embeddings are normed before the first layer.
        final_norm: whether the last layer's output is normed.
        activation: of the feed-forward layer; "swiglu" and "geglu" have a gate and therefore a third matrix; "_tanh" is
            the approximation of GELU that GPT-2 and later T5s were trained with.
        bias: whether the linear layers add a learned constant.
        qk_norm: whether every head's queries and keys are normed before they meet.
        window: query t sees key s where |t - s| < window; None where distance is no matter.
        softcap: c in c · tanh(score / c); None for none.
        scale: what dot products are multiplied with; None for 1/√D.
        segments: how many token types have an embedding of their own; 0 for none.
        head: what turns the last layer into scores of tokens: nothing, the token embedding again ("tied"), or a
            matrix of its own.
        head_scale: what the last layer is multiplied with on its way into the head; T5 takes 1/√C.
        pooler: whether the first token goes through one more layer, to stand for the whole text.
        classes: how many labels a classifier tells apart; 0 for none.
        image, patch, channels: side of the images and of the patches they are cut into, in pixels, and colours.
        dropout: share of a part's output that is set to zero while training, from 0 to 1.
    """

    width: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int = 0
    length: int = 512
    kv_heads: int | None = None
    head_width: int | None = None
    decoder_layers: int | None = None
    positions: PositionKind = "learned"
    reserved: int = 0
    rotary_base: float = 10_000.0
    rotary_layout: Layout = "half"
    rotary_scaling: Scaling = AS_TRAINED
    buckets: int = 32
    furthest: int = 128
    norm: NormKind = "layer"
    norm_place: NormPlace = "pre"
    epsilon: float = 1e-5
    embedding_norm: bool = False
    final_norm: bool = True
    activation: Activation = "gelu"
    bias: bool = True
    qk_norm: bool = False
    window: int | None = None
    softcap: float | None = None
    scale: float | None = None
    segments: int = 0
    head: Head = "none"
    head_scale: float = 1.0
    pooler: bool = False
    classes: int = 0
    image: int = 224
    patch: int = 16
    channels: int = 3
    dropout: float = 0.0

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit.

        Raises:
            ShapeError: names the size and what it has to be.
        """
        for name in ("width", "layers", "heads", "feed_forward", "length", "patch", "channels"):
            _at_least(name, getattr(self, name), 1)
        for name in ("kv_heads", "head_width", "decoder_layers", "window"):
            if getattr(self, name) is not None:
                _at_least(name, getattr(self, name), 1)
        for name in ("vocabulary", "segments", "classes", "reserved"):
            _at_least(name, getattr(self, name), 0)
        kinds = {
            "positions": PositionKind,
            "activation": Activation,
            "norm": NormKind,
            "norm_place": NormPlace,
            "head": Head,
            "rotary_layout": Layout,
        }
        for name, kind in kinds.items():
            if getattr(self, name) not in get_args(kind):
                raise ShapeError(f"{name} is {getattr(self, name)!r}; it may be {', '.join(get_args(kind))}.")
        if self.head_width is None and self.width % self.heads:
            raise ShapeError(f"A width of {self.width} is no multiple of {self.heads} heads: change one of them.")
        if self.heads % self.G:
            raise ShapeError(f"{self.heads} heads cannot share {self.G} key-value heads evenly: give a divisor.")
        if self.positions == "rotary" and self.D % 2:
            raise ShapeError(f"Rotary positions turn pairs of numbers, so a head width of {self.D} must be even.")
        if not 0 <= self.dropout < 1:
            raise ShapeError(f"dropout is {self.dropout}; it is a share from 0 to below 1.")
        if self.softcap is not None and not 0 < self.softcap < math.inf:
            raise ShapeError(f"softcap is {self.softcap}; it must be a number above 0, or None for no cap.")
        if not 0 <= self.epsilon < math.inf:
            raise ShapeError(f"epsilon is {self.epsilon}; it must be a number of at least 0.")

    @property
    def D(self) -> int:
        """Head width: numbers per token and head."""
        return self.width // self.heads if self.head_width is None else self.head_width

    @property
    def G(self) -> int:
        """Key-value heads in a layer."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def sharing(self) -> str:
        """What sharing keys and values among query heads is called."""
        if self.heads == self.G:
            return "multi-head"
        return "multi-query" if self.G == 1 else "grouped-query"

    @property
    def patches(self) -> int:
        """How many patches an image is cut into.

        Raises:
            ShapeError: the image is no whole number of patches wide.
        """
        if self.image % self.patch or self.image < self.patch:
            raise ShapeError(f"An image {self.image} pixels wide cannot be cut into patches of {self.patch}.")
        return (self.image // self.patch) ** 2


def _at_least(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ShapeError(f"{name} is {value!r}; it must be a whole number of at least {least}.")
