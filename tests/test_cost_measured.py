"""Measured on this machine: one at a time, watched by all, cancelled by its owner, fitted, and told honestly."""

import csv
import io
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from math import exp
from typing import Any

import pytest

from app import cache, cost_fitted
from app.cost_bench import Bench, Seen, layer_operations, one_layer
from app.cost_measure import bench_plan, left_out, measured_series
from app.cost_time import KNOWN, device_of
from app.view import View
from app.view_cost import CostChoices
from engine import ResourceError
from engine.cost import Job, flops
from engine.measuring import Plan, Point
from tests.app_pages import errors, opened, plain, said
from tests.test_cost_page import GPT2, LLAMA, asked, boxed, titles

TINY = Plan(heads=2, kv_heads=2, head_width=8, width=16, feed_forward=32, lengths=(64, 128, 256, 512))


@pytest.fixture(autouse=True)
def bench() -> Iterator[None]:
    """A bench on which nothing lies, for each test."""
    cache.bench.clear()
    yield
    cache.bench().cancel(cache.bench()._owner)
    cache.bench.clear()


def test_a_measured_machine_can_be_chosen_as_a_device():
    own = device_of(CostChoices(cost_device="measured"), 5e10)
    assert (own.speed, own.bandwidth) == (0.05, KNOWN["laptop"].bandwidth)


class Pretended:
    """A measurement without a process: it goes on until it is told to stop."""

    error: str | None = None
    refused: tuple[str, ...] = ()

    def __init__(self, plan: Plan, points: tuple[Point, ...] = ()) -> None:
        self.plan, self.held, self.running = plan, points, True

    def points(self) -> tuple[Point, ...]:
        """What it was given."""
        return self.held

    def cancel(self) -> None:
        """Stop."""
        self.running = False


def pretend(monkeypatch: pytest.MonkeyPatch, points: tuple[Point, ...] = ()) -> Bench:
    """Put measurements that only pretend on the bench of the app."""
    made = Bench(lambda plan: Pretended(plan, points))  # type: ignore[arg-type, return-value]
    monkeypatch.setattr(cache, "bench", lambda: made)
    return made


def growing(kernel: Any, power: float, lengths: tuple[int, ...] = (256, 512, 1024, 2048), at: float = 1e-9) -> Any:
    """Points that grow with a power of the length."""
    return tuple(Point(kernel, length, at * length**power, 1000 * length, 3) for length in lengths)


def seen(*points: Point, what: Any = "attention") -> Seen:
    """A measurement that is through."""
    plan = replace(TINY, what=what)
    return Seen("tiny", one_layer(GPT2), plan, points, False, False, "", ())


def test_only_one_measures_at_a_time_and_only_its_owner_ends_it():
    bench = Bench(lambda plan: Pretended(plan))  # type: ignore[arg-type, return-value]
    assert bench.seen() is None
    assert bench.start("a", GPT2, TINY)
    assert not bench.start("b", LLAMA, TINY)
    assert not bench.cancel("b")
    assert bench.running
    assert bench.cancel("a")
    held = bench.seen()
    assert held is not None
    assert (held.title, held.running, held.cancelled) == ("GPT-2", False, True)
    assert bench.start("b", LLAMA, TINY)


def test_whoever_looks_may_end_it_once_its_page_is_gone():
    """A page that is loaded anew is another session: it may end what the old one began."""
    here = {"a", "b"}
    bench = Bench(lambda plan: Pretended(plan), here.__contains__)  # type: ignore[arg-type, return-value]
    assert bench.start("a", GPT2, TINY)
    assert not bench.may_cancel("b")
    here.remove("a")
    assert bench.may_cancel("b")
    assert bench.cancel("b")
    assert not bench.running


def test_the_points_are_a_file():
    """Every point a line, exact."""
    held = seen(*growing("eager", 2.0), *growing("sdpa", 1.0))
    lines = list(csv.DictReader(io.StringIO(cost_fitted.points_csv(held).decode("utf-8-sig"))))
    assert [(line["kernel"], int(line["tokens"])) for line in lines[:2]] == [("eager", 256), ("eager", 512)]
    assert [float(line["median_seconds"]) for line in lines] == [point.seconds for point in held.points]
    assert len(lines) == 8


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("t5-small", ["without its attention across", "without the numbers that its positions add"]),
        ("mistral-7b", ["without its window"]),
        ("gpt2", []),
    ],
)
def test_what_of_a_model_is_not_run_is_said(name: str, why: list[str]):
    found = left_out(asked(cost_of=name))
    assert len(found) == len(why)
    assert all(part in sentence for part, sentence in zip(why, found, strict=True))


def test_a_start_that_fails_leaves_the_bench_free():
    def fail(plan: Plan) -> Any:
        raise ResourceError("no room")

    bench = Bench(fail)
    with pytest.raises(ResourceError):
        bench.start("a", GPT2, TINY)
    assert not bench.running


