"""What a longer text meets that training did not show: closed forms, and what each rotary scaling leaves unmet.

H heads, D head width.
"""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ShapeError
from engine.extrapolation import largest_angles, largest_penalties, places_beyond, shared_from, unmet_pairs
from engine.positions import ALiBi, Learned, Positions, RelativeBuckets, Sinusoidal, alibi_slopes, relative_buckets
from engine.rotary import DynamicNTK, Linear, Llama3, NTKAware, Rotary, Scaling, YaRN, rotary_frequencies, wavelengths

WIDTH, BASE, TRAINED = 64, 10_000.0, 512
PLAIN = rotary_frequencies(WIDTH, BASE)


def unmet(scaling: Scaling, times: int) -> torch.Tensor:
    length = times * TRAINED
    return unmet_pairs(scaling.frequencies(WIDTH, BASE, length), TRAINED, length, PLAIN)


def test_a_pair_that_came_round_has_met_every_angle() -> None:
    """N · θ radians, but never more than a full turn."""
    angles = largest_angles(torch.tensor([1.0, 0.01]), 100)
    assert angles.tolist() == pytest.approx([2 * math.pi, 1.0])


def test_as_trained_the_pairs_longer_than_the_training_meet_new_angles() -> None:
    """Exactly those whose wavelength is longer than the trained length, whatever the longer text."""
    long = wavelengths(PLAIN) > TRAINED
    assert 0 < int(long.sum()) < WIDTH // 2
    for times in (2, 4, 1000):
        assert unmet(Scaling(), times).equal(long)
    assert unmet_pairs(PLAIN, TRAINED, TRAINED + 1).equal(long)


@given(length=st.integers(1, TRAINED))
def test_a_text_that_fits_meets_nothing_new(length: int) -> None:
    """Up to the trained length every angle is an old one."""
    assert not bool(unmet_pairs(PLAIN, TRAINED, length).any())


@pytest.mark.parametrize("times", [2, 3, 7, 16, 49])
def test_interpolation_by_the_right_factor_leaves_nothing_unmet(times: int) -> None:
    """Linear interpolation, YaRN and Llama 3 slow every pair down that has not come round."""
    for scaling in (Linear(times), YaRN(times, TRAINED), YaRN(times, TRAINED, truncate=False), Llama3(times, TRAINED)):
        assert not bool(unmet(scaling, times).any()), scaling.name


def test_too_small_a_factor_leaves_pairs_unmet() -> None:
    """A text four times longer needs a factor of four."""
    long = wavelengths(PLAIN) > TRAINED
    for scaling in (Linear(2.0), YaRN(2.0, TRAINED), Llama3(2.0, TRAINED)):
        assert bool((unmet(scaling, 4) & long).any()), scaling.name


@pytest.mark.parametrize("times", [2, 3, 7, 16])
def test_a_larger_base_mends_the_last_pair_and_not_those_before(times: int) -> None:
    """NTK-aware stretches only the slowest pair by the whole factor; the pairs between still meet new angles."""
    left = unmet(NTKAware(times), times)
    long = wavelengths(PLAIN) > TRAINED
    assert not bool(left[-1])
    assert left[:-1].equal(long[:-1])


@given(times=st.integers(2, 32))
@settings(deadline=None)
def test_dynamic_scaling_with_factor_one_is_the_larger_base(times: int) -> None:
    """At k times the trained length its factor is k."""
    assert unmet(DynamicNTK(1.0, TRAINED), times).equal(unmet(NTKAware(times), times))


def test_only_learned_positions_end() -> None:
    """Beyond its table there is nothing; the others have a number for every place."""
    assert places_beyond(Learned(512, 4), 600) == 88
    assert places_beyond(Learned(512, 4), 512) == 0
    for positions in (Positions(), Sinusoidal(4), Rotary(4), ALiBi(2), RelativeBuckets(2)):
        assert places_beyond(positions, 10**9) == 0


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (33, 100), (8, 20), (64, 1000)])
def test_the_last_bucket_begins_where_it_is_said(buckets: int, furthest: int, both_ways: bool) -> None:
    """One nearer lies in another bucket, and from there on all share one; it begins before the furthest distance."""
    start = shared_from(RelativeBuckets(2, buckets, furthest, both_ways))
    past = relative_buckets(-torch.arange(start - 1, 10 * furthest), buckets, furthest, both_ways)
    assert past[1:].unique().numel() == 1
    assert int(past[0]) == int(past[1]) - 1
    assert start <= furthest


def test_t5_tells_no_distances_apart_from_91_on() -> None:
    """T5's encoder: 8 · 16^(7/8) = 90.5, so its sixteenth bucket starts at 91, not at 128."""
    assert shared_from(RelativeBuckets(8)) == 91


def test_alibis_penalty_only_grows() -> None:
    """Twice the length, twice the bias, on a straight line."""
    assert largest_penalties(alibi_slopes(8), 257).tolist() == [-(2.0 ** (7 - head)) for head in range(8)]
    assert largest_penalties(alibi_slopes(8), 1).abs().sum() == 0


def test_misfits_are_refused() -> None:
    """No positions, or frequencies of another width."""
    for wrong in (lambda: largest_angles(PLAIN, 0), lambda: largest_penalties(alibi_slopes(2), 0)):
        with pytest.raises(ShapeError, match="not 0"):
            wrong()
    with pytest.raises(ShapeError, match=r"32 .* 4"):
        unmet_pairs(PLAIN, 8, 16, rotary_frequencies(8))
