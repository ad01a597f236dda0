"""Explore in words: what it says beside its pictures is true whatever the mask, the mean and the link."""

import re

import numpy as np
import pytest
from playwright.sync_api import Page

from app.examples import examples
from app.phrases import brief, percent, pieces_remark
from app.reading import depends
from app.scene import strongest
from app.shown import groups
from app.view import View
from engine import HuggingFaceModel, Mask
from engine.tokens import Group
from tests.app_pages import choice, errors, on_minilm, opened, other_word, plain, ribbon_weights, said, typed, view_of
from tests.conftest import Server, settle
from tests.test_shown import SHOPKEEPER, WORDS

SHE, CUSTOMER, A = 8, 4, 10
OPENING = examples()[0].sentence


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (1e-9, "<0.1 %"), (0.0005, "0.1 %"), (0.0096, "1.0 %"), (0.0996, "10.0 %"), (0.294, "29.4 %"),
     (0.9994, "99.9 %"), (0.9996, ">99.9 %"), (0.9999999, ">99.9 %"), (1, "100 %")],
)  # fmt: skip
def test_a_share_has_one_decimal_and_rounds_to_no_end_that_it_does_not_reach(share: float, text: str):
    assert plain(percent(share)) == text


def test_words_of_several_tokens_are_named_and_counted():
    """Special tokens and repetitions aside."""
    axis = groups(SHOPKEEPER, WORDS)
    other = Group("a" * 400, (7, 8, 9), False, 2)
    assert pieces_remark(axis).startswith("shopkeeper is 2 tokens: attention from it is averaged")
    assert pieces_remark((*axis, *axis)) == pieces_remark(axis)
    assert pieces_remark((*axis, other)).startswith("shopkeeper and 1 more word are several tokens: ")
    assert len(pieces_remark((other,))) < 120
    assert pieces_remark(axis[1:]) == ""


def test_the_strongest_partner_is_one_that_can_be_seen():
    """The picked word itself only where there is no other; a masked one only where there is nothing at all."""
    axis = [Group(text, (at,), text == "[CLS]", at) for at, text in enumerate(["[CLS]", "a", "b", "c"])]
    row = np.array([0.6, 0.1, 0.3, 0.0])
    assert strongest(row, np.array([True, True, True, False]), axis, 2) == 1
    assert strongest(row, np.array([True, False, True, False]), axis, 2) == 2
    assert strongest(row * 0, np.zeros(4, dtype=bool), axis, 2) == 1
    assert strongest(row[:1], np.ones(1, dtype=bool), axis[:1], None) is None


@pytest.mark.parametrize(
    ("mask", "first_layer"),
    [("native", 0), ("causal", None), ("prefix:3", None), ("prefix:14", 0), ("window:4", 0), ("window:2", 2)],
)
def test_a_word_depends_on_what_it_sees_and_on_what_that_has_seen(
    minilm: HuggingFaceModel, mask: str, first_layer: int | None
):
    """From she, token 10, to the tokens 13 and 14: through a window of two a word further in every layer."""
    trace = minilm.run(OPENING, mask=Mask.parse(mask))
    she = groups(trace.tokens, View())[SHE]
    assert trace.tokens[13].text == "regular"
    found = [layer for layer in range(6) if depends(trace, "encoder", layer, she, {13, 14})]
    assert found == ([] if first_layer is None else list(range(first_layer, 6)))


@pytest.mark.parametrize("mask", ["causal", "window:1", "prefix:3"])
def test_where_the_reason_cannot_be_seen_no_head_is_said_to_ignore_it(mask: str):
    """Whatever the mask is called."""
    text = said(on_minilm(mask=mask))
    assert "Under this mask “she” cannot see the word that differs, so nothing can change." in text
    assert "follow the reason" not in text


def test_where_the_persons_cannot_be_seen_there_is_nothing_to_compare():
    """A window of three reaches the reason in steps, but never the persons."""
    text = said(on_minilm(mask="window:3"))
    assert "Here “she” cannot see “customer” or “shopkeeper”, so there is nothing to compare." in text
    assert "In the other sentence" not in text


