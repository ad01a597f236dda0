"""What is said of a head that is compared on two sentences: one that looks elsewhere follows no reason."""

import numpy as np
import pytest

from app.reading import LEAST_LOOK, followers, looking
from tests.app_pages import opened, said


def heads(*weights: float) -> np.ndarray:
    """The weights of one layer of heads, (1, H)."""
    return np.array([weights])


@pytest.mark.parametrize(
    ("here", "there", "follows"),
    [
        ((0.9, 0.1), (0.8, 0.1), True),
        ((0.9, 0.1), (0.1, 0.8), False),
        ((0.5, 0.5), (0.9, 0.1), False),
        ((0.008, 0.003), (0.01, 0.001), True),
        ((3e-6, 1e-6), (2e-6, 1e-6), False),
        ((0.9, 0.1), (2e-6, 1e-6), False),
        ((2e-6, 1e-6), (0.9, 0.1), False),
    ],
)
def test_a_head_follows_the_reason_where_it_looks_and_gives_who_is_meant_more(
    here: tuple[float, float], there: tuple[float, float], follows: bool
):
    """In both sentences; each pair is what the person meant gets and what the other one gets."""
    pairs = [(heads(pair[0]), heads(pair[1])) for pair in (here, there)]
    assert followers(*pairs).tolist() == [[follows]]


def test_a_head_looks_at_two_words_if_they_get_a_hundredth_together():
    """The two halves of it are enough, a hair less is not."""
    half, less = LEAST_LOOK / 2, LEAST_LOOK / 2 - 1e-6
    pair = (heads(half, half, less), heads(half, less, half))
    assert looking(pair, pair).tolist() == [[True, False, False]]


def test_noise_of_a_millionth_is_counted_as_no_head_and_the_floor_is_said():
    """In the opening view one head follows; a second one gives both nouns next to nothing."""
    text = said(opened())
    assert "It follows the reason in both. 1 of the 12 heads does, counting only those that give the two" in text
    assert "at least 1 % together in both sentences." in text
    assert "It hardly looks at the two" in said(opened(layer="2", head="1"))
