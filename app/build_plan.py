"""From switches to a configuration: what the reader chose, completed by the model it started from and made to fit.

Dimensions: H heads, G key-value heads, C model width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from app.build_words import OWN_TITLE, SWITCHES
from app.view_build import MOST_HEADS, OWN, BuildChoices
from engine import (
    PRESETS,
    Config,
    Decoder,
    Encoder,
    EncoderDecoder,
    Mask,
    TextClassifier,
    VisionTransformer,
)
from engine.presets import Transformer

Make = Callable[[Config], Transformer]
MAKES: dict[str, Make] = {
    "encoder": Encoder,
    "decoder": Decoder,
    "both": EncoderDecoder,
    "vision": VisionTransformer,
    "classifier": TextClassifier,
}
SMALL = Config(
    width=64, layers=2, heads=4, kv_heads=2, feed_forward=192, vocabulary=1000, positions="rotary", norm="rms",
    activation="swiglu", bias=False, head="tied",
)  # fmt: skip
FIRST_SPAN = 4
MASKS = {"family": Mask.native(), "window": Mask.native(), "both": Mask.bidirectional(), "past": Mask.causal()}


@dataclass(frozen=True)
class Plan:
    """What is to be built: every switch of BuildChoices with its value, and a configuration that fits together."""

    start: str
    family: str
    width: int
    depth: int
    query_heads: int
    kv_heads: int
    feed: str
    inner: int
    norm: str
    norm_place: str
    word_order: str
    places: int
    sees: str
    span: int
    vocabulary: int
    biases: bool
    output: str
    qk_norm: bool

    @property
    def title(self) -> str:
        """What the reader started from."""
        return title_of(self.start)

    @property
    def make(self) -> Make:
        """The engine's class for this family."""
        return MAKES[self.family]

    @property
    def reads_text(self) -> bool:
        """Whether it reads the sentence: a vision transformer reads the patches of an image."""
        return self.family != "vision"

    @property
    def mask(self) -> Mask:
        """The mask that a run is given; a window is part of the model itself."""
        return MASKS[self.sees]

    @property
    def looks_back_only(self) -> bool:
        """Whether no word sees a later one."""
        return self.sees == "past" or (self.family in ("decoder", "both") and self.sees != "both")

    @property
    def config(self) -> Config:
        """The engine's configuration: the switches over what the start has beside them."""
        base = start_config(self.start)
        kept: dict[str, Any] = {}
        kept["segments"] = base.segments if self.family in ("encoder", "classifier") else 0
        kept["pooler"] = base.pooler and self.family in ("encoder", "vision")
        kept["classes"] = (base.classes or 2) if self.family == "classifier" else 0
        kept["head"] = self.output if self.family in ("encoder", "decoder", "both") else "none"
        if base.head_scale != 1:
            kept["head_scale"] = self.width**-0.5
        return replace(
            base,
            width=self.width,
            layers=self.depth,
            decoder_layers=None,
            heads=self.query_heads,
            kv_heads=None if self.kv_heads == self.query_heads else self.kv_heads,
            head_width=None,
            feed_forward=self.inner,
            vocabulary=self.vocabulary if self.reads_text else 0,
            length=self.places,
            positions=self.word_order,  # type: ignore[arg-type] # checked where addresses are read
            norm=self.norm,  # type: ignore[arg-type]
            norm_place=self.norm_place,  # type: ignore[arg-type]
            final_norm=self.norm_place == "pre",  # after post-norm the last layer's output is normed already
            activation=self.feed,  # type: ignore[arg-type]
            bias=self.biases,
            qk_norm=self.qk_norm,
            window=self.span if self.sees == "window" else None,
            **kept,
        )

    def changed(self) -> list[str]:
        """Name the switches that differ from what the reader started from."""
        before = plan_of_start(self.start)
        return [name for field, name in SWITCHES.items() if getattr(self, field) != getattr(before, field)]


def title_of(start: str) -> str:
    """Say what a person calls a model to start from."""
    return OWN_TITLE if start == OWN else PRESETS[start].title


def start_config(start: str) -> Config:
    """Give the configuration that a start stands for."""
    return SMALL if start == OWN else PRESETS[start].config


