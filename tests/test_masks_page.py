"""The Masks page says what was measured, whatever is picked, and shows its point where it can be seen."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app import lesson
from app.examples import examples
from app.mask_panels import window_label
from engine import HuggingFaceModel, Mask
from tests.app_pages import choice, errors, figures, hover_names, on_minilm, operator_allows, said, title_of
from tests.tiny_models import save

LONG = " ".join(["the cat sat on mats"] * 60)
LONG_COUNT = 302
CAT = "The cat sat on the mat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An operator's folder with a GPT-style model of learned positions, and a BERT-style one of rotary ones."""
    root = tmp_path_factory.mktemp("models")
    for family in ("gpt2", "modernbert"):
        save(family, root / family)
    return root


def figure(test: AppTest, title: str) -> dict[str, Any]:
    """The one figure with this title."""
    (found,) = (drawn for drawn in figures(test) if title_of(drawn) == title)
    return found


def outlined_row(drawn: dict[str, Any]) -> int:
    """The row that a figure frames."""
    (row,) = {shape["y0"] + 0.5 for shape in drawn["layout"]["shapes"]}
    return int(row)


def stages_of(test: AppTest) -> list[dict[str, Any]]:
    """The three pictures of one head."""
    return [drawn for drawn in figures(test) if title_of(drawn)[:1] in "123"]


@pytest.mark.parametrize("chosen", [{"lesson": "bidirectional"}, {"lesson": "prefix", "prefix": "15"}])
def test_a_mask_that_hides_nothing_is_not_compared(chosen: dict[str, str]):
    test = on_minilm("masks", **chosen)
    assert "This mask hides nothing from she, so there is nothing to compare; pick GPT-style." in said(test)
    assert "would be left" not in said(test)
    assert len(test.dataframe) == 0


def test_the_last_token_of_a_causal_lesson_is_not_sent_back_to_the_causal_mask():
    test = on_minilm("masks", view="tokens", special="1", word="t14")
    assert "This mask hides nothing from [SEP], so there is nothing to compare; pick an earlier word" in said(test)


def test_zeroing_after_the_softmax_leaves_what_the_visible_tokens_had(minilm: HuggingFaceModel):
    """The closed form: what is left is the sum of the unmasked row up to the picked token."""
    test = on_minilm("masks")
    row = minilm.run(examples()[0].sentence).weights(5, 8)[10]
    left = float(row[:11].sum())
    assert f"had already taken {1 - left:.1%}, and only {left:.1%} would be left".replace("%", " %") in said(test)
    table = test.dataframe[0].value
    assert list(table.columns) == ["token", "−∞ before", "zeroed after", "no mask", "score", "masked score"]
    assert list(table.iloc[0]) == ["sum", "100.0 %", f"{left * 100:.1f} %", "100.0 %", "", ""]
    assert list(table["masked score"][12:]) == ["−∞"] * 4
    assert not table["score"].str.contains("-").any()


def test_all_rows_of_a_short_sentence_are_shown():
    assert on_minilm("masks").dataframe[0].proto.row_height * 17 < 500


def test_the_three_pictures_share_scale_row_and_size():
    first, second, third = stages_of(on_minilm("masks"))
    bounds = [{(trace["zmin"], trace["zmax"]) for trace in drawn["data"] if trace.get("hoverongaps") is False}
              for drawn in (first, second)]  # fmt: skip
    assert bounds[0] == bounds[1]
    assert [outlined_row(drawn) for drawn in (first, second, third)] == [10, 10, 10]
    for name in ("height", "margin"):
        assert first["layout"][name] == second["layout"][name] == third["layout"][name]
    assert {drawn["layout"]["showlegend"] for drawn in (first, second, third)} == {False}


def test_padding_on_the_right_is_measured_as_rounding():
    text = said(on_minilm("masks"))
    assert "Does padding change anything?" in text
    assert float(text.split("No: the largest difference is ")[1].split(" ")[0]) < 0.01
    assert "percentage points, which is rounding." in text


