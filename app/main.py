"""The entrypoint: navigation, the controls shared by all pages, and one frame for errors."""

import gc
import os
import sys
from importlib import import_module
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

st.set_page_config(page_title="Attention Explorer", page_icon=ROOT / "assets" / "icon.svg", layout="wide")
if "engine" not in sys.modules:
    # One thread for a run and two runs at a time serve a class better than all cores for one run. PyTorch has to find
    # this when it starts: set later, it costs 4 ms in every new thread, and every click is a new thread.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 2) // 2)))
    with st.spinner("Starting PyTorch, which takes a few seconds the first time …"):
        import_module("engine")
    # PyTorch's modules stay: to look through them for garbage would stop everybody for a quarter of a second.
    gc.freeze()

from app import cache, shell, state
from app.controls import controls, model_names, sentence_bar
from engine.errors import EngineError

PAGES = {
    "explore": "Explore",
    "masks": "Masks",
    "positions": "Positions",
    "build": "Build",
    "cost": "Cost",
    "vision": "Vision",
    "train": "Train",
}
OF_A_MODEL = frozenset({"Explore", "Masks"})  # the others read the sentence alone, so they don't wait for a model

# No sections yet: on top they become menus, which would hide the pages behind a click.
page = st.navigation(
    [
        st.Page(ROOT / "pages" / f"{name}.py", title=title, url_path=name, default=name == "explore")
        for name, title in PAGES.items()
    ],
    position="top",
)
st.logo(ROOT / "assets" / "logo.svg", size="large")
st.html(ROOT / "assets" / "style.css")

try:
    models = model_names(entry for entry in cache.entries() if entry.style != "vision")  # those that read text
except EngineError as error:  # what the operator set cannot be read; there is nothing to show before it is mended
    st.error(shell.literal(str(error)))
    st.stop()
state.sync(models, page.url_path)
if page.title in OF_A_MODEL:
    controls(models, shell.attempt(lambda: cache.model(state.view().model).card, page.title))
else:
    sentence_bar(with_link=True)
notes = st.container()
shell.show(page.run, page.title)
with notes:
    shell.show_notes()
state.publish()
