"""What stands around every page: literal text, notes, and the one frame that errors end in."""

import logging
import re
from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from app import state
from app.charts_inputs import shortened
from engine.errors import EngineError, MaskError, TextError

_log = logging.getLogger(__name__)

T = TypeVar("T")
SENTENCE_LENGTH = 80  # characters of a sentence that are quoted in another

# Streamlit rewrites "->", ":smile:" and web addresses after markdown is parsed, where a backslash no longer
# helps: an invisible word joiner keeps the signs apart.
_REWRITTEN = re.compile(r"[-<>=~:@]|w(?=ww)", re.IGNORECASE)
# All white space but the kind that keeps a number and its unit on one line.
_BREAKING = re.compile(r"[^\S\u00a0\u202f]+")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def literal(text: str) -> str:
    """Make text safe wherever Streamlit reads markdown: it shows as typed, on one line, never as markup."""
    apart = _REWRITTEN.sub(lambda sign: sign[0] + "\u2060", _BREAKING.sub(" ", text).strip())
    return _PUNCTUATION.sub(lambda sign: "\\" + sign[0], apart)


def attempt(make: Callable[[], T], page: str) -> T | None:
    """Return what the page to come will need, or None where it can't be had; the page then says why.

    Args:
        make: may raise an EngineError.
        page: the page to come.
    """
    try:
        return make()
    except EngineError as error:
        if not state.is_standing_in():
            _failed(page, error)
        return None


def show(run: Callable[[], None], page: str) -> None:
    """Run a page inside the error frame.

    An EngineError is shown as a sentence over the last view that worked. Anything else is logged, and the
    reader is told in one sentence.

    Args:
        run: draws the page.
        page: names the page, so that a failure of one isn't blamed on another.
    """
    failure = state.failure()
    if failure is not None and failure.page != page:
        state.retry()
        failure = None
    if failure is not None:
        _explain(failure)
    try:
        run()
    except EngineError as error:
        if failure is not None:  # the stand-in fails too, so the sentence above has to do
            _log.warning("the last working view failed as well: %s", error)
            return
        _failed(page, error)
        st.rerun()
    except Exception:  # noqa: BLE001 - the reader gets a sentence, the log the traceback
        _log.exception("page %r failed", page)
        st.error("Something went wrong here, and it is not your doing. Another sentence or model may work.")
    else:
        if failure is None:
            state.worked()


def _failed(page: str, error: EngineError) -> None:
    state.failed(page, str(error), passing=not isinstance(error, TextError | MaskError))


def _explain(failure: state.Failure) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="failure"):
        st.error(literal(failure.message))
        if failure.passing:
            st.button("Try again", on_click=state.retry)
    if not state.has_worked():
        st.caption("Below is the opening sentence.")
        return
    before = state.view().sentence
    other = before != failure.view.sentence
    below = (
        f"still the view of the last sentence, “{shortened(before, SENTENCE_LENGTH)}”"
        if other
        else "the last view that worked"
    )
    st.caption(literal(f"Below is {below}."))


def show_notes() -> None:
    """Show the sentences left by state.note, once."""
    for sentence in state.take_notes():
        st.caption(literal(sentence))
