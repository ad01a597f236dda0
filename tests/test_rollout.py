"""Rollout and the mass on some keys, against closed forms."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from engine import ShapeError
from engine.measures import attention_mass, attention_rollout


def close(found: Tensor, expected: Tensor) -> None:
    """Equal as far as float64 goes."""
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def random_weights(*shape: int, seed: int = 0) -> Tensor:
    """Attention probabilities of random scores."""
    scores = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (3 * scores).softmax(dim=-1)


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_where_every_token_looks_at_itself_nothing_moves(layers: int) -> None:
    same = torch.eye(4, dtype=torch.float64)
    close(attention_rollout(same.expand(layers, 3, 4, 4)), same)


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_even_attention_keeps_a_half_per_layer_and_spreads_the_rest_evenly(layers: int) -> None:
    """R = ½ⁿ · I + (1 − ½ⁿ) / T: what stayed at home in every one of n layers, and the rest shared by all T."""
    even = torch.full((layers, 2, 5, 5), 0.2, dtype=torch.float64)
    stayed = 0.5**layers
    expected = stayed * torch.eye(5, dtype=torch.float64) + (1 - stayed) / 5
    close(attention_rollout(even), expected)


def test_two_layers_by_hand() -> None:
    """Token 1 gathers token 0 below, token 0 gathers token 1 above: a quarter of token 0 has come back to it."""
    below = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    above = torch.tensor([[0.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    expected = torch.tensor([[0.75, 0.25], [0.5, 0.5]], dtype=torch.float64)
    close(attention_rollout(torch.stack([below, above])[:, None]), expected)


def test_the_order_of_the_layers_counts() -> None:
    weights = random_weights(2, 1, 3, 3)
    halves = (weights[:, 0] + torch.eye(3)) / 2
    close(attention_rollout(weights), halves[1] @ halves[0])
    assert not torch.allclose(attention_rollout(weights), attention_rollout(weights.flip(0)))


def test_heads_are_averaged() -> None:
    weights = random_weights(3, 4, 5, 5)
    close(attention_rollout(weights), attention_rollout(weights.mean(dim=1, keepdim=True)))


def test_pictures_of_a_batch_do_not_mix() -> None:
    weights = random_weights(2, 6, 3, 4, 5, 5)
    rolled = attention_rollout(weights)
    assert rolled.shape == (2, 6, 5, 5)
    close(rolled[1, 4], attention_rollout(weights[1, 4]))


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 8), st.integers(0, 999))
def test_every_row_stays_a_share(layers: int, heads: int, tokens: int, seed: int) -> None:
    """Rows sum to 1, nothing is negative, and at least ½ⁿ of a token is its own."""
    rolled = attention_rollout(random_weights(layers, heads, tokens, tokens, seed=seed))
    close(rolled.sum(dim=-1), torch.ones(tokens, dtype=torch.float64))
    assert (rolled >= 0).all()
    assert (rolled.diagonal() >= 0.5**layers - 1e-12).all()


@pytest.mark.parametrize("shape", [(2, 3, 3), (2, 1, 3, 4), (0, 1, 3, 3), (2, 0, 3, 3), (3,)])
def test_what_cannot_be_rolled_out_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="as many keys as queries"):
        attention_rollout(torch.ones(shape))


def test_the_mass_is_the_weight_of_the_keys_that_count() -> None:
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.75, 0.25]])
    assert attention_mass(weights, torch.tensor([True, False, True])).tolist() == [0.75, 0.25]
    assert attention_mass(weights, torch.tensor([[False, False, False], [True, True, True]])).tolist() == [0.0, 1.0]


@given(st.integers(1, 20), st.integers(0, 999))
def test_even_weights_have_the_mass_of_the_share_of_keys(keys: int, seed: int) -> None:
    chosen = torch.rand(keys, generator=torch.Generator().manual_seed(seed)) < 0.5
    mass = attention_mass(torch.full((keys,), 1 / keys), chosen)
    torch.testing.assert_close(mass, chosen.float().mean())


@pytest.mark.parametrize(("weights", "keys"), [((3, 4), (3,)), ((4,), ()), ((), (4,))])
def test_keys_that_do_not_fit_are_refused(weights: tuple[int, ...], keys: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="do not have the keys"):
        attention_mass(torch.ones(weights), torch.ones(keys, dtype=torch.bool))
