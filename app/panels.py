"""What stands around the pictures of Explore: the sentence as large words, and cautions."""

from __future__ import annotations

import streamlit as st

from app import state
from app.charts import entropy_text
from app.components import ChipMarks, Pick, ribbon
from app.knowing import knowing
from app.phrases import SPACE, brief, percent
from app.reading import reading
from app.scene import Scene
from app.shell import literal
from app.shown import SINK_SHARE, can_see, resting_share
from app.trained_card import taught_line
from app.view import place
from engine import Token
from engine.spelling import is_unmet
from engine.tokens import Group

GROUP = "explore"
DIRECTIONS = {"to": "attends to", "by": "attended by"}


def is_dark() -> bool:
    """Whether the page is dark."""
    return st.context.theme.type == "dark"


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
                "Attention", scene.trace.kinds[::-1], required=True, label_visibility="collapsed",
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
        unmet = is_unmet(group, tokens)
        spelled = "The model has never met this word, so it is spelled: " if unmet else ""
        made.append(
            ChipMarks(
                text=group.text,
                hover=spelled + " ".join(f"{piece.raw} ({piece.id})" for piece in pieces),
                special=group.special,
                padding=any(piece.padding for piece in pieces),
                generated=any(piece.generated for piece in pieces),
                unmet=unmet,
            )
        )
    return made


def caution(scene: Scene) -> None:
    """Say what the picture is not, where a head rests, and whether it follows the reason in another sentence."""
    card = scene.trace.card
    if card.trained is not None:
        taught_line(card.trained)
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
    if said and not (card.trained and _is_said_above(scene)):
        st.caption(literal(said))


def _is_said_above(scene: Scene) -> bool:
    found = knowing(scene)
    return found is not None and found.at_the_pronoun


def _remedy(scene: Scene) -> str:
    if any(token.special for token in scene.trace.keys(scene.kind)):
        return "“Left out” under More takes those out of the picture, not out of the model."
    return "“Bring out small weights” under More colours the rest and leaves every number as it is."
