"""The colours keep their order and their distance for every eye."""

import colorsys

import numpy as np
import pytest

from app import palette

SCALES = [palette.SCALE_LIGHT, palette.SCALE_DARK]


def luminance(code: str) -> float:
    channels = [int(code[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def saturation(code: str) -> float:
    return colorsys.rgb_to_hsv(*(int(code[start : start + 2], 16) / 255 for start in (1, 3, 5)))[1]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("scale", "sign"), [(palette.SCALE_LIGHT, -1), (palette.SCALE_DARK, 1)])
def test_luminance_alone_orders_the_sequential_scale(scale, sign):
    levels = np.array([luminance(colour) for _, colour in scale])
    assert (sign * np.diff(levels) > 0).all()
    assert [scale[0][0], scale[-1][0]] == [0, 1]


@pytest.mark.parametrize("scale", SCALES)
def test_steps_of_the_sequential_scale_look_equal(scale):
    """CIE lightness climbs evenly: no step is more than twice, or less than half, the mean."""
    levels = np.array([luminance(colour) for _, colour in scale])
    lightness = np.where(levels > 0.008856, 116 * np.cbrt(levels) - 16, 903.3 * levels)
    steps = np.abs(np.diff(lightness))
    assert steps.max() < 2 * steps.mean()
    assert steps.min() > steps.mean() / 2


@pytest.mark.parametrize("scale", [palette.DIVERGING_LIGHT, palette.DIVERGING_DARK])
def test_both_arms_of_the_diverging_scale_leave_zero_behind(scale):
    levels = np.array([luminance(colour) for _, colour in scale])
    away = np.sign(levels[0] - levels[5])
    assert (away * np.diff(levels[:6]) < 0).all()
    assert (away * np.diff(levels[5:]) > 0).all()


@pytest.mark.parametrize("theme", ["LIGHT", "DARK"])
def test_nothing_lies_next_to_the_page_and_text_stands_out_from_it(theme):
    page = getattr(palette, f"PAGE_{theme}")
    assert contrast(getattr(palette, f"SCALE_{theme}")[0][1], page) < 1.1
    assert contrast(getattr(palette, f"INK_{theme}"), page) > 12
    assert contrast(getattr(palette, f"SOFT_INK_{theme}"), page) > 6
    assert contrast(getattr(palette, f"ACCENT_{theme}"), page) > 5.5


@pytest.mark.parametrize("theme", ["LIGHT", "DARK"])
def test_masked_grey_is_no_colour_of_the_scale(theme):
    """The scale colours about as light as the grey are all more saturated than it."""
    grey = getattr(palette, f"MASKED_{theme}")
    near = [colour for _, colour in getattr(palette, f"SCALE_{theme}") if contrast(colour, grey) < 1.3]
    assert near
    assert 2 * saturation(grey) < min(saturation(colour) for colour in near)


def test_browser_pieces_and_figures_share_their_colours():
    pieces = pytest.importorskip("app.components.palette")
    assert (pieces.SCALE_LIGHT, pieces.SCALE_DARK) == (palette.SCALE_LIGHT, palette.SCALE_DARK)
    assert (pieces.ACCENT_LIGHT, pieces.MASKED_DARK) == (palette.ACCENT_LIGHT, palette.MASKED_DARK)
