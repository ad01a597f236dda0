"""The controls that pages share: the sentence on all, the model, the mask and "more" where a model runs."""

from collections.abc import Collection, Iterable, Mapping

import streamlit as st

from app import cache, state
from app.copy_link import copy_link
from app.examples import example_of, examples
from app.homes import TWINS
from app.parameters import TWIN
from app.phrases import SPACE, twin_label
from app.scene import is_foreign
from app.shell import literal
from engine.card import Card
from engine.catalogue import Entry
from engine.masks import Mask

BROUGHT = "brought_model"  # the model that an example brought along, and what the reader had chosen before
MASK_NAMES = {"native": "As trained", "bidirectional": "BERT-style", "causal": "GPT-style"}
_UNITS = {"words": "Words", "tokens": "Tokens"}
_SPECIALS = {"hidden": "Hidden", "shown": "Shown", "left out": "Left out, the rest rescaled"}
_AVERAGES = {"head": "One head", "layer": "Mean of the layer", "all": "Mean of all heads"}
_HEADS_BY = {"weights": "Their maps", "pair": "The picked pair"}
_COLOURS = {"linear": "Even steps", "log": "Bring out small weights"}


def sentence_bar(*, with_link: bool = False) -> None:
    """Draw the sentence and the examples, which every page has.

    Args:
        with_link: whether the button that copies the link stands here, on a page without the other controls.
    """
    with st.container(horizontal=True, vertical_alignment="center", key="sentence_bar"):
        st.text_input(
            "Sentence",
            placeholder="Type a sentence and press Enter",
            label_visibility="collapsed",
            **state.mirror("sentence"),
        )
        st.menu_button(
            "Examples",
            [example.name for example in examples()],
            key="example",
            on_click=_pick_example,
        )
        if with_link:
            copy_link()


def controls(models: Mapping[str, str], card: Card | None) -> None:
    """Draw the controls of the pages that run a model: the sentence, the model, the mask, and what hides behind "more".

    Args:
        models: what can be picked, id to name; the name may be any text.
        card: of the model that is shown; None where there is none.
    """
    fixed = _without_masks(card)
    _without_a_twin(models)
    sentence_bar()
    with st.container(horizontal=True, vertical_alignment="center", key="model_bar"):
        st.selectbox(
            "Model",
            list(models),
            format_func=lambda model: models[model],
            label_visibility="collapsed",
            width=430,
            **state.mirror("model", then=_choose_model),
        )
        st.segmented_control(
            "Mask",
            _masks(models),
            format_func=lambda mask: mask_name(mask, state.asked().model),
            required=True,
            wrap=True,
            disabled=bool(fixed),
            label_visibility="collapsed",
            **state.mirror("mask"),
        )
        with st.popover("More"):
            _more()
        copy_link()
    if fixed:
        st.caption(literal(fixed))
    note = _note(card)
    if note:
        st.caption(literal(note))


def _note(card: Card | None) -> str:
    """Say what to look for in an example or, where the model's own mask is asked for by name, that it is its own."""
    asked = state.asked()
    if asked.mask == "native":
        example = example_of(asked.sentence)
        return "" if example is None else example.note
    # Under another mask the page has a longer note of its own, and the pictures need the room.
    if card is None or asked.mask == TWIN or is_foreign(card, asked.mask):
        return ""
    return f"{card.name} was trained this way, so nothing changes."


def model_names(entries: Iterable[Entry]) -> dict[str, str]:
    """Give each model's id a name with what a reader wants to know first: "MiniLM, BERT-style, 6 × 12"."""
    names = {}
    for entry in entries:
        size = f"{entry.layers} × {entry.heads}" if entry.layers and entry.heads else ""
        parts = [entry.name, entry.style, size, "" if entry.available else "not available"]
        names[entry.id] = ", ".join(filter(None, parts))
    return names


def mask_name(mask: str, model: str) -> str:
    """Say a mask's name, or the twin's of a model, as markdown with nothing in it to interpret."""
    if mask == TWIN:
        return twin_label(model)
    return MASK_NAMES[mask] if mask in MASK_NAMES else literal(Mask.parse(mask).name)


def _without_a_twin(models: Collection[str]) -> None:
    """Go back to the model itself where its twin is asked for and there is none."""
    asked = state.asked()
    if asked.mask == TWIN and TWINS.get(asked.model) not in models and not state.is_standing_in():
        state.set(mask="native")
        state.note("This model has no twin, so it is shown as it was trained.")


def _without_masks(card: Card | None) -> str:
    """Say why no other mask can be put on a model, and go back to its own; empty where masks can be put on it."""
    if card is None or card.backend != "eager":
        return ""
    if not state.is_standing_in() and state.asked().mask != "native":
        state.set(mask="native")
        state.note("The mask was set back to what this model was trained with.")
    return f"{card.name} runs only under the mask that it was trained with: {card.reason}."


def _masks(models: Collection[str]) -> list[str]:
    asked = state.asked()
    offered = [*MASK_NAMES, *([TWIN] if TWINS.get(asked.model) in models else [])]
    return offered if asked.mask in (*offered, TWIN) else [*offered, asked.mask]


def _pick_example() -> None:
    """Show an example, on the model it is made for if it names one, else on the one that the reader has chosen."""
    example = next((one for one in examples() if one.name == st.session_state["example"]), None)
    if example is None:
        return
    now = state.asked().model
    brought, chosen = st.session_state.pop(BROUGHT, (None, now))
    chosen = chosen if now == brought else now
    made_for = example.model if example.model in {entry.id for entry in cache.entries() if entry.available} else None
    if made_for is not None:
        st.session_state[BROUGHT] = (made_for, chosen)
    state.set(sentence=example.sentence, model=made_for or chosen)


def _choose_model() -> None:
    st.session_state.pop(BROUGHT, None)


def _more() -> None:
    st.segmented_control("Show", list(_UNITS), format_func=_UNITS.__getitem__, required=True, **state.mirror("unit"))
    _special_tokens()
    st.segmented_control(
        "Heads", list(_AVERAGES), format_func=_AVERAGES.__getitem__, required=True, **state.mirror("average")
    )
    st.segmented_control(
        "Colours", list(_COLOURS), format_func=_COLOURS.__getitem__, required=True, **state.mirror("colour")
    )
    st.segmented_control(
        "Colour the grid of heads by",
        list(_HEADS_BY),
        format_func=_HEADS_BY.__getitem__,
        required=True,
        **state.mirror("heads_by"),
    )
    st.slider("Hide weights below", 0, 100, format=f"%d{SPACE}%%", **state.mirror("threshold"))


def _special_tokens() -> None:
    """Draw one choice for two fields: shown and rescaled away at once makes no sense, and rescaled wins."""
    asked = state.asked()
    st.session_state["special_tokens"] = "left out" if asked.renormalise else "shown" if asked.specials else "hidden"
    st.segmented_control(
        "Special tokens, such as [CLS]",
        list(_SPECIALS),
        format_func=_SPECIALS.__getitem__,
        required=True,
        key="special_tokens",
        help="Hidden: they keep their share of the attention, which is told but not drawn. Left out: what remains of "
        "each row is rescaled to sum to 100 %.",
        on_change=_take_special_tokens,
    )


def _take_special_tokens() -> None:
    chosen = st.session_state["special_tokens"]
    if chosen in _SPECIALS:
        state.set(specials=chosen == "shown", renormalise=chosen == "left out")
