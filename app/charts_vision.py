"""Pictures and where a model looks on them, in plotly: what gets little weight fades into the page.

Dimensions: P patches, row by row; L layers, H heads.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from app import palette
from app.charts_axes import CLEAR, TICK_FONT, ink, literal
from app.charts_inputs import Bools, Floats, checked_shape

Pixels = NDArray[np.uint8]

STILL_SEEN = 0.10  # of a patch with no weight, so that the reader knows where on the picture it is
LARGE, SMALL = 9, 4  # screen pixels for one of a picture's
TITLE_ROOM = 58
HEAD_GAP = 0.22  # between heads, as a share of a picture's side
CONFIG: dict[str, Any] = {"displayModeBar": False, "scrollZoom": False, "doubleClick": False}
"""What to hand to `st.plotly_chart`: these pictures are clicked, not zoomed."""


def spotlight(image: Floats, weights: Floats, *, dark: bool) -> Floats:
    """Fade a picture into the page, patch by patch, the more the less weight a patch has.

    Args:
        image: red, green and blue from 0 to 1, (side, side, 3).
        weights: of its patches, (P,); the largest is not faded at all.
        dark: True on a dark page.

    Returns:
        The faded picture, (side, side, 3).

    Raises:
        ShapeError: the weights are not those of a square of patches that the picture can be cut into.
    """
    side, across = len(image), max(1, round(len(weights) ** 0.5))
    checked_shape("weights", np.shape(weights), (across**2,), "the patches", "(patches)")
    patch = side // across
    checked_shape("pixels", np.shape(image), (across * patch, across * patch, 3), "the patches", "(rows, columns, 3)")
    top = float(np.max(weights))
    share = np.asarray(weights, dtype=np.float64) / top if top > 0 else np.zeros(len(weights))
    seen = STILL_SEEN + (1 - STILL_SEEN) * share.reshape(across, across)
    kept = seen.repeat(patch, axis=0).repeat(patch, axis=1)[:, :, None]
    return kept * image + (1 - kept) * _page(dark)


def png(image: Floats, enlarged: int) -> str:
    """Write a picture (side, side, 3) with values from 0 to 1 as an address that holds it, each pixel a square."""
    pixels: Pixels = np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)
    pixels = pixels.repeat(enlarged, axis=0).repeat(enlarged, axis=1)
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)  # 0: the line as it is
    parts = [
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        _chunk(b"IDAT", zlib.compress(lines, 6)),
        _chunk(b"IEND", b""),
    ]
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode("ascii")
    return f"data:image/png;base64,{data}"


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _page(dark: bool) -> Floats:
    code = palette.PAGE_DARK if dark else palette.PAGE_LIGHT
    return np.array([int(code[at : at + 2], 16) for at in (1, 3, 5)]) / 255


def picture_figure(
    image: Floats,
    hovers: Sequence[str],
    *,
    title: str,
    meaning: str = "",
    chosen: int | None = None,
    dark: bool = False,
    size: int = 400,
) -> go.Figure:
    """Draw one picture with its patches, each of which says something when it is pointed at and can be clicked.

    Args:
        image: red, green and blue from 0 to 1, (side, side, 3).
        hovers: what each of the P patches says, shown literally.
        title: one line above the picture.
        meaning: a second line, smaller.
        chosen: the patch that is framed.
        dark: True on a dark page.
        size: height of the figure in pixels.

    Raises:
        ShapeError: there is no such patch.
    """
    across = round(len(hovers) ** 0.5)
    checked_shape("hovers", (len(hovers),), (across**2,), "the patches", "(patches)")
    figure = _frame(across, across, title, meaning, dark, size)
    _add_picture(figure, image, (0, 0), across, LARGE)
    lines = {"color": "rgba(120,130,135,0.35)", "width": 1}
    for at in range(1, across):
        figure.add_shape(x0=at, x1=at, y0=0, y1=across, line=lines)
        figure.add_shape(x0=0, x1=across, y0=at, y1=at, line=lines)
    if chosen is not None:
        row, column = divmod(chosen, across)
        _add_box(figure, (column, row), 1, dark)
    places = [(index % across + 0.5, index // across + 0.5) for index in range(len(hovers))]
    _add_targets(figure, places, hovers, (size - TITLE_ROOM) // across - 4)
    return figure


def heads_figure(
    image: Floats,
    weights: Floats,
    hovers: Sequence[str],
    *,
    title: str,
    meaning: str,
    chosen: tuple[int, int],
    dark: bool = False,
    size: int = 400,
) -> go.Figure:
    """Draw the picture once for every head, faded where the head does not look; a head can be clicked.

    Args:
        image: red, green and blue from 0 to 1, (side, side, 3).
        weights: of its patches in every head, (L, H, P).
        hovers: what each head says, layer by layer.
        title: one line above.
        meaning: a second line, smaller.
        chosen: the layer and head that are framed.
        dark: True on a dark page.
        size: height of the figure in pixels.

    Raises:
        ShapeError: the hovers are not as many as the heads.
    """
    layers, heads = np.shape(weights)[:2]
    checked_shape("hovers", (len(hovers),), (layers * heads,), "the heads", "(layers · heads)")
    step = 1 + HEAD_GAP
    figure = _frame(heads * step - HEAD_GAP, layers * step - HEAD_GAP, title, meaning, dark, size, labels=True)
    for layer in range(layers):
        for head in range(heads):
            faded = spotlight(image, weights[layer, head], dark=dark)
            _add_picture(figure, faded, (head * step, layer * step), 1, SMALL)
    figure.layout.margin.t = TITLE_ROOM + 24  # for the heads' numbers
    layer, head = chosen
    _add_box(figure, (head * step, layer * step), 1, dark)
    places = [(head * step + 0.5, layer * step + 0.5) for layer in range(layers) for head in range(heads)]
    _add_targets(figure, places, hovers, int(0.75 * (size - TITLE_ROOM) / (layers * step)))
    ticks = {"ticks": "", "showticklabels": True, "tickfont": {"size": TICK_FONT}}
    named = {"tickvals": [head * step + 0.5 for head in range(heads)], "ticktext": [f"head {h}" for h in range(heads)]}
    figure.layout.xaxis.update(ticks | named | {"side": "top"})
    named = {"tickvals": [layer * step + 0.5 for layer in range(layers)]}
    figure.layout.yaxis.update(ticks | named | {"ticktext": [f"layer {layer}" for layer in range(layers)]})
    return figure


def answer_bars(
    groups: Sequence[tuple[str, Sequence[str], Floats, str]], *, title: str, dark: bool = False, size: int = 400
) -> go.Figure:
    """Draw how likely the model takes each name to be, in bars from 0 to 100 %.

    Args:
        groups: for each question its name, the names that answer it, their probabilities, and which of them is right;
            the right one is in the accent colour.
        title: one line above.
        dark: True on a dark page.
        size: height of the figure in pixels.
    """
    names = [name for _, answers, _, _ in groups for name in answers]
    shares = np.concatenate([np.asarray(values, dtype=np.float64) for _, _, values, _ in groups])
    right: Bools = np.array([name == truth for _, answers, _, truth in groups for name in answers])
    accent, plain = (palette.ACCENT_DARK, palette.BEFORE_DARK) if dark else (palette.ACCENT_LIGHT, palette.BEFORE_LIGHT)
    figure = go.Figure(layout=_layout(title, "what is right is in colour", dark, size))
    figure.add_bar(
        x=100 * shares,
        y=[[question for question, answers, _, _ in groups for _ in answers], names],
        orientation="h",
        marker={"color": [accent if hit else plain for hit in right], "line": {"width": 0}},
        text=[f"{100 * share:.1f} %" for share in shares],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}: %{x:.2f} %<extra></extra>",
    )
    figure.layout.xaxis.update(range=[0, 122], visible=False, fixedrange=True)
    figure.layout.yaxis.update(autorange="reversed", ticks="", dividercolor=CLEAR, automargin=True, fixedrange=True)
    figure.layout.bargap = 0.3
    return figure


def _layout(title: str, meaning: str, dark: bool, size: int) -> dict[str, Any]:
    return {
        "template": "none",
        "height": size,
        "margin": {"l": 4, "r": 4, "t": TITLE_ROOM, "b": 4},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"size": TICK_FONT, "color": ink(dark)},
        "title": {
            **{
                "text": literal(title),
                "font": {"size": 16},
                "subtitle": {"text": literal(meaning), "font": {"size": 13}},
            },
            **{"x": 0, "xref": "container", "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 8, "l": 4}},
        },
        "hoverlabel": {
            "font": {"size": 15, "color": ink(dark)},
            "bgcolor": palette.PAGE_DARK if dark else palette.PAGE_LIGHT,
        },
        "showlegend": False,
        "dragmode": False,
    }


def _frame(
    width: float, height: float, title: str, meaning: str, dark: bool, size: int, *, labels: bool = False
) -> go.Figure:
    """Return an empty figure whose axes count patches, or pictures, from the top left."""
    bare = {"visible": True, "showgrid": False, "zeroline": False, "showticklabels": False, "ticks": ""}
    bare |= {"constrain": "domain", "fixedrange": True, "automargin": labels}
    figure = go.Figure(layout=_layout(title, meaning, dark, size))
    figure.layout.xaxis.update(bare | {"range": [0, width], "constraintoward": "left"})
    figure.layout.yaxis.update(bare | {"range": [height, 0], "constraintoward": "top", "scaleanchor": "x"})
    return figure


def _add_picture(figure: go.Figure, image: Floats, corner: tuple[float, float], side: float, enlarged: int) -> None:
    figure.add_layout_image(
        source=png(image, enlarged),
        xref="x", yref="y", x=corner[0], y=corner[1], sizex=side, sizey=side, sizing="stretch", layer="below",
    )  # fmt: skip


def _add_box(figure: go.Figure, corner: tuple[float, float], side: float, dark: bool) -> None:
    """Frame a square in the accent colour, on one of the page's."""
    page, accent = (palette.PAGE_DARK, palette.ACCENT_DARK) if dark else (palette.PAGE_LIGHT, palette.ACCENT_LIGHT)
    for colour, width in ((page, 5), (accent, 2.5)):
        figure.add_shape(
            x0=corner[0], x1=corner[0] + side, y0=corner[1], y1=corner[1] + side, line={"color": colour, "width": width}
        )


def _add_targets(figure: go.Figure, places: Sequence[tuple[float, float]], hovers: Sequence[str], size: int) -> None:
    """Add what is pointed at and clicked: squares that are not seen, one for each hover."""
    figure.add_scatter(
        x=[x for x, _ in places],
        y=[y for _, y in places],
        mode="markers",
        marker={"symbol": "square", "size": size, "opacity": 0},
        text=[literal(hover) for hover in hovers],
        hovertemplate="%{text}<extra></extra>",
    )
