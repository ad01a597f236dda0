"""The page Cost: what is asked for is counted, drawn, written to a file, and measured on this machine."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from app.cost_plan import CostPlan, plan_of
from app.cost_units import bytes_both, flop_text
from app.view import View
from engine import PRESETS, preset
from engine.cost import Job, flops, overtaking
from engine.sizes import sizes_of_preset
from tests.app_pages import choice, errors, figures, opened, plain, protos, said, title_of, typed
from tests.conftest import Server, settle

HOSTILE = 'a<b<c <s> "x" <img src=x onerror=alert(1)> $x^2$ **b** :smile: | a | b |'
GPT2 = sizes_of_preset(preset("gpt2"))
LLAMA = sizes_of_preset(preset("llama-3-8b"))


def asked(**choices: Any) -> CostPlan:
    """The question that these choices make."""
    return plan_of(replace(View(), **choices))[0]


def cells(test: AppTest) -> dict[str, list[str]]:
    """The table, by the name of each row."""
    (html,) = (proto.body for proto in protos(test, "html") if 'class="costs"' in proto.body)
    rows = re.findall(r"<tr[^>]*>(<td.*?)</tr>", html)
    found = [[plain(cell) for cell in re.findall(r"<td[^>]*>(?:<s>)?([^<]*)(?:</s>)?</td>", row)] for row in rows]
    return {name: rest for name, *rest in found}


def titles(test: AppTest) -> list[str]:
    """What the figures are called."""
    return [title_of(figure) for figure in figures(test)]


def figure(test: AppTest, start: str) -> dict[str, Any]:
    """The one figure whose title begins so."""
    (found,) = (made for made in figures(test) if title_of(made).startswith(start))
    return found


def marks(test: AppTest) -> set[str]:
    """What is marked on the picture of operations."""
    return {note["text"] for note in figure(test, "Work")["layout"]["annotations"]}


def boxed(test: AppTest, label: str) -> Any:
    """A box; its key changes whenever the page itself picks another value."""
    kinds: list[Any] = [*test.selectbox, *test.number_input, *test.select_slider]
    return next(box for box in kinds if box.label == label)


def picked(test: AppTest, start: str) -> str:
    """What a segmented control shows; its key changes whenever the page itself picks another value."""
    return str(next(group for group in test.get("button_group") if group.key.startswith(start)).value)  # type: ignore[union-attr]


def test_the_page_answers_the_doubling_question_for_gpt_2():
    """The scores take four times as long, the rest twice, the layers 2.94 times: 4,608 = 6 · 768 is where they meet."""
    test = opened("cost")
    text = said(test)
    assert errors(test) == []
    assert "GPT-2, reading 4,096 → 8,192 tokens: twice the text, × 2.94 the work in its layers" in text
    assert "scores and mixing × 4.00, projections and feed-forward × 2.00, all layers together × 2.94" in text
    assert "Attention overtakes the rest at 4,608 tokens" in text
    assert overtaking(GPT2, Job(1)) == 4608
    assert {"n: 4,096", "attention overtakes: 4,608", "your sentence: 12", "reads at most: 1,024"} == marks(test)
    assert test.query_params == {}


def test_the_matrices_of_gpt_2_at_1024_tokens_are_604_megabytes():
    """12 layers · 12 heads · 1,024² · 4 bytes."""
    held = cells(opened("cost", tokens="1024", dtype="float32"))
    assert held["Attention weights (n × n), if every layer’s are kept"][1] == "576 MiB"
    assert bytes_both(12 * 12 * 1024**2 * 4) == "576\u202fMiB (604\u202fMB)"


def test_llama_3_keeps_one_gibibyte_for_8192_tokens():
    test = opened("cost", of="llama-3-8b", tokens="8192")
    assert cells(test)["Cache of keys and values"] == ["32 MiB", "1 GiB", "", "2 GiB", "× 2.00"]
    assert "| 8 · GQA (as made) | 8,030,261,248 | 128 KiB | 1 GiB (1.07 GB) |" in said(test)


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ({"of": "bert-base"}, "BERT-base, reading 4,096"),
        ({"tokens": "100"}, "GPT-2, reading 100 → 200 tokens"),
        ({"tokens": "1000000"}, "GPT-2, reading 1,000,000 → 2,000,000 tokens"),
        ({"tokens": "1"}, "GPT-2, reading 1 → 2 tokens"),
        ({"from": "sentence"}, "GPT-2, reading 12 → 24 tokens"),
        ({"job": "write"}, "scores and mixing × 2.00, projections and feed-forward × 1.00"),
        ({"job": "train"}, "GPT-2, training on 4,096"),
        ({"batch": "8"}, "for 8 such texts"),
        ({"pairs": "visible"}, "Attention overtakes the rest at 9,215 tokens"),
        ({"kernel": "window", "reach": "512"}, "Never overtaken"),
        ({"kernel": "window", "pairs": "all"}, "hides what the window hides, and saves nothing"),
        ({"groups": "1"}, "GPT-2, multi-query, reading"),
        ({"dtype": "float8"}, "what is computed with them is in bfloat16"),
        ({"of": "vit-b16"}, "Your sentence is not read by ViT-B/16"),
        ({"of": "vit-b16", "tokens": "196"}, "ViT-B/16, looking at an image of 196 → 392 patches: twice the image"),
        ({"of": "here:minilm", "from": "sentence"}, "MiniLM, reading 15 → 30 tokens"),
        ({"device": "h200"}, "989 TFLOP/s"),
        ({"device": "own", "tflops": "1.5", "gbs": "100"}, "at 1.5 TFLOP/s"),
        ({"price": "2.5"}, "At 2.5 per hour this costs"),
        ({"measure": "layer"}, "One layer of GPT-2"),
    ],
    ids=str,
)
def test_the_page_says_what_its_address_asks(chosen: dict[str, str], text: str):
    test = opened("cost", **chosen)
    assert errors(test) == []
    assert "could not be used" not in said(test)
    assert text in said(test)
    assert test.query_params == chosen


def test_every_control_changes_the_numbers_and_the_address():
    test = opened("cost")
    boxed(test, "Model").set_value("llama-3-8b").run()
    assert "Llama 3 8B, reading" in said(test)
    boxed(test, "Key-value heads").set_value(1).run()
    assert "Llama 3 8B, multi-query" in said(test)
    assert cells(test)["Cache of keys and values"][1] == "64 MiB"
    boxed(test, "n exactly").set_value(8192).run()
    assert cells(test)["Cache of keys and values"][1] == "128 MiB"
    boxed(test, "n, how long the text is (tokens)").set_value(16_384).run()
    assert boxed(test, "n exactly").value == 16_384
    boxed(test, "Precision").set_value("float32").run()
    assert cells(test)["Cache of keys and values"][1] == "512 MiB"
    boxed(test, "Texts at once").set_value(2).run()
    assert cells(test)["Cache of keys and values"][1] == "1 GiB"
    choice(test, "cost_job").set_value("train").run()
    assert cells(test)["Head"][1] == plain(flop_text(flops(LLAMA, Job(16_384, 2, training=True))["head"]))
    choice(test, "cost_pairs").set_value("visible").run()
    assert cells(test)["Scores"][1] == plain(
        flop_text(flops(LLAMA, Job(16_384, 2, training=True, visible_only=True))["scores"])
    )
    assert errors(test) == []
    assert test.query_params == {
        "of": "llama-3-8b", "groups": "1", "tokens": "16384", "dtype": "float32", "batch": "2", "job": "train",
        "pairs": "visible",
    }  # fmt: skip
    boxed(test, "Model").set_value("gpt2").run()
    assert "groups" not in test.query_params


def test_a_window_is_counted_as_it_is_skipped_and_bounds_the_cache():
    """A window that is chosen counts the visible pairs, or it would save nothing; what stood before comes back."""
    test = opened("cost", of="llama-3-8b", tokens="100000")
    choice(test, "cost_kernel").set_value("window").run()
    assert picked(test, "cost_pairs") == "visible"
    assert cells(test)["Cache of keys and values"] == ["4 MiB", "128 MiB", "", "128 MiB", "× 1.00"]
    boxed(test, "Window (tokens)").set_value(2048).run()
    assert cells(test)["Cache of keys and values"][1] == "256 MiB"
    assert "No token looks farther than 2,048 tokens" in said(test)
    assert "(only visible pairs counted)" in said(test)
    choice(test, "cost_kernel").set_value("standard").run()
    assert picked(test, "cost_pairs") == "all"
    assert "(all pairs counted)" in said(test)
    assert "pairs" not in test.query_params


def test_n_follows_the_sentence_until_the_slider_is_moved():
    test = opened("cost")
    choice(test, "cost_from").set_value("sentence").run()
    typed(test, "The cat sat on the mat")
    assert boxed(test, "n exactly").value == 6
    assert "Your sentence is 6 tokens" in said(test)
    boxed(test, "n, how long the text is (tokens)").set_value(64).run()
    assert "from" not in test.query_params
    assert "reading 64 → 128 tokens" in said(test)


def test_a_model_that_is_loaded_counts_with_its_own_tokens():
    """MiniLM cuts the opening sentence into fifteen, the two around it included."""
    text = said(opened("cost", of="here:minilm"))
    assert "Your sentence is 15 tokens (cut by its own tokenizer, special tokens too)" in text
    assert "MiniLM has no positions beyond 512 tokens" in text
    assert "22,713,216 parameters" in text


BAD = {
    "of": ("", "a\x00b"),
    "tokens": ("0", "1000001", "abc", "1e3", "-5", "9999999999"),
    "batch": ("0", "4097"),
    "job": ("sleep",),
    "dtype": ("int4",),
    "pairs": ("none",),
    "kernel": ("magic",),
    "reach": ("0",),
    "groups": ("0", "x"),
    "device": ("abacus",),
    "tflops": ("0", "1e9", "inf", "nan", "-1"),
    "price": ("free", "100001"),
    "seconds": ("7",),
    "longest": ("1000000",),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_address_falls_back_and_says_so(name: str):
    for text in BAD[name]:
        test = opened("cost", **{name: text})
        assert errors(test) == []
        assert "could not be used, so the default is shown" in said(test)
        assert "twice the text, × 2.94 the work" in said(test)


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({"of": "gpt9"}, "The model in the link is not here: showing GPT-2."),
        ({"of": "here:nothing"}, "The model in the link is not here: showing GPT-2."),
        ({"groups": "5"}, "12 heads cannot share 5 key-value heads evenly: they have 12, as made."),
        ({"of": "bert-base", "job": "write"}, "BERT-base reads texts and does not write them"),
        ({"of": "vit-b16", "from": "sentence"}, "ViT-B/16 reads the patches of an image, not a sentence."),
        ({"device": "measured"}, "Nothing was measured on this machine yet"),
    ],
    ids=str,
)
def test_what_does_not_fit_gives_way_and_says_so(chosen: dict[str, str], why: str):
    test = opened("cost", **chosen)
    assert errors(test) == []
    assert why in said(test)


@pytest.mark.parametrize(
    "chosen",
    [
        *({"of": name} for name in PRESETS),
        {"of": "t5-small", "job": "write", "kernel": "window", "reach": "1", "pairs": "visible"},
        {"of": "t5-small", "job": "train", "tokens": "1000000", "kernel": "flash"},
        {"of": "vit-b16", "tokens": "1"},
        {"tokens": "1", "job": "write", "pairs": "visible", "kernel": "window", "reach": "1"},
        {"tokens": "1000000", "batch": "4096", "job": "train", "dtype": "float64"},
        {"of": "course-classifier", "groups": "1", "tokens": "3"},
        {"of": "here:minilm", "job": "train", "pairs": "visible"},
        {"of": "here:minilm-scratch", "from": "sentence"},
        {"device": "own", "tflops": "0.001", "gbs": "1000000", "price": "100000"},
    ],
    ids=json.dumps,
)
def test_any_combination_is_shown(chosen: dict[str, str]):
    test = opened("cost", **chosen)
    assert errors(test) == []
    assert "could not be used" not in said(test)
    assert len(figures(test)) >= 2
    assert "nan" not in said(test).lower().split()


@pytest.mark.parametrize("sentence", ["hi", HOSTILE, "שלום עולם", "猫坐在垫子上", "at " * 600])
def test_any_sentence_is_counted(sentence: str):
    test = opened("cost", q=sentence.strip())
    assert errors(test) == []
    assert "Your sentence is " in said(test)


def test_without_a_sentence_the_page_asks_for_one_and_keeps_its_pictures():
    test = typed(opened("cost", of="llama-3-8b"), "  ")
    assert errors(test) == ["Type a sentence first: there is nothing to read yet."]
    assert "Llama 3 8B, reading" in said(test)
    assert errors(typed(test, "a cat")) == []


@pytest.mark.browser
def test_a_reader_moves_the_slider_shares_keys_measures_and_takes_the_file(page: Page, app_server: Server):
    """Slider, MHA to GQA, a short measurement with its exponent, the CSV."""
    page.goto(f"{app_server.url}/cost?of=course-classifier&longest=256&seconds=10")
    headline = page.get_by_role("heading", name=re.compile("twice the text"))
    expect(headline).to_contain_text("reading 4,096 → 8,192 tokens", timeout=60_000)
    settle(page)
    slider = page.get_by_role("slider").first
    slider.focus()
    slider.press("ArrowRight")
    expect(headline).to_contain_text("reading 6,144 → 12,288 tokens")
    page.wait_for_url("**tokens=6144*")
    page.get_by_role("combobox", name="Key-value heads").click()
    page.get_by_role("option", name="2 · GQA").click()
    expect(headline).to_contain_text("Course classifier, grouped")
    settle(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    content = Path(download.value.path()).read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(content)))
    assert {(row["model"], row["tokens"]) for row in rows} == {("Course classifier, grouped-query", "6144")}
    page.get_by_role("button", name="Measure on this machine").click()
    expect(page.get_by_text(re.compile(r"time grows with n to the power -?\d\.\d\d")).first).to_be_visible(
        timeout=60_000
    )
    expect(page.get_by_text(re.compile("Done.*6 points"))).to_be_visible(timeout=60_000)
    assert page.get_by_test_id("stException").count() == 0
