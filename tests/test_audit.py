"""The audit: it passes where the shown weights are those used, and notices where they are not."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from engine import audit as module
from engine.audit import Audit
from engine.masks import Mask
from engine.recording import Recorded
from engine.sites import Site
from engine.trace import Trace
from tests.stacks import (
    HEADS,
    card,
    changed,
    prompt,
    traced,
)


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"mask": None},
        {"mask": torch.rand(9, 9, generator=torch.Generator().manual_seed(0)) > 0.5},
        {"bias": torch.linspace(-2, 2, 9 * 9).reshape(9, 9)},
        {"softcap": 2.0},
        {"sinks": torch.arange(HEADS).float()},
        {"scale": 1.0},
    ],
)
@pytest.mark.parametrize("imposed", [Mask.native(), Mask.bidirectional(), Mask.window(2).only(heads=[1])])
def test_the_audit_finds_that_shown_weights_are_those_used(extra: dict[str, Any], imposed: Mask):
    audit = traced(imposed=imposed, **extra).audit()
    assert audit.relative is not None
    assert audit.relative <= 1e-6
    assert audit.passed
    assert (audit.rows, audit.tolerance, audit.reason) == ("all", 1e-5, "")


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-10), (torch.float32, 1e-5), (torch.float16, 5e-3), (torch.bfloat16, 3e-2)],
)
def test_the_audit_passes_at_every_precision_and_says_what_it_tolerates(dtype: torch.dtype, tolerance: float):
    audit = traced(30, dtype=dtype).audit()
    assert audit.passed, str(audit)
    assert audit.tolerance == tolerance


def test_the_audit_is_relative_to_the_largest_output():
    """An output off by 0.5 whose largest is 4 is off by an eighth."""
    trace = traced()
    site = Site("decoder", 0)
    held = trace.sites[site]
    assert isinstance(held, Recorded)
    output = held.output * (4 / held.output.abs().max())
    scaled = replace(held, call=replace(held.call, v=held.call.v * (4 / held.output.abs().max())), output=output)
    smallest = int(output[0, 0, 0].abs().argmin())
    output[0, 0, 0, smallest] += 0.5
    audit = replace(trace, sites={site: scaled}).audit()
    assert audit.absolute == pytest.approx(0.5, rel=1e-5)
    assert audit.relative == pytest.approx(0.125, rel=1e-5)
    assert not audit.passed
    assert "above 1e-05, do not trust these weights" in str(audit)


def tampered(part: str) -> Callable[[Recorded], Recorded]:
    def change(held: Recorded) -> Recorded:
        altered = getattr(held.call, part).clone()
        altered[0, 1, 4, 2] += 0.01
        return replace(held, call=replace(held.call, **{part: altered}))

    return change


@pytest.mark.parametrize("part", ["q", "k", "v"])
def test_the_audit_notices_a_number_changed_by_a_hundredth(part: str):
    assert not changed(traced(), Site("decoder", 1), tampered(part)).audit().passed


@pytest.mark.parametrize("count", [9, 600])
def test_the_audit_notices_a_mask_that_was_not_the_one_used(count: int):
    def bare(held: Recorded) -> Recorded:
        return replace(held, call=replace(held.call, visibility=replace(held.call.visibility, causal=False)))

    assert not changed(traced(count), Site("decoder", 0), bare).audit().passed


def test_the_audit_notices_an_output_of_nothing_but_zeros():
    silent = changed(traced(), Site("decoder", 1), lambda held: replace(held, output=torch.zeros_like(held.output)))
    audit = silent.audit()
    assert not audit.passed
    assert audit.relative == math.inf


def test_the_audit_passes_where_nothing_is_visible_and_nothing_came_out():
    audit = traced(mask=torch.zeros(9, 9).bool()).audit()
    assert (audit.relative, audit.absolute, audit.passed) == (0.0, 0.0, True)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_the_audit_names_the_place_where_numbers_are_not_finite(value: float):
    def broken(held: Recorded) -> Recorded:
        output = held.output.clone()
        output[0, 2, 5, 1] = value
        return replace(held, output=output)

    audit = changed(traced(), Site("decoder", 1), broken).audit()
    assert audit.reason == "numbers that are not finite at decoder layer 1"
    assert not audit.passed
    assert audit.relative is not None
    assert audit.relative <= 1e-6
    assert "do not trust" not in str(audit)
    assert str(audit).endswith("; numbers that are not finite at decoder layer 1")


@pytest.mark.parametrize(("count", "rows"), [(1, "all"), (512, "all"), (513, "64"), (4097, "64")])
def test_the_audit_looks_at_all_rows_up_to_512_and_then_at_64(count: int, rows: str):
    held = traced(count).sites
    audit = Trace(card("decoder"), prompt(count), None, Mask.native(), held, 1.0).audit()
    assert audit.rows == rows
    assert audit.passed


def test_the_audit_takes_blocks_of_rows_without_another_result(monkeypatch: pytest.MonkeyPatch):
    trace = traced(50)
    whole = trace.audit()
    monkeypatch.setattr(module, "BLOCK_SCORES", 7 * HEADS * 50)
    audit = trace.audit()
    assert audit.passed
    assert audit.absolute == pytest.approx(whole.absolute, abs=2e-6)


def test_the_audit_of_a_short_sentence_from_a_long_batch_says_how_few_rows_it_had():
    trace = traced(5000)
    cut = slice(0, 100)
    sites = {site: held.item(0, cut, cut) for site, held in trace.sites.items() if isinstance(held, Recorded)}
    audit = Trace(card("decoder"), prompt(100), None, Mask.native(), sites, 1.0).audit()
    assert audit.rows == "2"
    assert audit.passed


def test_an_audit_reads_as_a_sentence():
    assert str(Audit(3e-7, 3e-7, "all", 1e-5)) == "audit 3e-07, all rows"
    assert str(Audit(None, None, "no", 0.0, "run eagerly")) == "no audit: run eagerly"
    assert not Audit(None, None, "no", 0.0, "run eagerly").passed
