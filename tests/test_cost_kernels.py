"""The page Cost with one kernel and another, windows, training and writing: numbers, and the sentences from them."""

from typing import Any

import pytest

from app import cache
from app.cost_memory import memory_text
from app.cost_numbers import ACTIVATIONS, KEPT, activations, layers_differ, layers_of, memory_rows, operation_rows
from app.cost_time import KNOWN, in_precision
from app.cost_words import book_text, doubling, headline, picture_text
from engine import Mask
from engine.cost import Job, flops
from tests.app_pages import choice, errors, figures, opened, plain, protos, said, title_of
from tests.test_cost_page import GPT2, asked, boxed, cells, figure


def rows(**choices: Any) -> dict[str, Any]:
    """Every row of the table, by name."""
    plan = asked(**choices)
    return {row.name: row for row in (*operation_rows(plan), *memory_rows(plan))}


def names(test: Any, start: str) -> dict[str, Any]:
    """The curves of a picture, by name."""
    return {line["name"]: line for line in figure(test, start)["data"]}


def test_what_is_kept_is_found_by_text_and_numbers():
    """No class, no configuration and no model is ever hashed or compared."""

    def parts(key: object) -> list[object]:
        return [part for item in key for part in parts(item)] if isinstance(key, tuple) else [key]

    opened("cost")
    assert {type(part) for key in cache._store()._held for part in parts(key)} <= {str, int, bool, Mask, type(None)}


def test_only_the_decoder_runs_when_a_model_with_two_stacks_writes():
    """One layer of T5-small: 2 · (4HDC + 2GDC) = 3.15 MFLOP, and 2 · 2CF = 4.19 MFLOP of feed-forward."""
    made, plan = rows(cost_of="t5-small", cost_job="write"), asked(cost_of="t5-small", cost_job="write")
    assert made["projections"].per_layer == 2 * (4 + 2) * 8 * 64 * 512
    assert made["feed-forward"].per_layer == 2 * 2 * 512 * 2048
    assert (layers_of(plan), layers_differ(plan)) == (6, False)
    held = cells(opened("cost", of="t5-small", job="write"))
    assert [held[name][0] for name in ("Projections", "Feed-forward")] == ["3.15 MFLOP", "4.19 MFLOP"]


def test_where_layers_differ_one_of_them_is_said_to_be_a_mean():
    for asks, mean in (({"of": "t5-small"}, True), ({"of": "t5-small", "job": "write"}, False), ({}, False)):
        test = opened("cost", **asks)
        html = next(proto.body for proto in protos(test, "html") if 'class="costs"' in proto.body)
        assert ("<th>one layer, on average</th>" in html) is mean
    plan = asked(cost_of="bart-base")
    assert layers_of(plan) == 12


def test_the_cache_of_one_layer_is_that_of_a_layer_of_the_decoder():
    """Its own keys and values, and those of the text across: 2 · 2GDn · b."""
    made = rows(cost_of="t5-small", cost_tokens=1000)["cache of keys and values"]
    assert made.per_layer == 2 * 2 * 8 * 64 * 1000 * 2


def test_scores_and_mixing_stand_apart():
    made, counts = rows(), flops(GPT2, Job(4096))
    assert (made["scores"].whole, made["mixing"].whole) == (counts["scores"], counts["mixing"])


@pytest.mark.parametrize(
    ("kernel", "pairs", "built"),
    [("standard", None, True), ("flash", None, False), ("window", None, False), ("window", "all", True)],
)
def test_what_the_chosen_kernel_does_not_build_is_struck_through(kernel: str, pairs: str | None, built: bool):
    made = rows(cost_kernel=kernel, cost_pairs=pairs)
    for name in (KEPT, "attention weights (n × n), one layer"):
        assert made[name].held is built
    assert made["FlashAttention’s sums"].held is not built
    assert made["FlashAttention’s sums"].chosen is not built
    test = opened("cost", kernel=kernel, **({} if pairs is None else {"pairs": pairs}))
    assert ("Attention weights (n × n), one layer: not built" in cells(test)) is not built
    assert ("attention weights (n × n), one layer, not built" in names(test, "Memory")) is not built


def test_flash_holds_less_than_standard_and_is_drawn_so():
    standard, flash = (rows(cost_kernel=kernel, cost_tokens=16_384) for kernel in ("standard", "flash"))
    assert flash[ACTIVATIONS].whole < standard[ACTIVATIONS].whole
    curves = names(opened("cost", kernel="flash"), "Memory")
    assert curves["FlashAttention’s sums"]["line"]["width"] > curves["activations"]["line"]["width"]


def test_a_bias_for_every_pair_is_a_matrix_whatever_the_kernel():
    """T5: activations grow with the square, and it is said; trained, the bias needs the standard kernel."""
    plan = asked(cost_of="t5-small", cost_kernel="flash", cost_tokens=20_000)
    assert (activations(plan, plan.doubled) or 0) > 3 * (activations(plan, plan.job) or 1)
    text = memory_text(plan)
    assert "any kernel has to be given that matrix: its activations still grow with the square" in text
    assert "without such a matrix" not in text
    assert "bias" not in memory_text(asked(cost_kernel="flash"))
    trained = asked(cost_of="t5-small", cost_kernel="flash", cost_job="train")
    assert trained.builds_matrix
    assert "a bias that is learned needs the matrix to be trained" in memory_text(trained)


