"""Traces: exact slices of what was recorded, thumbnails against pooling written out, audits that notice.

B batch, H heads, G key-value heads, T queries, S keys, D head width.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine import trace as module
from engine.attention import attend
from engine.card import Card
from engine.errors import ShapeError
from engine.masks import Mask
from engine.recording import Recorded, recording
from engine.sites import Kind, Site
from engine.tokens import Prompt, Token
from engine.trace import Audit, Returned, Trace

HEADS, GROUPS, WIDTH = 4, 2, 4
NATIVE = Mask.native()


def card(*kinds: Kind, backend: str = "sdpa", reason: str = "") -> Card:
    return Card(
        id="tiny",
        name="Tiny",
        family="tiny",
        kinds=kinds,
        layers=2,
        heads=HEADS,
        kv_heads=GROUPS,
        windows=(None, None),
        positions="none",
        parameters=0,
        limit=None,
        licence="none",
        source="drawn at random",
        backend=backend,
        reason=reason,
        device="cpu",
        dtype="float32",
    )


def prompt(count: int, letter: str = "t") -> Prompt:
    tokens = tuple(Token(f"{letter}{n}", f"{letter}{n}", n, n, False, None, None) for n in range(count))
    return Prompt(" ".join(token.text for token in tokens), None, tokens, (), (), count)


class Stack:
    """Attention layers with random projections, one after another, nothing in between."""

    def __init__(self, kind: Kind, layers: int, dtype: torch.dtype, **extra: Any) -> None:
        draw = torch.Generator().manual_seed(len(kind))
        sizes = [(width * WIDTH, HEADS * WIDTH) for width in (HEADS, GROUPS, GROUPS)]
        self.projections = [
            [torch.randn(size, generator=draw).to(dtype) / WIDTH for size in sizes] for _ in range(layers)
        ]
        self.kind, self.extra = kind, extra

    def __call__(self, x: Tensor, source: Tensor | None = None) -> Tensor:
        for layer, projections in enumerate(self.projections):
            origins = (x, x if source is None else source, x if source is None else source)
            q, k, v = (
                (origin @ projection.T).unflatten(-1, (-1, WIDTH)).transpose(1, 2)  # (B, H, T, D)
                for origin, projection in zip(origins, projections, strict=True)
            )
            x = attend(Site(self.kind, layer), q, k, v, **self.extra).transpose(1, 2).flatten(2)
        return x


def text(count: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(1, count, HEADS * WIDTH, generator=torch.Generator().manual_seed(seed)).to(dtype)


def traced(
    count: int = 9,
    kind: Kind = "decoder",
    dtype: torch.dtype = torch.float32,
    imposed: Mask = NATIVE,
    **extra: Any,
) -> Trace:
    """A run of two layers over `count` random tokens, causal unless told otherwise."""
    with recording(imposed) as recorder:
        Stack(kind, 2, dtype, **({"mask": Mask.causal()} | extra))(text(count, dtype=dtype))
    return Trace(card(kind), prompt(count), None, imposed, recorder.recorded, 1.0)


def translated(source: int = 9, target: int = 5) -> Trace:
    """A run of an encoder, a decoder and the cross-attention from one to the other."""
    with recording() as recorder:
        memory = Stack("encoder", 2, torch.float32)(text(source))
        hidden = Stack("decoder", 2, torch.float32, mask=Mask.causal())(text(target, seed=1))
        Stack("cross", 2, torch.float32)(hidden, memory)
    kinds: tuple[Kind, ...] = ("encoder", "decoder", "cross")
    return Trace(card(*kinds), prompt(source), prompt(target, "u"), Mask.native(), recorder.recorded, 1.0)


def eager(count: int = 6) -> Trace:
    """The same run as a model would return it, weights alone."""
    sites = {site: Returned(held.weights()[None]) for site, held in traced(count).sites.items()}
    return Trace(
        card("decoder", backend="eager", reason="it has a path of its own"),
        prompt(count),
        None,
        Mask.native(),
        sites,
        1,
    )


def changed(trace: Trace, site: Site, change: Callable[[Recorded], Recorded]) -> Trace:
    held = trace.sites[site]
    assert isinstance(held, Recorded)
    return replace(trace, sites={**trace.sites, site: change(held)})


def exact(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-7)


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
