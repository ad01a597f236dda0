"""The Positions page says and draws what the engine computes, whatever is picked."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from app import positions_layer, positions_numbers
from app.charts_rotary import PARTS
from app.positions_longer import beyond
from app.positions_words import ENCODINGS
from app.view import View
from engine import HuggingFaceModel
from engine.positions import alibi_slopes, sinusoidal_table
from tests.app_pages import choice, errors, figures, hover_names, opened, said, title_of, typed
from tests.conftest import Server, settle

HOSTILE = 'a<b<c <s> "x" <img src=x onerror=alert(1)> $x^2$ **b** :smile: | a | b |'
CAT = "The cat sat on the mat"
NOTHING = "Type a sentence first: there is nothing to read yet."
VIEW = View(sentence=CAT)


def titles(test: AppTest) -> list[str]:
    """What the figures are called; the moving picture has no title of its own."""
    return [title_of(figure) for figure in figures(test) if "title" in figure["layout"]]


def figure(test: AppTest, title: str) -> dict[str, Any]:
    """The one figure with this title."""
    (found,) = (drawn for drawn in figures(test) if drawn["layout"].get("title", {}).get("text") == title)
    return found


def moving(test: AppTest) -> dict[str, Any]:
    """The moving picture."""
    (found,) = (drawn for drawn in figures(test) if "frames" in drawn or "sliders" in drawn["layout"])
    return found


def row(test: AppTest, start: str) -> list[str]:
    """The cells of the row that begins with a name, in the first table: who notices what."""
    found = next(line for line in said(test).splitlines() if line.startswith(f"| {start} |"))
    return [cell.strip() for cell in found.strip("|").split("|")]


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding_is_explained_drawn_and_tried(name: str):
    """Its formula, its code, its pictures, the layer's four maps, both experiments."""
    test = opened("positions", positions=name)
    assert errors(test) == []
    assert len(test.latex) >= 1
    assert any(f"def {code.__name__}" in block.value or f"class {code.__name__}" in block.value
               for code in ENCODINGS[name].code for block in test.code)  # fmt: skip
    assert {"1 · content alone", "3 · scores", "4 · weights"} <= set(titles(test))
    assert row(test, ENCODINGS[name].name)
    for heading in ("Positions inside attention", "Shuffle the words", "Beyond the trained length"):
        assert f"#### {heading}" in said(test)
    kinds = {trace["type"] for drawn in figures(test) for trace in drawn["data"]}
    assert kinds <= {"scatter", "bar", "heatmap"}


def test_the_page_asks_for_no_model_and_has_no_controls_for_one():
    """It reads the sentence by words; the sentence bar and the link are all it shares."""
    test = opened("positions")
    assert [box.key for box in test.selectbox] == []
    assert not any(group.key == "mask" for group in test.get("button_group"))
    assert test.text_input(key="sentence").value


def test_the_switch_changes_picture_and_address():
    """And comes back as it was left."""
    test = opened("positions", q=CAT)
    choice(test, "positions").set_value("alibi").run()
    assert test.query_params == {"q": CAT, "positions": "alibi"}
    assert "The slope of each head" in titles(test)


def test_a_choice_that_a_link_gets_wrong_falls_back_with_a_note():
    """One sentence for each."""
    test = opened("positions", positions="rope", dims="1", rows="513", curves="a", slopes="33")
    assert errors(test) == []
    assert said(test).count("in the link could not be used, so the default is shown.") == 5


@pytest.mark.parametrize(("rows", "dims"), [("2", "2"), ("7", "33"), ("300", "5")])
def test_any_width_draws_even_an_odd_one(rows: str, dims: str):
    """The table is the engine's; curves of dimensions that are not drawn are left out."""
    test = opened("positions", q=CAT, rows=rows, dims=dims)
    assert errors(test) == []
    sent = figure(test, "Sinusoidal positions")["data"][0]["z"]
    assert sent["shape"] == f"{rows}, {dims}"
    expected = positions_numbers.table_of("sinusoidal", int(rows), int(dims))
    assert expected.equal(sinusoidal_table(int(rows), int(dims)))
    assert len(figure(test, "Columns as curves")["data"]) == sum(number < int(dims) for number in (0, 16, 40))


