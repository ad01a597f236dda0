"""Whole transformers: what must hold whatever their weights, closed forms, and sizes at the edge.

B batch, L layers, H heads, G key-value heads, T tokens, S keys, D head width, C model width, V vocabulary.
"""

from typing import Any, get_args

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from engine import CaptureError, Site, recording
from engine.blocks import Stack, places_of
from engine.config import Activation, Config
from engine.errors import ShapeError
from engine.presets import build
from engine.transformer import (
    Decoder,
    Encoder,
    EncoderDecoder,
    TextClassifier,
    VisionTransformer,
    sentence_embedding,
)
from tests.small_transformers import SCHEMES, close, lively, maps_of, normal, small, some_ids

VISION = small(image=6, patch=2, length=10)
# Every class with sizes that fit it and an input for it.
MODELS: dict[str, tuple[Any, Config, tuple[Tensor, ...]]] = {
    "encoder": (Encoder, small(head="tied", pooler=True, segments=2), (some_ids(2, 5),)),
    "decoder": (Decoder, small(head="own", kv_heads=2), (some_ids(2, 5),)),
    "encoder-decoder": (
        EncoderDecoder,
        small(layers=2, decoder_layers=3, head="tied"),
        (some_ids(2, 5), some_ids(2, 4)),
    ),
    "vision": (VisionTransformer, VISION, (normal(2, 3, 6, 6, dtype=torch.float32),)),
    "classifier": (TextClassifier, small(classes=2), (some_ids(2, 5),)),
}


def cast(inputs: tuple[Tensor, ...], dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Give images, unlike ids, the model's precision."""
    return tuple(tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in inputs)


@pytest.mark.parametrize(
    ("name", "sites"),
    [
        ("encoder", {("encoder", 0): (5, 5), ("encoder", 1): (5, 5)}),
        ("decoder", {("decoder", 0): (5, 5), ("decoder", 1): (5, 5)}),
        (
            "encoder-decoder",
            {("encoder", layer): (5, 5) for layer in range(2)}
            | {("decoder", layer): (4, 4) for layer in range(3)}
            | {("cross", layer): (4, 5) for layer in range(3)},
        ),
        ("vision", {("vision", 0): (10, 10), ("vision", 1): (10, 10)}),
        ("classifier", {("encoder", 0): (5, 5), ("encoder", 1): (5, 5)}),
    ],
)
def test_a_run_records_exactly_the_sites_that_a_model_has(name: str, sites: dict[Any, tuple[int, int]]):
    """Each once, with queries before keys; the recorded weights times the values are the recorded output."""
    make, config, inputs = MODELS[name]
    model = lively(make(config), dtype=torch.float32)
    with torch.no_grad(), recording() as recorder:
        model(*inputs)
    assert {(site.kind, site.layer) for site in recorder.recorded} == set(sites)
    for site, recorded in recorder.recorded.items():
        weights = recorded.call.weights()
        assert weights.shape == (2, 4, *sites[site.kind, site.layer])
        assert recorded.kv_heads == config.G
        values = recorded.call.v.repeat_interleave(4 // config.G, dim=1)
        close(weights @ values, recorded.output)
        close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))


def test_recording_does_not_change_the_output():
    for make, config, inputs in MODELS.values():
        model = lively(make(config), dtype=torch.float32)
        recorded, _ = maps_of(model, *inputs)
        assert torch.equal(recorded, model(*inputs))


def test_two_runs_in_one_recording_are_refused():
    model = lively(Encoder(small()))
    with recording():
        model(some_ids(1, 3))
        with pytest.raises(CaptureError, match="encoder layer 0 ran twice"):
            model(some_ids(1, 3))


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@torch.no_grad()
def test_a_model_keeps_its_precision(name: str, dtype: torch.dtype):
    """From the embedding to the head; bfloat16 stays within its two digits of float64."""
    make, config, inputs = MODELS[name]
    exact = lively(make(config))
    expected = exact(*cast(inputs, torch.float64))
    model = lively(make(config), dtype=dtype)
    vectors = model(*cast(inputs, dtype))
    assert vectors.dtype == dtype
    assert float((vectors.double() - expected).abs().mean()) < 0.1
    if config.head != "none" or config.classes:
        assert model.logits(vectors).dtype == dtype


