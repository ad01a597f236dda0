"""The attention of what was built, untrained: random weights, and a mask that is there already.

Dimensions: T queries, S keys.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from app import charts, state
from app.build_numbers import MOST_RUN, Drawn, drawn
from app.build_plan import Plan
from app.build_reach import kept_in_cache, no_writing
from app.build_words import mask_words
from app.charts_build_parts import cached_row
from app.panels import is_dark
from app.phrases import SPACE, brief
from app.positions_numbers import picked
from app.shell import literal
from engine import Kind, Prompt

HALF = 150
SIZE = 560  # pixels: up to 20 words are all labelled
NEARLY = 0.15  # of an even row's weight
SCALE = (
    "The colours of all maps here go from 0 to 100 %. Every row adds up to 100 %: shared by many words, it is "
    "pale; where one word is all there is to see, it is dark."
)
KINDS = {"encoder": "In the encoder", "decoder": "In the decoder", "cross": "From decoder to encoder"}


def attention(plan: Plan, prompt: Prompt | None) -> None:
    """Draw one head's attention on the sentence, and how a decoder writes with a cache."""
    st.markdown("#### Its attention before any training")
    if prompt is None:
        st.markdown(
            "A vision transformer reads the patches of an image, not the sentence, so there is nothing to draw here. "
            "Its shapes and counts above are exact."
        )
        return
    made = drawn(plan, prompt)
    if made is None:
        st.markdown(
            f"One layer of this model alone has more than {MOST_RUN / 1e6:.0f} million parameters: too large to run "
            "while you wait. Its shapes and counts above are exact all the same."
        )
        return
    left, right = st.columns([10, 11], gap="large")
    with left:
        _untrained(plan, prompt, made)
    with right:
        _writing(plan, made)


def _untrained(plan: Plan, prompt: Prompt, made: Drawn) -> None:
    kind, layer, head = _where(made)
    trace, row = made.trace, _row(prompt)
    queries, keys = ([token.text for token in tokens] for tokens in (trace.queries(kind), trace.keys(kind)))
    weights, visible = trace.weights(layer, head, kind).numpy(), trace.visible(layer, head, kind).numpy()
    figure = charts.heatmap(
        weights, queries, keys, visible=visible, row=row, unit=True, dark=is_dark(), size=SIZE,
        title=f"layer {layer}, head {head}, untrained",
    )  # fmt: skip
    st.plotly_chart(figure, theme=None, config=charts.CONFIG, key="untrained")
    seen = weights[row][visible[row]]
    st.markdown(
        f"The outlined row is **{literal(brief(queries[row]))}**, which sees {len(seen)} of {len(keys)} words. Spread "
        f"evenly, each would get {_percent(1 / len(seen))} of its attention; here they get "
        f"{_percent(float(seen.min()))} to {_percent(float(seen.max()))}. "
        f"{_why(plan, kind, float(np.abs(seen * len(seen) - 1).max()))}"
    )
    st.caption(SCALE)
    st.caption(_facts(plan, made))


def _percent(share: float) -> str:
    return f"{100 * share:.2f}{SPACE}%"


def _where(made: Drawn) -> tuple[Kind, int, int]:
    """Let the reader pick a map, within what was run."""
    view, trace = state.view(), made.trace
    kind = next((kind for kind in trace.kinds if kind == view.own_kind), trace.kinds[-1])
    layers, heads = trace.layers(kind), trace.heads(kind)
    layer, head = min(view.own_layer, layers - 1), min(view.own_head, heads - 1)
    if (layer, head) != (view.own_layer, view.own_head):
        state.note(f"{layers} × {heads} heads were run here: showing layer {layer}, head {head} before training.")
        state.amend(own_layer=layer, own_head=head)
    with st.container(horizontal=True, vertical_alignment="bottom", key="untrained_bar"):
        if len(trace.kinds) > 1:
            st.segmented_control(
                "Attention", list(trace.kinds), format_func=KINDS.__getitem__, required=True,
                **state.mirror("own_kind", value=kind),
            )  # fmt: skip
        st.selectbox("Layer", list(range(layers)), width=HALF, **state.mirror("own_layer", value=layer))
        st.selectbox("Head", list(range(heads)), width=HALF, **state.mirror("own_head", value=head))
    return kind, layer, head