def test_padding_on_the_left_changes_a_model_of_absolute_positions():
    text = said(on_minilm("masks", side="left"))
    assert float(text.split("Yes: by up to ")[1].split(" ")[0]) > 1
    assert "because padding in front moves every word to a later position" in text
    assert "No: the largest" not in text


@pytest.mark.parametrize(
    ("family", "reason"),
    [("gpt2", "counted from the first real token"), ("modernbert", "Only distances between words")],
)
def test_padding_on_the_left_leaves_other_models_alone(folder: Path, family: str, reason: str):
    with operator_allows(folder):
        text = said(on_minilm("masks", model=str(folder / family), q=CAT, side="left"))
    assert "No: the largest difference is " in text
    assert reason in text
    assert "Yes:" not in text


def test_a_sentence_that_fills_the_model_leaves_no_room_for_padding():
    test = on_minilm("masks", q="a " * 800)
    assert errors(test) == []
    assert "The 512 tokens of this sentence leave no room for padding: MiniLM reads 512 at most." in said(test)


def test_a_long_sentence_is_drawn_around_the_picked_word_and_counted_whole():
    """Word 200 is token 201: the 40 tokens around it are drawn, and it sees 202 of 302."""
    test = on_minilm("masks", q=LONG, word="200")
    assert f"Tokens 182 to 221 of {LONG_COUNT} are drawn." in said(test)
    assert f"the may look at 202 of {LONG_COUNT} tokens." in said(test)
    for drawn in (figure(test, "GPT-style"), *stages_of(test)):
        assert len(hover_names(drawn, "y")) == 40
        assert outlined_row(drawn) == 20
    padded = figure(test, "layer 5, head 8, with padding")
    assert hover_names(padded, "x")[40:] == ["[PAD]", "[PAD]"]


def test_a_mask_goes_to_explore_with_the_view_as_it_is():
    test = on_minilm("masks", layer="3", head="1")
    test.button(key="use_window").click().run()
    assert errors(test) == []
    assert test.query_params == {"model": "minilm", "mask": "window:3", "layer": "3", "head": "1"}
    assert "Not what this model was trained with." in said(test)
    assert "What changed for she" in said(test)
    assert "window of 3" in choice(test, "mask").options


def test_a_window_is_said_in_neighbours():
    assert window_label(3) == "Window: each token sees 2 on either side and itself"
    assert window_label(1) == "Window: each token sees only itself"


@pytest.mark.parametrize(("token", "first"), [(0, 0), (20, 0), (21, 1), (90, 60), (99, 60)])
def test_the_tokens_around_one_hold_it_and_stay_inside(token: int, first: int):
    assert lesson.around(token, 100) == slice(first, first + 40)
    assert lesson.around(token, 100, 200) == slice(0, 100)


def test_padding_is_drawn_whatever_is_cut(minilm: HuggingFaceModel):
    prompt = minilm.run(CAT).prompt
    for side, places in (("left", [0, 1, 3, 4]), ("right", [1, 2, 8, 9])):
        assert lesson.places_drawn(lesson.padded(prompt, 2, side).tokens, slice(1, 3)) == places


def test_a_part_of_a_mask_is_the_mask_of_its_tokens(minilm: HuggingFaceModel):
    whole = lesson.matrix(minilm.run(CAT).prompt.tokens, Mask.causal())
    part = whole.part([2, 5])
    np.testing.assert_array_equal(part.visible, [[True, False], [True, True]])
    assert part.labels == (whole.labels[2], whole.labels[5])


@pytest.mark.parametrize(
    ("number", "text"), [(0.0, "0.0"), (0.00012, "0.0001"), (3e-7, "0.0000003"), (0.26, "0.3"), (99.58, "99.6")]
)
def test_percentage_points_are_plain_decimals(number: float, text: str):
    assert lesson._points(number) == text
