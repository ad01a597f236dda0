"""What a link keeps of the page Build: its choices, and how each is written in an address.

A switch that is None stands as the model has it that the reader started from, so a link names only what was changed.
"""

from collections.abc import Callable
from dataclasses import dataclass

from app.parameters import Parameter, counted, matching, read_flag, whole, write_flag
from engine.presets import PRESETS

OWN = "own"
MOST_WIDTH = 16_384
MOST_LAYERS = 128
MOST_HEADS = 128
MOST_INNER = 65_536
MOST_PLACES = 131_072
LEAST_VOCABULARY, MOST_VOCABULARY = 64, 300_000  # no sentence drawn here has more different words than the least
MOST_SPAN = 100_000
MOST_STEP = 16


@dataclass(frozen=True)
class BuildChoices:
    """What the reader has chosen on the page Build; layers, heads and steps count from 0."""

    start: str = OWN  # the model to start from: a preset's name, or a small one of the reader's own
    family: str | None = None  # "encoder", "decoder", "both", "vision" or "classifier"
    width: int | None = None  # C
    depth: int | None = None  # L
    query_heads: int | None = None  # H
    kv_heads: int | None = None  # G
    feed: str | None = None  # the activation of the feed-forward layer
    inner: int | None = None  # its width
    norm: str | None = None  # "layer" or "rms"
    norm_place: str | None = None  # "pre" or "post"
    word_order: str | None = None  # how positions enter
    places: int | None = None  # rows of a learned table of positions
    sees: str | None = None  # "family", "both", "past" or "window"
    span: int | None = None  # of the window, in tokens
    vocabulary: int | None = None
    biases: bool | None = None
    output: str | None = None  # the head: "tied", "own" or "none"
    qk_norm: bool | None = None
    looked_at: str = "decoder"  # or "encoder": which half of an encoder–decoder is drawn and listed
    own_kind: str = ""  # which attention of the untrained model is drawn; "" lets the page choose
    own_layer: int = 0
    own_head: int = 0
    step: int = 1  # of writing with a cache; 0 reads the sentence


def even(limit: int) -> Callable[[str], int]:
    """Read an even whole number from 2 to a limit."""

    def read(text: str) -> int:
        number = counted(limit, 2)(text)
        if number % 2:
            raise ValueError(text)
        return number

    return read


BUILD_PARAMETERS: dict[str, Parameter] = {
    "start": Parameter("start", matching("|".join([OWN, *PRESETS]))),
    "family": Parameter("family", matching("encoder|decoder|both|vision|classifier")),
    "width": Parameter("width", even(MOST_WIDTH)),
    "depth": Parameter("depth", counted(MOST_LAYERS)),
    "query_heads": Parameter("queries", counted(MOST_HEADS)),
    "kv_heads": Parameter("kv", counted(MOST_HEADS)),
    "feed": Parameter("feed", matching("relu|gelu|gelu_tanh|swiglu|geglu")),
    "inner": Parameter("inner", counted(MOST_INNER)),
    "norm": Parameter("norm", matching("layer|rms")),
    "norm_place": Parameter("place", matching("pre|post")),
    "word_order": Parameter("order", matching("learned|sinusoidal|rotary|alibi|relative|none")),
    "places": Parameter("places", counted(MOST_PLACES)),
    "sees": Parameter("sees", matching("family|both|past|window")),
    "span": Parameter("span", counted(MOST_SPAN)),
    "vocabulary": Parameter("vocabulary", counted(MOST_VOCABULARY, LEAST_VOCABULARY)),
    "biases": Parameter("biases", read_flag, write_flag),
    "output": Parameter("output", matching("tied|own|none")),
    "qk_norm": Parameter("qknorm", read_flag, write_flag),
    "looked_at": Parameter("look", matching("decoder|encoder")),
    "own_kind": Parameter("ownkind", matching("encoder|decoder|cross")),
    "own_layer": Parameter("ownlayer", whole(MOST_LAYERS - 1)),
    "own_head": Parameter("ownhead", whole(MOST_HEADS - 1)),
    "step": Parameter("step", whole(MOST_STEP)),
}