@pytest.mark.parametrize("scheme", list(SCHEMES))
@pytest.mark.parametrize("make", [Encoder, Decoder])
def test_every_scheme_of_positions_works_in_bfloat16_and_on_the_meta_device(make: Any, scheme: str):
    config = small(kv_heads=2, window=3, **SCHEMES[scheme])
    vectors = lively(make(config), dtype=torch.bfloat16)(some_ids(2, 5))
    assert vectors.dtype == torch.bfloat16
    assert vectors.isfinite().all()
    shape_only = build(make, config, device="meta")(some_ids(2, 5).to("meta"))
    assert shape_only.is_meta
    assert shape_only.shape == vectors.shape


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_works_on_the_meta_device(name: str):
    make, config, inputs = MODELS[name]
    vectors = build(make, config, device="meta")(*(tensor.to("meta") for tensor in inputs))
    assert vectors.is_meta
    assert vectors.shape == lively(make(config), dtype=torch.float32)(*inputs).shape


@pytest.mark.parametrize("name", list(MODELS))
def test_dropout_acts_only_while_training(name: str):
    """Half of everything set to zero, yet two runs agree, until `train()` is called and after `eval()`."""
    make, config, inputs = MODELS[name]
    model = build(make, small(**{**vars(config), "dropout": 0.5}))
    assert not model.training
    torch.manual_seed(0)
    still = model(*inputs)
    assert torch.equal(still, model(*inputs))
    without = build(make, config)
    assert torch.equal(still, without(*inputs))
    model.train()
    first, maps = maps_of(model, *inputs)
    assert not torch.equal(first, model(*inputs))
    for weights in maps.values():
        close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
    assert torch.equal(still, model.eval()(*inputs))


@torch.no_grad()
def test_each_part_of_a_layer_is_dropped_by_itself_while_training():
    """With what the parts say dropped as good as always, only the tokens remain, or zeros once those go as well."""
    model = lively(Encoder(small(dropout=1 - 1e-12, positions="none", final_norm=False)))
    ids = some_ids(2, 5)
    model.stack.dropout.eval()
    model.stack.blocks.train()
    torch.manual_seed(0)
    close(model.stack(model.tokens(ids)), model.tokens(ids))
    model.train()
    assert not model(ids).any()


@torch.no_grad()
@pytest.mark.parametrize("norm_place", ["pre", "post"])
def test_without_positions_and_mask_permuting_the_tokens_permutes_the_output(norm_place: Any):
    encoder = lively(Encoder(small(positions="none", layers=3, norm_place=norm_place)))
    ids, order = some_ids(2, 7), torch.randperm(7, generator=torch.Generator().manual_seed(0))
    close(encoder(ids[:, order]), encoder(ids)[:, order])


@torch.no_grad()
def test_identical_tokens_read_causally_without_positions_attend_to_1_over_t_plus_1_in_every_layer():
    """Nothing tells the tokens apart, so all layers spread evenly (Gu et al. 2025, 2410.10781)."""
    decoder = lively(Decoder(small(positions="none", layers=3)))
    output, maps = maps_of(decoder, torch.full((2, 8), 7))
    expected = (torch.ones(8, 8).double().tril() / torch.arange(1.0, 9.0).double()[:, None]).expand(2, 4, 8, 8)
    for layer in range(3):
        close(maps[Site("decoder", layer)], expected, 1e-13)
    close(output, output[:, :1].expand_as(output))


@torch.no_grad()
def test_equal_keys_spread_evenly_over_the_visible_past_whatever_the_text():
    """With no key matrix all keys are alike: row t is 1 / (t + 1)."""
    decoder = lively(Decoder(small(positions="none")))
    for block in decoder.stack.blocks:
        block.attention.k.weight.zero_()  # type: ignore[union-attr,operator]
    _, maps = maps_of(decoder, some_ids(2, 8))
    expected = (torch.ones(8, 8).double().tril() / torch.arange(1.0, 9.0).double()[:, None]).expand(2, 4, 8, 8)
    for weights in maps.values():
        close(weights, expected, 1e-13)


