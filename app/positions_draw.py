"""How the page Positions puts a figure on itself."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from app import charts


def draw(figure: go.Figure, key: str) -> None:
    """Draw a figure, its height kept free from the start so that nothing below moves when it comes."""
    st.plotly_chart(figure, theme=None, config=charts.CONFIG, key=key, height=int(figure.layout.height))
