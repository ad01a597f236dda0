"""Positions: how a model that sees all words at once knows their order."""

from app.positions_panels import positions_page

positions_page()