def test_both_kernels_are_said_to_hold_the_same_where_they_do():
    """GPT-2 at 1,024 tokens: 1,024 × 50,257 scores outweigh 12 · 1,024² weights; at 16,384 they do not."""
    near, far = asked(cost_tokens=1024), asked(cost_tokens=16_384)
    assert activations(near, near.job) == activations(near, near.job, "flash")
    assert "standard attention and FlashAttention hold the same at once" in memory_text(near)
    assert activations(far, far.job) != activations(far, far.job, "flash")
    assert "hold the same" not in memory_text(far)
    assert "vocabulary" not in memory_text(asked(cost_of="vit-b16", cost_tokens=196))


def test_a_window_of_the_models_own_is_said_to_be_computed_and_hidden():
    for asks in ({"cost_of": "mistral-7b"}, {"cost_of": "t5-small", "cost_kernel": "window", "cost_pairs": "all"}):
        assert "count only the visible pairs to see what a window kernel saves" in doubling(asked(**asks))
    assert "window" not in doubling(asked())
    assert "rise a hundredfold where no window bounds them" in plain(
        picture_text(asked(cost_of="t5-small", cost_kernel="window"))
    )
    assert "within one, a window bounds it" in doubling(asked(cost_of="t5-small", cost_kernel="window"))


def test_a_new_token_behind_a_window_is_told_from_its_numbers():
    """Cache, scores and activations are flat once the window is full."""
    asks: dict[str, Any] = {"cost_of": "llama-3-8b", "cost_kernel": "window", "cost_job": "write"}
    plan = asked(**asks, cost_tokens=4096)
    assert activations(plan, plan.job) == activations(plan, plan.doubled)
    assert "and are flat from there on" in picture_text(plan)
    assert "The cache of keys and values holds what its windows reach, and is full" in memory_text(plan)
    assert "scores and mixing grow no more" in doubling(plan)
    short = asked(**asks, cost_tokens=100)
    assert "The cache of keys and values grows with the length" in memory_text(short)
    assert "the rising one" in picture_text(asked(cost_job="write"))


def test_a_book_is_told_in_sensible_words():
    window = asked(cost_of="llama-3-8b", cost_kernel="window", cost_job="write", cost_window=8)
    assert book_text(window).startswith("**One more token after a book** of 120,000 tokens")
    assert book_text(window).endswith("10,000 times as long as your sentence, and costs as much.")
    assert "**A book** of 120,000 tokens" in book_text(asked())


def test_the_headline_says_which_pairs_are_counted():
    assert headline(asked()).endswith("(all pairs counted)")
    assert headline(asked(cost_pairs="visible")).endswith("(only visible pairs counted)")


def test_training_holds_gradients_and_moments_and_no_cache():
    """As many bytes as the parameters, and two float32 for each of them."""
    made = rows(cost_job="train")
    assert made["gradients"].whole == made["parameters"].whole == 2 * GPT2.parameters
    assert made["Adam’s two moments, in float32"].whole == 8 * GPT2.parameters
    assert "cache of keys and values" not in made
    assert "Adam keeps two moments for each parameter" in memory_text(asked(cost_job="train"))
    assert not {"gradients", "Adam’s two moments, in float32"} & rows().keys()


def test_only_what_is_there_is_said_to_rise():
    assert "Projections, feed-forward and head rise tenfold" in picture_text(asked())
    assert "Projections and feed-forward rise tenfold" in picture_text(asked(cost_of="course-classifier"))
    assert "Patches, projections and feed-forward rise tenfold" in picture_text(asked(cost_of="vit-b16"))
    assert title_of(figures(opened("cost", of="vit-b16"))[0]).startswith("Work: looking at an image")


@pytest.mark.parametrize("asks", [{"job": "write"}, {"job": "write", "kernel": "window"}, {"tokens": "1"}], ids=str)
def test_every_axis_names_three_values_at_least(asks: dict[str, str]):
    for start in ("Work", "Memory"):
        made = figure(opened("cost", **asks), start)["layout"]
        for axis in ("xaxis", "yaxis"):
            low, high = made[axis]["range"]
            assert sum(10**low <= value <= 10**high for value in made[axis]["tickvals"]) >= 3


def test_a_length_out_of_range_is_brought_back_and_said():
    test = opened("cost")
    boxed(test, "n exactly").set_value(3_000_000).run()
    assert errors(test) == []
    assert boxed(test, "n exactly").value == 1_000_000
    assert "Texts of up to 1,000,000 tokens are counted: showing that." in said(test)


@pytest.mark.parametrize(("device", "speed"), [("a100", 19.5), ("h100", 67), ("h200", 67), ("t4", 8.1), ("l4", 30.3)])
def test_in_float32_a_device_is_as_fast_as_its_datasheet_says(device: str, speed: float):
    known = KNOWN[device]
    assert in_precision(known, "bfloat16") == known
    assert in_precision(known, "float32").speed == speed
    text = said(opened("cost", device=device, dtype="float32"))
    assert f"at {speed:g} TFLOP/s" in text
    assert f"in 16 bits it reaches {known.speed:g} TFLOP/s" in text


def test_money_is_written_without_an_exponent():
    text = said(opened("cost", tokens="8", price="0.5", device="h100"))
    assert "this costs less than 0.01, and a million tokens less than 0.01" in plain(text)


def test_a_kernel_can_be_chosen_and_unchosen():
    test = opened("cost")
    before = cells(test)
    choice(test, "cost_kernel").set_value("flash").run()
    assert cells(test) != before
    choice(test, "cost_kernel").set_value("standard").run()
    assert cells(test) == before
    assert test.query_params == {}
