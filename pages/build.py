"""Build: a transformer put together from its parts."""

from app.build_panels import build_page

build_page()