def test_the_twin_is_read_in_the_models_own_numbers_and_says_so():
    """Rescaled or not, the same two sentences."""
    own, rescaled = said(on_minilm()), said(on_minilm(rescale="1"))
    assert "layer 5, head 8 gives customer" in own
    assert "(not rescaled)" not in own
    (line,) = (line for line in own.splitlines() if line.startswith("In the other sentence"))
    (other,) = (line for line in rescaled.splitlines() if line.startswith("In the other sentence"))
    assert other.replace(" (not rescaled)", "") == line


@pytest.mark.parametrize("rescale", ["0", "1"])
def test_the_ribbon_the_grid_and_the_ranking_show_one_number(rescale: str):
    """Rescaled or not."""
    test = on_minilm(rescale=rescale)
    shown = float(ribbon_weights(test)[SHE, CUSTOMER])
    grid = view_of(test, "grid")
    assert grid["shade"][5 * 12 + 8] == pytest.approx(shown, abs=1e-5)
    assert plain(test.button(key="rank_5_8").label) == f"L5 H8 · {plain(percent(shown))}"


@pytest.mark.parametrize(
    ("mean", "whose", "frame"),
    [("layer", "mean of layer 5", [5, None]), ("all", "mean of all heads", [None, None])],
)
def test_a_mean_is_not_taken_for_a_head(mean: str, whose: str, frame: list[int | None]):
    """No frame, no filled button, and a sentence that says what is shown."""
    test = on_minilm(mean=mean)
    grid = view_of(test, "grid")
    assert [grid["layer"], grid["head"]] == frame
    assert grid["note"] == f"The map shows the {whose}; click a head to see it alone."
    assert {button.proto.type for button in test.button if str(button.key).startswith("rank_")} == {"secondary"}
    assert "this head's attention" not in said(test)
    assert on_minilm().button(key="rank_5_8").proto.type == "primary"


def test_a_pair_that_the_mask_forbids_has_no_ranking():
    """A row of zeros would look like an answer."""
    test = on_minilm(mask="causal", to="11")
    assert "masked: no head can look there" in said(test)
    assert not [button for button in test.button if str(button.key).startswith("rank_")]
    assert set(view_of(test, "grid")["shade"]) == {None}


def test_in_the_other_direction_a_partner_is_chosen_that_sees_the_word():
    """GPT-style, customer comes before she and can't attend to it."""
    for test in (on_minilm(mask="causal", direction="by"), on_minilm(mask="causal")):
        direction = choice(test, "direction")
        if direction.value != "by":
            direction.set_value("by").run()
        assert view_of(test, "ribbon")["partner"] == A
        assert "masked: no head" not in said(test)
        assert test.query_params == {"model": "minilm", "mask": "causal", "direction": "by"}


def test_a_partner_of_ones_own_is_kept_where_it_can_be():
    """Turned round, shopkeeper → regular of a BERT-style model stays that pair; GPT-style it cannot."""
    for mask, kept in (("native", True), ("causal", False)):
        test = on_minilm(word="11", to="1", mask=mask)
        direction = choice(test, "direction")
        direction.set_value("by").run()
        assert (view_of(test, "ribbon")["partner"] == 1) is kept
        assert ("to" in test.query_params) is kept


def test_attended_by_says_what_is_added_up_and_what_is_not():
    test = on_minilm(direction="by")
    assert "How much each word attends to she; these need not sum to 100 %." in said(test)
    assert "entropy" not in said(test)


def test_a_link_to_a_word_finds_its_partner_and_a_link_to_both_keeps_both():
    """From customer to customer says nothing."""
    alone, both = on_minilm(word="4"), on_minilm(word="4", to="4")
    assert view_of(alone, "ribbon")["partner"] != CUSTOMER
    assert alone.query_params == {"model": "minilm", "word": "4"}
    assert view_of(both, "ribbon")["partner"] == CUSTOMER
    assert both.query_params == {"model": "minilm", "word": "4", "to": "4"}


@pytest.mark.parametrize("page", ["explore", "masks"])
def test_what_a_link_asks_for_and_is_not_there_leaves_the_address(page: str):
    """Said once; the rest of the link stays."""
    test = on_minilm(page, word="999", to="99", kind="cross", target="hello", head="3")
    assert errors(test) == []
    assert said(test).count("in the link") == 4
    assert test.query_params == {"model": "minilm", "head": "3"}
    assert "in the link" not in said(test.run())


