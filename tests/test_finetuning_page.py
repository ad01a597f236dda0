"""The chart of fine-tuning on the page Train: the figures that were computed, and a sentence where they are missing."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import cache, train_finetuning
from app.phrases import percent
from engine.errors import ModelError
from engine.training import finetuned

MAIN = Path(__file__).resolve().parent.parent / "app" / "main.py"


def page() -> AppTest:
    """Open the page through the entrypoint."""
    return AppTest.from_file(str(MAIN), default_timeout=60).run().switch_page("../pages/train.py").run()


def test_the_page_tells_the_figures_that_were_computed():
    told = finetuned.read()
    said = " ".join(one.value for one in page().markdown)
    assert "Fine-tuning, or training from scratch?" in said
    for way in finetuned.WAYS:
        assert percent(told.right[way][0]) in said
        assert percent(told.right[way][-1]) in said


def test_missing_figures_are_a_sentence_and_not_a_traceback(monkeypatch):
    def missing():
        raise ModelError("The figures of fine-tuning are missing or broken. Install this app anew.")

    cache._store.clear()
    monkeypatch.setattr(train_finetuning, "read", missing)
    opened = page()
    cache._store.clear()
    assert not opened.exception
    assert any("The figures of fine" in one.value for one in opened.error)


def test_a_curve_for_each_way_of_training_is_drawn_in_per_cent():
    told = finetuned.read()
    for way in finetuned.WAYS:
        assert train_finetuning._points(told, way).tolist() == pytest.approx([100 * share for share in told.right[way]])


def test_the_chart_is_as_wide_as_what_it_shows():
    """The axis of counts is logarithmic: a name placed at a count would stretch it to ten to that power."""
    figure = next(json.loads(one.proto.spec) for one in page().get("plotly_chart") if "three ways" in one.proto.spec)
    (name,) = figure["layout"]["annotations"]
    assert (name["xref"], name["x"]) == ("x domain", 0)
    assert figure["layout"]["xaxis"]["type"] == "log"


@pytest.mark.parametrize(
    ("scratch", "said"),
    [
        ((0.1, 0.2, 0.3), ""),
        ((0.1, 0.2, 0.4), ": with 9 sentences our classifier does as well"),
        ((0.3, 0.2, 0.5), ": with 2 and 9 sentences our classifier does as well"),
    ],
)
def test_where_training_from_scratch_does_as_well_is_said(scratch, said):
    told = finetuned.Curves((2, 5, 9), 5, 0, {"scratch": scratch, "frozen": (0.2, 0.3, 0.4), "unfrozen": (0.5,) * 3})
    found = train_finetuning._later(told)
    assert found.startswith(said)
    assert bool(found) == bool(said)
