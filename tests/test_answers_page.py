"""What the models that were trained here answer, and what silencing a head does to that, on the page Explore."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from app import cache
from app.charts_answer import cost_frame, head_costs
from app.homes import FIRST, counterpart
from app.phrases import percent
from engine import Mask
from engine.errors import CaptureError, ShapeError
from engine.interventions import Silence
from tests.app_pages import errors, opened, plain, ribbon_weights, said
from tests.twins import GENEROUS, HEAD, HOME, LAYER, REGULAR, SHE, UNKNOWN, map_title, model, place_of, share, silencing


def test_at_the_pronoun_the_model_names_who_is_meant():
    """In the engine's own numbers, with what the grammar says."""
    at = place_of(FIRST, REGULAR, SHE)
    shares = {word: share(FIRST, REGULAR, at, word) for word in ("customer", "shopkeeper")}
    text = said(opened()).replace("*", "")
    assert f"At she the model itself says: customer {shares['customer']}" in text
    assert f"shopkeeper {shares['shopkeeper']}" in text
    assert "By the grammar she is the customer." in text
    assert "By the grammar she is the shopkeeper." in said(opened(q=GENEROUS)).replace("*", "")


def test_another_word_is_hidden_from_the_encoder_and_filled_in():
    """The likeliest words for [MASK]."""
    hidden = REGULAR.replace("discount", "[MASK]")
    made = model(FIRST).predict(hidden).at(place_of(FIRST, REGULAR, 6), 1)[0]
    text = said(opened(word="6")).replace("*", "")
    assert f"With discount hidden, the model fills in: {made.text} {plain(percent(made.probability))}" in text


def test_the_decoder_goes_on_after_the_reason_and_after_the_picked_word():
    """Asked with “…, so the”; and what it expects after the word that is clicked."""
    longer = f"{REGULAR}, so the"
    at = len(model("twin-decoder").prompt(longer)) - 1
    customer = share("twin-decoder", longer, at, "customer")
    follows = model("twin-decoder").predict(REGULAR).at(place_of("twin-decoder", REGULAR, SHE), 1)[0]
    text = said(opened(model="twin-decoder")).replace("*", "")
    assert "After “…, so the” the model goes on with: " in text
    assert f"customer {customer}" in text
    assert f"After she the next word is: {follows.text} {plain(percent(follows.probability))}" in text
    assert "After “…, so the” the twin decoder goes on with: " in said(opened(mask="twin"))
    named = said(opened(model="twin-decoder", q="Anna gave Tom a book because she had a birthday."))
    assert "After “…, so” the model goes on with: " in named
    told = said(opened(model="twin-decoder", q=f"{REGULAR}, so the customer smiled.")).replace("*", "")
    assert "Before customer the model expects: " in told


def test_the_classifier_says_what_the_sentence_is_about():
    guess = model("classifier").predict(REGULAR).at(None, 1)[0]
    text = said(opened(model="classifier")).replace("*", "")
    assert f"this sentence is about: {guess.text} {plain(percent(guess.probability))}" in text
    assert "By the grammar it is about giving." in text


@pytest.mark.parametrize(("q", "strange"), [(REGULAR, False), ("The horse raced past the barn fell", True)])
def test_a_sentence_that_the_grammar_does_not_know_is_answered_lightly(q: str, strange: bool):
    assert ("The grammar does not know this kind of sentence" in said(opened(q=q))) is strange


def test_a_person_who_is_spelled_cannot_be_named_and_that_is_said():
    text = said(opened(q=UNKNOWN)).replace("*", "")
    assert "By the grammar she is the wizard. The model has no word for that, so it cannot name it." in text


@pytest.mark.parametrize("chosen", [{"model": "minilm"}, {"word": "t0", "special": "1", "view": "tokens"}])
def test_where_there_is_nothing_to_answer_there_is_no_line(chosen: dict[str, str]):
    """A model without a head on top; a token that is no word."""
    test = opened(**chosen)
    assert errors(test) == []
    assert "the model itself says" not in said(test)
    assert not [toggle for toggle in test.toggle if toggle.key == "silence_switch"]


@pytest.mark.parametrize("mask", ["causal", "prefix:3", "window:2", "blocking:10>5", "document:7,7"])
@pytest.mark.parametrize("word", ["8", "6"])
def test_no_mask_breaks_the_answer(mask: str, word: str):
    """Also one that names tokens which the question has not."""
    assert errors(opened(mask=mask, word=word)) == []


# Silencing


def test_silencing_the_shown_head_shows_what_becomes_of_the_answer():
    """Both numbers are the engine's; the address, the title and the switch say it; and it can be undone."""
    test = opened()
    silencing(test).set_value(True).run()
    at = place_of(FIRST, REGULAR, SHE)
    before, after = (share(FIRST, REGULAR, at, "customer", *silenced) for silenced in ((), (HOME,)))
    assert before != after
    assert test.query_params == {"silence": HOME.spec}
    assert f"customer {before} → {after}" in said(test).replace("*", "")
    assert map_title(test) == f"layer {LAYER}, head {HEAD}, silenced"
    assert silencing(test).label == f"L{LAYER} H{HEAD} is silenced"
    silencing(test).set_value(False).run()
    assert test.query_params == {}
    assert map_title(test) == f"layer {LAYER}, head {HEAD}"


