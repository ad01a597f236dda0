"""ALiBi, T5's buckets and no positions at all: what is added to the scores, and what is left without it."""

from __future__ import annotations

import numpy as np
import streamlit as st
import torch

from app import charts, state
from app.charts_curves import Line, bars, curves
from app.charts_tables import bucket_map
from app.panels import is_dark
from app.phrases import percent
from app.positions_draw import draw
from app.view import View
from app.view_positions import MOST_HEADS
from engine.attention import attention_weights
from engine.extrapolation import shared_from
from engine.masks import Mask
from engine.positions import RelativeBuckets, alibi_bias, alibi_slopes, relative_buckets
from engine.tokens import Prompt

BUCKETS, FURTHEST = 32, 128  # as in T5
FAR = 160  # tokens, on the axis of the buckets' curve
REACH = 40  # tokens, on the axis of ALiBi's curve


def alibi(view: View, prompt: Prompt) -> None:
    """Show ALiBi's slopes, and what one head takes off the scores of the sentence."""
    st.markdown("#### See it: the farther, the less")
    head = min(view.alibi_head, view.alibi_heads - 1)
    with st.container(horizontal=True, vertical_alignment="bottom", key="alibi_bar"):
        st.slider("Heads", 1, MOST_HEADS, **state.mirror("alibi_heads"))
        st.selectbox("Head shown", range(view.alibi_heads), width=150, **state.mirror("alibi_head", value=head))
    slopes, places = alibi_slopes(view.alibi_heads), torch.arange(len(prompt))[None]
    slope = float(slopes[head])
    st.markdown(
        f"Head {head} takes **{slope:.3g}** off a score for each word of distance. If all words were equally relevant, "
        f"a word 10 away would get {percent(float(np.exp(-10 * slope)))} of what the word itself gets. Heads that look "
        "near and heads that look far stand side by side; nothing here is learned."
    )
    words = [token.text for token in prompt.tokens]
    left, right = st.columns([6, 5], gap="large")
    with left:
        _slopes(slopes, head)
        distances = np.arange(REACH + 1)
        line = Line(f"head {head}", np.exp(-slope * distances) * 100)
        figure = curves(
            distances, [line], x_title="distance (tokens)", y_title="weight (% of nearest)",
            title=f"How far head {head} sees", dark=is_dark(), size=270, number=".1f",
        )  # fmt: skip
        draw(figure, "alibi_reach")
    bias = alibi_bias(slopes, places, places)[0, head].numpy()
    figure = charts.scores_figure(
        bias, None, words, words, title=f"Added to the scores, head {head}", meaning="added to q · k / √D",
        dark=is_dark(), size=520, width=520,
    )  # fmt: skip
    with right:
        draw(figure, "alibi_bias")


def _slopes(slopes: torch.Tensor, head: int) -> None:
    figure = bars(
        [str(number) for number in range(len(slopes))], slopes.numpy(), x_title="head",
        y_title="slope (per token)", title="The slope of each head", selected=head, dark=is_dark(), size=260,
    )  # fmt: skip
    draw(figure, "alibi_slopes")


def buckets(view: View, prompt: Prompt) -> None:
    """Show which distances share one of T5's buckets."""
    st.markdown("#### See it: near distances one by one, far ones together")
    st.toggle("Both ways, as in an encoder (off: only the past, as in a decoder)", **state.mirror("both_ways"))
    exact = BUCKETS // (4 if view.both_ways else 2)
    shared = shared_from(RelativeBuckets(1, BUCKETS, FURTHEST, view.both_ways))
    half = BUCKETS // 2 if view.both_ways else BUCKETS
    st.markdown(
        f"There are {BUCKETS} buckets, and each head learns one number for each. Distances below {exact} have a bucket "
        f"of their own, the others share ever wider ones, and from {shared} on all fall into the same. "
        + (
            f"Buckets from {half} on are for words that come after."
            if view.both_ways
            else "Words that come after all fall into bucket 0: a decoder may not see them anyway."
        )
    )
    words, places = [token.text for token in prompt.tokens], torch.arange(len(prompt))
    found = relative_buckets(places[None] - places[:, None], BUCKETS, FURTHEST, view.both_ways)
    left, right = st.columns([6, 5], gap="large")
    distances = torch.arange(-FAR, FAR + 1 if view.both_ways else 1)
    line = Line("bucket", relative_buckets(distances, BUCKETS, FURTHEST, view.both_ways).numpy(), steps=True)
    figure = curves(
        distances.numpy(), [line], x_title="position of the key minus position of the query (tokens)",
        y_title="bucket (number)", title="Which bucket a distance falls into", dark=is_dark(), size=480, number="d",
    )  # fmt: skip
    with left:
        draw(figure, "bucket_curve")
    figure = bucket_map(
        found.numpy(), words, words, count=BUCKETS, title="Buckets in this sentence", dark=is_dark(), size=520,
        width=520,
    )  # fmt: skip
    with right:
        draw(figure, "bucket_map")


def nothing(view: View, prompt: Prompt) -> None:
    """Show what is left without positions: nothing, or what a causal mask gives away."""
    st.markdown("#### See it: a bag of words, until a causal mask lets order leak in")
    st.markdown(
        "Suppose that all words were alike, so that any difference has to come from their order. Without a mask, every "
        "word gets the same share and every row is the same: nobody can know where anything stands. With a causal mask "
        "the first word sees one word, the second two, the third three: row t gives each word 1/(t+1), **and the "
        "share itself tells how many came before**. That is how some decoders do without positions."
    )
    words, count = [token.text for token in prompt.tokens], len(prompt)
    alike = torch.ones(1, 1, count, 1)
    for column, mask, title in zip(
        st.columns(2, gap="large"), (Mask.bidirectional(), Mask.causal()), ("No mask", "Causal mask"), strict=True
    ):
        weights = attention_weights(alike, alike, mask=mask)[0, 0].numpy()
        visible = np.tril(np.ones_like(weights, dtype=np.bool_)) if title == "Causal mask" else None
        figure = charts.heatmap(
            weights, words, words, visible=visible, title=f"{title}, all words alike", unit=True, dark=is_dark(),
            size=500, width=520,
        )  # fmt: skip
        figure.update_layout(showlegend=False)
        with column:
            draw(figure, f"nothing_{title}")
