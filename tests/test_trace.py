"""Traces: exact slices of what was recorded, and thumbnails against pooling written out."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine import trace as module
from engine.errors import ShapeError
from engine.masks import Mask
from engine.recording import Recorded, recording
from engine.sites import Kind, Site
from engine.trace import Trace
from tests.stacks import (
    GROUPS,
    HEADS,
    WIDTH,
    Stack,
    card,
    changed,
    eager,
    exact,
    prompt,
    text,
    traced,
    translated,
)


def test_identical_tokens_read_causally_give_1_over_t_plus_1_in_the_trace():
    with recording() as recorder:
        Stack("decoder", 2, torch.float64, mask=Mask.causal())(text(1, dtype=torch.float64).expand(1, 7, -1))
    trace = Trace(card("decoder"), prompt(7), None, Mask.native(), recorder.recorded, 1.0)
    expected = torch.ones(7, 7).tril() / torch.arange(1.0, 8.0)[:, None]
    for layer in (0, 1):
        exact(trace.weights(layer), expected.expand(HEADS, 7, 7))


def test_weights_are_those_of_the_recorded_queries_and_keys():
    trace = traced()
    for layer in (0, 1):
        held = trace.sites[Site("decoder", layer)]
        assert isinstance(held, Recorded)
        k = held.call.k.repeat_interleave(HEADS // GROUPS, dim=1)
        scores = (held.call.q @ k.mT / math.sqrt(WIDTH)).masked_fill(torch.ones(9, 9).triu(1).bool(), -math.inf)
        exact(trace.weights(layer), scores.softmax(dim=-1)[0])


@settings(deadline=None)
@given(
    rows=st.none() | st.slices(9),
    cols=st.none() | st.slices(9).filter(lambda cut: cut.step is None or cut.step > 0),
    head=st.none() | st.integers(0, 3),
)
def test_a_slice_of_weights_is_the_slice_of_all_weights(rows: slice | None, cols: slice | None, head: int | None):
    trace = traced()
    whole = trace.weights(1) if head is None else trace.weights(1)[head]
    expected = whole if rows is None else whole[..., list(range(9))[rows], :]
    exact(trace.weights(1, head, rows=rows, cols=cols), expected if cols is None else expected[..., cols])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_weights_are_float32_whatever_the_model_runs_in(dtype: torch.dtype):
    weights = traced(dtype=dtype).weights(1)
    assert (weights.dtype, weights.device.type, tuple(weights.shape)) == (torch.float32, "cpu", (HEADS, 9, 9))
    exact(weights.sum(dim=-1), torch.ones(HEADS, 9))


def test_the_mean_of_a_layer_and_of_all_layers_are_averages_over_heads():
    trace = traced()
    exact(trace.mean(1), sum((trace.weights(1, head) for head in range(HEADS)), torch.zeros(9, 9)) / HEADS)
    exact(trace.mean(), torch.stack([trace.weights(0), trace.weights(1)]).mean(dim=(0, 1)))
    exact(trace.mean().sum(dim=-1), torch.ones(9))


@pytest.mark.parametrize("queries", [[3], [8, 0, 3, 3], []])
def test_rows_are_those_rows_of_every_layer_and_head(queries: list[int]):
    trace = traced()
    whole = torch.stack([trace.weights(0), trace.weights(1)])
    exact(trace.rows(queries), whole[:, :, queries])


def test_a_model_whose_layers_differ_in_heads_has_zeros_for_those_that_are_not_there():
    trace = traced(6)
    narrow = changed(
        trace, Site("decoder", 1), lambda held: replace(held, call=held.head(3), output=held.output[:, 3:])
    )
    assert narrow.heads() == HEADS
    rows, overview = narrow.rows([5, 2]), narrow.overview()
    exact(rows[1, 0], trace.weights(1, 3)[[5, 2]])
    exact(overview[1, 0], trace.weights(1, 3))
    assert not rows[1, 1:].any()
    assert not overview[1, 1:].any()
    with pytest.raises(ShapeError, match="Head 1 does not exist: heads count from 0 to 0"):
        narrow.weights(1, 1)


def test_visible_says_what_was_masked():
    assert torch.equal(traced().visible(0, 3), torch.ones(9, 9).tril().bool())
    assert torch.equal(traced(mask=None).visible(1, 0), torch.ones(9, 9).bool())
    real = torch.tensor([True] * 7 + [False] * 2)
    assert torch.equal(traced(mask=real).visible(1, 2), real.expand(9, 9))
    window = traced(imposed=Mask.window(2).only(heads=[1]))
    assert int(window.visible(0, 1).sum()) == 9 + 8 + 8
    assert torch.equal(window.visible(0, 0), torch.ones(9, 9).tril().bool())


def test_scores_before_the_mask_give_the_weights_after_it():
    bias = torch.randn(HEADS, 9, 9, generator=torch.Generator().manual_seed(3))
    trace = traced(bias=bias)
    for head in range(HEADS):
        scores = trace.scores(1, head)
        assert scores.isfinite().all()
        exact(scores.masked_fill(~trace.visible(1, head), -math.inf).softmax(dim=-1), trace.weights(1, head))


def test_the_parts_of_a_head_are_enough_to_do_its_arithmetic_again():
    """Head 3 uses key head 1, its own bias and its own sink."""
    bias = torch.randn(HEADS, 9, 9, generator=torch.Generator().manual_seed(3))
    trace = traced(bias=bias, sinks=torch.arange(HEADS).float(), softcap=5.0, scale=0.7)
    parts = trace.parts(1, 3)
    held = trace.sites[Site("decoder", 1)]
    assert isinstance(held, Recorded)
    assert torch.equal(parts["k"], held.call.k[0, 1])
    scores = 5.0 * torch.tanh(parts["scale"] * parts["q"] @ parts["k"].T / parts["softcap"]) + parts["bias"][0, 0]
    powers = scores.exp() * parts["mask"]
    weights = powers / (powers.sum(dim=-1, keepdim=True) + parts["sinks"].exp())
    torch.testing.assert_close(trace.weights(1, 3), weights, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(weights @ parts["v"], parts["output"], rtol=1e-5, atol=1e-5)
    assert parts["rows"] is None


def pooled(weights: Tensor, height: int, width: int) -> Tensor:
    """The maximum of each block, cell by cell; token t of T falls into cell t · n // T."""
    result = torch.full((weights.shape[0], height, width), -1.0)
    for t in range(weights.shape[1]):
        for s in range(weights.shape[2]):
            cell = result[:, t * height // weights.shape[1], s * width // weights.shape[2]]
            torch.maximum(cell, weights[:, t, s], out=cell)
    return result


@pytest.mark.parametrize("count", [1, 5, 16])
def test_the_overview_of_a_short_text_is_its_weights(count: int):
    trace = traced(count)
    exact(trace.overview(pixels=16), torch.stack([trace.weights(0), trace.weights(1)]))


@pytest.mark.parametrize(("count", "pixels"), [(17, 16), (32, 16), (37, 16), (50, 7), (33, 1)])
@pytest.mark.parametrize("budget", [1, 1000, 5000, 16_000_000])
def test_the_overview_of_a_long_text_is_the_maximum_of_each_block(
    monkeypatch: pytest.MonkeyPatch, count: int, pixels: int, budget: int
):
    """However many rows are taken at a time, and whether or not the blocks come out even."""
    trace = traced(count, dtype=torch.float64)
    expected = torch.stack([pooled(trace.weights(layer), pixels, pixels) for layer in (0, 1)])
    monkeypatch.setattr(module, "BLOCK_SCORES", budget)
    overview = trace.overview(pixels)
    assert (overview.dtype, tuple(overview.shape)) == (torch.float32, (2, HEADS, pixels, pixels))
    exact(overview, expected)


def test_the_overview_of_cross_attention_is_as_high_as_the_target_and_as_wide_as_the_source():
    trace = translated(source=40, target=5)
    exact(trace.overview(16, kind="cross")[0], pooled(trace.weights(0, kind="cross"), 5, 16))


def test_the_largest_weight_of_a_head_is_in_its_overview():
    trace = traced(100)
    for layer, thumbnails in enumerate(trace.overview()):
        exact(thumbnails.amax(dim=(1, 2)), trace.weights(layer).amax(dim=(1, 2)))


def test_returned_weights_are_shown_as_they_are_and_cannot_be_audited():
    trace, recorded = eager(), traced(6)
    assert (trace.backend, trace.layers(), trace.heads()) == ("eager", 2, HEADS)
    exact(trace.weights(1), recorded.weights(1))
    exact(trace.weights(1, 2, rows=slice(1, 4), cols=slice(0, 3)), recorded.weights(1, 2)[1:4, :3])
    exact(trace.mean(), recorded.mean())
    exact(trace.rows([4, 1]), recorded.rows([4, 1]))
    exact(trace.overview(), recorded.overview())
    exact(trace.overview(4), recorded.overview(4))
    assert torch.equal(trace.visible(0, 1), torch.ones(6, 6).tril().bool())
    audit = trace.audit()
    assert (audit.relative, audit.passed, audit.reason) == (None, False, "it has a path of its own")
    assert trace.nbytes == 2 * HEADS * 36 * 4


@pytest.mark.parametrize("what", ["scores", "parts"])
def test_returned_weights_have_no_scores_and_no_parts(what: str):
    with pytest.raises(ShapeError, match=r"Tiny returns weights only, so its .* cannot be shown"):
        getattr(eager(), what)(0, 0)


def test_three_kinds_have_three_pairs_of_axes():
    """A source of 9 tokens and a target of 5: cross-attention is 5 × 9, rows target, columns source."""
    trace = translated()
    assert trace.kinds == ("encoder", "decoder", "cross")
    axes: dict[Kind, tuple[str, int, str, int]] = {
        "encoder": ("t", 9, "t", 9),
        "decoder": ("u", 5, "u", 5),
        "cross": ("u", 5, "t", 9),
    }
    for kind, (row, rows, column, columns) in axes.items():
        assert [token.text for token in trace.queries(kind)] == [f"{row}{n}" for n in range(rows)]
        assert [token.text for token in trace.keys(kind)] == [f"{column}{n}" for n in range(columns)]
        assert trace.weights(1, kind=kind).shape == (HEADS, rows, columns)
        assert trace.mean(kind=kind).shape == (rows, columns)
        assert trace.rows([0, 4], kind=kind).shape == (2, HEADS, 2, columns)
        assert trace.overview(kind=kind).shape == (2, HEADS, rows, columns)
        assert trace.visible(0, 0, kind=kind).shape == (rows, columns)
        assert (trace.layers(kind), trace.heads(kind)) == (2, HEADS)
    assert trace.audit().passed


def test_a_single_kind_need_not_be_said():
    trace = traced(kind="encoder")
    assert trace.kinds == ("encoder",)
    assert trace.queries() == trace.keys() == trace.tokens == trace.prompt.tokens
    exact(trace.weights(0), trace.weights(0, kind="encoder"))
    assert trace.backend == "sdpa"


def refusals() -> Iterator[tuple[Callable[[], object], str]]:
    one, three = traced(), translated()
    yield lambda: one.weights(2), "Layer 2 does not exist: layers count from 0 to 1."
    yield lambda: one.weights(-1), "Layer -1 does not exist"
    yield lambda: one.weights(0, 4), "Head 4 does not exist: heads count from 0 to 3."
    yield lambda: one.visible(0, -1), "Head -1 does not exist"
    yield lambda: one.scores(0, 9), "Head 9 does not exist"
    yield lambda: one.parts(5, 0), "Layer 5 does not exist"
    yield lambda: one.mean(7), "Layer 7 does not exist"
    yield lambda: one.rows([1, 9]), "Query 9 does not exist: queries count from 0 to 8."
    yield lambda: one.rows([-1]), "Query -1 does not exist"
    yield lambda: one.weights(0, kind="cross"), "This run has attention of the kinds decoder; say one, not 'cross'."
    yield lambda: three.weights(0), "This run has attention of the kinds encoder, decoder, cross; say one, not None."
    yield lambda: three.overview(), "say one, not None"


@pytest.mark.parametrize(("ask", "sentence"), list(refusals()))
def test_what_does_not_exist_is_refused_with_a_sentence(ask: Callable[[], object], sentence: str):
    with pytest.raises(ShapeError) as refusal:
        ask()
    assert sentence in str(refusal.value)


def test_bytes_are_those_of_queries_keys_values_and_outputs():
    """Per layer 4 + 2 + 2 + 4 heads of 9 tokens of 4 numbers of 4 bytes: the weights themselves are not kept."""
    assert traced().nbytes == 2 * 12 * 9 * 4 * 4
    assert traced(mask=torch.ones(9, 9).bool()).nbytes == traced().nbytes + 81  # shared


def test_a_long_text_keeps_memory_in_proportion_to_its_length():
    """5,000 tokens: q, k and v in full, 64 rows of the output and their numbers, and nothing of 5,000 × 5,000."""
    assert traced(5000).nbytes == 2 * (8 * 5000 * 4 * 4 + 64 * 4 * 4 * 4 + 64 * 8)
