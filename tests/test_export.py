"""Exports give back every number and every text, and never a formula."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.export import csv_of, file_bytes, json_of, readable
from engine.errors import CaptureError, ShapeError

FORMULAS = [
    '=HYPERLINK("http://x","y")',
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1",
    "＝1",
    "\u200b=1",
]
QUOTED = ["'=1", '"=1', "-", "'", "it's", "''=1", "a,b", 'say "hi"', "two\r\nlines", ";", "#"]
PLAIN = [
    "<s>",
    "<img src=x onerror=alert(1)>",
    "$x$",
    "शब्द",
    "שלום",
    "",
    " ",
    "the",
    "the",
    "🙂",
    "NA",
    "1e5",
]
HOSTILE = FORMULAS + QUOTED + PLAIN


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_two_by_two_map_is_written_cell_by_cell():
    """The whole file of the smallest interesting map."""
    weights, visible = np.array([[1, 0], [0.25, 0.75]], np.float32), np.tri(2, dtype=bool)
    assert csv_of(weights, ["a", "a"], ["a", "b"], visible=visible, meta={"layer": 5, "mask": "GPT-style"}) == (
        "query_position,query,key_position,key,weight,masked,layer,mask\r\n"
        "0,a,0,a,1,0,5,GPT-style\r\n"
        "0,a,1,b,0,1,5,GPT-style\r\n"
        "1,a,0,a,0.25,0,5,GPT-style\r\n"
        "1,a,1,b,0.75,0,5,GPT-style\r\n"
    )


def test_positions_can_be_left_out():
    assert csv_of(np.ones((1, 1)), ["a"], ["b"], positions=False) == "query,key,weight,masked\r\na,b,1,0\r\n"


@pytest.mark.parametrize("precision", [np.float16, np.float32, np.float64])
def test_numbers_come_back_bit_for_bit(precision):
    count = len(HOSTILE)
    weights = np.random.default_rng(0).dirichlet(np.full(count, 0.05), count).astype(precision)
    file = file_bytes(csv_of(weights, HOSTILE, HOSTILE), spreadsheet=True)
    table = pd.read_csv(io.BytesIO(file), keep_default_na=False)
    np.testing.assert_array_equal(table["weight"].to_numpy(precision).reshape(count, count), weights)
    content = json.loads(json_of(weights, HOSTILE, HOSTILE))
    np.testing.assert_array_equal(np.array(content["weights"], precision), weights)


def test_hostile_texts_come_back_and_none_begins_a_formula():
    rows = lines(csv_of(np.ones((1, len(HOSTILE))), ["q"], HOSTILE, meta={"=name": "=value"}))
    assert [readable(row["key"]) for row in rows] == HOSTILE
    assert [int(row["key_position"]) for row in rows] == list(range(len(HOSTILE)))
    assert rows[0]["'=name"] == "'=value"
    for row in rows:
        assert not row["key"].startswith(("=", "+", "-", "@", "\t", "\r", "\n", " =", '"=', "＝", "\u200b="))


def test_harmless_texts_are_left_alone():
    rows = lines(csv_of(np.ones((1, 4)), ["q"], ["it's", "'", "##ing", "well-known"]))
    assert [row["key"] for row in rows] == ["it's", "'", "##ing", "well-known"]


@settings(deadline=None)
@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5))
def test_every_text_survives_both_formats(labels):
    weights = np.zeros((1, len(labels)), np.float32)
    raw = file_bytes(csv_of(weights, ["q"], labels), spreadsheet=True).decode("utf-8-sig")
    assert [readable(row["key"]) for row in lines(raw)] == labels
    assert [key["text"] for key in json.loads(file_bytes(json_of(weights, ["q"], labels)))["keys"]] == labels


def test_negative_numbers_stay_numbers():
    row = lines(csv_of(np.array([[-1.5]], np.float32), ["q"], ["k"], meta={"shift": -2}))[0]
    assert (row["weight"], row["shift"]) == ("-1.5", "-2")


def test_minus_infinity_behind_the_mask_is_empty():
    scores, visible = np.array([[1.0, -np.inf]]), np.array([[True, False]])
    assert [row["weight"] for row in lines(csv_of(scores, ["q"], ["a", "b"], visible=visible))] == ["1", ""]
    content = json.loads(json_of(scores, ["q"], ["a", "b"], visible=visible))
    assert content["weights"] == [[1.0, None]]
    assert content["masked"] == [[False, True]]


def test_json_says_what_it_holds():
    content = json.loads(json_of(np.ones((1, 1)), ["<s>"], ["शब्द"], meta={"layer": 5, "unset": None}))
    assert content == {
        "meta": {"layer": 5, "unset": None},
        "queries": [{"position": 0, "text": "<s>"}],
        "keys": [{"position": 0, "text": "शब्द"}],
        "weights": [[1.0]],
        "masked": None,
    }


def test_excel_gets_its_mark_and_json_does_not():
    assert file_bytes("शब्द", spreadsheet=True).startswith(b"\xef\xbb\xbf")
    assert file_bytes("शब्द") == "शब्द".encode()


def test_lone_surrogate_does_not_stop_an_export():
    assert file_bytes("\ud800") == b"\\ud800"


def test_empty_map_is_a_header():
    assert len(lines(csv_of(np.zeros((0, 3)), [], ["a", "b", "c"]))) == 0
    assert json.loads(json_of(np.zeros((0, 0)), [], []))["weights"] == []


def test_shapes_that_differ_are_both_named():
    with pytest.raises(ShapeError, match=r"\(2, 3\).*\(2, 2\)"):
        csv_of(np.zeros((2, 3)), ["a", "b"], ["a", "b"])
    with pytest.raises(ShapeError, match=r"\(1, 2\).*\(2, 2\)"):
        json_of(np.zeros((2, 2)), ["a", "b"], ["a", "b"], visible=np.ones((1, 2), bool))


def test_not_a_number_is_refused_with_its_place():
    with pytest.raises(CaptureError, match="query 0 and key 1 holds nan"):
        csv_of(np.array([[0.5, np.nan]]), ["q"], ["a", "b"])
    with pytest.raises(CaptureError, match="not a finite number"):
        json_of(np.ones((1, 1)), ["q"], ["k"], meta={"audit": float("inf")})


def test_entry_named_like_a_column_is_refused():
    with pytest.raises(ShapeError, match="already has a column called weight"):
        csv_of(np.ones((1, 1)), ["q"], ["k"], meta={"weight": 1})
