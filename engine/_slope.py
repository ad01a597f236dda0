"""A straight line through a few points, and how sure its slope is."""

from __future__ import annotations

from collections.abc import Sequence
from math import atan, cos, fsum, pi, sin, sqrt

FEWEST = 3


def slope(x: Sequence[float], y: Sequence[float], sure: float = 0.95) -> tuple[float, float]:
    """Fit y = a + b·x by least squares.

    Args:
        x: not all the same.
        y: as many.
        sure: how often an interval made like this holds the true slope, where the errors are normal; 0 to 1.

    Returns:
        b, and half the width of its interval.

    Raises:
        ValueError: there are fewer than three points, through which a line always fits, or they lie above each other.
    """
    count = len(x)
    if count < FEWEST or len(set(x)) < 2:
        raise ValueError(f"{count} points are too few to tell how sure a line through them is.")
    mean_x, mean_y = fsum(x) / count, fsum(y) / count
    spread = fsum((one - mean_x) ** 2 for one in x)
    b = fsum((one - mean_x) * (other - mean_y) for one, other in zip(x, y, strict=True)) / spread
    left = fsum((other - mean_y - b * (one - mean_x)) ** 2 for one, other in zip(x, y, strict=True))
    return b, students_t(count - 2, sure) * sqrt(left / (count - 2) / spread)


def students_t(freedom: int, sure: float = 0.95) -> float:
    """Say within how many standard errors the truth lies so surely: 12.706 for 1 degree of freedom, 1.960 for many."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < sure:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < sure else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """Give the probability of |T| < t, which is a finite sum here (Abramowitz & Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(freedom))
    odd, squared = freedom % 2, cos(angle) ** 2
    term, total = (cos(angle) if odd else 1.0), 0.0
    for step in range(2 + odd, freedom + 1, 2):
        total += term
        term *= squared * (step - 1) / step
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
