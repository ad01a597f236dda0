"""Charts that change while one looks, without a moment in which they are blank.

Streamlit takes a chart that has changed for another one: it removes the old one, and the new one is drawn when the
browser gets to it. So each chart has two places, one upon the other. What is new takes the place that is hidden, and
once it is drawn the other one hides.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import plotly.graph_objects as go
import streamlit as st

from app import charts

SHOWN = "train_turns"  # for each chart what its two places hold
STYLE = """<style>
[class*="st-key-turning_"] { display: grid; grid-template-columns: minmax(0, 1fr); }
[class*="st-key-turning_"] > * { grid-area: 1 / 1; min-width: 0; }
.st-key-turning_%(key)s:has(.st-key-%(now)s .js-plotly-plot:not([style*="visibility"]) .main-svg)
  > .st-key-%(then)s { visibility: hidden; }
</style>"""


@dataclass
class _Turns:
    """What the two places of a chart hold, and which of them is the newer."""

    places: list[go.Figure | None] = field(default_factory=lambda: [None, None])
    written: str = ""
    now: int = 0


def turning(figure: go.Figure, key: str) -> None:
    """Draw a chart in place of what was drawn under this key before, which stays until the new one is there."""
    turns: _Turns = st.session_state.setdefault(SHOWN, {}).setdefault(key, _Turns())
    written = figure.to_json(validate=False)
    if written != turns.written:
        before = turns.places[turns.now]
        if before is not None and before.layout.height != figure.layout.height:
            turns.places = [None, None]  # a hidden one would keep its room
        turns.now = 1 - turns.now
        turns.places[turns.now], turns.written = figure, written
    names = [f"{key}_{place}" for place in range(2)]
    with st.container(key=f"turning_{key}"):
        for name, held in zip(names, turns.places, strict=True):
            if held is None:
                st.empty()
            else:
                st.plotly_chart(held, theme=None, config=charts.CONFIG, key=name)
        st.html(STYLE % {"key": key, "now": names[turns.now], "then": names[1 - turns.now]})
