"""Padding: tokens that are none change nothing for those that are, on either side, in every model.

B batch, H heads, T queries, S keys, C model width.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine import Site
from engine.errors import ShapeError
from engine.transformer import Decoder, Encoder, EncoderDecoder, TextClassifier
from tests.small_transformers import SCHEMES, close, lively, maps_of, small, some_ids

LENGTHS = (6, 4, 1)


def batch(side: str, lengths: tuple[int, ...] = LENGTHS) -> tuple[Tensor, Tensor]:
    """Texts of these lengths in one batch, padded with tokens that would say something, and what is real."""
    longest = max(lengths)
    place, count = torch.arange(longest), torch.tensor(lengths)[:, None]
    real = place < count if side == "right" else place >= longest - count
    return some_ids(len(lengths), longest), real


@torch.no_grad()
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("make", [Encoder, Decoder])
@pytest.mark.parametrize("scheme", list(SCHEMES))
@pytest.mark.parametrize("window", [None, 2])
def test_a_padded_text_reads_as_it_does_alone(make: Any, scheme: str, side: str, window: int | None):
    """Positions count from the first real token; its maps alone are those of its real rows and columns."""
    model = lively(make(small(kv_heads=2, window=window, embedding_norm=True, **SCHEMES[scheme])))
    ids, real = batch(side)
    together, maps = maps_of(model, ids, real)
    assert together.isfinite().all()
    for text, (own_ids, own_real) in enumerate(zip(ids, real, strict=True)):
        alone, own_maps = maps_of(model, own_ids[None, own_real])
        close(together[text, own_real], alone[0])
        for site, weights in own_maps.items():
            rows = maps[site][text][:, own_real]
            close(rows[..., own_real], weights[0])
            assert not rows[..., ~own_real].any()


@torch.no_grad()
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("make", [Encoder, Decoder])
def test_no_row_gives_padding_any_weight(make: Any, side: str):
    """Columns of padding are exactly 0, for padding's own rows as well."""
    ids, real = batch(side)
    _, maps = maps_of(lively(make(small())), ids, real)
    for weights in maps.values():
        assert not weights.transpose(1, 3)[~real].any()


def test_ids_5_7_0_0_get_no_weight_on_keys_2_and_3():
    _, maps = maps_of(
        lively(Encoder(small())), torch.tensor([[5, 7, 0, 0]]), torch.tensor([[True, True, False, False]])
    )
    for weights in maps.values():
        assert not weights[..., 2:].any()
        close(weights[..., :2].sum(dim=-1), torch.ones(1, 4, 4).double())


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_padding_on_the_left_of_a_decoder_sees_nothing_and_stays_finite(scheme: str, dtype: torch.dtype):
    """Its rows are zeros, never NaN, and so is everything after them; a text that is all padding likewise."""
    model = lively(Decoder(small(**SCHEMES[scheme])), dtype=dtype)
    ids, real = batch("left", (6, 4, 0))
    output, maps = maps_of(model, ids, real)
    assert output.isfinite().all()
    for weights in maps.values():
        assert weights.isfinite().all()
        rows = weights.transpose(1, 2)
        assert not rows[~real].any()
        close(rows[real].sum(dim=-1), torch.ones(10, 4))


@torch.no_grad()
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_text_is_classified_as_it_is_alone(side: str):
    """The mean is over real tokens only."""
    model = lively(TextClassifier(small(classes=3)))
    ids, real = batch(side)
    together = model.logits(model(ids, real), real)
    for text in range(3):
        own = ids[text : text + 1, real[text]]
        close(together[text : text + 1], model.logits(model(own)))


@torch.no_grad()
@pytest.mark.parametrize("sides", [("left", "right"), ("right", "left")])
@pytest.mark.parametrize("scheme", ["learned", "relative", "rotary", "sinusoidal"])
def test_a_padded_pair_of_texts_is_translated_as_it_is_alone(scheme: str, sides: tuple[str, str]):
    """No token of the translation looks at padding of either text."""
    model = lively(EncoderDecoder(small(decoder_layers=3, **SCHEMES[scheme])))
    (ids, real), (target, target_real) = batch(sides[0]), batch(sides[1], (2, 5, 3))
    together, maps = maps_of(model, ids, target, real, target_real)
    assert together.isfinite().all()
    for text in range(3):
        own, own_target = ids[text][real[text]][None], target[text][target_real[text]][None]
        alone, own_maps = maps_of(model, own, own_target)
        close(together[text][target_real[text]], alone[0])
        for layer in range(3):
            across = maps[Site("cross", layer)][text]
            assert not across[..., ~real[text]].any()
            close(across[:, target_real[text]][..., real[text]], own_maps[Site("cross", layer)][0])


@torch.no_grad()
@pytest.mark.parametrize("make", [Encoder, Decoder])
def test_all_real_is_the_same_as_no_padding(make: Any):
    model: nn.Module = lively(make(small()))
    ids = some_ids(2, 5)
    close(model(ids, torch.ones(2, 5).bool()), model(ids))


@pytest.mark.parametrize("make", [Encoder, Decoder])
@pytest.mark.parametrize("scheme", ["learned", "rotary", "none"])
def test_padding_of_another_length_is_refused(make: Any, scheme: str):
    model = lively(make(small(**SCHEMES[scheme])))
    with pytest.raises(ShapeError, match=r"do(es)? not fit"):
        model(some_ids(2, 5), torch.ones(2, 4).bool())