def test_others_watch_and_cannot_start(monkeypatch: pytest.MonkeyPatch):
    made = pretend(monkeypatch, growing("sdpa", 2.0))
    made.start("somebody", GPT2, TINY)
    test = opened("cost")
    assert re.search(
        r"Somebody else is measuring: 4 points so far. It ends by itself in at most about \d+ s.", said(test)
    )
    assert next(button for button in test.button if button.key == "bench_start").disabled
    assert not [button for button in test.button if button.key == "bench_cancel"]
    assert "Time of one run" in titles(test)


def test_who_measures_can_cancel(monkeypatch: pytest.MonkeyPatch):
    made = pretend(monkeypatch)
    test = opened("cost")
    next(button for button in test.button if button.key == "bench_start").click().run()
    assert made.running
    assert "Measuring: 0 points so far." in said(test)
    next(button for button in test.button if button.key == "bench_cancel").click().run()
    assert not made.running
    assert "Cancelled: 0 points." in said(test)
    assert not next(button for button in test.button if button.key == "bench_start").disabled


def test_a_layer_is_measured_here_to_a_fitted_exponent():
    """A real run, for three short texts, each kernel in a process of its own."""
    test = opened("cost", of="course-classifier", longest="256", seconds="10", measure="layer")
    next(button for button in test.button if button.key == "bench_start").click().run()
    end = time.monotonic() + 40
    while cache.bench().running and time.monotonic() < end:
        time.sleep(0.2)
    text = said(test.run())
    assert errors(test) == []
    assert "Done: 6 points." in text
    for kernel in ("Eager", "SDPA"):
        assert re.search(rf"{kernel}: time grows with n to the power -?\d\.\d\d \(95 % interval -?\d", text)
    assert {"Time of one run", "Peak memory"} <= set(titles(test))
    assert (
        "measured" in boxed(test, "Device").proto.options
        or "This machine, as measured" in boxed(test, "Device").options
    )
    boxed(test, "Device").set_value("measured").run()
    assert "fitted to the times measured below" in said(test)


def test_a_length_that_does_not_fit_is_refused_with_both_numbers_before_anything_runs():
    """Eager Llama at 16,384 tokens: 2 · 32 matrices of 16,384² numbers of 4 bytes."""
    text = said(opened("cost", of="llama-3-8b", longest="16384"))
    assert re.search(r"Not tried: eager at [\d,]+ tokens would need [\d.]+ GB, and .*[\d.]+ [MG]B", text)


@pytest.mark.parametrize(("power", "expected"), [(2.0, "2.00"), (1.0, "1.00")])
def test_a_fit_finds_the_power_that_the_times_grow_with(power: float, expected: str):
    (sentence,) = cost_fitted.exponent_sentences(seen(*growing("eager", power)))
    assert f"Eager: time grows with n to the power {expected}" in plain(sentence)
    assert ("not yet quadratic" in sentence) == (power < 1.8)


def test_short_texts_are_said_to_be_not_yet_quadratic_and_why():
    (sentence,) = cost_fitted.exponent_sentences(seen(*growing("sdpa", 1.2, (64, 128, 256, 512)), what="layer"))
    assert (
        "Up to 512 tokens this is not yet quadratic: the projections, the feed-forward part and fixed costs" in sentence
    )


def test_a_layer_is_masked_as_its_model_is_unless_the_reader_says_otherwise():
    for name, causal in (("gpt2", True), ("bert-base", False)):
        assert bench_plan(asked(cost_of=name), View()).causal is causal
        assert bench_plan(asked(cost_of=name), View(bench_causal=not causal)).causal is not causal
        assert opened("cost", of=name).toggle[0].value is causal


def test_two_points_fit_no_exponent():
    (sentence,) = cost_fitted.exponent_sentences(seen(*growing("sdpa", 2.0, (64, 128))))
    assert "too few to fit" in sentence


def test_points_that_scatter_are_said_to():
    points = [Point("sdpa", 64 * 2**step, 1e-3 * exp(step + (-1) ** step), 10, 3) for step in range(4)]
    assert "The points scatter" in cost_fitted.exponent_sentences(seen(*points))[0]


def test_the_predicted_line_is_the_operations_times_one_number():
    """Quadratic points lie on their line."""
    predicted, measured = measured_series(seen(*growing("sdpa", 2.0)), "s")
    assert predicted.values == pytest.approx(list(measured.values))
    assert (predicted.points, measured.points) == (False, True)


def test_what_a_layer_costs_is_its_part_of_the_models_cost():
    counts = flops(GPT2, Job(300))
    layer = one_layer(GPT2)
    assert layer_operations(layer, "attention", 300) == (counts["scores"] + counts["mixing"]) // 12
    assert layer_operations(layer, "layer", 300) == (sum(counts.values()) - counts["head"]) // 12


def test_no_point_no_speed():
    assert seen().seconds_per_operation("sdpa") is None
