"""Measures against their closed forms."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine import Mask, ShapeError, attention_weights
from engine.measures import attention_entropy


def test_identical_keys_spread_evenly_over_the_visible_past() -> None:
    """Equal scores share attention: query t sees t + 1 keys, so log2(t + 1) bits."""
    q, k = torch.randn(1, 4, 6, 8), torch.ones(1, 4, 6, 8)
    weights = attention_weights(q, k, mask=Mask.causal())
    expected = torch.arange(1.0, 7.0).log2().expand(1, 4, 6)
    torch.testing.assert_close(attention_entropy(weights), expected)


def test_four_equal_weights_are_two_bits() -> None:
    assert float(attention_entropy(torch.full((1, 4), 0.25))) == pytest.approx(2.0)


def test_one_key_is_no_spread_and_zeros_count_for_nothing() -> None:
    assert attention_entropy(torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])).tolist() == [0.0, 0.0]


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=30))
def test_entropy_lies_between_none_and_an_even_spread(scores: list[float]) -> None:
    weights = torch.tensor([scores], dtype=torch.float64).softmax(dim=-1)
    entropy = float(attention_entropy(weights))
    assert -1e-9 <= entropy <= math.log2(len(scores)) + 1e-6


def test_a_single_row_of_numbers_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"\(3,\)"):
        attention_entropy(torch.ones(3))
