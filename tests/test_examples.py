"""The examples: what each says, and on which model it opens."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import cache
from app.examples import Example, examples
from engine.shipped import SHIPPED
from tests.app_pages import errors, opened, plain, said

INTO_HINDI = next(example for example in examples() if example.name == "Into Hindi")


def picked(test: AppTest, name: str) -> AppTest:
    """Choose an example from the menu."""
    menus: list[Any] = list(test.get("menu_button"))
    menu = next(one for one in menus if one.label == "Examples")
    shown: AppTest = menu.set_value(name).run()
    return shown


@pytest.mark.parametrize("example", [one for one in examples() if one.model], ids=lambda one: one.name)
def test_an_example_that_names_its_model_names_one_that_comes_with_the_app_and_says_so(example: Example):
    assert example.model in SHIPPED
    assert "which this example picks as the model" in example.note


def test_no_note_calls_a_word_or_a_sentence_a_twin():
    """That is what the other model is called."""
    assert not [example.name for example in examples() if "twin" in example.note.lower()]


def test_an_example_brings_its_model_along_and_the_next_one_goes_back_to_the_readers_own():
    """MiniLM is chosen; the translator only came with its sentence."""
    test = picked(opened(model="minilm"), INTO_HINDI.name)
    assert errors(test) == []
    assert test.selectbox(key="model").value == INTO_HINDI.model
    assert plain(INTO_HINDI.note) in said(test)
    assert picked(test, "Garden path").selectbox(key="model").value == "minilm"


def test_other_examples_stay_on_the_model_that_the_reader_has_chosen():
    """Also where it is the one that an example has brought along, chosen again."""
    test = picked(opened(model="minilm"), "Garden path")
    assert test.selectbox(key="model").value == "minilm"
    picked(test, INTO_HINDI.name).selectbox(key="model").set_value("twin-decoder").run()
    assert picked(test, "Garden path").selectbox(key="model").value == "twin-decoder"
    test.selectbox(key="model").set_value(INTO_HINDI.model).run()
    assert picked(test, "Garden path").selectbox(key="model").value == INTO_HINDI.model


def test_where_its_model_is_not_there_an_example_opens_on_the_readers_own(monkeypatch: pytest.MonkeyPatch):
    every = cache.entries()
    monkeypatch.setattr(cache, "entries", lambda: tuple(entry for entry in every if entry.id != INTO_HINDI.model))
    test = picked(opened(model="minilm"), INTO_HINDI.name)
    assert errors(test) == []
    assert test.selectbox(key="model").value == "minilm"
    assert test.text_input(key="sentence").value == INTO_HINDI.sentence
