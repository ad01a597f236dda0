"""What a mask does to one head: its scores, the scores with −∞, the weights, and why it has to be in this order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app import charts, state
from app.lesson import Stages, around, drawn_note, is_recorded, stages, token_of
from app.panels import is_dark
from app.phrases import mask_label
from app.scene import Scene
from app.shell import literal
from engine import Mask

LESSON_MASKS = {
    "causal": "GPT-style (causal)",
    "bidirectional": "BERT-style (all)",
    "prefix": "Prefix",
    "window": "Window",
}
PANEL_WIDTH = 277  # of each of three on a projector's 1024 pixels
SHARES = ("−∞ before", "zeroed after", "no mask")
WIDTHS = (88, 78, 90, 68, 60, 104)  # of the table's columns: all fit on 1024 pixels, the first four on a telephone
ROWS_SHOWN = 18
ROW_HEIGHT = 28


def before_and_after(scene: Scene) -> None:
    """Draw one head's scores before the mask, after it, and the weights that the softmax makes of them."""
    view, trace = scene.view, scene.trace
    st.markdown("#### What the mask does to one head")
    if not is_recorded(trace):
        st.info(literal(f"{trace.card.name} returns weights only, so its scores cannot be shown."))
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="lesson_bar"):
        st.segmented_control(
            "Mask of this lesson (on this one head)", list(LESSON_MASKS), format_func=LESSON_MASKS.__getitem__,
            required=True, wrap=True, **state.mirror("lesson"),
        )  # fmt: skip
        st.number_input("Layer", 0, trace.layers(scene.kind) - 1, width=130, **state.mirror("layer"))
        st.number_input("Head", 0, trace.heads(scene.kind) - 1, width=130, **state.mirror("head"))
    made = stages(trace, view.layer, view.head, scene.kind, lesson_mask(scene))
    _panels(scene, made)
    st.caption(
        f"{drawn_note(around(token_of(scene), len(made.scores)), len(made.scores))} 1 and 2 share one scale: blue is a "
        "score above 0, orange one below. Grey is hidden. The outlined row is "
        f"**{literal(trace.queries(scene.kind)[token_of(scene)].text)}**.  \n"
        f"Layer {view.layer}, head {view.head} of {literal(trace.card.name)}, run {literal(mask_label(view.mask))}; "
        "the mask of this lesson is put on this one head, so that only the mask differs. Under Explore a mask is put "
        "on every layer."
    )
    _why(scene, made)


def _panels(scene: Scene, made: Stages) -> None:
    token, dark = token_of(scene), is_dark()
    drawn = around(token, len(made.scores))
    labels = [token.text for token in scene.trace.queries(scene.kind)[drawn]]
    scores, visible, weights = (cells[drawn, drawn] for cells in (made.scores, made.visible, made.weights))
    reach, row, size = float(np.abs(scores).max()), token - drawn.start, 420
    figures = (
        charts.scores_figure(
            scores, None, labels, labels, title="1 · scores q·k/√D", row=row, reach=reach, dark=dark, size=size,
            width=PANEL_WIDTH,
        ),
        charts.scores_figure(
            scores, visible, labels, labels, stage="after", title="2 · masked to −∞", row=row, reach=reach, dark=dark,
            size=size, width=PANEL_WIDTH,
        ),
        charts.heatmap(
            weights, labels, labels, visible=visible, title="3 · softmax of each row", row=row, dark=dark, size=size,
            width=PANEL_WIDTH,
        ),
    )  # fmt: skip
    for number, (column, figure) in enumerate(zip(st.columns(3, gap="small"), figures, strict=True)):
        figure.update_layout(showlegend=False)  # a legend would take its height from one of the three
        column.plotly_chart(figure, theme=None, config=charts.CONFIG, key=f"stage_{number}")


def lesson_mask(scene: Scene) -> Mask:
    """The mask that the lesson puts on one head."""
    view, longest = scene.view, max(2, len(scene.trace.prompt))
    masks = {
        "causal": Mask.causal(),
        "bidirectional": Mask.bidirectional(),
        "prefix": Mask.prefix(min(view.prefix, longest)),
        "window": Mask.window(min(view.window, longest)),
    }
    return masks[view.lesson]


def _why(scene: Scene, made: Stages) -> None:
    row = token_of(scene)
    word = literal(scene.trace.queries(scene.kind)[row].text)
    st.markdown("#### Why −∞, and why before the softmax")
    left, right = st.columns([2, 3], gap="medium")
    with left:
        st.latex(r"\text{weight}_j = \frac{e^{s_j}}{\sum_k e^{s_k}} \qquad e^{-\infty} = 0")
        st.markdown(
            "The softmax shares out 100 % among all scores it is given. A score of −∞ gets nothing, and what it would "
            "have taken goes to the visible tokens: the row still sums to 100 %."
        )
    if made.visible[row].all():
        other = "pick an earlier word under Explore" if scene.view.lesson == "causal" else "pick GPT-style"
        right.markdown(f"This mask hides nothing from **{word}**, so there is nothing to compare; {other}.")
        return
    with left:
        st.markdown(
            f"Setting hidden weights to zero *after* the softmax would be too late: in the row of **{word}** the "
            f"hidden tokens had already taken {_percent(made.taken(row))}, and only "
            f"**{_percent(made.late[row].sum())}** would be left. A score of 0 would be wrong as well, since e⁰ = 1 "
            "is a weight like any other."
        )
    with right:
        _show(_table(scene, made, row))


def _show(table: pd.DataFrame) -> None:
    """Show all rows of a table as far as a page can hold them."""
    widths = dict(zip(table.columns, WIDTHS, strict=True))
    st.dataframe(
        table,
        hide_index=True,
        height="content" if len(table) <= ROWS_SHOWN else ROW_HEIGHT * (ROWS_SHOWN + 1),
        row_height=ROW_HEIGHT,
        column_config={name: st.column_config.Column(width=width) for name, width in widths.items()},
    )


def _percent(share: float) -> str:
    """Write a share in per cent, without rounding what is there away or up to all."""
    if 0 < share < 0.0005:
        return "less than 0.1 %"
    if 0.9995 <= share < 1:
        return "almost 100 %"
    return f"{share * 100:.1f} %"


def _number(score: float) -> str:
    return "−∞" if np.isneginf(score) else f"{score:.3f}".replace("-", "−")


def _table(scene: Scene, made: Stages, row: int) -> pd.DataFrame:
    """Write one row of the head in numbers, what they add up to first."""
    keys = [token.text for token in scene.trace.keys(scene.kind)]
    masked = np.where(made.visible[row], made.scores[row], -np.inf)
    shares = dict(zip(SHARES, (made.weights[row], made.late[row], made.unmasked[row]), strict=True))
    return pd.DataFrame(
        {"token": ["sum", *keys]}
        | {name: [f"{share * 100:.1f} %" for share in (values.sum(), *values)] for name, values in shares.items()}
        | {"score": ["", *map(_number, made.scores[row])], "masked score": ["", *map(_number, masked)]}
    )
