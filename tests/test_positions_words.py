"""The Positions page says of its numbers exactly what they are: letters, factors, heads, and what is counted."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from app import positions_numbers
from app.positions_longer import beyond
from app.positions_rotary import PLANES, SCALINGS
from app.positions_words import ENCODINGS
from app.view import View
from tests.app_pages import choice, figures, opened, said

CAT = "The cat sat on the mat"
VIEW = View(sentence=CAT)


def moving(plane: str) -> dict[str, Any]:
    """The moving picture, with these pairs."""
    (found,) = (
        drawn for drawn in figures(opened("positions", positions="rotary", plane=plane)) if "sliders" in drawn["layout"]
    )
    return found


@pytest.mark.parametrize("dims", ["64", "33"])
def test_the_sinusoidal_width_is_the_formulas_c_and_the_learned_one_only_cuts(dims: str):
    """Another C gives other waves; a learned table is the same, its first columns drawn."""
    test = opened("positions", q=CAT, dims=dims)
    assert f"$C$ width of the word's vector, here {dims}" in said(test)
    assert "Another width gives other waves." in said(test)
    assert "Width C (dimensions)" in [slider.label for slider in test.slider]
    learned = opened("positions", positions="learned", q=CAT, dims=dims)
    assert "Dimensions drawn" in [slider.label for slider in learned.slider]
    wide, narrow = (positions_numbers.table_of("sinusoidal", 10, width) for width in (64, int(dims)))
    assert torch.equal(wide[:, : int(dims)], narrow) == (dims == "64")


@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
@pytest.mark.parametrize("moving", ["both", "one"])
def test_the_printed_product_is_that_of_the_printed_factors(base: float, moving: str):
    """At every distance, in the slowest pair as well: "4 × 57.296° = 229°"."""
    for key in range(0, 33, 4):
        for plane in positions_numbers.turning_of(0, key, base, moving).planes:
            for text in plane.said:
                far, turn, product = re.fullmatch(r"angle (\d+) × ([\d.,]+)° = ([\d.,]+)°, .*", text).groups()  # type: ignore[union-attr]
                expected = int(far) * float(turn.replace(",", ""))
                assert product == positions_numbers.significant(expected, 3)
                assert "e" not in product


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.0, "0"), (0.00034492, "0.000345"), (22.918, "22.9"), (229.18, "229"), (1833.46, "1,833")],
)
def test_numbers_are_written_with_the_digits_that_count(value: float, written: str):
    """Never as a power of ten."""
    assert positions_numbers.significant(value, 3) == written


def test_words_of_the_moving_picture_are_told_by_their_positions():
    """The same word twice is two words, and a word that is query and key meets itself."""
    twice = opened("positions", positions="rotary", q="the cat saw the dog", word="3", to="0")
    assert "so the (3) and the (0) both move on" in said(twice)
    itself = opened("positions", positions="rotary", q="the cat saw the dog", word="3", to="3")
    assert "the word meets itself" in said(itself)
    assert "both move on" not in said(itself)
    one = opened("positions", positions="rotary", q="the cat saw the dog", word="3", to="0", move="one")
    assert "The key the (0) stays where it is, and the query the moves away" in said(one)


@pytest.mark.parametrize("plane", PLANES)
def test_one_pair_can_be_drawn_alone(plane: str):
    """For a telephone or a projector; its numbers are those it has beside the others."""
    shown = moving(plane)
    titles = [note["text"] for note in shown["layout"]["annotations"] if "pair " in note["text"]]
    planes = positions_numbers.turning_of(8, 4, 10_000.0, "both").planes
    expected = [made.title for made in planes if plane in ("all", made.title.split()[0].lower())]
    assert titles == expected
    assert len(expected) == (3 if plane == "all" else 1)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_the_count_of_unfinished_pairs_is_of_the_curve_as_trained(scaling: str):
    """With a scaling that is the grey curve; what is left of the count then stands beside it."""
    text = said(opened("positions", positions="rotary", scaling=scaling))
    if scaling == "plain":
        assert "The curve lies above the lower line in 11 of 32 pairs" in text
        return
    assert "The grey curve, as trained, lies above the lower line in 11 of 32 pairs" in text
    left = {"linear": 0, "ntk": 10, "dynamic": 10, "yarn": 0, "llama3": 0}[scaling]
    assert f"{left} of 32 still do." in text


def test_dynamic_ntk_says_which_form_it_is():
    """The factor is the length over the trained one, so at full length NTK-aware's; transformers has one more."""
    view = replace(VIEW, positions="rotary", factor=4)
    dynamic, ntk = (positions_numbers.pairs_of(replace(view, scaling=name)).after for name in ("dynamic", "ntk"))
    np.testing.assert_allclose(dynamic, ntk)
    text = said(opened("positions", positions="rotary", scaling="dynamic"))
    assert "it is NTK-aware with factor 4" in text
    assert "1 + factor × (length ÷ trained length − 1)" in text
    assert "dynamic NTK is not set, its factor is the length of the text ÷ the trained length" in text
    assert "each scaling has the factor of its column" not in text


