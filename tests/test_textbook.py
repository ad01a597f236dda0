"""Attention spelt out as in a textbook: the answer of the fast kernels, the slow way.

B batch, H heads, G key-value heads, T queries, S keys, D head width.
"""

import pytest

from engine import Mask, attend, attention_weights
from engine._textbook import spelt_out
from tests.small_transformers import close, normal


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_textbook_and_the_fast_kernel_compute_the_same(groups: int, causal: bool):
    """What is compared are two ways to one answer."""
    q, k, v = normal(2, 4, 9, 8), normal(2, groups, 9, 8, seed=1), normal(2, groups, 9, 8, seed=2)
    mask = Mask.causal() if causal else None
    close(spelt_out(q, k, v, causal=causal), attend(None, q, k, v, mask=mask))
    weights = attention_weights(q, k, mask=mask)
    close(spelt_out(q, k, v, causal=causal), weights @ v.repeat_interleave(4 // groups, dim=1))


def test_the_textbook_takes_masks_biases_and_scales():
    """Booleans hide, numbers are added, and the scale is the model's own."""
    q, k, v, bias = normal(1, 4, 5, 8), normal(1, 2, 7, 8, seed=1), normal(1, 2, 7, 8, seed=2), normal(1, 4, 5, 7)
    seen = bias > -0.5
    seen[..., 0] = True
    close(spelt_out(q, k, v, mask=seen, scale=0.5), attend(None, q, k, v, mask=seen, scale=0.5))
    close(spelt_out(q, k, v, mask=bias), attend(None, q, k, v, bias=bias))
