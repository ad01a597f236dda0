"""The view: every choice that a link should reproduce, kept in the session and in the address.

One frozen View lies in the session. Widgets and browser components mirror it (`mirror`, `set`); the
address is written from it once per run (`publish`) and read back on exactly two occasions (`sync`): when
a session begins, and when the reader presses Back or Forward.

Why not `bind="query-params"`, as tried on Streamlit 1.67 in a browser:
- only widgets can be bound, and the word, layer and head are picked in components that are no widgets;
- a bound parameter can't be set through st.query_params, so the two ways don't mix;
- bound widgets replace the address, so Back leaves the page; what is written here becomes a step of the
  history, and Back undoes the last click;
- invalid values would vanish without a word.
The address that comes with an ordinary rerun may be one click behind (two quick clicks), so it isn't
believed: the session is. A link of the navigation drops all parameters, and the browser keeps that bare
address as a step before the one written by `publish`; Back to it must mean the view that the reader
arrived with, not the opening one, so that is remembered for each page.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.homes import home
from app.view import TEXTS, View, from_address, opening_view, own_partner, portable, to_address, usable

ASKED = "view"  # what the reader asked for
WORKING = "working_view"  # what stands in for it while it fails: the last view that could be shown
HAS_WORKED = "has_worked"  # whether any view could be shown
ARRIVED = "arrived"  # whether the view has just been read from an address
FAILED = "failure"  # why the view asked for could not be shown, while WORKING stands in for it
NOTES = "notes"
PUBLISHED = "published"  # the address as last written
TURNS = "turns"  # how often the page chose another value for a widget, by name
PAGE = "page"  # the page shown last
CLICKS = frozenset({"layer", "head", "word", "partner", "direction", "average"})  # none of them mends a failure
ARRIVALS = "arrivals"  # the view with which each page was last navigated to


def view() -> View:
    """Say what to show: what the reader asked for or, while that fails, the last view that worked."""
    return _stand_in() if is_standing_in() else asked()


def _stand_in() -> View:
    return st.session_state.setdefault(WORKING, View())


def asked() -> View:
    """Say what the reader asked for, whether or not it can be shown."""
    return st.session_state.setdefault(ASKED, View())


def set(**changes: Any) -> None:
    """Change some fields of the view; made for callbacks, which run before the page is drawn.

    A new sentence brings its own word and partner (or none). A new model is opened on its home head, and forgets
    places that are tokens, the kind of attention and what was silenced. A partner that an example brought along goes
    with its direction. Text is cut and mended where it has to be, with a note.

    Raises:
        TypeError: a name that is no field of View.
    """
    before = asked()
    for name in TEXTS & changes.keys():
        changes[name], problems = usable(changes[name])
        for problem in problems:
            note(problem)
    if "sentence" in changes and changes["sentence"] != before.sentence:
        opening = opening_view(changes["sentence"])
        changes = {"word": opening.word, "partner": opening.partner, **changes}
    if "model" in changes and changes["model"] != before.model:
        layer, head = home(changes["model"])
        kept = {name: portable(getattr(before, name)) for name in ("word", "partner")}
        changes = {"layer": layer, "head": head, "kind": "", "silence": "", **kept, **changes}
    if "direction" in changes and "partner" not in changes:
        word, own = changes.get("word", before.word), own_partner(before.sentence, before.word, before.direction)
        if before.partner == own:
            changes["partner"] = own_partner(before.sentence, word, changes["direction"])
    after, failed = replace(before, **changes), failure()
    if failed is not None and not {"sentence", "model", "mask"} & changes.keys():
        st.session_state[WORKING] = replace(_stand_in(), **changes)
        if changes.keys() <= CLICKS:
            st.session_state[FAILED] = replace(failed, view=after)
    st.session_state[ASKED] = after


def clamp(*, layers: int, heads: int) -> View:
    """Bring layer and head into a model's range, saying so, and return the view."""
    now = view()
    within = replace(now, layer=min(now.layer, layers - 1), head=min(now.head, heads - 1))
    if within != now:
        note(f"This model has {layers} × {heads} heads: showing layer {within.layer}, head {within.head}.")
        return amend(layer=within.layer, head=within.head)
    return now


def amend(**changes: Any) -> View:
    """Put right, while a page is drawn, what the view asks for and the model or the sentence has not."""
    now = replace(view(), **changes)
    st.session_state[WORKING if is_standing_in() else ASKED] = now
    return now


def take_arrival() -> bool:
    """Say, once, that the view has just been read from an address."""
    return bool(st.session_state.pop(ARRIVED, False))