def test_a_silenced_head_stays_silenced_while_others_are_looked_at():
    """The layers above have to do without it, and the map is theirs."""
    test = opened(silence="0.2", layer="2", head="0")
    rows = [place_of(FIRST, REGULAR, word) for word in range(12)]
    expected = model(FIRST).run(REGULAR, interventions=(Silence(0, 2),)).weights(2, 0)[rows][:, rows].numpy()
    assert ribbon_weights(test) == pytest.approx(expected, abs=1e-4)
    assert not np.allclose(expected, ribbon_weights(opened(layer="2", head="0")), atol=1e-3)
    assert map_title(test) == "layer 2, head 0 (L0 H2 silenced)"


def test_in_the_twin_its_own_head_is_silenced():
    """The address names the one that stands for it in the model that was picked."""
    test = opened(mask="twin")
    silencing(test).set_value(True).run()
    there = counterpart(FIRST, (LAYER, HEAD))
    longer = f"{REGULAR}, so the"
    at = len(model("twin-decoder").prompt(longer)) - 1
    before, after = (share("twin-decoder", longer, at, "customer", *one) for one in ((), (Silence(*there),)))
    assert test.query_params == {"mask": "twin", "silence": HOME.spec}
    assert f"customer {before} → {after}" in said(test).replace("*", "")
    assert map_title(test) == "Twin decoder: layer {}, head {}, silenced".format(*there)


@pytest.mark.parametrize(
    ("chosen", "note"),
    [({"silence": "9.9"}, "“silence=9.9” names no head of this model, so none is silenced."),
     ({"silence": "cross:0.0"}, "“silence=cross:0.0” names no head of this model, so none is silenced."),
     ({"silence": "1.1", "model": "minilm"}, "Heads can be silenced in the models that were trained here")],
)  # fmt: skip
def test_a_silence_that_makes_no_sense_is_dropped_with_a_note(chosen: dict[str, str], note: str):
    test = opened(**chosen)
    assert errors(test) == []
    assert note in said(test)
    assert "silence" not in test.query_params


def test_another_model_forgets_what_was_silenced():
    test = opened(silence="1.1")
    test.selectbox(key="model").set_value("twin-decoder").run()
    assert test.query_params == {"model": "twin-decoder"}


def test_runs_with_and_without_a_head_are_kept_apart():
    """And both are kept."""
    whole, without = (cache.trace(FIRST, REGULAR, Mask.native(), silence=silence) for silence in ("", "2.0"))
    assert without.interventions == (Silence(2, 0),)
    assert whole.interventions == ()
    assert cache.trace(FIRST, REGULAR, Mask.native(), silence="2.0") is without


def test_every_head_in_turn_costs_what_the_right_answer_loses_without_it():
    """The number of each bar is a difference of two of the engine's probabilities."""
    test = opened()
    test.session_state["every_head"] = True
    test.run()
    (chart,) = test.get("vega_lite_chart")
    rows = pa.ipc.open_stream(chart.proto.datasets[0].data.data).read_all().to_pylist()
    at, vocabulary = place_of(FIRST, REGULAR, SHE), model(FIRST).vocabulary
    assert vocabulary is not None
    (id,) = vocabulary.ids("customer")
    whole = model(FIRST).predict(REGULAR).of(at, id)
    expected = {
        f"L{layer} H{head}": 100
        * (whole - model(FIRST).predict(REGULAR, interventions=(Silence(layer, head),)).of(at, id))
        for layer, head in product(range(3), range(4))
    }
    assert {row["name"]: row["cost"] for row in rows} == pytest.approx(expected, abs=1e-3)
    assert [row["name"] for row in rows if row["is_shown"]] == [f"L{LAYER} H{HEAD}"]


def test_bars_of_costs_mark_the_shown_head_and_refuse_what_is_no_number():
    frame = cost_frame(np.array([[12.34, -3.0], [0.01, 50.0]]), (1, 1))
    assert list(frame["text"]) == ["12.3", "−3.0", "0", "50.0"]
    assert list(frame["is_shown"]) == [False, False, False, True]
    assert list(frame["end"]) == [12.34, 0, 0.01, 50.0]
    with pytest.raises(ShapeError, match="one for each layer and head"):
        head_costs(np.zeros(4), None)
    with pytest.raises(CaptureError):
        head_costs(np.full((1, 1), np.nan), None)


@pytest.mark.parametrize(("verb", "warned"), [("sold", True), ("bought", True), ("gave", False)])
def test_of_a_trade_it_is_said_that_the_grammar_knows_only_giving(verb: str, warned: bool):
    """Who sells because of need is the seller to a reader, and the receiver to the grammar."""
    link = ("a horse from the doctor", "the doctor a horse")[verb != "bought"]
    text = said(opened(q=f"The farmer {verb} {link} because she was poor", word="8" if verb != "bought" else "9"))
    assert ("It knows no trade, only giving and getting" in text) == warned
    assert "By the grammar" in text
