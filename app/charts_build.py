"""One transformer as a diagram in HTML: boxes with their parameters, arrows with their shapes, detours as lines.

HTML rather than a picture, so that its text is real text, which a telephone wraps and a reader can copy. All text in
it is the app's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from app import palette
from app.charts_curves import GRID_DARK, GRID_LIGHT
from engine.shapes import Step

LINES_LIGHT, LINES_DARK = "#8A979E", "#7C8A91"
FILL_LIGHT, FILL_DARK = "#F3F6F7", "#1E272B"
TINT_LIGHT, TINT_DARK = "#DBEFF1", "#1B3D56"
STYLE = """
.flow{max-width:27rem;margin:0 auto;font-size:1rem;line-height:1.35;color:var(--ink)}
.flow .box{position:relative;z-index:1;border:1.5px solid var(--line);border-radius:.5rem;padding:.3rem .7rem;
background:var(--fill)}
.flow .main{background:var(--tint);border-color:var(--accent)}
.flow .head{display:flex;justify-content:space-between;gap:.6rem;font-weight:600}
.flow .count{font-weight:400;white-space:nowrap}
.flow .line{font-size:.9375rem;color:var(--soft)}
.flow .arrow{position:relative;height:1.7rem}
.flow .arrow::before{content:"";position:absolute;left:calc(50% - 1px);top:0;bottom:.3rem;width:2px;
background:var(--line)}
.flow .arrow::after{content:"";position:absolute;left:calc(50% - .32rem);bottom:0;border:.32rem solid transparent;
border-top-color:var(--line);border-bottom:0}
.flow .shape{position:absolute;left:calc(50% + .7rem);top:.1rem;font-size:.9375rem;color:var(--soft);
white-space:nowrap}
.flow .layer{border:1.5px dashed var(--line);border-radius:.8rem;padding:.4rem .5rem 0}
.flow .layer>.head{padding:0 .2rem}
.flow .part{position:relative;padding:0 1.9rem}
.flow .skip{position:absolute;left:.5rem;top:.7rem;bottom:.8rem;width:calc(50% - .5rem);
border:2px solid var(--accent);border-right:0;border-radius:.6rem 0 0 .6rem}
.flow .plus{position:relative;z-index:1;width:1.6rem;height:1.6rem;margin:0 auto;border:2px solid var(--accent);
border-radius:50%;background:var(--page);text-align:center;line-height:1.3rem;font-weight:600}
.flow .below{height:.45rem}
.flow .begins{text-align:center}
.flow .aside{font-size:.9375rem;color:var(--soft);margin-bottom:.6rem}
"""
TABLE_STYLE = """
.steps table{width:100%;border-collapse:collapse;font-size:.9375rem;line-height:1.3;color:var(--ink)}
.steps th{text-align:left;font-weight:600;padding:.45rem .4rem .2rem 0}
.steps thead th{padding-top:0;color:var(--soft);font-weight:400}
.steps td{padding:.2rem .8rem .2rem 0;border-top:1px solid var(--hair);vertical-align:top}
.steps td:nth-child(2),.steps td:nth-child(3){white-space:nowrap}
.steps td:last-child,.steps th:last-child:not([colspan]){text-align:right;padding-right:0}
.steps .fleeting td{color:var(--soft);font-style:italic}
"""

TITLES = {
    "gate": "feed-forward, its gate",
    "widened": "feed-forward, inside",  # which need not be wider
    "narrowed": "feed-forward, back to the width",
}
"""What the table calls steps whose own name would say too much."""


@dataclass(frozen=True)
class Labels:
    """What the diagram says beside shapes and counts, in the app's own words.

    Attributes:
        norm: the kind of norm.
        attention: the kind of attention, with its heads.
        feed_forward: the kind of feed-forward layer.
        positions: how positions enter; empty where they don't.
        mask: who sees whom.
        layers: L.
        begins: what comes in at the top.
        normed: whether queries and keys are normed.
        ends: where what comes out at the bottom goes; empty where that needs no saying.
        aside: what stands beside the flow, such as an encoder; empty for nothing.
    """

    norm: str
    attention: str
    feed_forward: str
    positions: str
    mask: str
    layers: int
    begins: str
    normed: bool = False
    aside: str = ""
    ends: str = ""


@dataclass(frozen=True)
class Part:
    """One detour inside a layer: the steps of its norm and of what it computes, and in which order."""

    norm: Step
    inner: tuple[Step, ...]
    added: Step
    norm_first: bool

    @property
    def is_attention(self) -> bool:
        """Whether words look at each other here."""
        return self.inner[0].what == "queries"

    @property
    def crosses(self) -> bool:
        """Whether they look at the words of another text."""
        return any("other text" in step.what for step in self.inner)

    @property
    def parameters(self) -> int:
        """Learned numbers beside the norm's."""
        return sum(step.parameters for step in self.inner)