class Mirror(TypedDict):
    """The arguments that tie a widget to a field."""

    key: str
    on_change: Callable[..., None]
    args: tuple[str, str, str, Callable[[], None] | None]


def mirror(field: str, *, where: str = "", value: Any = None, then: Callable[[], None] | None = None) -> Mirror:
    """Tie a widget to a field: `st.toggle("Special tokens", **mirror("specials"))`.

    The widget must not be given a value of its own. `where` tells two widgets for one field apart; `value` is
    shown instead of the field where the page has brought it into range or chosen for the reader. `then` is called
    after a change.
    """
    name = f"{field}{where and '_'}{where}"
    shown = getattr(asked(), field) if value is None else value
    key = _key(name)
    if value is not None and st.session_state.get(key, shown) != shown:
        # The page chose another. A click sent before the browser hears of it still carries the value it had, which
        # would pass for the reader's choice: the new value gets a new widget, and the old one is not believed.
        turns = st.session_state.setdefault(TURNS, {})
        turns[name] = turns.get(name, 0) + 1
        key = _key(name)
    st.session_state[key] = shown
    return {"key": key, "on_change": _take, "args": (field, name, key, then)}


def _key(name: str) -> str:
    return f"{name}{st.session_state.setdefault(TURNS, {}).get(name, '')}"


def _take(field: str, name: str, key: str, then: Callable[[], None] | None) -> None:
    if key != _key(name):
        return
    value = st.session_state[key]
    if value is not None:
        set(**{field: tuple(value) if isinstance(value, list) else value})
        if then is not None:
            then()


def sync(models: Collection[str], page: str = "") -> None:
    """Take the view from the address when a session begins and on Back and Forward.

    Args:
        models: the ids that may be shown; anything else falls back to the default, with a note.
        page: the page to be shown, by its path.
    """
    context = get_script_run_ctx()
    began = ASKED in st.session_state
    returned = context is not None and context.is_history_navigation
    arrivals: dict[str, View] = st.session_state.setdefault(ARRIVALS, {})
    parameters = {name: st.query_params.get_all(name) for name in st.query_params}
    if returned:
        st.session_state.pop(PUBLISHED, None)
    if began and not returned and page != st.session_state.get(PAGE):
        arrivals[page] = asked()
    elif began and returned and not parameters and page in arrivals:
        st.session_state[ASKED] = arrivals[page]
    elif returned or not began:
        st.session_state[ASKED], problems = from_address(parameters, models)
        st.session_state[ARRIVED] = True
        for problem in problems:
            note(problem)
    st.session_state[PAGE] = page


def publish() -> None:
    """Write the view into the address; does nothing when it stands there already."""
    parameters = to_address(asked())
    given = st.query_params.to_dict()
    # `given` may be one click behind as well: what was written last counts too, or A, B, A would end on B.
    if parameters != given or parameters != st.session_state.get(PUBLISHED, given):
        st.query_params.from_dict(parameters)
    st.session_state[PUBLISHED] = parameters


def note(text: str) -> None:
    """Leave a sentence to be shown once, under the controls."""
    notes: list[str] = st.session_state.setdefault(NOTES, [])
    if text not in notes:
        notes.append(text)


def take_notes() -> list[str]:
    """Hand over the sentences left by note, and forget them."""
    return st.session_state.pop(NOTES, [])


@dataclass(frozen=True)
class Failure:
    """A view that a page could not show, and why, in a sentence for the reader.

    Attributes:
        view: what was asked for.
        page: which page failed.
        message: why.
        passing: whether the same view may work another time; a sentence of nothing stays one.
    """

    view: View
    page: str
    message: str
    passing: bool = True


def failure() -> Failure | None:
    """Give the failure of the view asked for, if it has just failed."""
    failed: Failure | None = st.session_state.get(FAILED)
    return failed if failed is not None and failed.view == asked() else None


def is_standing_in() -> bool:
    """Say whether an older view is shown because the one asked for failed."""
    return failure() is not None


def failed(page: str, message: str, *, passing: bool = True) -> None:
    """Remember that this page can't show the view asked for; the last one that worked stands in for it."""
    st.session_state[FAILED] = Failure(asked(), page, message, passing)


def worked() -> None:
    """Remember that the view asked for was shown."""
    st.session_state[WORKING] = asked()
    st.session_state[HAS_WORKED] = True
    retry()


def has_worked() -> bool:
    """Say whether anything could be shown yet in this session."""
    return bool(st.session_state.get(HAS_WORKED, False))


def retry() -> None:
    """Forget the failure, so that the view asked for is tried again."""
    st.session_state.pop(FAILED, None)