def test_the_small_layer_says_where_it_is_not_as_above():
    """It divides by √D where T5 does not, and has other slopes than ALiBi's picture."""
    assert "T5 itself does not divide by √D. This layer does" in said(opened("positions", positions="relative", q=CAT))
    assert "T5 itself" not in said(opened("positions", positions="none", q=CAT))
    eight = said(opened("positions", positions="alibi", q=CAT))
    assert "head 0 takes 0.25 off for each word of distance here, and 0.5 there." in eight
    assert "so slopes differ" not in said(opened("positions", positions="alibi", q=CAT, slopes="4"))
    lone = said(opened("positions", positions="alibi", q=CAT, slopes="1", posthead="3"))
    assert "head 3 takes 0.00391 off for each word of distance here." in lone


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_letter_of_a_formula_is_explained(name: str):
    """Positions, pairs, widths, slopes: whatever stands in it stands in the line below."""
    encoding = ENCODINGS[name]
    letters = {"sinusoidal": "tiCP", "learned": "tPC", "rotary": "tsiDRqk", "alibi": "tsDhqkm", "relative": "tshbqk",
               "none": "tsDqk"}[name]  # fmt: skip
    for letter in letters:
        assert letter in encoding.formula
        assert re.search(rf"\$[^$]*{letter}[^$]*\$", encoding.symbols), letter
    assert encoding.symbols.format(width=64, base="10,000").replace("'", "’")[:20].replace("’", "'") in said(
        opened("positions", positions=name, q=CAT)
    )


def test_heads_are_picked_from_a_list():
    """So that none can be typed that is not there."""
    test = opened("positions", positions="alibi", slopes="12", q=CAT)
    (box,) = (box for box in test.selectbox if box.label == "Head shown")
    assert box.options == [str(number) for number in range(12)]
    assert choice(test, "places_head").options == list("0123")
    assert not test.number_input


def test_sinusoidal_waves_beyond_are_those_whose_turn_is_longer_than_the_trained_length():
    """As the row says, wave by wave."""
    turns = 2 * math.pi * 10_000.0 ** (torch.arange(0, 64, 2, dtype=torch.float64) / 64)
    for trained in (512, 2048, 8192):
        count = int((turns > trained).sum())
        (row_,) = (one for one in beyond(replace(VIEW, trained=trained)) if one.name == "sinusoidal")
        assert row_.counted == "waves whose full turn is longer than the trained length"
        assert row_.cells == (f"{count} of 32",) * 3


def test_the_picked_encoding_stands_first_beyond_the_trained_length_and_the_others_are_folded():
    """Each is there once."""
    test = opened("positions", positions="alibi", q=CAT)
    tables = [block.value for block in test.markdown if block.value.startswith("| Positions | What is counted")]
    assert [len(table.splitlines()) - 2 for table in tables] == [1, 10]
    assert "| ALiBi |" in tables[0]
    assert "| ALiBi |" not in tables[1]
