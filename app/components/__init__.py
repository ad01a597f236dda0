"""Pieces that answer the hand at once: the token ribbon, the grid of heads, the canvas map.

They run in the browser (`st.components.v2`, plain html, css and js, no build step). Hovering sends
nothing; a click comes back as a pick: a small dict of indices, given to `on_pick` before the script
runs again. The page keeps the truth in its own state and passes it down on each run:

    def picked(pick: Pick) -> None:
        if "pin" in pick:
            st.session_state["word"] = pick["pin"]

    ribbon(chips, None, weights, pinned=st.session_state["word"], key="words", on_pick=picked)
"""

from app.components.grid import grid
from app.components.heatmap import heatmap_canvas
from app.components.mount import Pick, PickCallback
from app.components.payload import Chip, ChipMarks
from app.components.ribbon import ribbon

__all__ = ["Chip", "ChipMarks", "Pick", "PickCallback", "grid", "heatmap_canvas", "ribbon"]
