"""The pieces of the Masks page: who may see whom, what a mask does to scores, why −∞ and why before the softmax."""

from __future__ import annotations

import inspect
import textwrap

import numpy as np
import pandas as pd
import streamlit as st

from app import charts, state
from app.lesson import PAD, Stages, is_recorded, matrix, padded, padding_test, stages
from app.panels import is_dark, mask_label
from app.scene import Scene
from app.shell import literal
from engine import Mask, Prompt, attend, attention_weights

# A matrix of more tokens than this cannot be read at this size.
TOKENS_SHOWN = 40
SIDES = {"right": "on the right", "left": "on the left"}
LESSON_MASKS = {
    "causal": "GPT-style (causal)",
    "bidirectional": "BERT-style (all)",
    "prefix": "Prefix",
    "window": "Window",
}


def shortened(prompt: Prompt) -> Prompt:
    """Keep the first tokens of a long sentence, so that every cell can be seen."""
    if len(prompt) <= TOKENS_SHOWN:
        return prompt
    return Prompt(prompt.text, prompt.pair, prompt.tokens[:TOKENS_SHOWN], prompt.words, (), prompt.total, prompt.limit)


def token_of(scene: Scene) -> int:
    """Find the first token of the picked word; the first token where it is not shown."""
    first = scene.sources[scene.pin].indices[0]
    return first if first < TOKENS_SHOWN else 0


def who_sees_whom(scene: Scene) -> None:
    """Draw the five masks of the sentence side by side."""
    prompt, view = shortened(scene.trace.prompt), scene.view
    word = literal(prompt.tokens[token_of(scene)].text)
    st.markdown("#### Who may see whom")
    cut = (
        f" The first {TOKENS_SHOWN} of {len(scene.trace.prompt)} are drawn."
        if len(prompt) < len(scene.trace.prompt)
        else ""
    )
    st.markdown(
        "A mask says for every token (a row) which tokens (the columns) it may attend to. Masks act on tokens, so this "
        f"page shows tokens, special ones too.{cut} The outlined row is **{word}**."
    )
    columns = st.columns(5, gap="small")
    plain = (
        ("BERT-style", Mask.bidirectional(), "Everyone sees everyone: good for understanding a whole sentence."),
        ("GPT-style", Mask.causal(), "Only itself and the past: so it can learn to write the next word."),
    )
    for column, (name, mask, why) in zip(columns[:2], plain, strict=True):
        with column:
            _matrix(scene, prompt, mask, name, why)
            _use(scene, mask, name)
    with columns[2]:
        with_pads = padded(prompt, view.pads, view.side)
        _matrix(scene, with_pads, Mask.bidirectional(), "Padding", f"{PAD} fills up a batch; nobody may look at it.")
        st.slider("Padding tokens", 1, 6, **state.mirror("pads"))
    longest = max(2, len(prompt))
    with columns[3]:
        prefix = Mask.prefix(min(view.prefix, longest))
        _matrix(
            scene, prompt, prefix, "Prefix", "All see the first tokens (the question), then it is causal (the answer)."
        )
        st.slider("Prefix length", 1, longest, **state.mirror("prefix", value=min(view.prefix, longest)))
        _use(scene, prefix, "prefix")
    with columns[4]:
        window = Mask.window(min(view.window, longest))
        _matrix(scene, prompt, window, "Sliding window", "Only neighbours: cost grows with the length, not its square.")
        st.slider("Window", 1, longest, **state.mirror("window", value=min(view.window, longest)))
        _use(scene, window, "window")


def _matrix(scene: Scene, prompt: Prompt, mask: Mask, name: str, why: str) -> None:
    made = matrix(prompt.tokens, mask)
    real = [place for place, token in enumerate(prompt.tokens) if not token.padding]
    row = real[token_of(scene)]
    figure = charts.mask_matrix(
        made.visible, list(made.labels), list(made.labels), title=name, padding=made.padding, row=row, dark=is_dark()
    )
    st.plotly_chart(figure, theme=None, config=charts.CONFIG, key=f"matrix_{name}")
    st.caption(f"{why} {literal(made.labels[row])} sees {made.seen_by(row)}.")


def _use(scene: Scene, mask: Mask, name: str) -> None:
    st.button(
        "Run the model with it",
        key=f"use_{name}",
        on_click=state.set,
        kwargs={"mask": mask.spec},
        disabled=not is_recorded(scene.trace),
    )


def before_and_after(scene: Scene) -> None:
    """Draw one head's scores before the mask, after it, and the weights that the softmax makes of them."""
    view, trace = scene.view, scene.trace
    st.markdown("#### What the mask does to one head")
    if not is_recorded(trace):
        st.info(literal(f"{trace.card.name} returns weights only, so its scores cannot be shown."))
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="lesson_bar"):
        st.segmented_control(
            "Mask of this lesson", list(LESSON_MASKS), format_func=LESSON_MASKS.__getitem__, required=True,
            **state.mirror("lesson"),
        )  # fmt: skip
        st.number_input("Layer", 0, trace.layers(scene.kind) - 1, width=130, **state.mirror("layer"))
        st.number_input("Head", 0, trace.heads(scene.kind) - 1, width=130, **state.mirror("head"))
    made = stages(trace, view.layer, view.head, scene.kind, lesson_mask(scene))
    count = min(TOKENS_SHOWN, made.scores.shape[0])
    labels = [token.text for token in trace.queries(scene.kind)[:count]]
    cells = slice(0, count), slice(0, count)
    dark = is_dark()
    columns = st.columns(3, gap="small")
    figures = (
        charts.scores_figure(made.scores[cells], None, labels, labels, dark=dark, title="1 · scores q·k/√D", size=440),
        charts.scores_figure(
            made.scores[cells], made.visible[cells], labels, labels, dark=dark, stage="after",
            title="2 · masked to −∞", size=440,
        ),
        charts.heatmap(
            made.weights[cells], labels, labels, visible=made.visible[cells], dark=dark,
            title="3 · softmax of each row", row=token_of(scene), size=440,
        ),
    )  # fmt: skip
    for number, (column, figure) in enumerate(zip(columns, figures, strict=True)):
        column.plotly_chart(figure, theme=None, config=charts.CONFIG, key=f"stage_{number}")
    st.caption(
        f"Head {view.layer}.{view.head} of {literal(trace.card.name)}, run {mask_label(view.mask)}; the mask of this "
        "lesson is put on this one head, so that only the mask differs. Under Explore a mask is put on every layer."
    )
    _why(scene, made)


