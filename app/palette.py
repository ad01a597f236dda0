"""The page's colours for every chart and browser piece, in plain constants that need no browser.

The sequential scales walk in equal steps of perceived difference (CIELAB) from the page's own background
to its opposite, through one family of hues, teal to navy. Equal differences in weight look equal, and
luminance alone gives the order, so the scales survive a grey print, a weak projector and every kind of
colour blindness; a weight of nothing recedes into the page. The diverging scales add orange, which stays
apart from teal for every kind of colour vision.
"""

Scale = tuple[tuple[float, str], ...]


def _evenly(colours: str) -> Scale:
    names = colours.split()
    return tuple((index / (len(names) - 1), name) for index, name in enumerate(names))


SCALE_LIGHT: Scale = _evenly(
    "#F3FBFB #DBEFF1 #C2E6E9 #A8DCE0 #8DCFD4 #72C1C9 #55B2BE #3FA1B1 #3190A4 "
    "#247F96 #1A6F89 #14607C #10516F #0D4261 #0E3452 #0E2643 #091933"
)
"""(position, hex) from 0 to 1 for a light page: near white down to navy."""

SCALE_DARK: Scale = _evenly(
    "#101821 #162332 #192F44 #1B3D56 #1E4C68 #205B78 #216B87 #257A94 #2B8A9E "
    "#3499A8 #44A8B1 #5AB8B9 #71C7C2 #8AD7CB #A4E3D3 #BFF0DC #D8FEEA"
)
"""(position, hex) from 0 to 1 for a dark page: near black up to pale mint."""

DIVERGING_LIGHT: Scale = _evenly(
    "#772E00 #A04B20 #BC7554 #D59E86 #EBC9BA #F5F7F8 #BDD6DD #8BB4C0 #5A93A3 #237286 #025061"
)
DIVERGING_DARK: Scale = _evenly(
    "#FFCCA4 #E39E64 #B17B4E #815A3A #533C29 #1B2326 #2A474A #3E6D72 #54959C #6CBEC8 #86EAF5"
)
"""Negative orange, positive teal; zero, in the middle, recedes into the page."""

ACCENT_LIGHT, ACCENT_DARK = "#0F6E84", "#5CC6D6"
"""What is selected or new: 5.9 to 1 against white, 9 to 1 against the dark page."""

MASKED_LIGHT, HATCH_LIGHT = "#E6E6E8", "#C3C4C9"
MASKED_DARK, HATCH_DARK = "#2B2E35", "#4A4F59"
"""The grey of a cell that the query may not see, and of the strokes across it: no colour of the scale."""

VISIBLE_LIGHT, VISIBLE_DARK = "#3190A4", "#2B8A9E"
"""One flat colour for "may see"."""

BEFORE_LIGHT, BEFORE_DARK = "#A3A9AF", "#7C848C"
"""Where things stood before a change; after it they are in the accent."""

INK_LIGHT, INK_DARK = "#1B2529", "#E8EEF0"
SOFT_INK_LIGHT, SOFT_INK_DARK = "#4F5B61", "#B0BBC0"
PAGE_LIGHT, PAGE_DARK = "#FFFFFF", "#12181B"
