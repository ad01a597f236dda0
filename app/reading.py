"""What can honestly be said about two sentences that differ in one reason: does a head follow it?"""

from __future__ import annotations

import numpy as np
import torch

from app import cache
from app.examples import Example, example_of
from app.phrases import percent
from app.scene import Scene, mask_of
from app.shown import between, groups
from app.view import locate, place
from engine import Kind, Trace
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
    return _blocked(scene, example, twin) or _verdict(scene, example, twin)


def _verdict(scene: Scene, example: Example, twin: Example) -> str:
    layer, head = scene.view.layer, scene.view.head
    (right, other), (right_twin, other_twin) = _candidates(scene, example, twin), _candidates(scene, twin, example)
    follows = (right > other) & (right_twin > other_twin)
    names = [_text(scene, wanted) for wanted in (example.partner, twin.partner)]
    ending = "…" + twin.sentence.split("because")[-1]
    verdict = "It follows the reason in both." if follows[layer, head] else "It does not follow the reason."
    many = int(follows.sum())
    counted = "None" if many == 0 else f"{many}"
    return (
        f"In the twin sentence, “{ending}”, layer {layer}, head {head} gives {names[0]} "
        f"{percent(other_twin[layer, head])} and {names[1]} {percent(right_twin[layer, head])}; here it gives "
        f"{names[0]} {percent(right[layer, head])} and {names[1]} {percent(other[layer, head])}"
        f"{' (not rescaled)' if scene.view.renormalise else ''}. {verdict} "
        f"{counted} of the {follows.size} heads {'does' if many < 2 else 'do'}."
    )


def _blocked(scene: Scene, example: Example, twin: Example) -> str:
    """Say why the mask leaves nothing to compare; empty where it doesn't."""
    view, kind = scene.view, scene.kind
    word = _text(scene, example.word)
    here, there = (_run(scene, sentence) for sentence in (example, twin))
    query = _group(groups(here.queries(kind), view), example.word)
    changed = _changed([token.id for token in here.queries(kind)], [token.id for token in there.queries(kind)])
    if not any(
        depends(trace, kind, view.layer, query, tokens) for trace, tokens in zip((here, there), changed, strict=True)
    ):
        return f"Under this mask “{word}” cannot see the {_differing(example, twin)}, so nothing can change."
    seen = here.visible(view.layer, view.head, kind)[list(query.indices)].any(dim=0)
    keys = [_group(groups(here.keys(kind), view), wanted) for wanted in (example.partner, twin.partner)]
    unseen = [f"“{key.text}”" for key in keys if not bool(seen[list(key.indices)].any())]
    return f"Here “{word}” cannot see {' or '.join(unseen)}, so there is nothing to compare." if unseen else ""


def depends(trace: Trace, kind: Kind, layer: int, query: Group, changed: set[int]) -> bool:
    """Say whether a word's weights in one layer can depend on some tokens, directly or through layers below.

    Args:
        trace: a run, whose visibility decides.
        kind: which attention; of a sentence to itself.
        layer: the layer whose weights are asked for.
        query: the word.
        changed: the tokens that might be others.
    """
    reached = torch.tensor([number in changed for number in range(len(trace.queries(kind)))])
    for number in range(layer + 1):
        seen = torch.stack([trace.visible(number, head, kind) for head in range(trace.heads(kind))]).any(dim=0)
        reached = reached | (seen & reached).any(dim=1)
    return bool(reached[list(query.indices)].any())


def _changed(here: list[int], there: list[int]) -> tuple[set[int], set[int]]:
    """Find the tokens that differ between two sentences; where the lengths do, all later ones have moved."""
    differ = [number for number, pair in enumerate(zip(here, there, strict=False)) if pair[0] != pair[1]]
    if len(here) == len(there):
        return set(differ), set(differ)
    first = differ[0] if differ else min(len(here), len(there))
    return set(range(first, len(here))), set(range(first, len(there)))


def _differing(example: Example, twin: Example) -> str:
    here, there = (sentence.sentence.split() for sentence in (example, twin))
    most = max(len([word for word in here if word not in there]), len([word for word in there if word not in here]))
    return "words that differ" if most > 1 else "word that differs"


def _run(scene: Scene, example: Example) -> Trace:
    return cache.trace(scene.view.model, example.sentence, mask_of(scene.view), scene.view.target)


def _candidates(scene: Scene, example: Example, twin: Example) -> tuple[np.ndarray, np.ndarray]:
    """Give for every head the weight from the pronoun to the person meant and to the other one, (L, H) each."""
    trace = _run(scene, example)
    axis = groups(trace.queries(scene.kind), scene.view)
    word, right, other = (_group(axis, wanted) for wanted in (example.word, example.partner, twin.partner))
    return between(trace, scene.kind, word, right), between(trace, scene.kind, word, other)


def _group(axis: tuple[Group, ...], wanted: str | None) -> Group:
    index = locate(axis, wanted)
    return axis[0 if index is None else index]


def _text(scene: Scene, wanted: str | None) -> str:
    return _group(scene.shown.keys, wanted).text