def lesson_mask(scene: Scene) -> Mask:
    """The mask that the lesson puts on one head."""
    view, longest = scene.view, len(scene.trace.prompt)
    masks = {
        "causal": Mask.causal(),
        "bidirectional": Mask.bidirectional(),
        "prefix": Mask.prefix(min(view.prefix, longest)),
        "window": Mask.window(min(view.window, longest)),
    }
    return masks[view.lesson]


def _why(scene: Scene, made: Stages) -> None:
    row = token_of(scene)
    word = scene.trace.queries(scene.kind)[row].text
    st.markdown("#### Why −∞, and why before the softmax")
    left, right = st.columns([5, 6], gap="large")
    with left:
        st.latex(r"\text{weight}_j = \frac{e^{s_j}}{\sum_k e^{s_k}} \qquad e^{-\infty} = 0")
        total = made.late[row].sum()
        st.markdown(
            "The softmax shares out 100 % among all scores it is given. A score of −∞ gets nothing, and what it would "
            "have taken goes to the visible tokens: the row still sums to 100 %.\n\nSetting hidden weights to zero "
            f"*after* the softmax would be too late: in the row of **{literal(word)}** the hidden tokens had already "
            f"taken their share, and only **{total:.1%}** would be left. A score of 0 would be wrong as well, since "
            "e⁰ = 1 is a weight like any other."
        )
    with right:
        st.dataframe(_table(scene, made, row), hide_index=True, height=300)


def _table(scene: Scene, made: Stages, row: int) -> pd.DataFrame:
    keys = [token.text for token in scene.trace.keys(scene.kind)]
    scores = np.where(made.visible[row], made.scores[row], -np.inf)
    table = pd.DataFrame(
        {
            "position": range(len(keys)),
            "token": keys,
            "score": [f"{score:.3f}" for score in made.scores[row]],
            "masked score": ["−∞" if np.isinf(score) else f"{score:.3f}" for score in scores],
            "no mask": made.unmasked[row] * 100,
            "zeroed after": made.late[row] * 100,
            "−∞ before": made.weights[row] * 100,
        }
    )
    sums = {name: table[name].sum() for name in ("no mask", "zeroed after", "−∞ before")}
    table.loc[len(table)] = {"position": None, "token": "sum", "score": "", "masked score": "", **sums}
    percent = {name: table[name].map("{:.1f} %".format) for name in sums}
    return table.assign(position=table["position"].astype("Int64"), **percent)


def padding(scene: Scene) -> None:
    """Show that padding changes nothing for real tokens, and what its own rows are."""
    view, trace = scene.view, scene.trace
    if "cross" in trace.kinds or not is_recorded(trace):
        return
    st.markdown("#### Padding changes nothing")
    st.segmented_control(
        "Padding stands", list(SIDES), format_func=SIDES.__getitem__, required=True, **state.mirror("side")
    )
    made = padding_test(view.model, trace, view.layer, view.head, scene.kind, view.pads, view.side)
    left, right = st.columns([5, 6], gap="large")
    labels = [token.text for token in made.tokens]
    if len(labels) <= TOKENS_SHOWN + view.pads:
        visible = made.visible & ~np.array([token.padding for token in made.tokens])[:, None]
        left.plotly_chart(
            charts.heatmap(
                made.weights, labels, labels, visible=visible, dark=is_dark(), size=440,
                title=f"layer {view.layer}, head {view.head}, with padding",
            ),
            theme=None, config=charts.CONFIG, key="padded_map",
        )  # fmt: skip
    empty = int((~made.visible.any(axis=1)).sum())
    nothing = (
        f" {empty} of the padding rows see nothing at all: before them stands only padding. Such a row gets weights of "
        "zero here, never a division 0/0."
        if empty
        else ""
    )
    with right:
        st.markdown(
            f"Sentences in a batch are filled up to one length with {literal(PAD)}. Its columns are hidden from "
            "everyone, so the real tokens must get the same weights as without it. Measured on this sentence, over "
            f"every head of every layer, the largest difference is **{made.difference:.0e}**. {_positions(scene)}"
            f"The rows of {literal(PAD)} itself are computed too, but nobody reads them: greyed.{nothing}"
        )
        with st.expander("Show the code"):
            st.code(textwrap.dedent(inspect.getsource(Mask.visible)), language="python")
            st.code(inspect.getsource(attention_weights), language="python")
            st.code(inspect.getsource(attend), language="python")


def _positions(scene: Scene) -> str:
    if scene.view.side == "right" or scene.trace.card.style != "BERT-style":
        return ""
    return (
        "On the left it is not zero for this kind of model: padding in front moves every word to a later position, "
        "which is why BERT-style models are padded on the right. "
    )