def test_no_curve_is_picked():
    """The page says how to pick one."""
    assert "Pick a dimension above to see it as a curve." in said(opened("positions", curves=""))


def test_the_learned_table_is_minilms_own(minilm: HuggingFaceModel):
    """Not drawn at random; the random one can be looked at too."""
    own = dict(minilm.module.named_parameters())["embeddings.position_embeddings.weight"]
    table = positions_numbers.trained_table()
    assert table is not None
    assert table.equal(own.detach())
    learned, random = (opened("positions", positions="learned", table=table) for table in ("trained", "random"))
    assert "MiniLM's own, learned" in titles(learned)
    assert "training has found order" in said(learned)
    assert "Untrained: random numbers" in titles(random)
    assert len(figure(learned, "Alike, by distance")["data"]) == 2


def test_learned_neighbours_are_alike_and_random_ones_are_not():
    """What training made of the table, in one number."""
    near = [
        positions_numbers.by_distance(positions_numbers.similarity(positions_numbers.table_of(kind, 512, 384)))[1]
        for kind in ("trained", "random")
    ]
    assert near[0] > 0.8
    assert abs(near[1]) < 0.02


def test_without_minilm_the_learned_table_is_random_and_says_so(monkeypatch: pytest.MonkeyPatch):
    """The switch is greyed out."""
    monkeypatch.setattr(positions_numbers, "LEARNED_FROM", "elsewhere")
    test = opened("positions", positions="learned")
    assert errors(test) == []
    assert "is not installed" in said(test)
    assert choice(test, "table").proto.disabled


def test_both_words_moving_leaves_the_score_and_one_word_moving_changes_it():
    """The dot of the moving picture stands still, or runs along the curve."""
    both, one = (positions_numbers.turning_of(8, 4, 10_000.0, moving) for moving in ("both", "one"))
    assert set(both.score.at) == {4}
    assert set(both.score.said) == {both.score.said[0]}
    assert list(one.score.at[::PARTS]) == list(range(positions_numbers.STEPS + 1))
    assert len(set(one.score.said)) == positions_numbers.STEPS + 1
    for plane in both.planes:
        assert len(set(plane.said)) == 1
        assert np.ptp(plane.between) < 1e-6
    assert np.ptp(both.planes[0].q) > 6


def test_the_score_is_the_sum_of_the_cosines():
    """The closed form: two equal arrows in each pair, turned apart by distance times speed."""
    made = positions_numbers.turning_of(3, 0, 10_000.0, "both")
    speeds = 10_000.0 ** (-torch.arange(0, 64, 2) / 64)
    expected = float((3 * speeds).cos().sum())
    assert made.score.said[0] == f"distance 3: q · k = {expected:.2f}"


def test_a_query_before_its_key_is_turned_the_other_way():
    """The filled angle goes from the key backwards, and the distance stays a distance."""
    made = positions_numbers.turning_of(0, 3, 10_000.0, "both")
    assert made.score.said[0].startswith("distance 3:")
    assert made.planes[1].between[0] < 0


def test_the_moving_picture_names_the_picked_words_at_their_positions():
    """As Explore picked them, or as picked here."""
    test = opened("positions", positions="rotary")
    drawn = json.dumps(moving(test)["data"], ensure_ascii=False)
    assert "<b>q</b> “she”<br>position 8" in drawn
    assert "<b>k</b> “customer”<br>position 4" in drawn
    next(box for box in test.selectbox if box.label == "Key").set_value("1").run()
    assert "<b>k</b> “shopkeeper”<br>position 1" in json.dumps(moving(test)["data"], ensure_ascii=False)
    assert test.query_params["to"] == "1"


