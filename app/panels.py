"""What stands around the pictures of Explore: notices, the sentence as large words, facts, cautions."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable

import streamlit as st
import torch

from app import state
from app.charts import entropy_text
from app.components import ChipMarks, Pick, ribbon
from app.phrases import SPACE, brief, mask_label, percent
from app.reading import reading
from app.scene import Scene, audit_text
from app.shell import literal
from app.shown import SINK_SHARE, can_see, resting_share
from app.view import MAX_CHARACTERS, place
from engine import Token
from engine.attention import Call, attend
from engine.audit import TOLERANCES
from engine.tokens import Group

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
            f"**Not what this model was trained with.** {literal(card.name)} is {card.style}; the same weights now "
            f"run under another mask ({literal(mask_label(view.mask))}), so this shows what the mask does, not a "
            "trained model."
        )


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
            **state.mirror("direction", then=lambda: _turn(scene)),
        )
        if len(scene.trace.kinds) > 1:
            st.segmented_control(
                "Attention", list(scene.trace.kinds), required=True, label_visibility="collapsed",
                **state.mirror("kind", value=scene.kind),
            )  # fmt: skip
        if "cross" in scene.trace.kinds:
            st.text_input(
                "Target",
                placeholder="Target; left empty, the model writes it",
                label_visibility="collapsed",
                width=420,
                **state.mirror("target"),
            )
        st.caption(_row_note(scene))
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


def _turn(scene: Scene) -> None:
    """Keep the partner in the other direction only if the mask lets it be seen from there."""
    if scene.edge is not None and state.asked().partner is not None and scene.one_axis:
        row, column = scene.edge
        if not can_see(scene.trace, scene.kind, scene.shown.queries[column], scene.shown.keys[row]):
            state.set(partner=None)


def _pick(scene: Scene, pick: Pick) -> None:
    if "pin" in pick:
        state.set(word=place(scene.sources, pick["pin"]), partner=None)
    elif "partner" in pick:
        state.set(word=place(scene.sources, scene.pin), partner=place(scene.targets, pick["partner"]))


def _row_note(scene: Scene) -> str:
    """Say how widely the picked word spreads its attention, and what of it goes to tokens that are not shown."""
    word = literal(brief(scene.sources[scene.pin].text))
    if scene.view.direction == "by":
        return f"How much each word attends to **{word}**; these need not sum to 100{SPACE}%."
    share = float(scene.shown.hidden_share[scene.pin])
    if not share and not scene.shown.weights[scene.pin].any():
        return ""  # it sees nothing, as the words below say
    note = f"**{word}**: entropy {entropy_text(float(scene.shown.entropy[scene.pin]))}"
    if share < 0.001:
        return note + "."
    if scene.view.renormalise:
        return f"{note}; {percent(share)} goes to special tokens, which are left out and the rest rescaled."
    return f"{note}; {percent(share)} goes to special tokens, which are hidden (see More)."


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


def caution(scene: Scene) -> None:
    """Say what the picture is not, where a head rests, and whether it follows the reason in a twin sentence."""
    share, where = resting_share(scene.trace, scene.view, scene.kind)
    resting = ""
    if share > SINK_SHARE:
        whose = {"head": "this head's", "layer": "these heads'", "all": "all heads'"}[scene.view.average]
        resting = (
            f" On average {percent(share)} of {whose} attention rests on {literal(where)}; one common "
            f"explanation: a head that finds nothing relevant rests there. {_remedy(scene)}"
        )
    st.caption("A high weight says where a head reads from, not why the model decides." + resting)
    said = reading(scene)
    if said:
        st.caption(literal(said))


def _remedy(scene: Scene) -> str:
    if any(token.special for token in scene.trace.keys(scene.kind)):
        return "“Left out” under More takes those out of the picture, not out of the model."
    return "“Bring out small weights” under More colours the rest and leaves every number as it is."


def facts(scene: Scene, table: Callable[[Scene], bytes] | None = None, file_name: str = "attention.csv") -> None:
    """Say in one line what ran and how it was checked, with the details one click away.

    Args:
        scene: what the page draws.
        table: writes its numbers as CSV, where the page has numbers to hand out.
        file_name: what that file is called.
    """
    trace, card = scene.trace, scene.trace.card
    audit, fine = audit_text(scene)
    limit = f" of {card.limit:,}" if card.limit else ""
    line = [
        card.name,
        f"{card.parameters / 1e6:,.1f} M parameters",
        f"{trace.layers(scene.kind)} × {trace.heads(scene.kind)} heads",
        f"{len(trace.tokens)}{limit} tokens",
        f"{len(scene.view.sentence):,} of {MAX_CHARACTERS:,} characters",
        f"{card.device}, {card.dtype}",
        card.backend,
        f"{trace.milliseconds:.0f} ms",
        audit,
    ]
    with st.container(horizontal=True, vertical_alignment="center", key="facts"):
        st.caption(literal(" · ".join(line)))
        if table is not None:
            st.download_button(
                "CSV",
                lambda: table(scene),
                file_name=file_name,
                mime="text/csv",
                on_click="ignore",
                help="The numbers of the map",
            )
        with st.popover("Details"):
            _details(scene)
    if not fine:
        st.warning(literal(f"The check failed: {audit}."))


def _rounding(dtype: str) -> float:
    return TOLERANCES[getattr(torch, dtype)]


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
    st.latex(r"\text{weights} = \text{softmax}\left(Q K^\top / \sqrt{D} + \text{bias} + \text{mask}\right)")
    if card.backend == "sdpa":
        st.markdown(
            "The model ran through PyTorch's `scaled_dot_product_attention`, which never builds the matrix you see. "
            "Its queries and keys were recorded, and the weights are recomputed from them exactly. The audit "
            "multiplies these weights with the values and compares with what the fast kernel returned: the largest "
            f"difference, relative to the largest output. In {card.dtype}, up to {_rounding(card.dtype):.0e} is "
            "rounding; a sentence alone and the same one in a batch may differ by as much."
        )
    else:
        st.markdown("This model cannot be recorded, so it returned its own weights; there is nothing to audit.")
    st.markdown("Layers and heads count from 0. The code that computes the weights:")
    st.code(textwrap.dedent(inspect.getsource(Call.weights)), language="python")
    st.code(inspect.getsource(attend), language="python")
