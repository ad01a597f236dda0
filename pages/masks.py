"""Masks: who may see whom, what that does to one head, and why −∞ goes in before the softmax."""

from app import facts, mask_padding, mask_panels, mask_stages, notices
from app.scene import scene

now = scene(of_sentence=True)
notices.notices(now)
mask_panels.who_sees_whom(now)
mask_stages.before_and_after(now)
mask_padding.padding(now)
facts.facts(now)
