"""What can honestly be said about two sentences that differ in one reason: does a head follow it?

Dimensions: L layers, H heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from app.drawn import traced
from app.examples import Example, example_of
from app.phrases import SPACE, percent
from app.scene import Scene
from app.shown import between, groups
from app.view import locate, place
from engine import Kind, Trace, group_words
from engine.errors import MaskError
from engine.grammar import parse
from engine.tokens import Group

Pair = tuple[np.ndarray, np.ndarray]
LEAST_LOOK = 0.01  # of a row, which a head gives two words together if it looks at them


def reading(scene: Scene) -> str:
    """Compare the shown head on an example and on the one that differs in the reason; empty where there is none.

    At the pronoun or, where that cannot know, at the last word of the reason. Heads are counted too: see `followers`.
    """
    try:
        return _read(scene)
    except MaskError:  # one that names tokens, and the other sentence has others
        return ""


def _read(scene: Scene) -> str:
    view = scene.view
    example = example_of(view.sentence)
    twin = example_of(example.twin) if example and example.twin else None
    if example is None or twin is None or view.direction != "to" or view.unit != "words" or view.average != "head":
        return ""
    if scene.kind != scene.trace.kinds[0]:
        return ""
    picked, ends = place(scene.sources, scene.pin), tuple(_end(sentence) for sentence in (example, twin))
    if picked == example.word:
        return _blocked(scene, example, twin) or _verdict(scene, example, twin, (example.word, twin.word))
    if picked == ends[0] and _cannot_know(scene, example, twin):
        return _verdict(scene, example, twin, ends)
    return ""


def _end(example: Example) -> str | None:
    """Find the last word of the reason."""
    sentence = parse(example.sentence)
    return None if sentence is None or sentence.reason_end is None else str(sentence.reason_end)


def _verdict(scene: Scene, example: Example, twin: Example, words: Sequence[str | None]) -> str:
    layer, head = scene.view.layer, scene.view.head
    here, there = _candidates(scene, example, twin, words[0]), _candidates(scene, twin, example, words[1])
    (right, other), (right_twin, other_twin) = here, there
    follows = followers(here, there)
    names = [_text(scene, wanted) for wanted in (example.partner, twin.partner)]
    ending = "…" + twin.sentence.split("because")[-1]
    many = int(follows.sum())
    counted = "None" if many == 0 else f"{many}"
    if follows[layer, head]:
        verdict = "It follows the reason in both."
    elif looking(here, there)[layer, head]:
        verdict = "It does not follow the reason."
    else:
        verdict = "It hardly looks at the two, so which of them gets more means nothing."
    return (
        f"In the other sentence, “{ending}”, layer {layer}, head {head} gives {names[0]} "
        f"{percent(other_twin[layer, head])} and {names[1]} {percent(right_twin[layer, head])}; here it gives "
        f"{names[0]} {percent(right[layer, head])} and {names[1]} {percent(other[layer, head])}"
        f"{' (not rescaled)' if scene.view.renormalise else ''}. {verdict} "
        f"{counted} of the {follows.size} heads {'does' if many < 2 else 'do'}, counting only those that give the two "
        f"at least {LEAST_LOOK * 100:.0f}{SPACE}% together in both sentences."
    )


def looking(here: Pair, there: Pair) -> np.ndarray:
    """Say which heads look at the two people at all: in each of two sentences they give them a hundredth, (L, H).

    Below that a head looks elsewhere, and which of the two it gives more is noise: heads that were measured on the
    examples give them either 7 % and more or less than 0.01 %.
    """
    return (here[0] + here[1] >= LEAST_LOOK) & (there[0] + there[1] >= LEAST_LOOK)


def followers(here: Pair, there: Pair) -> np.ndarray:
    """Say which heads follow the reason: they look at the two people, and give more to who is meant, (L, H).

    Args:
        here, there: of two sentences the weights to the person meant and to the other one, (L, H) each.
    """
    return (here[0] > here[1]) & (there[0] > there[1]) & looking(here, there)


def _cannot_know(scene: Scene, example: Example, twin: Example) -> bool:
    """Say whether the pronoun's weights are the same in both sentences, because its row comes before the reason."""
    kind = scene.kind
    here, there = (_run(scene, sentence) for sentence in (example, twin))
    changed, _ = _changed([token.id for token in here.queries(kind)], [token.id for token in there.queries(kind)])
    query = _group(groups(here.queries(kind), scene.view), example.word)
    return not depends(here, kind, here.layers(kind) - 1, query, changed)


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


def in_words(trace: Trace, kind: Kind, word: int) -> Group:
    """Give the tokens of one word of a sentence, whatever an axis shows."""
    return next(group for group in group_words(trace.queries(kind)) if group.word == word)


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
    return traced(replace(scene.view, sentence=example.sentence))


def _candidates(scene: Scene, example: Example, twin: Example, place: str | None) -> Pair:
    """Give for every head the weight from a word to the person meant and to the other one, (L, H) each."""
    trace = _run(scene, example)
    axis = groups(trace.queries(scene.kind), scene.view)
    word, right, other = (_group(axis, wanted) for wanted in (place, example.partner, twin.partner))
    return between(trace, scene.kind, word, right), between(trace, scene.kind, word, other)


def _group(axis: tuple[Group, ...], wanted: str | None) -> Group:
    index = locate(axis, wanted)
    return axis[0 if index is None else index]


def _text(scene: Scene, wanted: str | None) -> str:
    return _group(scene.shown.keys, wanted).text
