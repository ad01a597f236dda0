"""Recording: who hears what, what is imposed, what is kept, and how one sentence is cut out of a batch.

B batch, H heads, G key-value heads, T queries, S keys, D head width.
"""

import math
import threading
from collections.abc import Callable
from contextvars import copy_context
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.attention import attend, attention_weights
from engine.errors import CaptureError
from engine.masks import Mask, Visibility
from engine.recording import KEEP_ALL_ROWS, SAMPLED_ROWS, Recorded, audit_rows, current, recording
from engine.sites import Site

SITE, OTHER, CROSS = Site("decoder", 0), Site("decoder", 1), Site("cross", 0)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def qkv(
    batch: int = 1, heads: int = 4, groups: int = 2, tokens: int = 6, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    q = normal(batch, heads, tokens, 4, seed=seed)
    return q, normal(batch, groups, tokens, 4, seed=seed + 1), normal(batch, groups, tokens, 4, seed=seed + 2)


def exact(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


def in_thread(work: Callable[[], object]) -> None:
    """Run something in another thread and pass on what it raises."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001  (whatever it is, the test is to see it)
            failures.append(failure)

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def test_outside_a_recording_attend_is_heard_by_nobody():
    with recording() as recorder:
        pass
    attend(SITE, *qkv())
    assert recorder.recorded == {}
    assert current() is None


def test_inside_a_recording_what_went_in_and_out_is_kept():
    q, k, v = qkv()
    bias, sinks = normal(1, 4, 6, 6, seed=7), normal(4, seed=8)
    with recording() as recorder:
        output = attend(SITE, q, k, v, mask=Mask.causal(), scale=0.3, bias=bias, softcap=4.0, sinks=sinks)
    kept = recorder.recorded[SITE]
    assert all(a is b for a, b in ((kept.call.q, q), (kept.call.k, k), (kept.call.v, v), (kept.output, output)))
    assert (kept.call.scale, kept.call.softcap, kept.call.visibility) == (0.3, 4.0, Visibility(causal=True))
    expected = attention_weights(q, k, mask=Mask.causal(), scale=0.3, bias=bias, softcap=4.0, sinks=sinks)
    exact(kept.weights(), expected[0])
    assert (kept.heads, kept.kv_heads, kept.queries, kept.keys) == (4, 2, 6, 6)


def test_recording_changes_no_output():
    alone = attend(SITE, *qkv(), mask=Mask.causal())
    with recording():
        assert torch.equal(attend(SITE, *qkv(), mask=Mask.causal()), alone)


def test_a_call_without_a_site_is_not_recorded_and_nothing_is_imposed_on_it():
    with recording(mask=Mask.causal()) as recorder:
        output = attend(None, *qkv())
    assert recorder.recorded == {}
    assert torch.equal(output, attend(None, *qkv()))


def test_the_inner_of_two_recordings_hears_and_the_outer_goes_on_after_it():
    with recording() as outer:
        attend(SITE, *qkv())
        with recording(mask=Mask.window(1)) as inner:
            attend(SITE, *qkv())
        attend(OTHER, *qkv())
    assert set(outer.recorded) == {SITE, OTHER}
    assert set(inner.recorded) == {SITE}
    exact(outer.recorded[OTHER].weights(), attention_weights(*qkv()[:2])[0])


def test_a_recording_that_fails_stops_listening():
    with pytest.raises(RuntimeError, match="broken"), recording():
        raise RuntimeError("broken")
    assert current() is None


def test_a_thread_is_not_heard_by_the_recording_of_another():
    with recording() as recorder:
        in_thread(lambda: attend(SITE, *qkv()))
    assert recorder.recorded == {}


def test_threads_at_the_same_time_record_each_their_own():
    meet, kept = threading.Barrier(4), dict[int, Recorded]()

    def work(number: int) -> None:
        with recording(mask=Mask.window(number + 1)) as recorder:
            meet.wait(timeout=30)
            attend(SITE, *qkv(seed=number))
            meet.wait(timeout=30)
        kept[number] = recorder.recorded[SITE]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        q, k, _ = qkv(seed=number)
        exact(kept[number].weights(), attention_weights(q, k, mask=Mask.window(number + 1))[0])


def test_a_copied_context_is_heard():
    """A thread that is handed the caller's context speaks for the caller."""
    with recording() as recorder:
        context = copy_context()
        in_thread(lambda: context.run(attend, SITE, *qkv()))
    assert set(recorder.recorded) == {SITE}


def test_a_site_that_reports_twice_is_refused():
    with recording():
        attend(SITE, *qkv())
        with pytest.raises(CaptureError, match="decoder layer 0 ran twice in one pass"):
            attend(SITE, *qkv())


@pytest.mark.parametrize(
    "mask", [Mask.causal(), Mask.bidirectional(), Mask.window(2), Mask.prefix(3), Mask.document([2, 4])]
)
@pytest.mark.parametrize("own", [Mask.causal(), None])
def test_an_imposed_mask_changes_the_output_and_is_what_is_recorded(mask: Mask, own: Mask | None):
    q, k, v = qkv()
    with recording(mask=mask) as recorder:
        output = attend(SITE, q, k, v, mask=own)
    exact(output, attend(None, q, k, v, mask=mask))
    exact(recorder.recorded[SITE].weights(), attention_weights(q, k, mask=mask)[0])
    if own != mask and not (own is None and mask == Mask.bidirectional()):
        assert not torch.equal(output, attend(None, q, k, v, mask=own))


def test_an_imposed_causal_mask_is_kept_as_the_rule():
    with recording(mask=Mask.causal(), padding={"decoder": torch.ones(1, 6).bool()}) as recorder:
        attend(SITE, *qkv(), mask=torch.rand(6, 6) > 0.5)
    assert recorder.recorded[SITE].call.visibility == Visibility(causal=True)


def test_cutting_a_pair_out_of_what_the_model_has_leaves_the_rest_of_its_mask():
    with recording(mask=Mask.native() & Mask.blocking([(4, 2)])) as recorder:
        attend(SITE, *qkv(), mask=Mask.causal())
    seen = recorder.recorded[SITE].visible(0)
    expected = torch.ones(6, 6).tril().bool()
    expected[4, 2] = False
    assert seen is not None
    assert torch.equal(seen, expected)


def test_padding_stays_hidden_under_an_imposed_mask():
    q, k, v = qkv(batch=2)
    real = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    with recording(mask=Mask.bidirectional(), padding={"decoder": real}) as recorder:
        output = attend(SITE, q, k, v, mask=Visibility(causal=True, tensor=real[:, None, None, :]))
    exact(output, attend(None, q, k, v, mask=real[:, None, None, :]))
    assert not recorder.recorded[SITE].call.weights()[1, ..., 4:].any()


def test_padding_speaks_only_for_its_own_kind():
    real = torch.tensor([[True] * 3 + [False] * 3])
    with recording(mask=Mask.bidirectional(), padding={"encoder": real}) as recorder:
        attend(SITE, *qkv())
        attend(Site("encoder", 0), *qkv())
    assert recorder.recorded[SITE].visible(0) is None
    assert not recorder.recorded[Site("encoder", 0)].weights()[..., 3:].any()


def test_nothing_is_imposed_on_cross_attention():
    q, k, v = qkv()
    with recording(mask=Mask.causal(), padding={"cross": torch.zeros(1, 6).bool()}) as recorder:
        output = attend(CROSS, q, k, v)
    exact(output, attend(None, q, k, v))
    assert recorder.recorded[CROSS].visible(0) is None


def test_a_mask_on_one_head_of_one_layer_stays_there():
    q, k, v = qkv()
    with recording(mask=Mask.window(1).only(layers=[1], heads=[2])) as recorder:
        attend(SITE, q, k, v, mask=Mask.causal())
        output = attend(OTHER, q, k, v, mask=Mask.causal())
    own = attention_weights(q, k, mask=Mask.causal())[0]
    exact(recorder.recorded[SITE].weights(), own)
    exact(recorder.recorded[OTHER].weights()[[0, 1, 3]], own[[0, 1, 3]])
    exact(recorder.recorded[OTHER].weights()[2], torch.eye(6).double())
    exact(output[:, 2], v[:, 1])


def ingredients(name: str) -> dict[str, Any]:
    """Masks and biases of every shape that fits two sentences, four heads and six tokens."""
    seen = torch.rand(2, 4, 6, 6, generator=torch.Generator().manual_seed(5)) > 0.3
    bias = normal(2, 4, 6, 6, seed=6)
    every: dict[str, dict[str, Any]] = {
        "nothing": {},
        "causal": {"mask": Mask.causal()},
        "mask of all axes": {"mask": seen},
        "mask of keys": {"mask": seen[:, :1, :1]},
        "mask of heads": {"mask": seen[0]},
        "mask of pairs": {"mask": seen[0, 0]},
        "causal and keys": {"mask": Visibility(causal=True, tensor=seen[:, :1, :1])},
        "bias of all axes": {"bias": bias},
        "bias of heads": {"bias": bias[0]},
        "bias of keys": {"bias": bias[0, :, :1], "softcap": 3.0, "sinks": normal(4, seed=9)},
    }
    return every[name]


NAMES = (
    "nothing",
    "causal",
    "mask of all axes",
    "mask of keys",
    "mask of heads",
    "mask of pairs",
    "causal and keys",
    "bias of all axes",
    "bias of heads",
    "bias of keys",
)


@pytest.mark.parametrize("name", NAMES)
def test_one_head_has_the_weights_it_has_among_all(name: str):
    with recording() as recorder:
        attend(SITE, *qkv(batch=2), **ingredients(name))
    kept = recorder.recorded[SITE].item(1, slice(None), slice(None))
    rows = torch.tensor([5, 0, 2])
    for head in range(4):
        exact(kept.weights(head), kept.weights()[head])
        exact(kept.weights(head, rows), kept.weights()[head][rows])
        seen = kept.visible(head)
        full = torch.ones(6, 6).bool() if seen is None else seen.expand(6, 6)
        assert torch.equal(full, kept.weights(head) > 0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cut", [slice(0, 6), slice(0, 4), slice(0, 1), slice(2, 6), slice(None, None)])
def test_a_sentence_cut_out_of_a_batch_has_its_rows_and_columns_of_the_whole(name: str, cut: slice):
    with recording() as recorder:
        output = attend(SITE, *qkv(batch=2), **ingredients(name))
    whole = recorder.recorded[SITE]
    for index in (0, 1):
        item = whole.item(index, cut, cut)
        exact(item.output, output[index : index + 1, :, cut])
        exact(item.call.scores()[0], whole.call.scores()[index][:, cut, cut])
        seen, every = item.call.visible(), whole.call.visible()
        count = len(range(*cut.indices(6)))
        shown = torch.ones(4, count, count).bool() if seen is None else seen.expand(1, 4, count, count)[0]
        expected = torch.ones(2, 4, 6, 6).bool() if every is None else every.expand(2, 4, 6, 6)
        assert torch.equal(shown, expected[index][:, cut, cut])


@settings(deadline=None)
@given(
    lengths=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    left=st.booleans(),
    mask=st.sampled_from(
        [Mask.native(), Mask.causal(), Mask.bidirectional(), Mask.window(2), Mask.native() & Mask.window(3)]
    ),
    own=st.sampled_from([Mask.causal(), Mask.bidirectional()]),
)
def test_a_sentence_without_its_padding_attends_as_it_does_alone(
    lengths: tuple[int, int], left: bool, mask: Mask, own: Mask
):
    """Padded on the right or the left, masked natively or not: cropped, the weights are those of the item alone."""
    longest = max(lengths)
    cuts = [slice(longest - count, longest) if left else slice(0, count) for count in lengths]
    real = torch.zeros(2, longest).bool()
    alone = [qkv(tokens=count, seed=10 * index) for index, count in enumerate(lengths)]
    batch = [torch.full((2, tensor.shape[1], longest, 4), 50.0).double() for tensor in alone[0]]
    for index, cut in enumerate(cuts):
        real[index, cut] = True
        for filled, tensor in zip(batch, alone[index], strict=True):
            filled[index, :, cut] = tensor[0]
    native = Visibility(causal=own == Mask.causal(), tensor=real[:, None, None, :])
    with recording(mask=mask, padding={"decoder": real}) as recorder:
        attend(SITE, batch[0], batch[1], batch[2], mask=native)
    for index, cut in enumerate(cuts):
        with recording(mask=mask) as by_itself:
            output = attend(SITE, *alone[index], mask=own)
        item = recorder.recorded[SITE].item(index, cut, cut)
        exact(item.weights(), by_itself.recorded[SITE].weights())
        exact(item.output, output)


def test_a_sentence_pair_is_cut_by_target_and_source():
    q, k, v = normal(2, 4, 5, 4), normal(2, 4, 9, 4, seed=1), normal(2, 4, 9, 4, seed=2)
    real = torch.arange(9) < torch.tensor([9, 7])[:, None]
    with recording() as recorder:
        attend(CROSS, q, k, v, mask=real[:, None, None, :])
    item = recorder.recorded[CROSS].item(1, slice(0, 3), slice(0, 7))
    exact(item.weights(), attention_weights(q[1:, :, :3], k[1:, :, :7])[0])


def test_up_to_2048_queries_every_row_of_the_output_is_kept():
    q = torch.zeros(1, 1, KEEP_ALL_ROWS, 1)
    with recording() as recorder:
        attend(SITE, q, q[:, :, :1], q[:, :, :1])
    assert recorder.recorded[SITE].rows is None
    assert recorder.recorded[SITE].output.shape[2] == 2048


def test_beyond_2048_queries_64_rows_are_kept_and_the_caller_still_gets_all():
    q, k, v = torch.randn(2, 2, 5000, 2), torch.randn(2, 2, 3, 2), torch.randn(2, 2, 3, 2)
    with recording() as recorder:
        output = attend(SITE, q, k, v)
    kept = recorder.recorded[SITE]
    assert output.shape == (2, 2, 5000, 2)
    assert kept.output.shape == (2, 2, 64, 2)
    assert kept.rows is not None
    assert torch.equal(kept.output, output[:, :, kept.rows])
    assert kept.call.q.shape[2] == 5000

    item = kept.item(1, slice(0, 1000), slice(None))
    assert item.rows is not None
    assert item.rows.tolist() == [row for row in kept.rows.tolist() if row < 1000]
    assert torch.equal(item.output, output[1:, :, item.rows])
    item = kept.item(1, slice(1000, 5000), slice(None))
    assert item.rows is not None
    assert torch.equal(item.output, output[1:, :, item.rows + 1000])
    assert int(item.rows[-1]) == 3999


@pytest.mark.parametrize("queries", [513, 4097, 100_000])
def test_audited_rows_are_64_different_ones_with_the_first_and_the_last(queries: int):
    rows = audit_rows(queries, torch.device("cpu")).tolist()
    assert (len(rows), rows[0], rows[-1]) == (SAMPLED_ROWS, 0, queries - 1)
    assert rows == sorted(set(rows))
    steps = [after - before for before, after in pairwise(rows)]
    assert max(steps) - min(steps) <= 1


def test_bytes_are_counted_from_what_is_kept():
    """q 4·6·4, k and v 2·6·4, output 4·6·4 numbers of 8 bytes; the causal rule costs nothing."""
    with recording() as recorder:
        attend(SITE, *qkv(), mask=Mask.causal())
        attend(OTHER, *qkv(), mask=torch.ones(6, 6).bool(), bias=normal(4, 6, 6))
    plain, masked = (sum(held.nbytes for held in recorder.recorded[site].tensors) for site in (SITE, OTHER))
    assert plain == 8 * (96 + 48 + 48 + 96)
    assert masked == plain + 36 + 8 * 144


def test_recorded_weights_of_a_row_that_sees_nothing_are_zeros():
    with recording(mask=Mask.native() & Mask.blocking((0, key) for key in range(6))) as recorder:
        output = attend(SITE, *qkv(), mask=Mask.causal())
    assert not recorder.recorded[SITE].weights()[:, 0].any()
    assert not output[:, :, 0].any()
    assert not math.isnan(float(output.sum()))
