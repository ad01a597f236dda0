"""Bars, rankings and entropy say what the numbers say, in the order of the sentence."""

import json
import math

import numpy as np
import pytest

from app.charts import comparison, entropy_text, ranking_frame
from engine.errors import CaptureError, ShapeError


def rows(chart) -> list[dict]:
    return next(iter(chart.to_dict()["datasets"].values()))


def test_comparison_keeps_sentence_order_and_equal_words():
    chart = comparison([0.3, 0.5, 0.2], [0.9, 0.1, 0], ["the", "cat", "the"], before_name="x", after_name="y",
                       masked_after=[False, False, True])  # fmt: skip
    assert [(row["position"], row["key"], row["stage"], row["shown"]) for row in rows(chart)] == [
        (0, "the", 0, "30.0\u202f%"), (0, "the", 1, "90.0\u202f%"), (1, "cat", 0, "50.0\u202f%"),
        (1, "cat", 1, "10.0\u202f%"), (2, "the", 0, "20.0\u202f%"), (2, "the", 1, "masked"),
    ]  # fmt: skip


def test_comparison_keeps_the_strongest_of_either_row():
    chart = comparison([0.7, 0.1, 0.2], [0.1, 0.8, 0.1], list("abc"), before_name="x", after_name="y", top=2)
    assert [row["key"] for row in rows(chart)] == ["a", "a", "b", "b"]


def test_comparison_quotes_labels_and_names_as_text():
    """Vega reads them from a list of strings: nothing in a label is code."""
    label, name = '"]; alert(1) //\u2028', "GPT 'q' \\"
    chart = comparison([1.0], [1.0], [label], before_name=name, after_name=name).to_dict()
    encoding = chart["layer"][0]["encoding"]
    assert encoding["y"]["axis"]["labelExpr"] == f"{json.dumps([label])}[datum.value]"
    assert encoding["color"]["legend"]["labelExpr"] == f"{json.dumps([name, name])}[datum.value]"


def test_comparison_of_nothing_says_so():
    assert rows(comparison([], [], [], before_name="x", after_name="y")) == [{"text": "no data"}]


def test_ranking_is_by_weight_then_by_place():
    frame = ranking_frame([(3, 1, 0.25), (0, 2, 0.5), (0, 1, 0.25)])
    assert frame.to_dict("list") == {"layer": [0, 0, 3], "head": [2, 1, 1], "weight %": [50.0, 25.0, 25.0]}


def test_empty_ranking_keeps_its_columns():
    assert list(ranking_frame([]).columns) == ["layer", "head", "weight %"]


def test_comparison_hides_keys_that_stay_below_the_floor_in_both():
    chart = comparison([0.7, 0.1, 0.02], [0.1, 0.0, 0.04], list("abc"), before_name="x", after_name="y", floor=0.05)
    assert [row["key"] for row in rows(chart)] == ["a", "a", "b", "b"]
    nothing = comparison([0.1], [0.1], ["a"], before_name="x", after_name="y", floor=0.5)
    assert rows(nothing) == [{"text": "no data"}]


def test_comparison_spells_its_order_out():
    """A chart redrawn in place with other words would keep the order of those before."""
    chart = comparison([0.1, 0.7, 0.2], [0.1, 0.8, 0.1], list("abc"), before_name="x", after_name="y", top=2).to_dict()
    for layer in chart["layer"]:
        assert layer["encoding"]["y"]["scale"]["domain"] == layer["encoding"]["y"]["sort"] == [1, 2]


@pytest.mark.parametrize(("name", "way"), [("GPT-style", "horizontal"), ("causal and window of 12", "vertical")])
def test_a_legend_that_would_be_cut_stands_in_two_lines(name: str, way: str):
    chart = comparison([1.0], [1.0], ["a"], before_name="as trained", after_name=name).to_dict()
    assert chart["layer"][0]["encoding"]["color"]["legend"]["direction"] == way


def test_even_spread_over_four_tokens_is_two_bits():
    assert entropy_text(math.log2(4)) == "2.00 bits (1.39 nats), as spread out as over 4 equal tokens"
    assert entropy_text(-0.0) == "0.00 bits (0.00 nats), as good as all on one token"


def test_lengths_that_differ_are_both_named():
    with pytest.raises(ShapeError, match=r"\(1,\).*\(2,\)"):
        comparison(np.ones(2), np.ones(1), list("ab"), before_name="x", after_name="y")


def test_not_a_number_is_refused_unless_masked():
    broken = [0.5, float("nan")]
    with pytest.raises(CaptureError, match="not a finite number"):
        comparison([0.5, 0.5], broken, list("ab"), before_name="x", after_name="y")
    comparison([0.5, 0.5], broken, list("ab"), before_name="x", after_name="y", masked_after=[False, True])
