"""Explore on the models that were trained here: their heads, their twins, what they answer, and what silencing does."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from app.examples import Example, examples
from app.homes import FIRST, TWINS, counterpart, home, relative, trained
from app.phrases import percent, twin_label
from app.trained_card import TAUGHT, UNTAUGHT, score_table
from engine.grammar import parse
from tests.app_pages import (
    choice,
    data_of,
    errors,
    figures,
    on_minilm,
    opened,
    plain,
    ribbon_weights,
    ribbon_words,
    said,
    typed,
    view_of,
)
from tests.twins import CUSTOMER, GENEROUS, HEAD, LAYER, REASON_END, REGULAR, SHE, UNKNOWN, map_title, model, place_of

# Where it opens


def test_the_app_opens_on_the_encoder_and_the_head_that_was_taught():
    """With she picked, and an address with nothing in it."""
    test = opened()
    card = trained(FIRST)
    assert card is not None
    assert errors(test) == []
    assert test.selectbox(key="model").value == FIRST == "twin-encoder"
    assert map_title(test) == "layer {}, head {}".format(*card.heads["pronoun"])
    assert ribbon_words(test)[view_of(test, "ribbon")["pinned"]] == "she"
    assert test.query_params == {}
    row = model(FIRST).run(REGULAR).weights(LAYER, HEAD)[place_of(FIRST, REGULAR, SHE)]
    assert ribbon_weights(test)[SHE, CUSTOMER] == pytest.approx(
        float(row[place_of(FIRST, REGULAR, CUSTOMER)]), abs=1e-4
    )


def test_minilm_is_one_click_away_on_the_head_it_is_known_for():
    """And the click back returns to the taught head."""
    test = opened()
    test.selectbox(key="model").set_value("minilm").run()
    assert map_title(test) == "layer 5, head 8"
    assert test.query_params == {"model": "minilm"}
    test.selectbox(key="model").set_value(FIRST).run()
    assert map_title(test) == f"layer {LAYER}, head {HEAD}"
    assert test.query_params == {}


def test_every_model_has_a_home_and_only_twins_have_a_twin():
    """Of what was trained here the head for whom a pronoun means, or what a word comes from."""
    for name in TWINS:
        card = trained(name)
        assert card is not None
        assert home(name) == card.heads["pronoun"]
        assert TWINS[TWINS[name]] == name
    assert (home("minilm"), home("minilm-scratch"), home("/a/folder")) == ((5, 8), (5, 8), (0, 0))
    assert trained("minilm") is None
    assert relative("twin-encoder") == "twin-encoder-unguided"
    assert relative("twin-decoder-unguided") == "twin-decoder"
    assert relative("classifier") is None


@pytest.mark.parametrize("name", TWINS)
def test_heads_of_twins_stand_for_each_other_both_ways(name: str):
    """No two for one, and the way back leads home; who is meant stands for who is meant."""
    every = list(product(range(3), range(4)))
    there = [counterpart(name, head) for head in every]
    assert sorted(there) == every
    assert [counterpart(TWINS[name], head) for head in there] == every
    assert counterpart(name, home(name)) == home(TWINS[name])
    assert counterpart(name, (99, 99)) == (99, 99)


def test_the_picker_offers_what_reads_text():
    """Pictures have a page of their own; and a link to them says that it could not be used."""
    test = opened(model="little-vit")
    options = test.selectbox(key="model").options
    assert options[0] == "Twin encoder, BERT-style, 3 × 4"
    assert not any("vision" in option for option in options)
    assert "“model” in the link could not be used, so the default is shown." in said(test)


# The twin beside the masks


@pytest.mark.parametrize("name", [*TWINS, "minilm", "classifier"])
def test_only_twins_are_offered_their_twin(name: str):
    """By how it was trained."""
    options = choice(opened(model=name), "mask").options
    if name in TWINS:
        assert options[-1] == twin_label(name)
        assert twin_label(name) == f"Twin, trained {'GPT' if 'encoder' in name else 'BERT'}-style"
    assert len(options) == (4 if name in TWINS else 3)


def test_the_twin_option_shows_the_other_model_under_its_own_mask():
    """Map, words, grid, bars and facts; nothing is said to be foreign."""
    test = opened(mask="twin")
    layer, head = counterpart(FIRST, (LAYER, HEAD))
    trace = model("twin-decoder").run(REGULAR)
    assert errors(test) == []
    assert map_title(test) == f"Twin decoder: layer {layer}, head {head}"
    rows = [place_of("twin-decoder", REGULAR, word) for word in range(12)]
    expected = trace.weights(layer, head)[rows][:, rows].numpy()
    assert ribbon_weights(test) == pytest.approx(expected, abs=1e-4)
    assert (view_of(test, "grid")["layer"], view_of(test, "grid")["head"]) == (layer, head)
    assert "Twin decoder · " in said(test)
    assert "Another model, trained that way. Twin decoder has the sizes of Twin encoder" in said(test)
    assert "Not what this model was trained with." not in said(test)
    assert "What changed for she" in said(test)
    assert test.query_params == {"mask": "twin"}
    (bars,) = test.get("vega_lite_chart")
    assert "Twin encoder" in bars.proto.spec


def test_the_same_weights_under_another_mask_are_told_from_the_twin():
    """The note points to the model that was trained that way."""
    text = said(opened(mask="causal"))
    assert "Not what this model was trained with." in text
    assert "Its twin was trained that way: press “Twin, trained GPT-style”." in text
    assert "Its twin" not in said(on_minilm(mask="causal"))


def test_a_head_that_is_picked_in_the_twin_is_the_one_that_is_shown():
    """The address names the head of the model that was picked."""
    test = opened(mask="twin", layer="0", head="3")
    shown = view_of(test, "grid")["layer"], view_of(test, "grid")["head"]
    assert shown == counterpart(FIRST, (0, 3))
    button = next(
        button for button in test.button if str(button.key).startswith("rank_") and button.proto.type != "primary"
    )
    wanted = tuple(int(part) for part in str(button.key).split("_")[1:])
    button.click().run()
    assert (view_of(test, "grid")["layer"], view_of(test, "grid")["head"]) == wanted
    asked = counterpart("twin-decoder", (wanted[0], wanted[1]))
    assert (test.session_state["view"].layer, test.session_state["view"].head) == asked


@pytest.mark.parametrize("name", ["minilm", "classifier"])
def test_a_link_to_the_twin_of_a_model_without_one_falls_back_with_a_note(name: str):
    """The rest of the link stays."""
    test = opened(model=name, mask="twin", colour="log")
    assert errors(test) == []
    assert "This model has no twin, so it is shown as it was trained." in said(test)
    assert test.query_params == {"model": name, "colour": "log"}


def test_another_model_lets_go_of_the_twin():
    test = opened(mask="twin")
    test.selectbox(key="model").set_value("minilm").run()
    assert errors(test) == []
    assert test.query_params == {"model": "minilm"}


@pytest.mark.parametrize("chosen", [{"mask": "twin"}, {"mask": "twin", "silence": "2.0"}, {"silence": "2.0"}])
def test_the_page_of_masks_keeps_to_the_model_that_was_picked(chosen: dict[str, str]):
    """Its lesson is about masks; what was chosen for Explore waits in the address."""
    test, plain_one = opened("masks", **chosen), opened("masks")
    assert errors(test) == []
    assert [figure["data"] for figure in figures(test)] == [figure["data"] for figure in figures(plain_one)]
    assert test.query_params == chosen


@pytest.mark.parametrize(
    "chosen",
    [{"special": "1"}, {"view": "tokens", "special": "1", "word": "t13"}, {"direction": "by"}, {"mean": "layer"},
     {"mean": "all"}, {"rescale": "1"}, {"heads": "pair"}],
)  # fmt: skip
@pytest.mark.parametrize("name", ["twin-encoder", "twin-decoder"])
def test_the_twin_is_drawn_whatever_is_chosen(name: str, chosen: dict[str, str]):
    """One of the two ends its sentences with [EOS], the other leaves them open."""
    test = opened(model=name, mask="twin", **chosen)
    assert errors(test) == []
    assert "could not be used" not in said(test)
    assert f"Twin {'decoder' if name == 'twin-encoder' else 'encoder'} · " in said(test)


# Where it can know


def test_the_causal_twin_cannot_know_at_the_pronoun_and_one_click_leads_to_where_it_can():
    """Its row there is the same in both sentences, computed; the button picks the last word of the reason."""
    rows = []
    layer, head = home("twin-decoder")
    for sentence in (REGULAR, GENEROUS):
        at = place_of("twin-decoder", sentence, SHE)
        rows.append(model("twin-decoder").run(sentence).weights(layer, head)[at, : at + 1])
    assert np.allclose(rows[0], rows[1], atol=1e-6)
    test = opened(mask="twin")
    assert "she comes before the reason and cannot know who is meant" in said(test).replace("*", "")
    assert "not one weight differs" in said(test)
    button = test.button(key="go_on")
    assert plain(button.label) == "Go to *regular*, where it can know"
    button.click().run()
    assert ribbon_words(test)[view_of(test, "ribbon")["pinned"]] == "regular"
    assert test.query_params == {"mask": "twin", "word": str(REASON_END)}
    assert "this is the first word that can know who *she* is" in said(test)
    assert "In the other sentence, “… she was generous”" in said(test)
    assert "It follows the reason in both." in said(test)
    test.button(key="go_back").click().run()
    assert ribbon_words(test)[view_of(test, "ribbon")["pinned"]] == "she"


@pytest.mark.parametrize(
    "chosen", [{"model": "twin-decoder"}, {"mask": "causal"}, {"model": "minilm", "mask": "causal"}]
)
def test_whatever_reads_left_to_right_is_said_not_to_know(chosen: dict[str, str]):
    """By training or by a mask."""
    test = opened(**chosen)
    assert "cannot know who is meant" in said(test)
    assert [button.key for button in test.button if button.key == "go_on"]


@pytest.mark.parametrize(
    "chosen",
    [{}, {"model": "minilm"}, {"model": "twin-decoder", "word": "4"}, {"mask": "twin", "direction": "by"},
     {"mask": "twin", "q": "Anna gave Tom a book because she had a birthday"}, {"mask": "twin", "q": UNKNOWN[:30]},
     {"mask": "window:1"}],
)  # fmt: skip
def test_where_it_can_know_or_nothing_is_to_be_known_nothing_is_said(chosen: dict[str, str]):
    """What sees the reason; another word; a name that decides; no reason at all."""
    test = opened(**chosen)
    assert errors(test) == []
    assert "can know" not in said(test)
    assert "cannot know who is meant" not in said(test)


# Words never met, cards, examples


def test_words_that_the_model_has_never_met_are_marked_and_told():
    """In the ribbon, on hover, and in a notice."""
    test = opened(q=UNKNOWN)
    chips = data_of(test, "ribbon")["queries"]
    assert [chip["text"] for chip in chips if chip.get("unmet")] == ["wizard", "elf", "sword"]
    assert all(("never met this word" in chip["hover"]) == bool(chip.get("unmet")) for chip in chips)
    assert "This model has never met “wizard”, “elf”, “sword”: spelled letter by letter." in said(test)
    assert not any(chip.get("unmet") for chip in data_of(on_minilm(q=UNKNOWN), "ribbon")["queries"])


@pytest.mark.parametrize("name", TWINS)
def test_a_card_says_what_was_taught_and_what_was_not(name: str):
    """In one line beside the facts, and in full under Details."""
    card, text = trained(name), said(opened(model=name))
    assert card is not None
    assert (TAUGHT in text, UNTAUGHT in text) == ((False, True) if "unguided" in name else (True, False))
    for told in (card.data, card.objective, card.untaught, card.sha256):
        assert plain(told) in text
    assert f"- Seed: {card.seed}, {card.steps:,} steps" in text
    assert "Measured on sentences that it had never seen" in text


def test_scores_stand_beside_those_of_the_model_that_was_told_nothing():
    """Guided first, whichever is shown; the best guess beside both."""
    guided, unguided = trained("twin-encoder"), trained("twin-encoder-unguided")
    assert guided is not None
    assert unguided is not None
    table = score_table(guided, unguided)
    assert table == score_table(unguided, guided)
    pronoun = next(row for row in table if row[0] == "pronoun")
    found = [one.scores["relations"]["pronoun"]["right"] for one in (guided, unguided)]
    assert [plain(cell) for cell in (pronoun[2], pronoun[4])] == [plain(percent(value)) for value in found]
    assert {len(row) for row in table} == {len(table[0])}


def test_scores_of_other_models_stand_beside_what_they_are_compared_with():
    """A column for each other model, a row for each bare number; counts and lists are left out."""
    card = trained("classifier")
    assert card is not None
    scores = {
        "exact_match": 0.98, "sentences": 400, "by_head": [[0.1]], "unguided": {"exact_match": 0.5, "head": [0, 1]},
        "baselines": {"random weights": 0.1},
    }  # fmt: skip
    table = [[plain(cell) for cell in row] for row in score_table(replace(card, scores=scores), None)]
    title = "translations right to the last word"
    assert table == [["", "this model", "unguided"], [title, "98.0 %", "50.0 %"], ["random weights", "10.0 %", ""]]
    assert score_table(replace(card, scores={}), None) == []
    assert "| answers right |" in said(opened(model="classifier"))


@pytest.mark.parametrize("example", [one for one in examples() if one.twin], ids=lambda one: one.name)
def test_an_example_with_a_twin_is_read_by_the_grammar_as_its_note_says(example: Example):
    """The word is the pronoun, its partner who or what is meant, and its twin means the other."""
    (twin,) = (one for one in examples() if one.sentence == example.twin)
    for one in (example, twin):
        sentence = parse(one.sentence)
        assert sentence is not None
        assert (str(sentence.pronoun), str(sentence.referent)) == (one.word, one.partner)
    assert example.partner != twin.partner
    assert twin.twin == example.sentence
    assert "In the other sentence" in said(opened(q=example.sentence))


def test_a_typed_sentence_starts_anew_on_the_same_head():
    test = typed(opened(), "The nurse thanked the doctor because she was kind")
    assert errors(test) == []
    assert map_title(test) == f"layer {LAYER}, head {HEAD}"
    assert "By the grammar she is the doctor." in said(test).replace("*", "")


def test_the_pretrained_model_is_one_click_away():
    test = opened()
    next(button for button in test.button if button.label == "See it in MiniLM").click().run()
    assert errors(test) == []
    assert test.selectbox(key="model").value == "minilm"
    assert not [button for button in test.button if button.label == "See it in MiniLM"]


@pytest.mark.parametrize("name", ["twin-encoder", "twin-encoder-unguided", "translator-en-hi-unguided"])
def test_what_heads_were_told_is_explained_in_the_models_own_figures(name: str):
    """Of one that was told: that this is no discovery, nor is what silencing costs. Of the other: how much worse."""
    text = said(opened(model=name))
    card, other = trained(name), trained(name.removesuffix("-unguided"))
    assert card is not None
    assert other is not None
    if card.taught:
        assert "So that they look there is no discovery. Nor is it one that the answer is lost" in text
        assert "In its own words" not in text
    else:
        key = "exact_match" if name.startswith("translator") else "answer"
        shares = [one.scores[key] if key == "exact_match" else one.scores[key]["right"] for one in (card, other)]
        own, told = map(percent, shares)
        names = "It translates rightly" if key == "exact_match" else "In its own words it is right in"
        assert plain(f"{names} {own}, where the one that was told is so in {told}.") in text