def plan_of_start(start: str) -> Plan:
    """Set every switch as a known model has it."""
    config, make = start_config(start), Decoder if start == OWN else PRESETS[start].make
    return Plan(
        start=start,
        family=next(name for name, known in MAKES.items() if known is make),
        width=config.width,
        depth=config.layers,
        query_heads=config.heads,
        kv_heads=config.G,
        feed=config.activation,
        inner=config.feed_forward,
        norm=config.norm,
        norm_place=config.norm_place,
        word_order=config.positions,
        places=config.length,
        sees="family" if config.window is None else "window",
        span=config.window or FIRST_SPAN,
        vocabulary=config.vocabulary or SMALL.vocabulary,
        biases=config.bias,
        output=config.head,
        qk_norm=config.qk_norm,
    )


def plan_of(choices: BuildChoices) -> tuple[Plan, dict[str, str]]:
    """Complete what the reader chose by the model it starts from, make it fit, and say what that changed.

    Returns:
        The plan, whose configuration the engine takes; and for each switch that had to be changed, why.
    """
    start = plan_of_start(choices.start)
    chosen = {field.name: getattr(choices, field.name) for field in fields(Plan) if field.name != "start"}
    plan = replace(start, **{name: value for name, value in chosen.items() if value is not None})
    said = {}
    heads = _largest(heads_for(plan.width, plan.word_order), plan.query_heads)
    if heads != plan.query_heads:
        said["query_heads"] = _why_other_heads(plan, heads)
    wanted = plan.kv_heads
    if choices.kv_heads is None and start.kv_heads == start.query_heads:
        wanted = heads  # multi-head stays multi-head
    groups = _largest(groups_for(heads), wanted)
    if groups != wanted:
        shared = f"{heads} head{'s' * (heads > 1)} cannot share {wanted} key-value heads evenly"
        said["kv_heads"] = f"{shared}, so there {_are(groups)}."
    return replace(plan, query_heads=heads, kv_heads=groups), said


def _why_other_heads(plan: Plan, heads: int) -> str:
    wanted = plan.query_heads
    if plan.width % wanted:
        return f"{wanted} heads do not divide a width of {plan.width:,}, so there {_are(heads)}."
    odd = f"{wanted} head{'s' * (wanted > 1)} of width {plan.width // wanted}"
    return f"{odd} cannot turn all their numbers in pairs, as rotary positions do, so there {_are(heads)}."


def _are(count: int) -> str:
    return f"is {count}" if count == 1 else f"are {count}"


def heads_for(width: int, word_order: str) -> list[int]:
    """List how many heads a width can be cut into; rotary positions need an even width in each."""
    even = word_order == "rotary"
    counts = [count for count in range(1, min(width, MOST_HEADS) + 1) if width % count == 0]
    return [count for count in counts if not even or (width // count) % 2 == 0]


def groups_for(heads: int) -> list[int]:
    """List how many key-value heads can be shared evenly."""
    return [count for count in range(1, heads + 1) if heads % count == 0]


def _largest(allowed: list[int], wanted: int) -> int:
    return max((count for count in allowed if count <= wanted), default=allowed[0])


def snippet(plan: Plan, total: int) -> str:
    """Write the code that builds exactly this model, with the fields that are not as they are anyway.

    Args:
        plan: what is built.
        total: its number of parameters, for the comment.
    """
    name, config = plan.make.__name__, plan.config
    given = [
        f"    {field.name}={_written(getattr(config, field.name))},"
        for field in fields(Config)
        if getattr(config, field.name) != field.default
    ]
    device = ', device="meta"' if total > META_FROM else ""
    lines = [f"from engine import Config, {name}, build, count_parameters", "", "config = Config(", *given, ")"]
    lines.append(
        f"model = build({name}, config{device})" + ("  # shapes and counts alone take no memory" * bool(device))
    )
    lines.append(f'print(f"{{sum(count_parameters(model).values()):,}} parameters")  # {total:,}')
    if plan.mask != Mask.native() and plan.reads_text:
        lines += ["", "# The mask is no part of the model; a run is given it:", f"# {_run_line(plan, name)}"]
    return "\n".join(lines)


META_FROM = 300_000_000  # parameters: beyond, random weights would fill a laptop


def _written(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _run_line(plan: Plan, name: str) -> str:
    mask = "bidirectional" if plan.sees == "both" else "causal"
    return f'untrained({name}, config).run("two words", mask=Mask.{mask}())'