@pytest.mark.parametrize("count", [1, 2, 8])
def test_a_decoder_shows_n_times_n_plus_1_over_2_pairs(count: int):
    """Eight tokens see 36 pairs; what was not seen got exactly nothing."""
    decoder = lively(Decoder(small()))
    with torch.no_grad(), recording() as recorder:
        decoder(some_ids(1, count))
    for recorded in recorder.recorded.values():
        seen = recorded.call.visible()
        assert seen is not None
        assert int(seen.sum()) == count * (count + 1) // 2
        assert torch.equal(recorded.call.weights()[0] > 0, seen.expand(4, count, count))


@pytest.mark.parametrize("window", [1, 2, 3, 50])
@pytest.mark.parametrize("make", [Encoder, Decoder])
def test_a_window_of_n_shows_keys_nearer_than_n(make: Any, window: int):
    """A window of 1 is the token alone; a decoder's has n keys, the token itself among them."""
    _, maps = maps_of(lively(make(small(window=window))), some_ids(2, 6))
    expected = [[abs(t - s) < window and (make is Encoder or s <= t) for s in range(6)] for t in range(6)]
    for weights in maps.values():
        assert torch.equal(weights > 0, torch.tensor(expected).expand(2, 4, 6, 6))


@torch.no_grad()
def test_later_tokens_change_nothing_for_a_decoder():
    for scheme in SCHEMES.values():
        decoder = lively(Decoder(small(kv_heads=1, **scheme)))
        ids, other = some_ids(2, 7), some_ids(2, 7, seed=1)
        mixed = torch.cat([ids[:, :4], other[:, 4:]], dim=1)
        close(decoder(mixed)[:, :4], decoder(ids)[:, :4])


@torch.no_grad()
def test_the_input_is_the_sum_of_token_segment_and_position_normed_where_asked():
    """With every layer silent nothing else is left."""
    for normed in (False, True):
        encoder = lively(Encoder(small(segments=3, embedding_norm=normed, final_norm=False)))
        for block in encoder.stack.blocks:
            for part in (block.attention.out, block.feed_forward.narrow):  # type: ignore[union-attr]
                for parameter in part.parameters():  # type: ignore[union-attr]
                    parameter.zero_()
        ids, segments = some_ids(2, 5), torch.tensor([[0, 0, 1, 1, 2]]).expand(2, 5)
        expected = encoder.tokens.weight[ids] + encoder.segments.weight[segments]
        expected = expected + encoder.stack.positions.table.weight[:5]  # type: ignore[union-attr,index]
        if normed:
            norm = encoder.stack.embedding_norm
            expected = F.layer_norm(expected, (16,), norm.weight, norm.bias, 1e-5)  # type: ignore[arg-type]
        close(encoder(ids, segments=segments), expected)
    close(encoder(ids), encoder(ids, segments=torch.zeros_like(ids)))


@torch.no_grad()
def test_heads_score_by_the_embedding_or_a_matrix_of_their_own():
    x = normal(2, 5, 16)
    tied, own = (lively(Decoder(small(head=head, head_scale=0.25))) for head in ("tied", "own"))
    close(tied.logits(x), x / 4 @ tied.tokens.weight.T)
    close(own.logits(x), x / 4 @ own.head.own.T)
    assert "head.own" not in tied.state_dict()
    encoder = lively(Encoder(small(head="tied", pooler=True)))
    close(encoder.pooled(x), torch.tanh(encoder.pooler(x[:, 0])))
    bent = F.gelu(encoder.head.dense(x))
    normed = F.layer_norm(bent, (16,), encoder.head.norm.weight, encoder.head.norm.bias)  # type: ignore[arg-type]
    close(encoder.logits(x), normed @ encoder.tokens.weight.T + encoder.head.bias)


