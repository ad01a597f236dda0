"""The pictures of Explore: the map of one head, every head at once, and what a foreign mask changed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import streamlit as st

from app import charts, export, state
from app.components import Pick, grid, heatmap_canvas
from app.panels import GROUP, is_dark, mask_label
from app.scene import Scene, grid_maps, native_scene, pair_weights
from app.shell import literal
from app.view import place, places

PLOTLY_UP_TO = 128
RANKED = 6


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
            label=title_of(scene), group=GROUP, key="map", on_pick=lambda pick: _pick_cell(scene, pick),
        )  # fmt: skip
    else:
        figure = charts.heatmap(
            made.weights, queries, keys, visible=visible, title=title_of(scene), dark=is_dark(),
            log=view.colour == "log", floor=view.threshold / 100, row=row, column=column, size=432,
        )  # fmt: skip
        st.plotly_chart(figure, theme=None, config=charts.CONFIG, key="map")
    remarks = [*made.remarks, *([f"weights below {view.threshold} % not coloured"] if view.threshold else [])]
    st.caption(literal("; ".join(remarks)))


def _pick_cell(scene: Scene, pick: Pick) -> None:
    pin, partner = (pick["row"], pick["column"]) if scene.view.direction == "to" else (pick["column"], pick["row"])
    state.set(word=place(scene.sources, pin), partner=place(scene.targets, partner))


def table_of(scene: Scene) -> bytes:
    """Write the map as CSV, for the download button."""
    made, view = scene.shown, scene.view
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
        },
    )
    return export.file_bytes(text, spreadsheet=True)


def heads(scene: Scene) -> None:
    """Draw every head as a thumbnail, and rank the heads that look from the picked word to its partner."""
    view = scene.view
    shade, colour = pair_weights(scene), view.heads_by
    grid(
        grid_maps(scene),
        layer=view.layer,
        head=view.head,
        colour="shade" if colour == "pair" else "weights",
        shade=shade,
        shade_title=_pair_title(scene),
        ranking=False,
        log=view.colour == "log",
        max_height=300,
        key="grid",
        on_pick=lambda pick: state.set(layer=pick["layer"], head=pick["head"], average="head"),
    )
    if shade is not None:
        _ranking(scene, shade)


def _pair_title(scene: Scene) -> str:
    if scene.edge is None:
        return ""
    row, column = scene.edge
    return f"from {scene.shown.queries[row].text} to {scene.shown.keys[column].text}"


def _ranking(scene: Scene, shade: np.ndarray) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="pair_bar"):
        labels = {name: group.text for name, group in zip(places(scene.targets), scene.targets, strict=True)}
        counts = Counter(labels.values())
        here = literal(scene.sources[scene.pin].text)
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
    order = np.argsort(-shade, axis=None, kind="stable")[:RANKED]
    with st.container(horizontal=True, key="ranking"):
        for cell in order:
            layer, head = (int(number) for number in np.unravel_index(cell, shade.shape))
            st.button(
                f"{layer}.{head} · {shade[layer, head]:.0%}",
                key=f"rank_{layer}_{head}",
                help=f"Show layer {layer}, head {head}",
                type="primary" if (layer, head) == (scene.view.layer, scene.view.head) else "secondary",
                on_click=state.set,
                kwargs={"layer": layer, "head": head, "average": "head"},
            )


def change(scene: Scene) -> None:
    """Draw the picked word's row before and after the foreign mask, side by side."""
    before, after = native_scene(scene), scene.shown
    by = scene.view.direction == "by"
    rows = [made.weights[:, scene.pin] if by else made.weights[scene.pin] for made in (before, after)]
    masked = ~(after.visible[:, scene.pin] if by else after.visible[scene.pin])
    word = scene.sources[scene.pin].text
    st.markdown(f"**What changed for {literal(word)}**")
    st.altair_chart(
        charts.comparison(
            rows[0],
            rows[1],
            [group.text for group in scene.targets],
            before_name="as trained",
            after_name=mask_label(scene.view.mask),
            masked_after=masked,
            top=10,
            dark=is_dark(),
        ),
        theme=None,
    )
