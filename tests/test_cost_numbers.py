"""The numbers of the page Cost: table, curves, formulas, file, sharing and seconds are all the engine's."""

import csv
import io
import re
from dataclasses import replace

import pytest

from app.cost_numbers import memory_rows, operation_rows
from app.cost_sharing import ways
from app.cost_table import cost_csv, formulas
from app.cost_time import KNOWN
from app.cost_units import flop_text
from app.export import readable
from app.view_cost import decimal, write_decimal
from engine.cost import (
    Job,
    Part,
    flash_bytes,
    flops,
    kv_cache_bytes,
    parameter_bytes,
    score_bytes,
    seconds,
    softmax_steps,
)
from tests.app_pages import figures, opened, plain, said
from tests.test_cost_page import GPT2, LLAMA, asked, boxed, cells, figure


def test_the_table_lists_both_terms_for_64_and_128_tokens():
    """Attention × 4, projections × 2, and what they are for the model and for a layer."""
    held = cells(opened("cost", tokens="64"))
    counts = flops(GPT2, Job(64))
    assert held["Projections"][-1] == held["Feed-forward"][-1] == held["Head"][-1] == "× 2.00"
    assert held["Scores"][-1] == held["Mixing"][-1] == "× 4.00"
    assert held["Projections"][1] == plain(flop_text(counts["projections"]))
    assert held["Projections"][0] == plain(flop_text(counts["projections"] / 12))
    assert held["In all"][1] == plain(flop_text(sum(counts.values())))


def test_the_rows_of_the_table_add_up_to_their_sums():
    rows = {row.name: row for row in operation_rows(asked())}
    layers = [rows[name] for name in ("projections", "scores", "mixing", "feed-forward")]
    assert sum(row.whole for row in layers) == rows["all layers"].whole
    assert rows["all layers"].whole + rows["head"].whole == rows["in all"].whole == sum(flops(GPT2, Job(4096)).values())
    assert sum(row.share or 0 for row in layers) + (rows["head"].share or 0) == pytest.approx(1)


def test_the_curves_are_the_engines_numbers():
    """Each curve at 1,000 tokens, and the cache beside them."""
    test = opened("cost")
    counts = flops(GPT2, Job(1000))
    lines = {line["name"]: dict(zip(line["x"], line["y"], strict=True)) for line in figure(test, "Work")["data"]}
    assert lines["projections"][1000] == counts["projections"]
    assert lines["scores + mixing"][1000] == counts["scores"] + counts["mixing"]
    assert lines["in all"][1000] == sum(counts.values())
    memory = {line["name"]: dict(zip(line["x"], line["y"], strict=True)) for line in figure(test, "Memory")["data"]}
    assert memory["cache of keys and values"][1000] == kv_cache_bytes(GPT2, Job(1000), "bfloat16")
    assert set(memory["parameters"].values()) == {2 * GPT2.parameters}
    assert {"activations", "FlashAttention’s sums, not built", "attention weights (n × n), one layer"} <= memory.keys()


def test_every_axis_has_a_unit():
    for made in figures(opened("cost")):
        for axis in ("xaxis", "yaxis"):
            text = made["layout"][axis]["title"]["text"]
            assert re.search(r"\((tokens|FLOP|MiB|1 KiB is 1,024 B)\)|bytes|key-value heads", text), text


def test_build_and_cost_count_the_same_parameters_and_the_same_cache():
    """One engine, two pages."""
    for name, total in (("gpt2", "124,439,808"), ("llama-3-8b", "8,030,261,248")):
        assert f"{total} parameters" in said(opened("cost", of=name))
        assert f"{total} parameters" in said(opened("build", start=name))
    assert "128 KiB in bfloat16" in said(opened("build", start="llama-3-8b"))
    assert next(way for way in ways(asked(cost_of="llama-3-8b")) if way.groups == 8).per_token == 128 * 1024


