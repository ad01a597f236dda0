"""Vision: a picture read as a sentence of patches, and where a small vision transformer looks on it."""

from app.vision_panels import vision_page

vision_page()
