"""Train: watch a small model learn, step by step, and see its heads find out where to look."""

from app.train_finetuning import finetuning_panel
from app.train_panels import train_page

train_page()
finetuning_panel()
