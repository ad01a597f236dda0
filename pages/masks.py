"""Masks: who may see whom, what that does to one head, and why −∞ goes in before the softmax."""

from app import mask_padding, mask_panels, mask_stages, panels
from app.scene import scene

now = scene(of_sentence=True)
panels.notices(now)
mask_panels.who_sees_whom(now)
mask_stages.before_and_after(now)
mask_padding.padding(now)
panels.facts(now)