def _row(prompt: Prompt) -> int:
    return picked(state.view(), prompt)[0]


def _why(plan: Plan, kind: Kind, farthest: float) -> str:
    """Say why the row is as it is; `farthest` is its largest distance from an even row, 1 for twice as much."""
    mask = mask_words("encoder" if kind == "encoder" else plan.family, plan.sees, plan.span)
    if kind == "cross":
        told = "Between two texts there is no mask: all of the other text may be seen."
    elif mask == "both ways":
        told = "Nothing is masked: every word sees every word, before training as after."
    else:
        told = f"The mask ({mask}) is there from the start: it is built in, not learned."
    if plan.word_order == "alibi" and kind != "cross":
        return f"Random weights know nothing of words; ALiBi takes something off for distance all the same. {told}"
    if plan.config.scale is not None and farthest > NEARLY:
        return (
            "Nothing is learned yet. The scores are not divided by √D here, so even the chance by which random queries "
            f"and keys agree makes rows uneven. {told}"
        )
    even = "so the row is nearly even." if farthest <= NEARLY else "and where they do more, that is chance."
    return f"Nothing is learned yet: random queries and keys agree about equally with each other, {even} {told}"


def _facts(plan: Plan, made: Drawn) -> str:
    trace, card = made.trace, made.trace.card
    words = len({token.id for token in trace.tokens})
    some = "first layer" if made.layers == 1 else f"first {made.layers} layers"
    part = "" if made.layers == plan.depth else f"the {some} of {plan.depth}, "
    line = [
        f"Untrained, random weights (seed 0): {part}{card.parameters:,} parameters",
        f"vocabulary cut to the {words} different words, the only ones it reads",
        f"{card.device}, {card.dtype}, {card.backend}",
        f"{trace.milliseconds:.0f} ms",
        str(made.audit),
    ]
    return literal(" · ".join(line))


def _writing(plan: Plan, made: Drawn) -> None:
    if made.whole is None:
        st.markdown(no_writing(plan))
        return
    last = len(made.written) - 1
    view = state.view()
    step = min(view.step, last)
    st.markdown("**Writing with a cache**")
    st.markdown(
        f"It writes {last} words. Each time it computes **one row**, for the newest word; {kept_in_cache(plan)}. That "
        "is allowed because earlier words never look at later ones."
    )
    st.slider("Step", 0, last, **state.mirror("step", value=step))
    layer, head = min(view.own_layer, made.layers - 1), min(view.own_head, made.trace.heads() - 1)
    _step_map(made, step, layer, head)
    whole = made.whole
    words = [token.text for token in whole.queries()]
    figure = charts.heatmap(
        whole.weights(layer, head).numpy(), words, words, visible=whole.visible(layer, head).numpy(),
        row=made.written[step].first if step else None, unit=True, dark=is_dark(), size=SIZE,
        title="all words read at once, without a cache",
    )  # fmt: skip
    st.plotly_chart(figure, theme=None, config=charts.CONFIG, key="whole")
    st.caption(
        "The row from the cache is the outlined row of the full map: over all layers, heads and steps they differ by "
        f"at most {made.difference:.0e}, which is rounding. What it writes means nothing, "
        "and often it is one word again and again: it is untrained."
    )


def _step_map(made: Drawn, step: int, layer: int, head: int) -> None:
    trace = made.written[step]
    queries, keys = ([token.text for token in tokens] for tokens in (trace.queries(), trace.keys()))
    weights, visible = trace.weights(layer, head).numpy(), trace.visible(layer, head).numpy()
    if step:
        title = f"step {step}: 1 query × {len(keys)} keys"
        figure = cached_row(weights, queries[0], keys, visible, title=title, dark=is_dark())
    else:
        title = f"step 0, the sentence: {len(queries)} queries × {len(keys)} keys"
        figure = charts.heatmap(
            weights, queries, keys, visible=visible, title=title, unit=True, dark=is_dark(), size=SIZE
        )
    st.plotly_chart(figure, theme=None, config=charts.CONFIG, key="step_map")
