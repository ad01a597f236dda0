"""What each encoding meets in a text longer than those in training: counted, not recited.

Dimensions: D head width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from app.positions_numbers import HEAD_WIDTH, scaling_of
from app.positions_words import ENCODINGS
from app.view_positions import FACTORS, PositionsChoices
from engine.extrapolation import largest_penalties, places_beyond, shared_from, unmet_pairs
from engine.positions import Learned, RelativeBuckets, alibi_slopes
from engine.rotary import rotary_frequencies

BASE = 10_000.0  # of sinusoidal positions
ALIBI_HEADS = 8
SCALINGS = {
    "linear": "linear interpolation",
    "ntk": "NTK-aware",
    "dynamic": "dynamic NTK",
    "yarn": "YaRN",
    "llama3": "Llama 3",
}


@dataclass(frozen=True)
class Beyond:
    """One encoding in longer texts.

    Attributes:
        name: which encoding.
        title: what its row is called.
        counted: what the cells count.
        cells: the numbers, one for each of the factors.
    """

    name: str
    title: str
    counted: str
    cells: tuple[str, ...]


def beyond(view: PositionsChoices) -> list[Beyond]:
    """Work out what each encoding meets in texts 2, 4 and 8 times as long as those in training."""
    plain = replace(view, scaling="plain")
    flattest = -float(largest_penalties(alibi_slopes(ALIBI_HEADS), view.trained)[-1])
    angles = "pairs that reach angles not met in training"
    same = "the same, and here the same as NTK-aware"
    return [
        _row(view, "sinusoidal", "waves whose full turn is longer than the trained length", _sinusoidal),
        _row(view, "learned", "positions without a row, so the text is refused", _learned),
        _row(plain, "rotary", angles, _rotary),
        *(
            _row(
                replace(view, scaling=scaling),
                "rotary",
                same if scaling == "dynamic" else "the same",
                _rotary,
                f"– with {name}",
            )
            for scaling, name in SCALINGS.items()
        ),
        _row(view, "alibi", f"most that the flattest of 8 heads takes off; {flattest:,.0f} in training", _alibi),
        _row(view, "relative", "distance from which all share the last bucket, as in training", _buckets),
        _row(view, "none", "nothing to extend", lambda view, factor: "–"),
    ]


def _row(
    view: PositionsChoices, name: str, counted: str, count: Callable[[PositionsChoices, int], str], title: str = ""
) -> Beyond:
    return Beyond(name, title or ENCODINGS[name].name, counted, tuple(count(view, factor) for factor in FACTORS))


def _sinusoidal(view: PositionsChoices, factor: int) -> str:
    frequencies = rotary_frequencies(HEAD_WIDTH, BASE)
    unmet = unmet_pairs(frequencies, view.trained, view.trained * factor)
    return f"{int(unmet.sum())} of {len(unmet)}"


def _learned(view: PositionsChoices, factor: int) -> str:
    return f"{places_beyond(Learned(view.trained, 1), view.trained * factor):,}"


def _rotary(view: PositionsChoices, factor: int) -> str:
    """Count the pairs that meet new angles, where the scaling's factor is how much longer the text is."""
    base, length = float(view.rotary_base), view.trained * factor
    frequencies = scaling_of(replace(view, factor=factor)).frequencies(HEAD_WIDTH, base, length)
    unmet = unmet_pairs(frequencies, view.trained, length, rotary_frequencies(HEAD_WIDTH, base))
    return f"{int(unmet.sum())} of {len(unmet)}"


def _alibi(view: PositionsChoices, factor: int) -> str:
    return f"{-float(largest_penalties(alibi_slopes(ALIBI_HEADS), view.trained * factor)[-1]):,.0f}"


def _buckets(view: PositionsChoices, factor: int) -> str:
    return f"{shared_from(RelativeBuckets(1, both_ways=view.both_ways))}"
