"""The cache of keys and values: reading piece by piece is reading at once, whatever the model and the pieces.

B batch, L layers, H heads, G key-value heads, T queries, S keys, D head width, V vocabulary.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine import Site, recording
from engine.blocks import Cache
from engine.errors import ShapeError
from engine.presets import build, preset
from engine.transformer import Decoder, EncoderDecoder
from tests.small_transformers import SCHEMES, close, lively, maps_of, normal, small, some_ids

PIECES = ([1] * 9, [4, 1, 3, 1], [1, 7, 1], [9])
VARIANTS: dict[str, dict[str, Any]] = {
    "as GPT-2": {},
    "as Llama": {"kv_heads": 2, "norm": "rms", "activation": "swiglu", "bias": False},
    "multi-query, post-norm": {"kv_heads": 1, "norm_place": "post"},
    "a window shorter than the text": {"kv_heads": 2, "window": 3},
    "normed and capped": {"qk_norm": True, "softcap": 1.5, "window": 4},
    "heads of another width": {"heads": 3, "head_width": 6},
}


@torch.no_grad()
def in_pieces(model: Decoder, ids: Tensor, counts: list[int]) -> tuple[Tensor, list[dict[Site, Tensor]], Cache]:
    """Read a text piece by piece: all outputs in a row, the maps of every piece, the cache at the end."""
    cache, outputs, maps = Cache(), [], []
    for piece in ids.split(counts, dim=1):
        output, seen = maps_of(model, piece, cache=cache)
        outputs.append(output)
        maps.append(seen)
    return torch.cat(outputs, dim=1), maps, cache


@pytest.mark.parametrize("variant", list(VARIANTS))
@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_reading_in_pieces_is_reading_at_once(scheme: str, variant: str):
    """Outputs, and of every piece the map: T new rows over all S keys so far, which are the rows of the whole map."""
    model = lively(Decoder(small(**VARIANTS[variant], **SCHEMES[scheme])))
    ids = some_ids(2, 9)
    whole, whole_maps = maps_of(model, ids)
    for counts in PIECES:
        pieced, maps, cache = in_pieces(model, ids, counts)
        close(pieced, whole)
        assert cache.length == 9
        start = 0
        for count, seen in zip(counts, maps, strict=True):
            assert set(seen) == set(whole_maps)
            stop = start + count
            for site, weights in seen.items():
                assert weights.shape == (2, model.config.heads, count, stop)
                close(weights, whole_maps[site][:, :, start:stop, :stop])
            start = stop


@settings(deadline=None, max_examples=40)
@given(
    counts=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    groups=st.sampled_from([1, 2, 4]),
    window=st.sampled_from([None, 1, 2, 5]),
    scheme=st.sampled_from(list(SCHEMES)),
)
def test_any_pieces_do(counts: list[int], groups: int, window: int | None, scheme: str):
    model = lively(Decoder(small(kv_heads=groups, window=window, **SCHEMES[scheme])))
    ids = some_ids(1, sum(counts))
    close(in_pieces(model, ids, counts)[0], model(ids).detach())


@torch.no_grad()
@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_texts_padded_on_the_left_go_on_where_they_are(scheme: str):
    """Their old padding stays hidden, and their places count from their first real token."""
    model = lively(Decoder(small(kv_heads=2, window=4, **SCHEMES[scheme])))
    ids, real = some_ids(2, 8), torch.arange(8) >= torch.tensor([[0], [3]])
    cache = Cache()
    pieces = [model(ids[:, :5], real[:, :5], cache), model(ids[:, 5:6], real[:, :6], cache)]
    pieces.append(model(ids[:, 6:], real, cache))
    together = torch.cat(pieces, dim=1)
    assert together.isfinite().all()
    close(together[0], model(ids[:1])[0])
    close(together[1, 3:], model(ids[1:, 3:])[0])


@torch.no_grad()
@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_a_translation_is_written_with_a_cache_as_without(scheme: str):
    """Only what was written is kept: across, keys and values come from the memory anew."""
    model = lively(EncoderDecoder(small(decoder_layers=3, head="tied", **SCHEMES[scheme])))
    ids, target = some_ids(2, 6), some_ids(2, 7, seed=1)
    real = torch.arange(6) < torch.tensor([[6], [4]])
    whole, whole_maps = maps_of(model, ids, target, real)
    memory, cache, start = model.encode(ids, real), Cache(), 0
    for count in (3, 1, 1, 2):
        with recording() as recorder:
            piece = model.decode(target[:, start : start + count], memory, real, cache=cache)
        close(piece, whole[:, start : start + count])
        for site, recorded in recorder.recorded.items():
            rows = whole_maps[site][:, :, start : start + count]
            close(recorded.call.weights(), rows if site.kind == "cross" else rows[..., : start + count])
        start += count
    assert cache.length == 7
    assert set(cache.held) == {Site("decoder", layer) for layer in range(3)}
    written = target[:, :2]
    for _ in range(5):
        written = torch.cat([written, model.logits(model(ids, written, real))[:, -1:].argmax(dim=-1)], dim=1)
    assert torch.equal(model.generate(ids, target[:, :2], 5, real), written)


@torch.no_grad()
@pytest.mark.parametrize("scheme", list(SCHEMES))
@pytest.mark.parametrize("head", ["tied", "own"])
def test_generating_writes_the_likeliest_token_of_a_full_pass_each_time(scheme: str, head: str):
    model = lively(Decoder(small(kv_heads=2, window=5, head=head, **SCHEMES[scheme])))
    ids = some_ids(3, 4)
    expected = ids
    for _ in range(8):
        expected = torch.cat([expected, model.logits(model(expected))[:, -1:].argmax(dim=-1)], dim=1)
    assert torch.equal(model.generate(ids, 8), expected)
    assert torch.equal(model.generate(ids, 0), ids)
    assert len(set(expected[:, 4:].flatten().tolist())) > 1  # not one word over and over


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_cache_takes_2_l_g_d_n_numbers(groups: int, dtype: torch.dtype):
    """Keys and values, for every layer, key-value head and token; for three texts three times as many."""
    model = lively(Decoder(small(layers=3, kv_heads=groups, head_width=5)), dtype=dtype)
    for texts in (1, 3):
        _, _, cache = in_pieces(model, some_ids(texts, 9), [4, 5])
        assert cache.length == 9
        assert cache.nbytes == 2 * 3 * groups * 5 * 9 * dtype.itemsize * texts


@torch.no_grad()
@pytest.mark.parametrize(("kv_heads", "gibibytes"), [(8, 1), (32, 4)])
def test_llama_3_8b_keeps_a_gibibyte_for_8192_tokens_and_four_without_grouping(kv_heads: int, gibibytes: int):
    """In bfloat16, read on the meta device: 2 · 32 · 8 · 128 · 8192 · 2 bytes."""
    config = replace(preset("llama-3-8b").config, kv_heads=kv_heads)
    model, cache = build(Decoder, config, device="meta").to(torch.bfloat16), Cache()
    model(torch.zeros(1, 8192, dtype=torch.long, device="meta"), cache=cache)
    assert cache.length == 8192
    assert cache.nbytes == gibibytes * 1_073_741_824


@torch.no_grad()
def test_a_cache_does_not_reach_beyond_the_learned_positions():
    model, cache = lively(Decoder(small(length=6))), Cache()
    model(some_ids(1, 5), cache=cache)
    model(some_ids(1, 1), cache=cache)
    with pytest.raises(ShapeError, match="7 tokens do not fit into 6 learned positions"):
        model(some_ids(1, 1), cache=cache)
    assert cache.length == 6


@settings(deadline=None)
@given(counts=st.lists(st.integers(1, 4), min_size=1, max_size=4), groups=st.integers(1, 3))
def test_a_cache_keeps_keys_and_values_in_the_order_in_which_they_came(counts: list[int], groups: int):
    """Those of either layer by themselves; length and bytes count what is held."""
    cache, total = Cache(), sum(counts)
    k, v = normal(2, groups, total, 4), normal(2, groups, total, 4, seed=1)
    for new_k, new_v in zip(k.split(counts, dim=2), v.split(counts, dim=2), strict=True):
        held = cache.extend(Site("decoder", 0), new_k, new_v)
        cache.extend(Site("decoder", 1), -new_k, -new_v)
    assert torch.equal(held[0], k)
    assert torch.equal(held[1], v)
    assert torch.equal(cache.held[Site("decoder", 1)][0], -k)
    assert torch.equal(cache.held[Site("decoder", 1)][1], -v)
    assert cache.length == total
    assert cache.nbytes == 2 * 2 * (2 * groups * total * 4) * 8


def test_an_empty_cache_holds_nothing():
    assert Cache().length == Cache().nbytes == 0