def test_the_moving_picture_stays_small():
    """Every frame travels at once: a third of a megabyte, no more."""
    assert len(json.dumps(moving(opened("positions", positions="rotary")))) < 350_000


@pytest.mark.parametrize(
    ("scaling", "text", "factor"),
    [
        ("plain", "Nothing is changed", "1.0000"),
        ("linear", "Every pair turns 4 times slower", "1.0000"),
        ("ntk", "The base becomes larger", "1.0000"),
        ("dynamic", "a factor that follows the text", "1.0000"),
        ("yarn", "attention factor", "1.1386"),
        ("llama3", "came round at least four times", "1.0000"),
    ],
)
def test_every_scaling_has_its_curve_its_words_and_its_attention_factor(scaling: str, text: str, factor: str):
    """YaRN's is 0.1 · ln 4 + 1."""
    test = opened("positions", positions="rotary", scaling=scaling)
    assert errors(test) == []
    assert text in said(test)
    assert test.metric[0].value == factor
    lines = figure(test, "How far each pair goes before it comes round")["data"]
    assert len(lines) == (3 if scaling == "plain" else 4)


def test_alibi_draws_as_many_slopes_as_heads_and_keeps_the_picked_one_among_them():
    """Any number of heads: the paper's rule for twelve."""
    test = opened("positions", positions="alibi", slopes="12", slope="11", q=CAT)
    assert f"Head 11 takes {float(alibi_slopes(12)[11]):.3g} off" in said(test)
    test = opened("positions", positions="alibi", slopes="3", slope="11", q=CAT)
    assert errors(test) == []
    assert "Head 2 takes" in said(test)


def test_buckets_change_with_the_direction():
    """One way, all that comes after is bucket 0, and more distances have a bucket of their own."""
    both, past = (opened("positions", positions="relative", bothways=flag, q=CAT) for flag in "10")
    assert "Distances below 8 have" in said(both)
    assert "from 91 on" in said(both)
    assert "Distances below 16 have" in said(past)
    assert "all fall into bucket 0" in said(past)


def test_without_positions_the_causal_mask_gives_row_t_its_share():
    """1 / (t + 1), and without a mask 1 / T."""
    test = opened("positions", positions="none", q=CAT)
    assert {"No mask, all words alike", "Causal mask, all words alike"} <= set(titles(test))


@pytest.mark.parametrize("name", ENCODINGS)
def test_content_and_position_add_up_to_the_scores(name: str):
    """And the weights of what each word sees to 1."""
    for past in (False, True):
        made = positions_layer.parts(
            replace(VIEW, positions=name, past_only=past), positions_numbers.words_of(CAT)
        )  # fmt: skip
        torch.testing.assert_close(made.content + made.position, made.scores)
        torch.testing.assert_close(made.weights.sum(dim=-1), torch.ones_like(made.weights[..., 0]))
        assert bool(made.visible.all()) is not past


def test_added_positions_show_their_three_sums():
    """Only where something is added to the words."""
    assert "place with place" in titles(opened("positions", q=CAT))
    assert "place with place" not in titles(opened("positions", positions="rotary", q=CAT))


def test_who_notices_what_is_measured():
    """Distances alone: the shuffle and not the move. The input: both. Nothing: neither, but for the mask."""
    test = opened("positions", q=CAT)
    answers = {name: [cell.split(" (")[0] for cell in row(test, encoding.name)[2:]]
               for name, encoding in ENCODINGS.items()}  # fmt: skip
    yes, no = "notices", "does not notice"
    distance = [yes, no]
    assert answers == {
        "sinusoidal": [yes, yes], "learned": [yes, yes], "rotary": distance, "alibi": distance, "relative": distance,
        "none": [no, no],
    }  # fmt: skip
    causal = opened("positions", q=CAT, past="1")
    assert [cell.split(" (")[0] for cell in row(causal, "None")[2:]] == [yes, no]


