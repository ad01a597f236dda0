"""Sinusoidal and learned positions: the table that is added to the words, its curves, and what it makes alike."""

from __future__ import annotations

import numpy as np
import streamlit as st
from torch import Tensor

from app import state
from app.charts_curves import Line, curves
from app.charts_tables import similarity_map, table_map
from app.panels import is_dark
from app.positions_draw import draw
from app.positions_numbers import by_distance, similarity, table_of, trained_table
from app.view import View
from app.view_positions import MOST_CURVES, MOST_LENGTH, MOST_WIDTH
from engine.tokens import Prompt

TABLES = {"trained": "MiniLM's own, learned", "random": "Untrained: random numbers"}
MAP_ROWS = 128  # positions that are compared in the map: more cells cannot be told apart
DASHES = ("solid", "dash", "dot", "solid")
MIDDLE_SHARE = 0.995  # of a learned table's values get a colour of their own; a few are twenty times as large


ODD = " (An odd number of dimensions ends on a sine without its cosine, so this holds nearly, and worst for few.)"


def sinusoidal(view: View, prompt: Prompt) -> None:
    """Show the sinusoidal table."""
    st.markdown("#### See it: a clock with many hands")
    st.markdown(
        "Each row is what one position adds to its word. The first columns are fast waves, which tell neighbours "
        "apart; the last are slow ones, which tell the beginning from the end."
    )
    _sizes(view, "Width C (dimensions)")
    table = table_of("sinusoidal", view.table_length, view.table_width)
    words = [token.text for token in prompt.tokens]
    _pictures(view, table, words, "Sinusoidal positions", 1.0)
    table = table_of("sinusoidal", max(view.table_length, MAP_ROWS), view.table_width)
    _alike(
        table,
        words,
        {"any two positions at this distance": by_distance(similarity(table))},
        "The curve is the same wherever it starts: the product of two rows depends only on the distance between them, "
        "so the map is made of straight diagonals. Near positions are alike, and nothing had to be learned for that."
        + (ODD if view.table_width % 2 else ""),
    )


def learned(view: View, prompt: Prompt) -> None:
    """Show a learned table: one that a model has really learned, or one that nobody has trained."""
    st.markdown("#### See it: a vector for each position")
    is_there = trained_table() is not None
    picked = view.table if is_there else "random"
    with st.container(horizontal=True, vertical_alignment="bottom", key="table_bar"):
        st.segmented_control(
            "Table", list(TABLES), format_func=TABLES.__getitem__, required=True, wrap=True,
            disabled=not is_there,
            **state.mirror("table", value=picked),
        )  # fmt: skip
    if not is_there:
        st.caption("MiniLM, whose learned table would stand here, is not installed: the README says how.")
    st.markdown(
        "These are the numbers that MiniLM, a BERT-style model, has learned for its 512 positions. It counts its own "
        "tokens, from [CLS] at position 0, so rows have no words here."
        if picked == "trained"
        else "Before training, the table is random: no row is like any other, and neighbours have nothing in common. "
        "Whatever order a model makes of it, it has to learn."
    )
    _sizes(view, "Dimensions drawn")
    table = table_of(picked, view.table_length, view.table_width)
    words = [] if picked == "trained" else [token.text for token in prompt.tokens]
    reach = float(np.quantile(np.abs(table.numpy()), MIDDLE_SHARE))
    _pictures(view, table, words, TABLES[picked], reach)
    whole = table_of(picked, MOST_LENGTH, MOST_WIDTH)[: max(view.table_length, MAP_ROWS)]
    random = table_of("random", len(whole), MOST_WIDTH)
    lines = {"untrained": by_distance(similarity(random))}
    if picked == "trained":
        lines["MiniLM"] = by_distance(similarity(whole))
    _alike(
        whole,
        words,
        lines,
        "Compared over the whole width. Nobody told MiniLM that position 7 comes after position 6, yet neighbours have "
        "become alike and far positions strangers: training has found order in a table that began as noise. Position 0 "
        "is always [CLS], and stands apart."
        if picked == "trained"
        else "Compared over the whole width. Before training, every two positions are strangers, near or far.",
    )


def _sizes(view: View, width: str) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", key="table_sizes"):
        st.slider("Positions drawn", 2, MOST_LENGTH, **state.mirror("table_length"))
        st.slider(width, 2, MOST_WIDTH, **state.mirror("table_width"))
        st.multiselect(
            "Dimensions drawn as curves",
            range(view.table_width),
            max_selections=MOST_CURVES,
            **state.mirror("curves", value=_curves_of(view)),
        )


def _curves_of(view: View) -> list[int]:
    return [dimension for dimension in view.curves if dimension < view.table_width]


def _pictures(view: View, table: Tensor, words: list[str], title: str, reach: float) -> None:
    left, right = st.columns([6, 5], gap="large")
    figure = table_map(table.numpy(), words, title=title, reach=reach, dark=is_dark(), size=520)
    with left:
        draw(figure, "table_map")
    picked = _curves_of(view)
    if not picked:
        right.caption("Pick a dimension above to see it as a curve.")
        return
    lines = [
        Line(f"dimension {dimension}", table[:, dimension].numpy(), number, dash=DASHES[number])  # type: ignore[arg-type]
        for number, dimension in enumerate(picked)
    ]
    figure = curves(
        np.arange(len(table)), lines, x_title="position (tokens)", y_title="value that is added",
        title="Columns as curves", dark=is_dark(), size=500,
    )  # fmt: skip
    with right:
        draw(figure, "table_curves")


def _alike(table: Tensor, words: list[str], lines: dict[str, np.ndarray], remark: str) -> None:
    """Show which positions are alike: as a curve over their distance, and each two of them."""
    st.markdown("##### Which positions are alike?")
    st.markdown(remark)
    left, right = st.columns([6, 5], gap="large")
    *before, last = lines.items()
    drawn = [Line(name, values, "before") for name, values in before] + [Line(*last)]
    figure = curves(
        np.arange(len(table)), drawn, x_title="distance (tokens)", y_title="cosine similarity",
        title="Alike, by distance", dark=is_dark(), size=440,
    )  # fmt: skip
    with left:
        draw(figure, "table_alike")
    shown = table[:MAP_ROWS]
    title = "Each pair of positions" if len(shown) == len(table) else f"Each pair of the first {MAP_ROWS} positions"
    figure = similarity_map(similarity(shown), words, title=title, dark=is_dark())
    with right:
        draw(figure, "table_similarity")