def test_sharing_all_keys_and_values_divides_the_cache_by_the_heads():
    found = ways(asked(cost_of="llama-3-8b", cost_tokens=8192))
    assert [way.groups for way in found] == [32, 16, 8, 4, 2, 1]
    assert [found[0].at_n // way.at_n for way in found] == [1, 2, 4, 8, 16, 32]
    assert found[0].parameters - found[2].parameters == 32 * 2 * (32 - 8) * 128 * 4096


def number_of(latex: str) -> float:
    """Work out the numbers of a formula, between its first and its last sign of equality."""
    middle = latex[latex.index(" = ") + 3 : latex.rindex("= ")]
    text = re.sub(r"\\tfrac\{(.*)\}\{2\}", r"(\1)/2", middle)
    text = (
        text.replace("{,}", "")
        .replace(r"\text{ layers}", "")
        .replace(r"\text{ attentions}", "")
        .replace(r"\;", "")
        .rstrip("= ")
    )
    text = text.replace(r"\cdot", "*").replace(r"\times", "*").replace(r"\,", "*").replace("^", "**")
    assert re.fullmatch(r"[\d\s*()+/.-]+", text), text
    value: float = eval(text)  # the test's own arithmetic on a string of digits and signs
    return value


@pytest.mark.parametrize("name", ["gpt2", "llama-3-8b", "mistral-7b", "bert-base", "vit-b16", "t5-small", "bart-base"])
@pytest.mark.parametrize("pairs", ["all", "visible"])
@pytest.mark.parametrize("job", ["read", "write"])
def test_the_formulas_come_to_the_engines_numbers(name: str, pairs: str, job: str):
    """What is written before the last sign of equality, worked out, is what is counted."""
    plan = asked(cost_of=name, cost_pairs=pairs, cost_job=job, cost_tokens=6000)
    counts = flops(plan.sizes, plan.job)
    found = {title.split(",")[0]: latex for title, latex in formulas(plan)}
    assert number_of(found["projections"]) == counts["projections"]
    assert number_of(found["scores"]) == counts["scores"]
    assert number_of(found["softmax"]) == softmax_steps(plan.sizes, plan.job)
    assert number_of(found["attention weights"]) == score_bytes(plan.sizes, plan.job, plan.dtype)
    assert number_of(found["FlashAttention’s sums"]) == flash_bytes(plan.sizes, plan.job)
    assert number_of(found["parameters"]) == parameter_bytes(plan.sizes, plan.dtype)
    assert number_of(found["feed-forward"]) == counts["feed-forward"]
    outside: dict[str, Part] = {"head": "head", "patches": "embedding"}
    for title, part in outside.items():
        assert (title in found) == bool(counts[part])
        assert title not in found or number_of(found[title]) == counts[part]
    if plan.sizes.writes:
        assert number_of(found["cache of keys and values"]) == kv_cache_bytes(plan.sizes, plan.job, plan.dtype)


def test_the_file_holds_every_row_exactly():
    plan = asked(cost_tokens=1000, cost_job="train", cost_batch=3)
    rows = [*operation_rows(plan), *memory_rows(plan)]
    read = list(csv.DictReader(io.StringIO(cost_csv(plan, rows).decode("utf-8-sig"))))
    assert len(read) == len(rows)
    assert [int(line["model_total"]) for line in read] == [row.whole for row in rows]
    assert {(line["model"], line["job"], line["tokens"], line["batch"]) for line in read} == {
        ("GPT-2", "training", "1000", "3")
    }
    assert {line["unit"] for line in read} == {"FLOP", "B"}
    named = replace(plan, sizes=replace(plan.sizes, name="=1+1"))
    hostile = next(csv.DictReader(io.StringIO(cost_csv(named, rows).decode("utf-8-sig"))))
    assert hostile["model"] == "'=1+1"
    assert readable(hostile["model"]) == "=1+1"


def test_seconds_are_those_of_the_slower_of_arithmetic_and_memory():
    """One token of Llama on an H100 waits for 15 GiB of weights; a long text waits for arithmetic."""
    device = KNOWN["h100"]
    best = seconds(LLAMA, Job(4096, step="write"), "bfloat16", flop_per_second=989e12, bytes_per_second=3350e9)
    assert best == pytest.approx((2 * LLAMA.parameters + 2**29) / 3350e9)
    text = said(opened("cost", of="llama-3-8b", job="write", device="h100"))
    assert "here memory, while most of the arithmetic waits" in text
    assert "here arithmetic" in said(opened("cost", of="llama-3-8b", device="h100"))
    assert (device.speed, device.bandwidth) == (989, 3350)
    assert "no device reaches it" in text


def test_turning_a_knob_makes_the_device_ones_own():
    test = opened("cost", device="a100")
    assert boxed(test, "TFLOP/s").value == 312
    boxed(test, "TFLOP/s").set_value(100.0).run()
    assert (boxed(test, "Device").value, boxed(test, "GB/s").value) == ("own", 2039)
    assert test.query_params == {"device": "own", "tflops": "100", "gbs": "2039"}
    boxed(test, "Device").set_value("t4").run()
    assert test.query_params == {"device": "t4"}
    assert boxed(test, "TFLOP/s").value == 65


@pytest.mark.parametrize("number", [0.001, 1.5, 312.0, 1_000_000.0, 0.0123])
def test_a_decimal_survives_the_address(number: float):
    assert decimal(1_000_000)(write_decimal(number)) == number
