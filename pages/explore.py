"""Explore: point at a word and see what it attends to, in any layer and head."""

import streamlit as st

from app import answer_panel, facts, knowing, notices, panels, pictures
from app.scene import scene

now = scene()
notices.notices(now)
panels.words(now)
answer_panel.answers(now)
knowing.where_it_can_know(now)
if now.is_compared:
    with st.container(key="three_pictures"):
        left, middle, right = st.columns([10, 8, 10], gap="medium")
    with middle:
        pictures.change(now)
else:
    with st.container(key="two_pictures"):
        left, right = st.columns([10, 11], gap="large")
with left:
    pictures.heat(now)
with right:
    pictures.heads(now)
facts.facts(now, table=pictures.table_of, file_name=pictures.table_name(now))
panels.caution(now)