def test_a_hidden_special_token_is_not_complained_about():
    """It is in the sentence, only not on the page."""
    test = on_minilm(word="t0", special="0")
    assert "in the link" not in said(test)
    assert test.query_params == {"model": "minilm", "word": "t0"}


def test_a_first_visit_without_a_sentence_opens_on_the_opening_sentence():
    """No view has worked yet, and to try an empty box again helps nobody."""
    test = on_minilm(q="")
    assert len(errors(test)) == 1
    assert "Below is the opening sentence." in said(test)
    assert "Try again" not in [button.label for button in test.button]
    typed(typed(test, "hello there"), "")
    assert "Below is still the view of the last sentence, “hello there”." in said(test)


@pytest.mark.parametrize(
    ("link", "chosen"),
    [({}, "hidden"), ({"special": "1"}, "shown"), ({"rescale": "1"}, "left out"),
     ({"special": "1", "rescale": "1"}, "left out")],
)  # fmt: skip
def test_special_tokens_are_one_choice_of_three(link: dict[str, str], chosen: str):
    """And both parameters of the address still work."""
    test = on_minilm(**link)
    assert choice(test, "special_tokens").value == chosen
    for wanted, address in (("shown", {"special": "1"}), ("left out", {"rescale": "1"}), ("hidden", {})):
        choice(test, "special_tokens").set_value(wanted).run()
        assert test.query_params == {"model": "minilm", **address}


def test_the_bars_show_every_word_of_a_short_sentence_and_say_what_they_leave_out():
    """Up to fourteen all, of a longer sentence twelve; a threshold hides words in the bars too."""
    assert "most weight of" not in said(on_minilm(mask="causal"))
    text = said(on_minilm(mask="causal", q=" ".join(["one two three"] * 5)))
    assert "the 12 with the most weight of 15" in text
    text = said(on_minilm(mask="causal", min="5"))
    assert "words below 5 % in both are hidden" in text
    assert "weights below 5 % are hidden" in text


def test_a_word_of_four_hundred_letters_leaves_the_numbers_in_sight():
    """In the caption of the grid, the list of partners and the notes."""
    word = "x" * 400
    test = on_minilm(q=f"{word} she", mask="causal")
    assert len(brief(word)) == 24
    assert view_of(test, "grid")["shadeTitle"] == f"from she to {brief(word)}"
    assert other_word(test).options[0] == brief(word)
    assert not re.search("x{80}", said(test))


@pytest.mark.parametrize(
    ("model", "mask", "is_own"),
    [("twin-encoder", "bidirectional", True), ("twin-encoder", "causal", False), ("twin-encoder", "twin", False),
     ("twin-decoder", "causal", True), ("minilm", "bidirectional", True), ("minilm", "native", False)],
)  # fmt: skip
def test_a_mask_that_a_model_was_trained_with_is_said_to_change_nothing(model: str, mask: str, is_own: bool):
    assert ("was trained this way, so nothing changes." in said(on_minilm(model=model, mask=mask))) is is_own


def test_a_sentence_is_counted_in_characters():
    assert "69 of 2,000 characters" in said(on_minilm())
    assert "2,000 of 2,000 characters" in said(typed(on_minilm(), "an " * 1000))


@pytest.mark.browser
def test_the_bars_stay_in_the_order_of_the_sentence_when_the_direction_turns(page: Page, app_server: Server):
    """Redrawn in place, the chart once kept the order of the words it showed before."""
    sentence = "The old keys to the small cabinet are on the long table in the dark hall where she had put them"
    warnings: list[str] = []
    page.on("console", lambda message: warnings.append(message.text) if message.type == "warning" else None)
    page.goto(f"{app_server.url}/?model=minilm&mask=causal&word=9&q={sentence.replace(' ', '+')}")
    page.locator("[data-testid=stVegaLiteChart] svg").wait_for()
    for direction in ("attended by", "attends to"):
        page.get_by_text(direction, exact=True).click()
        settle(page)
        page.wait_for_timeout(500)
        words = page.locator("[data-testid=stVegaLiteChart] svg .role-axis-label text").all_text_contents()
        labels = iter(sentence.split())
        shown = [word for word in words if not word.endswith("%")]
        assert len(shown) == 12
        assert all(word in labels for word in shown)
    assert not [text for text in warnings if "fit-y" in text]