def test_the_vector_of_a_text_is_the_mean_of_its_real_tokens_or_its_first():
    x = torch.arange(24.0).view(2, 4, 3)
    real = torch.tensor([[True, True, True, False], [False, False, True, True]])
    assert torch.equal(sentence_embedding(x), x.mean(dim=1))
    assert torch.equal(sentence_embedding(x, real), torch.stack([x[0, :3].mean(dim=0), x[1, 2:].mean(dim=0)]))
    assert torch.equal(sentence_embedding(x, real, "first"), torch.stack([x[0, 0], x[1, 2]]))
    assert not sentence_embedding(x, torch.zeros(2, 4).bool()).any()
    with pytest.raises(ShapeError, match="not 'max'"):
        sentence_embedding(x, real, "max")


def test_places_count_from_the_first_real_token():
    real = torch.tensor([[True, True, False], [False, True, True], [False, False, False]])
    assert places_of(real, 3, real.device).tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert places_of(None, 3, real.device).tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("make", [Encoder, Decoder])
def test_a_text_longer_than_the_learned_positions_is_refused_with_both_numbers(make: Any):
    model = lively(make(small(length=6, reserved=2)))
    assert model(some_ids(1, 6)).isfinite().all()
    with pytest.raises(ShapeError, match="7 tokens do not fit into 6 learned positions"):
        model(some_ids(1, 7))


@pytest.mark.parametrize("crosses", [True, False])
def test_another_text_is_needed_where_layers_look_across_and_refused_where_none_do(crosses: bool):
    stack = lively(Stack(small(), "decoder", causal=True, layers=1, crosses=crosses))
    with pytest.raises(ShapeError, match="need another text to look at, and only they can use one"):
        stack(normal(1, 3, 16), memory=None if crosses else normal(1, 4, 16))


@torch.no_grad()
@pytest.mark.parametrize("scheme", [name for name in SCHEMES if not name.startswith("learned")])
def test_without_a_table_of_positions_a_text_may_be_of_any_length(scheme: str):
    assert lively(Decoder(small(length=4, **SCHEMES[scheme])))(some_ids(1, 60)).isfinite().all()


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Sizes at the edge: one head, one layer, odd widths, head widths that are no share of the width."""
    heads = draw(st.integers(1, 5))
    positions = draw(st.sampled_from(["learned", "sinusoidal", "rotary", "alibi", "relative", "none"]))
    head_width = draw(st.integers(1, 3)) * (2 if positions == "rotary" else 1)
    return Config(
        width=draw(st.sampled_from([1, 3, 15, 16])),
        layers=draw(st.integers(1, 2)),
        heads=heads,
        feed_forward=draw(st.integers(1, 9)),
        vocabulary=draw(st.sampled_from([1, 7])),
        length=6,
        kv_heads=draw(st.sampled_from([n for n in range(1, heads + 1) if heads % n == 0])),
        head_width=head_width,
        positions=positions,  # type: ignore[arg-type]
        norm=draw(st.sampled_from(["layer", "rms"])),
        norm_place=draw(st.sampled_from(["pre", "post"])),
        activation=draw(st.sampled_from(get_args(Activation))),
        bias=draw(st.booleans()),
        qk_norm=draw(st.booleans()),
        window=draw(st.sampled_from([None, 1, 3])),
        softcap=draw(st.sampled_from([None, 2.0])),
        head="tied",
    )


@settings(deadline=None, max_examples=60)
@given(config=configs(), count=st.integers(1, 6), causal=st.booleans())
def test_every_combination_of_sizes_runs_and_its_rows_sum_to_1(config: Config, count: int, causal: bool):
    model: nn.Module = lively((Decoder if causal else Encoder)(config))
    output, maps = maps_of(model, some_ids(2, count, vocabulary=config.vocabulary))
    assert output.shape == (2, count, config.width)
    assert output.isfinite().all()
    assert model.logits(output).shape == (2, count, config.vocabulary)  # type: ignore[operator]
    assert len(maps) == config.layers
    for weights in maps.values():
        assert weights.shape == (2, config.heads, count, count)
        close(weights.sum(dim=-1), torch.ones(2, config.heads, count).double())
        assert not (causal and weights.triu(1).any())
