"""What a colour means on a map of weights: where the scale ends, linear or logarithmic, and its bar."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.charts_axes import literal
from app.charts_inputs import Floats, isolated, printable, shortened
from app.palette import Scale
from app.phrases import LEAST_PERCENT
from app.phrases import percent as written

DECADES = 4
ROW_LETTERS = 12  # of the word that names a row; the line stands over a narrow map


@dataclass(frozen=True)
class WeightScale:
    """A colour scale for weights in %: its top, whose that is, whether cells lie above it, its kind, its floor."""

    top: float
    whose: str
    clipped: bool
    log: bool
    floor: float = 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of the colour bar: decades below the top when logarithmic, otherwise %."""
        return (-float(DECADES), 0.0) if self.log else (0.0, self.top)

    def stops(self, colours: Scale) -> list[list[float | str]]:
        """Return plotly's colour stops over 0 … top.

        A logarithmic scale bends the stops, not the cells: the cells stay weights, and the hover exact.
        """
        stops = self._bent(colours) if self.log else _plain(colours)
        edge = min(self.floor / self.top, 1.0)
        if edge <= 0:
            return stops
        nothing = colours[0][1]
        above = [stop for stop in stops if float(stop[0]) > edge]
        return [[0.0, nothing], [edge, nothing], *([[edge, above[0][1]], *above] if above else [[1.0, nothing]])]

    def _bent(self, colours: Scale) -> list[list[float | str]]:
        steps = 10 * DECADES
        bent: list[list[float | str]] = [[0.0, colours[0][1]]]
        for index in range(steps + 1):
            bent.append([10 ** (DECADES * (index / steps - 1)), colour_at(colours, index / steps)])
        return bent

    def bar(self) -> dict[str, Any]:
        """Return what the colours mean and the ticks of their bar."""
        values, texts = _log_ticks(self.top) if self.log else _linear_ticks(self.top)
        if self.clipped and not texts[-1].startswith(">"):
            texts[-1] = f"≥ {texts[-1]}"
        title = f"logarithmic, up to {self.whose}" if self.log else f"weight, 0 to {self.whose}"
        title += "; other rows may exceed it" if self.clipped else ""
        return {"meaning": title, "tickvals": values, "ticktext": texts}


def weight_scale(
    percent: Floats, *, unit: bool, row: int | None, log: bool, floor: float = 0.0, word: str = ""
) -> WeightScale:
    """Choose where the scale ends: at 100 %, at the selected row's largest weight, or at the map's.

    Args:
        percent: (T, S) weights in %, NaN where masked.
        unit: end at 100 % whatever the weights.
        row: the selected query, or None.
        log: colour by the logarithm.
        floor: in %; weights below it get the colour of 0.
        word: of the selected query.
    """
    if unit:
        return WeightScale(100.0, "100 %", False, log, floor)
    largest = float(np.nanmax(percent, initial=0))
    top = largest if row is None else float(np.nanmax(percent[row], initial=0))
    if top < LEAST_PERCENT < largest:  # a row of next to nothing would make a row of noise of it, and saturate the rest
        top, row = largest, None
    named = literal(isolated(shortened(printable(word), ROW_LETTERS)))
    whose = "the map’s largest" if row is None else f"the largest in row “{named}”"
    return WeightScale(top or 100.0, whose, largest > top > 0, log, floor)


def _plain(colours: Scale) -> list[list[float | str]]:
    return [[position, colour] for position, colour in colours]


def colour_at(colours: Scale, position: float) -> str:
    """Return the colour of a scale at a position between 0 and 1, mixed as plotly mixes it."""
    places = [place for place, _ in colours]
    channels = np.array([[int(code[start : start + 2], 16) for start in (1, 3, 5)] for _, code in colours])
    red, green, blue = (round(float(np.interp(position, places, channel))) for channel in channels.T)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _linear_ticks(top: float) -> tuple[list[float], list[str]]:
    """Return both ends: the bar is short, and the hover has every number."""
    return [0.0, top], ["0 %", _end(top)]


def _log_ticks(top: float) -> tuple[list[float], list[str]]:
    """Return the ends of the scale, as decades below the top."""
    return [-float(DECADES), 0.0], [f"≤ {top / 10**DECADES:.2g} %", _end(top)]


def _end(top: float) -> str:
    """Write the end of a scale; of one for next to nothing with as many decimals as it takes."""
    return f"{top:.3g} %" if top < 0.1 else written(top / 100)
