"""Cost: what attention costs in operations, memory, seconds and money, and where it overtakes the rest."""

from app.cost_panels import cost_page

cost_page()
