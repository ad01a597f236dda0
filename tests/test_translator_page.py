"""Explore on a translator that was trained here: what it writes, in which row a word is aligned, what it writes next.

The model is a small one with random weights, so what it writes means nothing; how the page speaks of it does.
"""

from collections.abc import Iterator

import pytest

from app import cache
from app.examples import examples
from app.homes import home
from engine import ScratchModel
from tests.app_pages import choice, data_of, errors, figures, opened, ribbon_weights, said, title_of, view_of
from tests.shipped_models import write_all

SENTENCE = "the shopkeeper gave the customer a discount"
HELD = (cache.entries, cache._small, cache._store)


@pytest.fixture(autouse=True, scope="module")
def small_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Small models in the place of those that come with the app."""
    folder = tmp_path_factory.mktemp("models")
    write_all(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.shipped.FOLDER", folder)
        for kept in HELD:
            kept.clear()
        yield
    for kept in HELD:
        kept.clear()


def translator() -> ScratchModel:
    """The model as the app holds it."""
    held = cache.model("translator-en-hi")
    assert isinstance(held, ScratchModel)
    return held


def test_a_translator_opens_on_its_cross_attention_and_writes_where_nothing_is_typed():
    """Cross first of the three; rows are what the model wrote."""
    test = opened(model="translator-en-hi", q=SENTENCE)
    assert errors(test) == []
    assert list(choice(test, "kind").options) == ["cross", "decoder", "encoder"]
    assert choice(test, "kind").value == "cross"
    assert title_of(figures(test)[0]) == "cross, layer {}, head {}".format(*home("translator-en-hi"))
    target = translator().run(SENTENCE).target
    assert target is not None
    chips = data_of(test, "ribbon")["queries"]
    assert [chip["text"] for chip in chips] == [token.text for token in target.tokens if not token.special]
    assert all(chip["generated"] for chip in chips)


def test_an_example_whose_word_is_no_word_of_the_translation_brings_no_partner_either():
    """The partner is the strongest of the row that is picked instead."""
    example = next(one for one in examples() if one.name == "Into Hindi")
    view = view_of(opened(model="translator-en-hi", q=example.sentence), "ribbon")
    weights = ribbon_weights(opened(model="translator-en-hi", q=example.sentence))
    assert weights[view["pinned"], view["partner"]] == weights[view["pinned"]].max()


def test_the_row_before_a_word_is_said_to_align_it():
    """By name: the row that is picked, and the word that follows it."""
    test = opened(model="translator-en-hi", q=SENTENCE, target="she gave the discount", word="1")
    assert "Each row belongs to the word just read and decides the next one" in said(test)
    assert "the row of gave shows where the comes from" in said(test).replace("*", "")
    assert "The first word, she, comes from the row of [BOS], which More can show." in said(test).replace("*", "")
    last = opened(model="translator-en-hi", q=SENTENCE, target="she gave the discount", word="3")
    assert "the row of discount ends the text" in said(last).replace("*", "")
    for kind in ("encoder", "decoder"):
        assert "Each row belongs" not in said(opened(model="translator-en-hi", q=SENTENCE, kind=kind))


@pytest.mark.parametrize("kind", ["cross", "decoder"])
def test_after_a_word_the_translator_says_what_it_writes_next(kind: str):
    """The engine's own guess; its encoder says nothing."""
    chosen = {"model": "translator-en-hi", "q": SENTENCE, "target": "she gave the discount", "kind": kind}
    guess = translator().predict(SENTENCE, "she gave the discount").at(2, 1)[0]
    assert f"After gave the next word is: {guess.text} " in said(opened(**chosen, word="1")).replace("*", "")
    assert "the next word is" not in said(opened(**{**chosen, "kind": "encoder"}))


def test_a_silenced_head_of_a_translator_is_named_with_its_kind():
    """The switch silences the head that is shown, of the three that have this layer and number."""
    test = opened(model="translator-en-hi", q=SENTENCE, target="she gave the discount", layer="1", head="2")
    toggle = next(one for one in test.toggle if one.key == "silence_switch")
    toggle.set_value(True).run()
    assert test.query_params["silence"] == "cross:1.2"
    assert title_of(figures(test)[0]) == "cross, layer 1, head 2, silenced"
    assert (view_of(test, "grid")["layer"], view_of(test, "grid")["head"]) == (1, 2)
    choice(test, "kind").set_value("decoder").run()
    assert title_of(figures(test)[0]) == "decoder, layer 1, head 2 (cross L1 H2 silenced)"


def test_a_sentence_in_the_past_is_warned_of_and_said_in_the_present_with_one_click():
    test = opened(model="translator-en-hi", q="The shopkeeper gave the customer a discount because she was a regular")
    assert "It knows no past. Of a sentence in the past its Hindi means nothing." in said(test).replace("*", "")
    next(button for button in test.button if button.label == "Say it in the present").click().run()
    assert errors(test) == []
    asked = "The shopkeeper gives the customer a discount because she is a regular"
    assert test.query_params["q"] in (asked, [asked])
    assert not [button for button in test.button if button.label == "Say it in the present"]


def test_words_that_it_has_never_met_are_a_reason_to_take_its_hindi_lightly():
    strange = said(opened(model="translator-en-hi", q="the customer is reading")).replace("*", "")
    assert "Take its Hindi lightly." in strange
    assert "Take its Hindi lightly." not in said(opened(model="translator-en-hi", q="the customer")).replace("*", "")
    assert "Take its Hindi lightly." not in said(opened(model="twin-encoder", q="the customer is reading"))


def test_it_always_says_that_it_is_no_translator_for_use():
    """A sentence of nothing but known words may be one that it was never taught."""
    assert "No translator for use" in said(opened(model="translator-en-hi", q="the customer gave"))
    assert "No translator for use" not in said(opened(model="twin-encoder", q="the customer gave"))


def test_across_a_text_without_a_pronoun_opens_on_its_first_word():
    """The last row decides that the text ends, and comes from nothing."""
    test = opened(model="translator-en-hi", q=SENTENCE, target="the customer gave the discount")
    assert view_of(test, "ribbon")["pinned"] == 0
    assert view_of(opened(model="translator-en-hi", q=SENTENCE, kind="encoder"), "ribbon")["pinned"] > 0
