"""Positions inside a model: what each scheme does to the input, to queries and keys, or to the scores.

B batch, H heads, T queries, S keys, D head width, C model width.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from engine import Site, recording
from engine.attention import Call
from engine.positions import relative_buckets, sinusoidal_table
from engine.rotary import Layout, NTKAware, Scaling, YaRN, rotate
from engine.transformer import Decoder, Encoder, EncoderDecoder
from tests.small_transformers import SCHEMES, close, lively, small, some_ids

DISTANCES = torch.arange(7) - torch.arange(7)[:, None]  # key position minus query position, (T, S)


@torch.no_grad()
def calls_of(model: Encoder | Decoder, ids: Tensor, padding: Tensor | None = None) -> list[Call]:
    """What attention was given, layer by layer."""
    with recording() as recorder:
        model(ids, padding)
    return [recorded.call for _, recorded in sorted(recorder.recorded.items())]


@torch.no_grad()
@pytest.mark.parametrize("scheme", [name for name in SCHEMES if name != "none"])
def test_with_positions_order_makes_a_difference(scheme: str):
    encoder = lively(Encoder(small(**SCHEMES[scheme])))
    ids, order = some_ids(1, 7), [1, 0, 2, 3, 4, 5, 6]
    assert float((encoder(ids[:, order]) - encoder(ids)[:, order]).abs().max()) > 0.05


@torch.no_grad()
def test_alibi_read_both_ways_knows_distance_but_not_direction():
    """Its penalties are the same to either side, so a text read backwards gives the same vectors backwards."""
    encoder, ids = lively(Encoder(small(positions="alibi"))), some_ids(1, 7)
    close(encoder(ids.flip(1)).flip(1), encoder(ids))


@torch.no_grad()
@pytest.mark.parametrize("make", [Encoder, Decoder])
def test_positions_that_enter_at_the_input_are_added_once_before_the_first_layer(make: Any):
    """Tokens that read nothing of each other and are rewritten by nothing come out as embedding plus position."""
    schemes: list[tuple[dict[str, Any], Any]] = [
        ({"positions": "none"}, lambda table: torch.zeros(7, 16).double()),
        ({"positions": "learned"}, lambda table: table.weight[:7]),
        ({"positions": "learned", "reserved": 2}, lambda table: table.weight[2:9]),
        ({"positions": "sinusoidal"}, lambda table: sinusoidal_table(7, 16).double()),
    ]
    for scheme, expected in schemes:
        model = lively(make(small(final_norm=False, **scheme)))
        for block in model.stack.blocks:
            for parameter in (*block.attention.out.parameters(), *block.feed_forward.narrow.parameters()):
                parameter.zero_()
        ids, table = some_ids(2, 7), getattr(model.stack.positions, "table", None)
        close(model(ids), model.tokens.weight[ids] + expected(table), 1e-6)


@torch.no_grad()
@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("scaling", [Scaling(), NTKAware(4.0), YaRN(4.0, 16)])
@pytest.mark.parametrize("make", [Encoder, Decoder])
def test_rotary_turns_queries_and_keys_of_every_layer_by_their_places_and_values_by_nothing(
    make: Any, scaling: Scaling, layout: Layout
):
    config = small(kv_heads=2, positions="rotary", rotary_layout=layout, rotary_scaling=scaling, rotary_base=100.0)
    model, ids = lively(make(config)), some_ids(2, 7)
    inputs: list[Tensor] = []
    for block in model.stack.blocks:
        block.attention.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    angles = torch.arange(7).double()[:, None] * scaling.frequencies(4, 100.0).double()
    for call, x, block in zip(calls_of(model, ids), inputs, model.stack.blocks, strict=True):
        q, k, v = (
            part(x).unflatten(-1, (-1, 4)).transpose(1, 2)
            for part in (block.attention.q, block.attention.k, block.attention.v)
        )
        close(call.q, rotate(q, angles, layout, scaling.attention_factor))
        close(call.k, rotate(k, angles, layout, scaling.attention_factor))
        close(call.v, v)
        assert call.bias is None


@torch.no_grad()
@pytest.mark.parametrize("scheme", ["rotary", "rotary interleaved", "rotary, YaRN", "ALiBi", "relative"])
@pytest.mark.parametrize("make", [Encoder, Decoder])
def test_identical_tokens_score_by_their_distance_alone(make: Any, scheme: str):
    """The scores of a layer are constant along every diagonal, and differ between near and far."""
    model = lively(make(small(layers=1, **SCHEMES[scheme])))
    scores = calls_of(model, torch.full((1, 7), 5))[0].scores()
    close(scores[..., 1:, 1:], scores[..., :-1, :-1])
    assert float((scores[..., 6, 0] - scores[..., 6, 5]).abs().min()) > 1e-3


@torch.no_grad()
def test_alibi_with_identical_tokens_is_the_softmax_of_minus_slope_times_distance():
    """Four heads have slopes 1/4, 1/16, 1/64 and 1/256; the penalty is not divided by the root of the head width."""
    decoder = lively(Decoder(small(layers=1, positions="alibi")))
    weights = calls_of(decoder, torch.full((1, 7), 5))[0].weights()[0]
    slopes = torch.tensor([1 / 4, 1 / 16, 1 / 64, 1 / 256]).double()
    scores = (slopes[:, None, None] * DISTANCES).masked_fill(DISTANCES > 0, float("-inf"))
    close(weights, torch.softmax(scores, dim=-1))


@torch.no_grad()
@pytest.mark.parametrize("make", [Encoder, Decoder])
def test_relative_positions_add_the_number_of_each_distance_in_every_layer(make: Any):
    """One table for all layers; an encoder has numbers of their own for keys after the query, a decoder does not."""
    model = lively(make(small(layers=3, positions="relative", buckets=8, furthest=6)))
    buckets = relative_buckets(DISTANCES, 8, 6, both_ways=make is Encoder)
    for call in calls_of(model, some_ids(2, 7)):
        assert call.bias is not None
        close(call.bias, model.stack.positions.table.weight[buckets].permute(2, 0, 1)[None])
        plain = call.q @ call.k.mT / 2
        close(call.scores() - plain, call.bias.expand(2, 4, 7, 7))


@torch.no_grad()
def test_an_encoder_decoder_has_a_table_for_reading_and_one_for_writing_and_none_across():
    model = lively(EncoderDecoder(small(positions="relative", buckets=8, furthest=6)))
    with recording() as recorder:
        model(some_ids(1, 7), some_ids(1, 7))
    calls = {site: recorded.call for site, recorded in recorder.recorded.items()}
    for kind, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        buckets = relative_buckets(DISTANCES, 8, 6, both_ways=kind == "encoder")
        bias = calls[Site(kind, 1)].bias  # type: ignore[arg-type]
        assert bias is not None
        close(bias[0], stack.positions.get_parameter("table.weight")[buckets].permute(2, 0, 1))
    assert calls[Site("cross", 0)].bias is None
