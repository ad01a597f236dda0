"""Masks: who may see whom, what that does to one head, and why −∞ goes in before the softmax."""

from app import mask_panels, panels
from app.scene import scene

now = scene(of_sentence=True)
panels.notices(now)
mask_panels.who_sees_whom(now)
mask_panels.before_and_after(now)
mask_panels.padding(now)
panels.facts(now)
