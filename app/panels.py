"""The pieces of Explore: each draws one picture of a scene and the sentence that belongs to it."""

from __future__ import annotations

import inspect

import numpy as np
import streamlit as st

from app import charts, export, state
from app.components import ChipMarks, Pick, grid, heatmap_canvas, ribbon
from app.reading import reading
from app.scene import Scene, audit_text, grid_maps, native_scene, pair_weights
from app.shell import literal
from app.shown import SINK_SHARE, resting_share
from app.view import place
from engine import Mask, Token
from engine.attention import Call, attend
from engine.tokens import Group

PLOTLY_UP_TO = 128
RANKED = 6
GROUP = "explore"
DIRECTIONS = {"to": "attends to", "by": "attended by"}


def is_dark() -> bool:
    """Whether the page is dark."""
    return st.context.theme.type == "dark"


def notices(scene: Scene) -> None:
    """Say what the reader must know before looking: random weights, changed text, a foreign mask."""
    card, view = scene.trace.card, scene.view
    if card.banner:
        st.warning(literal(card.banner))
    prompts = [scene.trace.prompt] + ([scene.trace.target] if scene.trace.target else [])
    for sentence in dict.fromkeys(sentence for prompt in prompts for sentence in (*prompt.notices, *card.notes)):
        st.caption(literal(sentence))
    if scene.is_foreign:
        st.caption(
            f"**Not what this model was trained with.** {literal(card.name)} is {card.style}; the same weights now run "
            f"under another mask ({literal(mask_label(view.mask))}), so this shows what the mask does, not a trained model."
        )


def mask_label(mask: str) -> str:
    """Say a mask's name in a sentence."""
    names = {"native": "as trained", "bidirectional": "BERT-style, both ways", "causal": "GPT-style, only the past"}
    return names.get(mask) or Mask.parse(mask).name


def words(scene: Scene) -> None:
    """Draw the sentence as large words, the picked one's attention shaded."""
    view, made = scene.view, scene.shown
    with st.container(horizontal=True, vertical_alignment="center", key="ribbon_bar"):
        st.segmented_control(
            "Direction",
            list(DIRECTIONS),
            format_func=DIRECTIONS.__getitem__,
            required=True,
            label_visibility="collapsed",
            **state.mirror("direction"),
        )
        if len(scene.trace.kinds) > 1:
            st.segmented_control(
                "Attention", list(scene.trace.kinds), required=True, label_visibility="collapsed",
                **state.mirror("kind", value=scene.kind),
            )  # fmt: skip
        st.caption(_hidden_note(scene))
    queries, keys = scene.trace.queries(scene.kind), scene.trace.keys(scene.kind)
    ribbon(
        chips(made.queries, queries),
        None if scene.one_axis else chips(made.keys, keys),
        made.weights,
        visible=None if made.visible.all() else made.visible,
        pinned=scene.pin,
        partner=scene.partner,
        direction="to" if view.direction == "to" else "by",
        log=view.colour == "log",
        threshold=view.threshold / 100,
        group=GROUP,
        key="ribbon",
        on_pick=lambda pick: _pick(scene, pick),
    )


def _pick(scene: Scene, pick: Pick) -> None:
    if "pin" in pick:
        state.set(word=place(scene.sources, pick["pin"]), partner=None)
    elif "partner" in pick:
        state.set(word=place(scene.sources, scene.pin), partner=place(scene.targets, pick["partner"]))


def _hidden_note(scene: Scene) -> str:
    share = scene.shown.hidden_share[scene.pin] if scene.view.direction == "to" else 0.0
    if scene.view.specials or share < 0.001:
        return ""
    word = literal(scene.sources[scene.pin].text)
    if scene.view.renormalise:
        return (
            f"{share:.0%} of the attention of {word} goes to special tokens; they are left out and the rest rescaled."
        )
    return f"{share:.0%} of the attention of {word} goes to special tokens, which are hidden (see More)."