def parts_of(steps: Sequence[Step]) -> list[Part]:
    """Group the steps of a layer into its detours, each ending where it is added to what was there."""
    parts: list[Part] = []
    norm: Step | None = None
    inner: list[Step] = []
    added: Step | None = None
    for step in steps:
        if step.part != "layer":
            continue
        if step.what == "norm" and added is not None:  # after the sum: post-norm
            parts.append(Part(step, tuple(inner), added, norm_first=False))
            norm, inner, added = None, [], None
        elif step.what == "norm":
            norm = step
        elif not step.what.startswith("added"):
            inner.append(step)
        elif norm is not None:
            parts.append(Part(norm, tuple(inner), step, norm_first=True))
            norm, inner = None, []
        else:
            added = step
    return parts


def block_diagram(steps: Sequence[Step], labels: Labels, *, dark: bool = False) -> str:
    """Draw a transformer as it computes, from top to bottom; one layer stands for all.

    Args:
        steps: what it computes, from engine.shapes.steps.
        labels: what the boxes are called.
        dark: True on a dark page.

    Returns:
        HTML with its own colours.
    """
    body = "".join([*_beginning(steps, labels), *_layer(steps, labels), *_end(steps, labels)])
    return f'<div class="flow" style="{_colours(dark)}">{body}<style>{STYLE}</style></div>'


def steps_table(steps: Sequence[Step], layers: int, *, dark: bool = False) -> str:
    """List everything that is computed, with the name and size of each axis and the parameters that it takes.

    Args:
        steps: what it computes, from engine.shapes.steps.
        layers: L.
        dark: True on a dark page.

    Returns:
        HTML with its own colours; what never lies in memory is in grey.
    """
    headings = {"embedding": "Before the layers", "layer": f"In each of the {layers} layers", "end": "After the layers"}
    if layers == 1:
        headings["layer"] = "In the only layer"
    rows: list[str] = []
    for part, heading in headings.items():
        inside = [_row(step) for step in steps if step.part == part]
        rows += [f'<tr><th colspan="4">{heading}</th></tr>', *inside] if inside else []
    titles = "".join(f"<th>{title}</th>" for title in ("Step", "Axes", "Shape", "Parameters"))
    table = f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<div class="steps" style="{_colours(dark)}">{table}<style>{TABLE_STYLE}</style></div>'


def _row(step: Step) -> str:
    cells = [_title(step), " × ".join(step.axes), _shape(step), f"{step.parameters:,}" if step.parameters else ""]
    kind = "" if step.kept else ' class="fleeting"'
    return f"<tr{kind}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _title(step: Step) -> str:
    what = TITLES.get(step.what, step.what)
    return what[:1].upper() + what[1:]


def _colours(dark: bool) -> str:
    names = {
        "ink": (palette.INK_LIGHT, palette.INK_DARK),
        "soft": (palette.SOFT_INK_LIGHT, palette.SOFT_INK_DARK),
        "page": (palette.PAGE_LIGHT, palette.PAGE_DARK),
        "accent": (palette.ACCENT_LIGHT, palette.ACCENT_DARK),
        "line": (LINES_LIGHT, LINES_DARK),
        "hair": (GRID_LIGHT, GRID_DARK),
        "fill": (FILL_LIGHT, FILL_DARK),
        "tint": (TINT_LIGHT, TINT_DARK),
    }
    return ";".join(f"--{name}:{pair[dark]}" for name, pair in names.items())


def _beginning(steps: Sequence[Step], labels: Labels) -> Iterator[str]:
    if labels.aside:
        yield f'<div class="aside">{escape(labels.aside)}</div>'
    yield f'<div class="begins">{escape(labels.begins)}</div>'
    for step in steps:
        if step.part != "embedding" or step.axes[0] == "H":  # a bias on the scores stands in the attention's box
            continue
        if step.what == "token numbers":
            yield _arrow(step)
            continue
        if step.what == "patches":
            yield _arrow(None)
        title = {"norm": labels.norm, "positions added": f"+ {labels.positions}"}.get(step.what)
        yield _box(title or _title(step), step.parameters)
        yield _arrow(step)


