"""The pictures of Explore: the map of one head, every head at once, and what a foreign mask changed."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import streamlit as st

from app import charts, export, state
from app.charts_inputs import shortened
from app.components import Pick, grid, heatmap_canvas
from app.panels import GROUP, is_dark
from app.phrases import SPACE, brief, mask_short, percent, pieces_remark
from app.scene import Scene, grid_maps, native_scene, pair_title, pair_weights
from app.shell import literal
from app.view import place, places

PLOTLY_UP_TO = 128
RANKED = 6
BARS, MOST_BARS = 12, 14  # how many words the bars show of a long sentence, and how many of a short one
SENTENCE_BYTES = 5_000_000  # what the sentence may take in a table that repeats it on every line


def title_of(scene: Scene) -> str:
    """Name what the map shows: layer and head, or the mean, and what is special about them."""
    view, card = scene.view, scene.trace.card
    kind = f"{scene.kind}, " if len(scene.trace.kinds) > 1 else ""
    if view.average == "all":
        return f"{kind}mean of all heads"
    if view.average == "layer":
        return f"{kind}layer {view.layer}, mean of its heads"
    return f"{kind}layer {view.layer}, head {view.head}{_sharing(scene)}{_window(scene, card.windows)}"


def _sharing(scene: Scene) -> str:
    card = scene.trace.card
    if card.kv_heads == card.heads or scene.kind != card.kinds[0]:
        return ""
    size = card.heads // card.kv_heads
    group = scene.view.head // size
    return f" (key-value group {group}: heads {group * size} to {group * size + size - 1})"


def _window(scene: Scene, windows: tuple[int | None, ...]) -> str:
    if scene.kind != scene.trace.card.kinds[0] or not any(windows) or scene.is_foreign:
        return ""
    window = windows[scene.view.layer]
    if window is None:
        return " (global)"
    # One that looks both ways shows half of its keys on either side, the token itself among both halves.
    span = window if scene.kind == "decoder" else (window + 1) // 2
    reached = "" if len(scene.trace.queries(scene.kind)) > span else ", not reached at this length"
    return f" (local, window {window}{reached})"


def heat(scene: Scene) -> None:
    """Draw the map of the layer and head."""
    view, made = scene.view, scene.shown
    row, column = (scene.pin, None) if view.direction == "to" else (None, scene.pin)
    queries, keys = ([group.text for group in groups] for groups in (made.queries, made.keys))
    visible = None if made.visible.all() else made.visible
    if max(len(queries), len(keys)) > PLOTLY_UP_TO:
        st.markdown(f"**{literal(title_of(scene))}**")
        heatmap_canvas(
            made.weights, queries, keys, visible, row=row, column=column, log=view.colour == "log",
            row_title="query (attends)", column_title="key (attended to)", label=title_of(scene), group=GROUP,
            key="map", on_pick=lambda pick: _pick_cell(scene, pick),
        )  # fmt: skip
    else:
        figure = charts.heatmap(
            made.weights, queries, keys, visible=visible, title=title_of(scene), dark=is_dark(),
            log=view.colour == "log", floor=view.threshold / 100, row=row, column=column,
            size=418 if scene.is_foreign else 432,
        )  # fmt: skip
        st.plotly_chart(figure, theme=None, config=charts.CONFIG, key="map")
    remarks = [*made.remarks, *([f"weights below {view.threshold}{SPACE}% are hidden"] if view.threshold else [])]
    st.caption(literal("; ".join(remarks)))


def _pick_cell(scene: Scene, pick: Pick) -> None:
    pin, partner = (pick["row"], pick["column"]) if scene.view.direction == "to" else (pick["column"], pick["row"])
    state.set(word=place(scene.sources, pin), partner=place(scene.targets, partner))


def table_of(scene: Scene) -> bytes:
    """Write the map as CSV, for the download button."""
    made, view = scene.shown, scene.view
    room = max(80, SENTENCE_BYTES // max(1, made.weights.size))
    text = export.csv_of(
        made.weights,
        [group.text for group in made.queries],
        [group.text for group in made.keys],
        visible=made.visible,
        meta={
            "model": scene.trace.card.id,
            "mask": scene.trace.mask.spec,
            "kind": scene.kind,
            "layer": view.layer if view.average != "all" else "all",
            "head": view.head if view.average == "head" else "mean",
            "rescaled": view.renormalise,
            "sentence": shortened(view.sentence, room),
            "unit": view.unit,
            "pooled": "rows averaged, columns summed" if pieces_remark((*made.queries, *made.keys)) else "",
        },
    )
    return export.file_bytes(text, spreadsheet=True)


def table_name(scene: Scene) -> str:
    """Name the file of the map: "attention-minilm-L5-H8-causal.csv"."""
    view = scene.view
    model = scene.trace.card.id.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    where = {"head": f"L{view.layer}-H{view.head}", "layer": f"L{view.layer}-mean", "all": "mean"}[view.average]
    kind = scene.kind if len(scene.trace.kinds) > 1 else ""
    parts = (re.sub(r"[^A-Za-z0-9._]+", "-", part).strip("-.")[:40] for part in (model, kind, where, view.mask))
    return "-".join(["attention", *filter(None, parts)]) + ".csv"


def heads(scene: Scene) -> None:
    """Draw every head as a thumbnail, and rank the heads that look from the picked word to its partner."""
    view = scene.view
    shade, colour = pair_weights(scene), view.heads_by
    grid(
        grid_maps(scene),
        layer=None if view.average == "all" else view.layer,
        head=view.head if view.average == "head" else None,
        note=_mean_note(scene),
        colour="shade" if colour == "pair" else "weights",
        shade=shade,
        shade_title=pair_title(scene),
        ranking=False,
        log=view.colour == "log",
        max_height=300,
        key="grid",
        on_pick=lambda pick: state.set(layer=pick["layer"], head=pick["head"], average="head"),
    )
    if shade is not None:
        _partner(scene)
        _ranking(scene, shade)


def _mean_note(scene: Scene) -> str:
    if scene.view.average == "head":
        return ""
    mean = "all heads" if scene.view.average == "all" else f"layer {scene.view.layer}"
    return f"The map shows the mean of {mean}; click a head to see it alone."


def _partner(scene: Scene) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="pair_bar"):
        labels = {name: brief(group.text) for name, group in zip(places(scene.targets), scene.targets, strict=True)}
        counts = Counter(labels.values())
        here = literal(brief(scene.sources[scene.pin].text))
        asked = "Which heads look from **{}** to" if scene.view.direction == "to" else "Which heads look at **{}** from"
        st.markdown(asked.format(here), width="content")
        current = None if scene.partner is None else place(scene.targets, scene.partner)
        st.selectbox(
            "The other word",
            list(labels),
            format_func=lambda there: f"{labels[there]}  · {there}" if counts[labels[there]] > 1 else labels[there],
            label_visibility="collapsed",
            width=180,
            **state.mirror("partner", where="box", value=current),
        )


def _ranking(scene: Scene, shade: np.ndarray) -> None:
    if np.isnan(shade).all():
        st.caption("masked: no head can look there")
        return
    order = np.argsort(-shade, axis=None, kind="stable")[:RANKED]
    view = scene.view
    current = (view.layer, view.head) if view.average == "head" else None
    with st.container(horizontal=True, key="ranking"):
        for cell in order:
            layer, head = (int(number) for number in np.unravel_index(cell, shade.shape))
            st.button(
                f"L{layer} H{head} · {percent(shade[layer, head])}",
                key=f"rank_{layer}_{head}",
                help=f"Show layer {layer}, head {head}",
                type="primary" if (layer, head) == current else "secondary",
                on_click=state.set,
                kwargs={"layer": layer, "head": head, "average": "head"},
            )


def change(scene: Scene) -> None:
    """Draw the picked word's row before and after the foreign mask, side by side."""
    before, after = native_scene(scene), scene.shown
    by = scene.view.direction == "by"
    rows = [made.weights[:, scene.pin] if by else made.weights[scene.pin] for made in (before, after)]
    masked = ~(after.visible[:, scene.pin] if by else after.visible[scene.pin])
    labels = [group.text for group in scene.targets]
    top = None if len(labels) <= MOST_BARS else BARS
    st.markdown(f"**What changed for {literal(brief(scene.sources[scene.pin].text))}**")
    st.altair_chart(
        charts.comparison(
            rows[0],
            rows[1],
            labels,
            before_name="as trained",
            after_name=mask_short(scene.view.mask),
            masked_after=masked,
            top=top,
            floor=scene.view.threshold / 100,
            dark=is_dark(),
        ),
        theme=None,
    )
    remarks = [f"the {top} with the most weight of {len(labels)}"] if top else []
    if scene.view.threshold:
        remarks.append(f"words below {scene.view.threshold}{SPACE}% in both are hidden")
    if remarks:
        st.caption("; ".join(remarks))