@pytest.mark.browser
def test_the_file_of_the_map_says_what_it_holds(page: Page, app_server: Server):
    """In its name and in its columns."""
    page.goto(f"{app_server.url}/?model=minilm&mask=causal")
    page.get_by_test_id("grid").wait_for()
    settle(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    assert download.value.suggested_filename == "attention-minilm-L5-H8-causal.csv"
    with open(download.value.path(), encoding="utf-8-sig") as file:
        header, line = file.readline().strip(), file.readline().strip()
    assert header.endswith(",silenced,rescaled,sentence,unit,pooled")
    assert line.endswith(f',{OPENING},words,"rows averaged, columns summed"')


FITTING = (
    "/", "/?word=6", "/?silence=2.0", "/?mask=twin", "/?mask=twin&silence=2.0", "/?mask=causal", "/?model=twin-decoder",
    "/?model=minilm", "/?model=minilm&direction=by",
)  # fmt: skip


@pytest.mark.browser
@pytest.mark.parametrize("address", [*FITTING, "/?model=minilm&mean=all"])
def test_explore_fits_a_laptop_down_to_the_facts(page: Page, app_server: Server, address: str):
    """1440 × 900 without scrolling, a second line of remarks aside."""
    page.goto(f"{app_server.url}{address}")
    page.get_by_test_id("grid").wait_for()
    settle(page)
    page.wait_for_timeout(500)
    box = page.locator(".st-key-facts").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= (900 if address in FITTING else 925)


@pytest.mark.browser
def test_on_a_projector_the_bars_go_below_the_two_maps(page: Page, app_server: Server):
    """1024 pixels are too few for three pictures, and buttons stay beside the facts."""
    page.set_viewport_size({"width": 1024, "height": 768})
    page.goto(f"{app_server.url}/?model=minilm&mask=causal")
    page.get_by_test_id("grid").wait_for()
    settle(page)
    page.wait_for_timeout(500)
    grid, bars = page.get_by_test_id("grid"), page.get_by_test_id("stVegaLiteChart")
    tops = [box["y"] for piece in (grid, bars) if (box := piece.bounding_box())]
    plot = page.locator(".js-plotly-plot").first.bounding_box()
    assert plot is not None
    assert plot["y"] < tops[0] + 50 < tops[1]
    assert plot["width"] > 400
    facts = page.locator(".st-key-facts")
    boxes = [facts.get_by_role("button", name=name).bounding_box() for name in ("CSV", "Details")]
    assert len({box["y"] for box in boxes if box is not None}) == 1


def test_the_command_that_made_a_model_is_set_as_code_and_no_backtick_is_left():
    (weights,) = (line for line in said(opened()).splitlines() if line.startswith("- Weights: "))
    assert "trained by `python -m engine.training`, seed" in weights
    (raw,) = (str(one.value) for one in opened().markdown if "**Weights**" in str(one.value))
    assert "\\`" not in raw


@pytest.mark.browser
def test_the_ribbon_of_a_long_text_shows_the_picked_word_on_opening_and_when_another_is_picked(
    page: Page, app_server: Server
):
    """Whoever picks it: the address, the map or the other sentence."""
    before, after = ("The old dog slept near the red house. " * 12, "The cat sat on the mat. " * 40)
    middle = "The shopkeeper gave the customer a discount because she was a regular. "
    sentence = f"{before}{middle}{after}"
    word = len(before.replace(".", " .").split()) + 8
    page.goto(f"{app_server.url}/?model=minilm&word={word}&q={sentence.strip().replace(' ', '+')}")
    page.locator(".chip.pinned").wait_for()
    settle(page)
    assert page.locator(".chip.pinned .word").inner_text() == "she"

    def is_in_sight() -> bool:
        body, chip = page.locator(".ribbon.long .body").bounding_box(), page.locator(".chip.pinned").bounding_box()
        assert body is not None
        assert chip is not None
        return body["y"] <= chip["y"] and chip["y"] + chip["height"] <= body["y"] + body["height"]

    assert is_in_sight()
    for text in (sentence.replace(before, ""), sentence):
        box = page.get_by_role("textbox", name="Sentence")
        box.fill(text)
        box.press("Enter")
        page.wait_for_timeout(500)
        settle(page)
        assert is_in_sight()