def test_shuffle_again_shows_another_order_and_stands_in_the_address():
    """The same words, never in the order in which they were typed."""
    test = opened("positions", q=CAT)
    orders = [next(line for line in said(test).splitlines() if line.startswith("Shuffled:"))]
    next(button for button in test.button if button.label == "Shuffle again").click().run()
    orders.append(next(line for line in said(test).splitlines() if line.startswith("Shuffled:")))
    assert test.query_params["shuffle"] == "2"
    assert orders[0] != orders[1]
    for order in orders:
        assert sorted(order.removeprefix("Shuffled: ").split()) == sorted(CAT.split())
    for seed in range(50):
        assert positions_layer.order_of(2, seed).tolist() == [1, 0]


def test_beyond_the_trained_length_each_encoding_has_its_own_count():
    """Learned positions end; interpolation leaves no angle unmet; ALiBi only grows; T5 shares one bucket."""
    found = {one.title: one.cells for one in beyond(VIEW)}
    assert found["Learned"] == ("2,048", "6,144", "14,336")
    assert found["Rotary"] == found["Sinusoidal"] == ("11 of 32",) * 3
    assert found["– with linear interpolation"] == found["– with YaRN"] == found["– with Llama 3"] == ("0 of 32",) * 3
    assert found["– with NTK-aware"] == found["– with dynamic NTK"] == ("10 of 32",) * 3
    assert found["ALiBi"] == ("16", "32", "64")
    assert found["T5 buckets"] == ("91",) * 3


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        *((name, "hi") for name in ENCODINGS),
        *((name, HOSTILE) for name in ("sinusoidal", "rotary", "relative")),
        ("rotary", "the the the"),
        ("rotary", "שלום עולם טוב"),
        ("relative", "猫坐在垫子上"),
        ("alibi", "at " * 60),
        ("sinusoidal", "at " * 60),
    ],
)
def test_any_sentence_is_drawn_as_typed(name: str, sentence: str):
    """One word, the same word thrice, right to left, markup, no spaces, too many words."""
    test = opened("positions", positions=name, q=sentence)
    assert errors(test) == []
    names = hover_names(figure(test, "3 · scores"), "x")
    assert len(names) == len(positions_numbers.words_of(sentence))
    assert not any("<" in text or text.startswith("$") for text in names)


def test_a_long_sentence_is_cut_and_says_so():
    """Forty words are drawn."""
    text = said(opened("positions", q="at " * 60))
    assert "60" in text
    assert "40 is the most that can be read" in text


def test_one_word_has_no_order():
    """And the page says so instead of claiming that nobody notices."""
    assert "One word has no order: type a second one." in said(opened("positions", q="hi"))


def test_without_a_sentence_the_page_asks_for_one_and_keeps_its_pictures():
    """The choices on the page still work, and the next sentence mends it."""
    test = typed(opened("positions", positions="alibi"), "  ")
    assert errors(test) == [NOTHING]
    assert "The slope of each head" in titles(test)
    assert errors(typed(test, "hi")) == []


@pytest.mark.browser
def test_the_arrows_turn_in_the_browser_without_asking_the_server(page: Page, app_server: Server):
    """Play moves the slider and the arrows, Pause stops them, and not one message is sent meanwhile."""
    sent: list[int] = []
    page.on("websocket", lambda websocket: websocket.on("framesent", lambda payload: sent.append(len(payload))))
    page.goto(f"{app_server.url}/positions?positions=rotary&move=one")
    label = page.locator(".slider-label").first
    expect(label).to_have_text("The query's distance from the key: 0", timeout=60_000)
    settle(page)
    before, names = len(sent), page.locator(".textpoint").all_text_contents()
    page.get_by_text("▶ Play").click()
    expect(label).to_have_text("The query's distance from the key: 2", timeout=20_000)
    page.get_by_text("Pause").click()
    assert page.locator(".textpoint").all_text_contents() != names
    settle(page)
    stopped = str(label.text_content())
    page.wait_for_timeout(1500)
    expect(label).to_have_text(stopped)
    assert len(sent) == before
