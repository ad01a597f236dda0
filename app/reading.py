"""What can honestly be said about two sentences that differ in one reason: does a head follow it?"""

from __future__ import annotations

import numpy as np

from app import cache
from app.examples import Example, example_of
from app.scene import Scene
from app.shown import between, groups
from app.view import locate, place
from engine import Mask
from engine.tokens import Group


def reading(scene: Scene) -> str:
    """Compare the shown head on an example and on its twin sentence; empty where there is no twin.

    The heads are counted too: a head follows the reason if, in both sentences, it gives the right person more.
    """
    view = scene.view
    example = example_of(view.sentence)
    twin = example_of(example.twin) if example and example.twin else None
    if example is None or twin is None or view.direction != "to" or view.unit != "words" or view.average != "head":
        return ""
    if scene.kind != scene.trace.kinds[0] or place(scene.sources, scene.pin) != example.word:
        return ""
    ours, theirs = _candidates(scene, example, twin), _candidates(scene, twin, example)
    (right, other), (right_twin, other_twin) = ours, theirs
    follows = (right > other) & (right_twin > other_twin)
    layer, head = view.layer, view.head
    names = [_text(scene, wanted) for wanted in (example.partner, twin.partner)]
    ending = "…" + twin.sentence.split("because")[-1]
    verdict = "It follows the reason in both." if follows[layer, head] else "It does not follow the reason."
    many = int(follows.sum())
    counted = "None" if many == 0 else f"{many}"
    return (
        f"In the twin sentence, “{ending}”, head {layer}.{head} gives {names[0]} "
        f"{other_twin[layer, head]:.0%} and {names[1]} {right_twin[layer, head]:.0%}; here it gives {names[0]} "
        f"{right[layer, head]:.0%} and {names[1]} {other[layer, head]:.0%}. {verdict} "
        f"{counted} of the {follows.size} heads {'does' if many < 2 else 'do'}."
    )


def _candidates(scene: Scene, example: Example, twin: Example) -> tuple[np.ndarray, np.ndarray]:
    """Give for every head the weight from the pronoun to the person meant and to the other one, (L, H) each."""
    view = scene.view
    mask = Mask.parse(view.mask)
    trace = cache.trace(view.model, example.sentence, mask, view.target)
    axis = groups(trace.queries(scene.kind), view)
    word, right, other = (_group(axis, wanted) for wanted in (example.word, example.partner, twin.partner))
    return between(trace, scene.kind, word, right), between(trace, scene.kind, word, other)


def _group(axis: tuple[Group, ...], wanted: str | None) -> Group:
    index = locate(axis, wanted)
    return axis[0 if index is None else index]


def _text(scene: Scene, wanted: str | None) -> str:
    return _group(scene.shown.keys, wanted).text
