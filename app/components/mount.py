"""How a browser piece is registered and put on the page, and how its click comes back.

Streamlit resends a component's whole payload whenever anything inside `data` changes, and nothing
but a hash when nothing does (measured: a pin in a ribbon of 512 tokens brought 630 KB back with the
pin inside `data`, 1.9 KB without). So each piece is two components: the visible one, whose `data`
holds only what is heavy (weights, labels), and an empty one beside it that carries what a click or a
switch changes (pin, layer, head, scale, threshold). The empty one leaves its few numbers in a map on
`window`, under the piece's key, and raises an event; the visible one listens. See `shared.js` and
`view.js`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from app.components.palette import themes

Pick = dict[str, int]
PickCallback = Callable[[Pick], None]

_FOLDER = Path(__file__).parent


@cache
def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def component(name: str, *parts: str) -> Any:
    """Register the browser piece whose files are `<name>.css` and `<name>.js` beside this one.

    Args:
        name: the piece.
        parts: names of further scripts it is built on; one module is made of them all.
    """
    palette = f"const PALETTE = {json.dumps(themes())};\n"
    scripts = "".join(_text(f"{part}.js") for part in ("shared", *parts, name))
    return st.components.v2.component(
        f"attention_{name}", css=_text("shared.css") + _text(f"{name}.css"), js=palette + scripts
    )


_view = st.components.v2.component("attention_view", js=_text("view.js"))


def mount(
    renderer: Any,
    *,
    key: str,
    data: Mapping[str, Any],
    view: Mapping[str, Any],
    limits: Sequence[Mapping[str, int]],
    on_pick: PickCallback | None,
) -> Pick | None:
    """Put one browser piece and its view on the page.

    Args:
        renderer: what `component` returned.
        key: the piece's key; `key` + "-view" and `key` + "-picks" are used beside it.
        data: what is heavy and changes with the model's run.
        view: what is small and changes with a click or a switch.
        limits: the shapes a pick may have: for each, its names and the number each must stay below.
        on_pick: called with the pick before the script runs again, as any widget's callback is.

    Returns:
        The pick that caused this run of the script, or None.
    """
    counter = f"{key}-picks"

    def picked() -> None:
        pick = valid_pick((st.session_state.get(key) or {}).get("pick"), limits)
        # The count travels with the view, so that the browser hears back even when the page decides
        # to change nothing: what it drew ahead of the answer is then put right.
        st.session_state[counter] = st.session_state.get(counter, 0) + 1
        if pick is not None and on_pick is not None:
            on_pick(pick)

    with st.container(gap=None):
        answered = st.session_state.get(counter, 0)
        _view(key=f"{key}-view", data={"channel": key, "view": {**view, "answered": answered}})
        result = renderer(key=key, data={"channel": key, **data}, on_pick_change=picked)
    return valid_pick(result.get("pick"), limits)


def valid_pick(pick: Any, limits: Sequence[Mapping[str, int]]) -> Pick | None:
    """Return a pick that names exactly the things of one of the limits, each in range, else None.

    What comes from a browser may be anything, and may belong to the sentence before.
    """
    if not isinstance(pick, Mapping):
        return None
    for limit in limits:
        if pick.keys() == limit.keys() and all(_below(pick[name], limit[name]) for name in limit):
            return {name: int(pick[name]) for name in limit}
    return None


def _below(value: Any, limit: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit
