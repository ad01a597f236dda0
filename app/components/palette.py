"""The page's colours in the two forms the pieces and plotly take; the constants live in `app.palette`."""

from app.palette import (
    ACCENT_DARK,
    ACCENT_LIGHT,
    HATCH_DARK,
    HATCH_LIGHT,
    MASKED_DARK,
    MASKED_LIGHT,
    SCALE_DARK,
    SCALE_LIGHT,
    Scale,
)

__all__ = ["ACCENT_DARK", "ACCENT_LIGHT", "SCALE_DARK", "SCALE_LIGHT", "scale", "themes"]


def scale(*, dark: bool) -> list[list[float | str]]:
    """Give the colour scale in the form plotly's `colorscale` takes: [[position, hex], ...]."""
    return [[position, colour] for position, colour in (SCALE_DARK if dark else SCALE_LIGHT)]


def themes() -> dict[str, dict[str, object]]:
    """Give both themes as plain JSON for the browser: stops, accent, masked and hatch."""
    return {
        "light": _theme(SCALE_LIGHT, ACCENT_LIGHT, MASKED_LIGHT, HATCH_LIGHT),
        "dark": _theme(SCALE_DARK, ACCENT_DARK, MASKED_DARK, HATCH_DARK),
    }


def _theme(stops: Scale, accent: str, masked: str, hatch: str) -> dict[str, object]:
    return {"stops": [list(stop) for stop in stops], "accent": accent, "masked": masked, "hatch": hatch}