def _layer(steps: Sequence[Step], labels: Labels) -> Iterator[str]:
    total = sum(step.parameters for step in steps if step.part == "layer")
    each = " each" if labels.layers > 1 else ""
    name = f"× {labels.layers} layers" if labels.layers > 1 else "1 layer"
    yield f'<div class="layer"><div class="head"><span>{name}</span><span class="count">{total:,}{each}</span></div>'
    coming = next(step for step in steps if step.part == "layer" and step.axes == ("T", "C"))
    for part in parts_of(steps):
        yield from _part(part, labels, coming, _bias(steps))
    yield '<div class="below"></div></div>'


def _part(part: Part, labels: Labels, coming: Step, bias: Step | None) -> Iterator[str]:
    yield '<div class="part"><div class="skip"></div>'
    yield _arrow(coming)
    if part.norm_first:
        yield _box(labels.norm, part.norm.parameters)
        yield _arrow(part.norm)
    if part.is_attention:
        title = "Cross-attention" if part.crosses else labels.attention
        yield _box(title, part.parameters, list(_attention_lines(part, labels, bias)), main=True)
    else:
        yield _box(labels.feed_forward, part.parameters, list(_feed_forward_lines(part)), main=True)
    yield _arrow(part.inner[-1])
    yield '<div class="plus">+</div></div>'
    if not part.norm_first:
        yield _arrow(part.added)
        yield f'<div class="part">{_box(labels.norm, part.norm.parameters)}</div>'


def _attention_lines(part: Part, labels: Labels, bias: Step | None) -> Iterator[str]:
    shapes = {step.what.split(" ")[0]: _shape(step) for step in part.inner}
    turned = any("turned" in step.what for step in part.inner)
    yield f"queries {shapes['queries']}"
    yield f"keys, values {shapes['keys']}" + (", from the encoder" if part.crosses else "")
    if labels.normed:
        yield "queries and keys normed in each head"
    if turned:
        yield "queries and keys turned: rotary positions"
    scores = next(step for step in part.inner if step.what.startswith("scores"))
    yield f"{scores.what}: {_shape(scores)}"
    if bias is not None and not part.crosses:
        learned = f" ({bias.parameters:,} numbers, shared by all layers)" if bias.parameters else ""
        yield f"plus {labels.positions}{learned}"
    yield f"mask: {'all of the other text' if part.crosses else labels.mask}; then softmax"


def _feed_forward_lines(part: Part) -> Iterator[str]:
    inside = next(step for step in part.inner if step.what == "widened")
    gated = part.inner[0].what == "gate"
    yield f"{_shape(part.norm)} → {_shape(inside)} → {_shape(part.inner[-1])}"
    if gated:
        yield f"twice {_shape(inside)}: one is the other’s gate"


def _end(steps: Sequence[Step], labels: Labels) -> Iterator[str]:
    last = [step for step in steps if step.part == "layer"][-1]
    for step in steps:
        if step.part != "end":
            continue
        yield _arrow(last)
        yield _box(_title(step), step.parameters)
        last = step
    yield _arrow(last)
    if labels.ends:
        yield f'<div class="begins">{escape(labels.ends)}</div>'


def _bias(steps: Sequence[Step]) -> Step | None:
    return next((step for step in steps if step.part == "embedding" and step.axes[0] == "H"), None)


def _box(title: str, parameters: int, lines: Sequence[str] = (), *, main: bool = False) -> str:
    count = f'<span class="count">{parameters:,}</span>' if parameters else ""
    inside = "".join(f'<div class="line">{escape(line)}</div>' for line in lines)
    kind = "box main" if main else "box"
    return f'<div class="{kind}"><div class="head"><span>{escape(title)}</span>{count}</div>{inside}</div>'


def _arrow(step: Step | None) -> str:
    shape = "" if step is None else f'<span class="shape">{_shape(step)}</span>'
    return f'<div class="arrow">{shape}</div>'


def _shape(step: Step) -> str:
    return " × ".join(f"{size:,}" for size in step.shape)