def chips(groups: tuple[Group, ...], tokens: tuple[Token, ...]) -> list[ChipMarks]:
    """Turn labels into chips; the hover shows the model's own pieces and ids."""
    made: list[ChipMarks] = []
    for group in groups:
        pieces = [tokens[index] for index in group.indices]
        made.append(
            ChipMarks(
                text=group.text,
                hover=" ".join(f"{piece.raw} ({piece.id})" for piece in pieces),
                special=group.special,
                padding=any(piece.padding for piece in pieces),
                generated=any(piece.generated for piece in pieces),
            )
        )
    return made


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
    reached = "" if len(scene.trace.tokens) > window else ", not reached at this length"
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
            log=view.colour == "log", floor=view.threshold / 100, row=row, column=column, size=430,
        )  # fmt: skip
        st.plotly_chart(figure, theme=None, config=charts.CONFIG, key="map")
    remarks = [*made.remarks, *([f"weights below {view.threshold} % not coloured"] if view.threshold else [])]
    with st.container(horizontal=True, vertical_alignment="center", key="map_bar"):
        st.caption(literal("; ".join(remarks)) if remarks else "Each row sums to 100 % over all tokens.")
        st.download_button(
            "CSV",
            lambda: _csv(scene),
            file_name="attention.csv",
            mime="text/csv",
            on_click="ignore",
            help="The numbers of this map",
        )


def _pick_cell(scene: Scene, pick: Pick) -> None:
    pin, partner = (pick["row"], pick["column"]) if scene.view.direction == "to" else (pick["column"], pick["row"])
    state.set(word=place(scene.sources, pin), partner=place(scene.targets, partner))


def _csv(scene: Scene) -> bytes:
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
    st.markdown("**Which heads look from one word to the other?**")
    with st.container(horizontal=True, vertical_alignment="center", key="pair_bar"):
        labels = {place(scene.targets, i): group.text for i, group in enumerate(scene.targets)}
        here = literal(scene.sources[scene.pin].text)
        st.markdown(f"from **{here}** to" if scene.view.direction == "to" else f"to **{here}** from")
        current = None if scene.partner is None else place(scene.targets, scene.partner)
        st.selectbox(
            "The other word",
            list(labels),
            format_func=lambda there: f"{labels[there]}  · {there}" if _repeated(labels, there) else labels[there],
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
    said = reading(scene)
    if said:
        st.caption(literal(said))


def _repeated(labels: dict[str, str], there: str) -> bool:
    return list(labels.values()).count(labels[there]) > 1


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
            top=14,
            dark=is_dark(),
        ),
        theme=None,
    )


def caution(scene: Scene) -> None:
    """Say what the picture is not, and where a head rests when it has nothing to do."""
    share, where = resting_share(scene.trace, scene.view, scene.kind)
    resting = ""
    if share > SINK_SHARE:
        resting = (
            f" On average {share:.0%} of this head's attention rests on {literal(where)}: heads with nothing to say "
            "park it there. Rescaling under More leaves those out of the picture, not out of the model."
        )
    st.caption("A high weight says where a head reads from, not why the model decides." + resting)


def facts(scene: Scene) -> None:
    """Say in one line what ran and how it was checked, with the details one click away."""
    trace, card = scene.trace, scene.trace.card
    audit, fine = audit_text(scene)
    limit = f" of {card.limit:,}" if card.limit else ""
    line = [
        card.name,
        f"{card.parameters / 1e6:,.1f} M parameters",
        f"{trace.layers(scene.kind)} × {trace.heads(scene.kind)} heads",
        f"{len(trace.tokens)}{limit} tokens",
        f"{card.device}, {card.dtype}",
        card.backend,
        f"{trace.milliseconds:.0f} ms",
        audit,
    ]
    with st.container(horizontal=True, vertical_alignment="center", key="facts"):
        st.caption(literal(" · ".join(line)))
        with st.popover("Details"):
            _details(scene)
    if not fine:
        st.warning(literal(f"The check failed: {audit}."))


def _details(scene: Scene) -> None:
    card = scene.trace.card
    rows = {
        "Family": f"{card.family}, {card.style}",
        "Positions": card.positions,
        "Licence": card.licence,
        "Weights": card.source,
    }
    if card.reason:
        rows["Run eagerly, because"] = card.reason
    if card.unexpected:
        rows["Weights without a place"] = ", ".join(card.unexpected[:5])
    st.markdown("\n".join(f"- **{name}**: {literal(text)}" for name, text in rows.items()))
    if card.backend == "sdpa":
        st.markdown(
            "The model ran through PyTorch's scaled\\_dot\\_product\\_attention, which never builds the matrix you see. "
            "Its queries and keys were recorded, and the weights are recomputed from them exactly. The audit multiplies "
            "these weights with the values and compares with what the fast kernel returned: the largest difference, "
            "relative to the largest output."
        )
    else:
        st.markdown("This model cannot be recorded, so it returned its own weights; there is nothing to audit.")
    st.markdown("Layers and heads count from 0. The code that computes the weights:")
    st.code(inspect.getsource(Call.weights), language="python")
    st.code(inspect.getsource(attend), language="python")
