"""What a reader of Explore or Masks must know before looking: random weights, changed text, a mask, another model."""

from __future__ import annotations

import streamlit as st

from app import cache
from app.homes import TWINS
from app.phrases import brief, mask_label, twin_label
from app.scene import Scene
from app.shell import literal
from app.translating import translating


def notices(scene: Scene) -> None:
    """Say what the reader must know before looking: random weights, changed text, a foreign mask."""
    card, view = scene.trace.card, scene.view
    if card.banner:
        st.warning(literal(card.banner))
    said = () if card.trained else card.notes  # of a model that was trained here "Details" says more
    prompts = [scene.trace.prompt] + ([scene.trace.target] if scene.trace.target else [])
    for sentence in dict.fromkeys(sentence for prompt in prompts for sentence in (*prompt.notices, *said)):
        st.caption(literal(sentence))
    translating(scene)
    if scene.is_twin:
        st.caption(_twin_note(scene))
    if scene.is_foreign:
        st.caption(
            f"**Not what this model was trained with.** {literal(card.name)} is {card.style}; the same weights now "
            f"run under another mask ({literal(mask_label(view.mask))}), so this shows what the mask does, not a "
            f"trained model.{_see_twin(scene)}"
        )
    if scene.kind == "cross" and card.trained:
        st.caption(_one_row_before(scene))


def _twin_note(scene: Scene) -> str:
    shown, own = scene.trace.card, cache.model(scene.asked.model).card
    return (
        f"**Another model, trained that way.** {literal(shown.name)} has the sizes of {literal(own.name)} and learned "
        f"from the same sentences, but {shown.style} from the start. All below is its own."
    )


def _see_twin(scene: Scene) -> str:
    """Point from a foreign mask to the model that was trained under it, where there is one."""
    if scene.asked.model not in TWINS or scene.view.mask not in ("causal", "bidirectional"):
        return ""
    return f" Its twin was trained that way: press “{twin_label(scene.asked.model)}”."


def _one_row_before(scene: Scene) -> str:
    """Say in which row of a translator's map a word of the translation is aligned."""
    words = [token for token in scene.trace.queries("cross") if not token.special]
    if not words or scene.view.direction == "by":
        return "Each row belongs to the word just read and decides the next one."
    picked = scene.sources[scene.pin]
    following = [token.text for token in scene.trace.queries("cross")[picked.indices[-1] + 1 :] if not token.special]
    here = f"the row of *{literal(brief(picked.text))}*"
    shown = f"{here} shows where *{literal(brief(following[0]))}* comes from" if following else f"{here} ends the text"
    return (
        f"Each row belongs to the word just read and decides the next one: {shown}. The first word, "
        f"*{literal(brief(words[0].text))}*, comes from the row of [BOS], which More can show."
    )
