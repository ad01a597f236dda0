"""The chart of fine-tuning on the page Train: the figures that were computed, and a sentence where they are missing."""

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
