"""Arrays and labels in, a plotly or altair figure out; nothing here knows the page it is shown on.

Plotly figures bring their own colours: show them with `theme=None` and `config=CONFIG`.
"""

from app.charts_axes import CONFIG
from app.charts_matrix import heatmap, mask_matrix, scores_figure
from app.charts_rows import comparison, entropy_text, ranking_frame

__all__ = ["CONFIG", "comparison", "entropy_text", "heatmap", "mask_matrix", "ranking_frame", "scores_figure"]
