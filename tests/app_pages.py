"""The app without a browser: a page run through app/main.py, and what it would have sent to one."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from app import cache
from tests.conftest import ROOT

MODEL_PAGES = ("explore", "masks")
PAGES = (*MODEL_PAGES, "positions", "build", "cost", "vision", "train")


def opened(page: str = "explore", prepare: Callable[[AppTest], None] | None = None, /, **parameters: Any) -> AppTest:
    """Open a page at an address, in a session of its own.

    Args:
        page: one of PAGES.
        prepare: does something to the session before anything ran.
        parameters: what stands in the address; a list repeats its parameter.
    """
    test = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=60)
    for name, text in parameters.items():
        test.query_params[name] = text
    if prepare is not None:
        prepare(test)
    return test.run() if page == "explore" else test.switch_page(f"../pages/{page}.py").run()


def on_minilm(page: str = "explore", prepare: Callable[[AppTest], None] | None = None, /, **parameters: Any) -> AppTest:
    """Open a page as `opened` does, on MiniLM unless another model is named."""
    return opened(page, prepare, **{"model": "minilm", **parameters})


def typed(test: AppTest, sentence: str) -> AppTest:
    """Type a sentence and press Enter."""
    return test.text_input(key="sentence").set_value(sentence).run()


def plain(text: str) -> str:
    """Read markdown as a reader sees it: no backslashes, no emphasis, no invisible joiners, spaces of one kind."""
    return text.replace("\u2060", "").replace("\u202f", " ").replace("\\", "").replace("**", "")


def said(test: AppTest) -> str:
    """Everything the page says in captions, paragraphs, errors, warnings and hints, one a line."""
    kinds = (test.caption, test.markdown, test.error, test.warning, test.info)
    return "\n".join(plain(str(element.value)) for kind in kinds for element in kind)


def errors(test: AppTest) -> list[str]:
    """The sentences shown as errors; an exception that reached the page counts as well."""
    return [plain(error.value) for error in test.error] + [str(broken.value) for broken in test.exception]


def choice(test: AppTest, key: str) -> Any:
    """A segmented control."""
    return next(group for group in test.get("button_group") if group.key == key)


def protos(test: AppTest, kind: str) -> Iterator[Any]:
    """What AppTest has no class for, as the messages sent."""
    for element in test.get(kind):
        yield element.proto


def view_of(test: AppTest, name: str) -> dict[str, Any]:
    """The few numbers that a browser piece is steered by: pin, partner, layer, head."""
    (view,) = (proto for proto in protos(test, "bidi_component") if proto.id.endswith(f"-{name}-view"))
    held: dict[str, Any] = json.loads(view.json)["view"]
    return held


def has_piece(test: AppTest, name: str) -> bool:
    """Whether a browser piece is on the page."""
    return any(proto.id.endswith(f"-{name}") for proto in protos(test, "bidi_component"))


def data_of(test: AppTest, name: str) -> dict[str, Any]:
    """What a browser piece draws, its typed arrays as numpy arrays."""
    (piece,) = (proto for proto in protos(test, "bidi_component") if proto.id.endswith(f"-{name}"))
    data: dict[str, Any] = json.loads(piece.mixed.json)
    for key, value in data.items():
        if isinstance(value, dict) and "__streamlit_arrow_ref__" in value:
            blob = piece.mixed.arrow_blobs[value["__streamlit_arrow_ref__"]]
            data[key] = pa.ipc.open_stream(blob.data).read_all().column(0).to_numpy()
    return data


def ribbon_weights(test: AppTest) -> np.ndarray:
    """The map that the ribbon was given, (T, S), exact to half of 1/65535."""
    data = data_of(test, "ribbon")
    keys = data["keys"] if data["keys"] is not None else data["queries"]
    weights: np.ndarray = data["weights"].reshape(len(data["queries"]), len(keys)) / 65535
    return weights


def ribbon_words(test: AppTest, axis: str = "queries") -> list[str]:
    """The words that the ribbon shows."""
    return [chip["text"] for chip in data_of(test, "ribbon")[axis]]


def figures(test: AppTest) -> list[dict[str, Any]]:
    """Every plotly figure on the page."""
    return [json.loads(proto.spec) for proto in protos(test, "plotly_chart")]


def title_of(figure: dict[str, Any]) -> str:
    """A figure's title."""
    title: str = figure["layout"]["title"]["text"]
    return title


def hover_names(figure: dict[str, Any], axis: str) -> list[str]:
    """The labels that a figure's hover shows for its rows ("y") or columns ("x")."""
    for name, settings in figure["layout"].items():
        if name.startswith(f"{axis}axis") and not settings.get("showticklabels", True):
            names: list[str] = settings["ticktext"]
            return names
    raise KeyError(axis)


@contextmanager
def operator_allows(folder: Path) -> Iterator[None]:
    """Let the app offer the checkpoints below a folder, for as long as the block lasts."""
    held = (cache.policy, cache.entries, cache.large)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_EXPLORER_FOLDERS", str(folder))
        for kept in held:
            kept.clear()
        yield
    for kept in held:
        kept.clear()


def other_word(test: AppTest) -> Any:
    """The box with the word at the other end; its key changes whenever the page itself picks another word."""
    return next(box for box in test.selectbox if box.label == "The other word")
