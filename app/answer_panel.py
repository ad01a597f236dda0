"""Beside the pictures of Explore: what the model itself answers, and what becomes of that without one of its heads."""

from __future__ import annotations

import streamlit as st

from app import cache, state
from app.answer import Answer, answer, costs, is_strange, next_word, question
from app.charts_answer import head_costs
from app.drawn import turned
from app.panels import is_dark
from app.phrases import brief, percent
from app.reasons import offers
from app.scene import Scene, run_of
from app.shell import literal
from engine.interventions import Silence
from engine.predicting import Guess
from engine.spelling import END

SWITCH = "silence_switch"
STRANGE = "The grammar does not know this {}: the model was trained on others{}, so take its answer lightly."


def answers(scene: Scene) -> None:
    """Draw the line with the answer, the switch that silences the shown head, and what every head's silencing costs."""
    asked = question(scene)
    given = None if asked is None else answer(scene, asked)
    if given is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="answer"):
        st.markdown(_line(scene, given))
        _switch(scene)
        # What it shows takes a run for each head, so it is computed when somebody looks.
        every = st.popover("Every head in turn", key="every_head", on_change="rerun")
    if every.open:
        with every:
            _every_head(scene, given)


def _line(scene: Scene, given: Answer) -> str:
    said = [_told(scene, given), _emphasised(given.question.remark)]
    follows = next_word(scene)
    if scene.kind == "decoder" and follows is not None and given.question.lead != follows.lead:
        more = answer(scene, follows)
        said += [] if more is None else [_told(scene, more)]
    if is_strange(scene):
        said.append(_strange(scene))
    return " ".join(filter(None, said))


def _strange(scene: Scene) -> str:
    """Say that the model learned from other sentences and, where it is the reason that is new, which ones it knows."""
    known = offers([word.text for word in scene.trace.prompt.words])
    if not known:
        return STRANGE.format("kind of sentence", "")
    said = [
        ", ".join(f"*{literal(reason)}*" for reason in offer.reasons)
        + (f" ({literal(brief(offer.who))})" if offer.who else "")
        for offer in known
    ]
    return STRANGE.format("reason", f", such as {' or '.join(said)}")


def _told(scene: Scene, given: Answer) -> str:
    """Say "At *she* the model itself says: **customer 98 %**, shopkeeper 2 %."."""
    lead = _emphasised(given.question.lead)
    if scene.is_twin:
        lead = lead.replace("the model", f"the {literal(scene.trace.card.name.lower())}", 1)
    after = given.after or (None,) * len(given.before)
    shares = [
        f"{_named(one, given)} {percent(one.probability)}{'' if then is None else f' → **{percent(then)}**'}"
        for one, then in zip(given.before, after, strict=True)
    ]
    shares[0] = shares[0] if given.after else f"**{shares[0]}**"
    without = f", with every head → without {scene.silenced}" if given.after else ""
    then = (
        f"; then likeliest: {_named(given.instead, given)} {percent(given.instead.probability)}"
        if given.instead
        else ""
    )
    return f"{lead}{without}: {', '.join(shares)}{then}."


def _named(guess: Guess, given: Answer) -> str:
    """Write a word or label; signs and the end of the text so that they are not taken for the sentence's own."""
    if given.question.position is not None and guess.id == END:
        return "the end"
    text = brief(guess.text)
    return literal(text if any(letter.isalnum() for letter in text) else f"“{text}”")


def _emphasised(parts: tuple[str, str, str]) -> str:
    """Write a sentence in three parts as markdown, the word in the middle in italics."""
    before, word, after = parts
    middle = f" *{literal(brief(word))}* " if word else ""
    return f"{literal(before)}{middle}{literal(after)}"


def _switch(scene: Scene) -> None:
    """Draw the switch; it says which head is silenced, which need not be the one that is shown by now."""
    view = scene.view
    if view.average != "head" and not view.silence:
        return
    st.session_state[SWITCH] = bool(view.silence)
    st.toggle(
        f"{scene.silenced} is silenced" if view.silence else "Silence this head",
        key=SWITCH,
        help="The head then hands on nothing: the layers above it have to do without. What it looks at is still shown.",
        on_change=_turn,
        args=(scene,),
    )


def _turn(scene: Scene) -> None:
    view = scene.view
    several = len(scene.trace.kinds) > 1
    shown = Silence(view.layer, view.head, scene.kind if several else None).spec
    asked = turned(view.model, shown) if scene.is_twin else shown
    state.set(silence=asked if st.session_state[SWITCH] else "")


def _every_head(scene: Scene, given: Answer) -> None:
    view = scene.view
    key = ("costs", *run_of(scene)[:4], scene.kind, tuple(given.question.prompt.ids), given.question.position)
    made = cache.derived(key, lambda: costs(scene, given), lambda made: made.nbytes)
    shown = (view.layer, view.head) if view.average == "head" else None
    whose = "right answer" if given.question.right else "model's own answer"
    st.markdown(
        f"**Every head silenced in turn:** what that takes from the {whose}, *{literal(brief(given.right[0]))}*, in "
        "points of a hundred. The shown head is in colour."
    )
    st.altair_chart(head_costs(made, shown, dark=is_dark()), theme=None)
    st.caption(
        "A head that costs much is used for this answer; one that costs nothing may still look at the right word."
    )
