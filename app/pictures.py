"""The pictures of Explore: the map of one head, every head at once, and what a foreign mask changed."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import streamlit as st

from app import cache, charts, export, state
from app.charts_inputs import shortened
from app.components import Pick, grid, heatmap_canvas
from app.knowing import knowing
from app.panels import GROUP, is_dark
from app.phrases import SPACE, brief, mask_short, percent, pieces_remark
from app.scene import Scene, grid_maps, native_scene, pair_title, pair_weights
from app.shell import literal
from app.view import locate, place, places
from engine.interventions import Silence

PLOTLY_UP_TO = 128
RANKED, RANKED_BESIDE_BARS, ALWAYS_RANKED = 5, 3, 4  # heads listed at most, and even where they give nothing
LEAST_SHARE = 0.0005  # what has a number to be listed for
MAP_SIZE, GRID_HEIGHT = 432, 300
MAP_ROOM, GRID_ROOM = 14, 54  # pixels that a line with the model's answer, or on a mask, takes from them
LINE_ROOM = (18, 36)  # and one on where a model can know, from each; a smaller map has no room for axis titles
BARS, MOST_BARS = 12, 14  # how many words the bars show of a long sentence, and how many of a short one
SENTENCE_BYTES = 5_000_000  # what the sentence may take in a table that repeats it on every line


def title_of(scene: Scene) -> str:
    """Name what the map shows: layer and head, or the mean, and what is special about them."""
    view, card = scene.view, scene.trace.card
    kind = f"{scene.kind}, " if len(scene.trace.kinds) > 1 else ""
    kind = f"{card.name}: {kind}" if scene.is_twin else kind
    silenced = _silenced(scene)
    if view.average == "all":
        return f"{kind}mean of all heads{silenced}"
    if view.average == "layer":
        return f"{kind}layer {view.layer}, mean of its heads{silenced}"
    return f"{kind}layer {view.layer}, head {view.head}{silenced}{_sharing(scene)}{_window(scene, card.windows)}"


def _silenced(scene: Scene) -> str:
    """Say in the title which head is silenced: the one that is shown, or another."""
    view = scene.view
    several = len(scene.trace.kinds) > 1
    shown = Silence(view.layer, view.head, scene.kind if several else None).spec
    if not view.silence:
        return ""
    return ", silenced" if view.average == "head" and view.silence == shown else f" ({scene.silenced} silenced)"


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
            size=MAP_SIZE - (MAP_ROOM if scene.is_compared or scene.trace.card.trained else 0) - _line_room(scene)[0],
        )  # fmt: skip
        st.plotly_chart(figure, theme=None, config=charts.CONFIG, key="map")
    remarks = [*made.remarks, *([f"weights below {view.threshold}{SPACE}% are hidden"] if view.threshold else [])]
    if remarks:
        st.caption(literal("; ".join(remarks)))


def _line_room(scene: Scene) -> tuple[int, int]:
    """Say how many pixels the line on where the model can know takes from the map and from the grid."""
    return LINE_ROOM if knowing(scene) is not None else (0, 0)


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
            "silenced": view.silence,
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
    parts = (model, kind, where, f"without-{view.silence}" if view.silence else "", view.mask)
    names = (re.sub(r"[^A-Za-z0-9._]+", "-", part).strip("-.")[:40] for part in parts)
    return "-".join(["attention", *filter(None, names)]) + ".csv"


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
        max_height=GRID_HEIGHT - (GRID_ROOM if scene.trace.card.trained else 0) - _line_room(scene)[1],
        key="grid",
        on_pick=lambda pick: state.set(**scene.head_asked(pick["layer"], pick["head"]), average="head"),
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
    most = RANKED_BESIDE_BARS if scene.is_compared and scene.trace.card.trained else RANKED  # what one line holds
    best = np.argsort(-shade, axis=None, kind="stable")[:most]
    order = [cell for rank, cell in enumerate(best) if rank < ALWAYS_RANKED or shade.flat[cell] >= LEAST_SHARE]
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
                kwargs={**scene.head_asked(layer, head), "average": "head"},
            )


def change(scene: Scene) -> None:
    """Draw the picked word's row as trained and under the foreign mask, or in the model's twin, side by side."""
    before, after = native_scene(scene), scene.shown
    by = scene.view.direction == "by"
    sources, targets = (before.keys, before.queries) if by else (before.queries, before.keys)
    pin = locate(sources, place(scene.sources, scene.pin))
    silenced = f" ({scene.silenced} is silenced in both)" if scene.silenced else ""
    st.markdown(f"**What changed for {literal(brief(scene.sources[scene.pin].text))}**{silenced}")
    if pin is None:  # a special token that one of the twins has not
        st.caption(literal(f"{cache.model(scene.asked.model).card.name} does not read this token."))
        return
    row = before.weights[:, pin] if by else before.weights[pin]
    there = [locate(targets, name) for name in places(scene.targets)]
    masked = ~(after.visible[:, scene.pin] if by else after.visible[scene.pin])
    labels = [group.text for group in scene.targets]
    top = None if len(labels) <= MOST_BARS else BARS
    names = _compared(scene)
    st.altair_chart(
        charts.comparison(
            [0.0 if index is None else row[index] for index in there],
            after.weights[:, scene.pin] if by else after.weights[scene.pin],
            labels,
            before_name=names[0],
            after_name=names[1],
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


def _compared(scene: Scene) -> tuple[str, str]:
    """Name the two runs whose rows are compared."""
    if not scene.is_twin:
        return "as trained", mask_short(scene.view.mask)
    return cache.model(scene.asked.model).card.name, scene.trace.card.name
