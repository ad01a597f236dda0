"""The power with which something grows, and how sure a few points make of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine._slope import slope, students_t
from engine.measuring import Fit, Point, exponent


def points(lengths: list[int], seconds: list[float]) -> list[Point]:
    """Points of one kernel with these times."""
    return [Point("sdpa", length, second, 1, 3) for length, second in zip(lengths, seconds, strict=True)]


@given(power=st.floats(-3, 3), factor=st.floats(1e-6, 1e6), count=st.integers(3, 8))
def test_a_pure_power_is_found_exactly(power: float, factor: float, count: int):
    """And its interval has no width."""
    lengths = [2**place for place in range(4, 4 + count)]
    fit = exponent(points(lengths, [factor * length**power for length in lengths]), from_tokens=0)
    assert fit is not None
    assert fit.exponent == pytest.approx(power, abs=1e-9)
    assert fit.low == pytest.approx(fit.high, abs=1e-6)
    assert fit.from_tokens == 16


def test_the_longest_lengths_are_fitted_unless_it_is_said_which():
    """Short texts cost what any call costs; four doublings of the long ones tell."""
    lengths = [2**place for place in range(4, 12)]
    seconds = [1.0] * 4 + [length**2.0 for length in lengths[4:]]
    late, all_of_them = exponent(points(lengths, seconds)), exponent(points(lengths, seconds), from_tokens=1)
    assert late is not None
    assert all_of_them is not None
    assert late.exponent == pytest.approx(2.0)
    assert late.from_tokens == 256
    assert all_of_them.from_tokens == 16
    assert all_of_them.high - all_of_them.low > 0.5
    assert exponent(points(lengths, seconds)[::-1]) == late


@pytest.mark.parametrize("count", [0, 1, 2])
def test_two_points_tell_nothing(count: int):
    """Through two a line always fits; and what took no time that could be told is no point."""
    some = points([10, 20, 40, 80], [1.0, 3.0, 9.0, 27.0])
    assert exponent(some[:count]) is None
    assert exponent([*some[:count], Point("sdpa", 160, 0.0, 0, 1)]) is None
    assert exponent(some, from_tokens=40) is None
    assert exponent([*some[:2], Point("sdpa", 160, 1.0, 0, 1)], "peak_bytes") is None
    with pytest.raises(ValueError, match="too few"):
        slope([1.0] * count, [1.0] * count)


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.706205), (2, 4.302653), (3, 3.182446), (4, 2.776445), (5, 2.570582), (10, 2.228139), (30, 2.042272)],
)
def test_students_quantiles_are_those_of_the_tables(freedom: int, expected: float):
    assert students_t(freedom) == pytest.approx(expected, abs=1e-6)
    assert students_t(freedom, 0.5) < students_t(freedom, 0.9) < students_t(freedom)


def test_the_slope_and_its_error_are_those_of_least_squares():
    """NumPy's own fit and its covariance."""
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=7), draw.normal(size=7)
    (b, _), covariance = np.polyfit(x, y, 1, cov=True)
    mine, half = slope(x.tolist(), y.tolist())
    assert mine == pytest.approx(b)
    assert half == pytest.approx(students_t(5) * float(covariance[0, 0]) ** 0.5)


def test_the_interval_holds_the_truth_95_times_in_100():
    """Of 2,000 fits through four noisy points."""
    draw, held = np.random.default_rng(1), 0
    lengths = [256, 512, 1024, 2048]
    for _ in range(2000):
        fit = exponent(points(lengths, [n**2 * float(np.exp(draw.normal(0, 0.1))) for n in lengths]))
        assert isinstance(fit, Fit)
        held += fit.low <= 2 <= fit.high
    assert held == pytest.approx(1900, abs=35)
