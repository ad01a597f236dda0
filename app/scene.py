"""One rerun's worth of facts: the view, the trace it asks for, and the words that are picked in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app import cache, state
from app.drawn import drawn, mask_of, traced
from app.homes import counterpart
from app.parameters import TWIN
from app.phrases import brief
from app.shown import Shown, between, can_see, shown, thumbnails
from app.view import View, assignment, locate, opening_view, own_partner
from engine import Kind, Mask, Trace
from engine.card import Card
from engine.errors import InterventionError
from engine.tokens import Group, group_tokens

PRONOUNS = frozenset(
    [
        "she",
        "he",
        "it",
        "they",
        "her",
        "him",
        "them",
        "his",
        "hers",
        "its",
        "their",
        "who",
        "वह",
        "वे",
        "उसने",
        "उसे",
        "यह",
    ]
)


@dataclass(frozen=True)
class Scene:
    """What a page draws.

    Attributes:
        asked: what the reader asked for, within the model's range.
        view: the same as it is run and drawn: where the model's twin is asked for, of the twin, its mask and its head.
        trace: the run.
        kind: which attention is shown.
        shown: its map.
        pin: the picked word: a row of the map where the direction is "to", a column where it is "by".
        partner: the word at the other end; None where there is only one word.
    """

    asked: View
    view: View
    trace: Trace
    kind: Kind
    shown: Shown
    pin: int
    partner: int | None

    @property
    def sources(self) -> tuple[Group, ...]:
        """The axis of the picked word."""
        return self.shown.queries if self.view.direction == "to" else self.shown.keys

    @property
    def targets(self) -> tuple[Group, ...]:
        """The axis at the other end."""
        return self.shown.keys if self.view.direction == "to" else self.shown.queries

    @property
    def edge(self) -> tuple[int, int] | None:
        """The row and the column of the picked pair; None without a partner."""
        if self.partner is None:
            return None
        return (self.pin, self.partner) if self.view.direction == "to" else (self.partner, self.pin)

    @property
    def is_foreign(self) -> bool:
        """Whether the mask differs from the one that the model was trained with."""
        return is_foreign(self.trace.card, self.view.mask)

    @property
    def is_twin(self) -> bool:
        """Whether what is drawn is the twin of the model that was picked."""
        return self.view.model != self.asked.model

    @property
    def is_compared(self) -> bool:
        """Whether what is drawn stands beside the model as it was trained."""
        return self.is_foreign or self.is_twin

    @property
    def silenced(self) -> str:
        """Name the head that is silenced: "L2 H0"; empty for none."""
        return "".join(
            f"{one.kind or ''} L{one.layer} H{one.head}".strip() for one in cache.silences(self.view.silence)
        )

    def head_asked(self, layer: int, head: int) -> dict[str, int]:
        """Say what to ask for to see a head that is drawn: fields of a view."""
        layer, head = counterpart(self.view.model, (layer, head)) if self.is_twin else (layer, head)
        return {"layer": layer, "head": head}

    @property
    def one_axis(self) -> bool:
        """Whether queries and keys are the same words."""
        return self.kind != "cross"


def is_foreign(card: Card, mask: str) -> bool:
    """Whether a mask of the view changes anything about how this model was trained."""
    own = {"BERT-style": "bidirectional", "GPT-style": "causal"}.get(card.style)
    windowed = any(card.windows)
    return mask != "native" and (mask != own or windowed)


def scene(*, of_sentence: bool = False) -> Scene:
    """Run the model on what the view asks for, and find the picked words.

    Args:
        of_sentence: show the attention that the sentence pays to itself, whichever kind the view asks for.

    Raises:
        EngineError: the model or the sentence cannot be used.
    """
    asked = state.view()
    if of_sentence:
        asked = replace(asked, mask="native" if asked.mask == TWIN else asked.mask, silence="")
    elif asked.silence:
        asked = _with_a_head_to_silence(asked)
    trace = traced(drawn(asked))
    kind = trace.kinds[0] if of_sentence else asked.kind if asked.kind in trace.kinds else trace.kinds[-1]
    within = state.clamp(layers=trace.layers(kind), heads=trace.heads(kind))
    if state.take_arrival():
        within = _mended(within, trace, kind)
    asked = replace(within, mask=asked.mask, silence=asked.silence)
    view = drawn(asked)
    made = shown(trace, view, kind)
    to = view.direction == "to"
    sources, targets = (made.queries, made.keys) if to else (made.keys, made.queries)
    found = locate(sources, view.word)
    pin = default_word(sources, first=kind == "cross") if found is None else found
    row, seen = (made.weights[pin], made.visible[pin]) if to else (made.weights[:, pin], made.visible[:, pin])
    partner = locate(targets, view.partner)
    if partner is None or (found is None and view.word is not None):  # a partner belongs to the word it came with
        partner = strongest(row, seen, targets, None if kind == "cross" else pin)
    return Scene(asked, view, trace, kind, made, pin, partner)


def _with_a_head_to_silence(asked: View) -> View:
    """Forget a silence where it makes no sense: of a model that gives no answer, and of a head that is not there."""
    if cache.model(asked.model).card.trained is None:
        state.note("Heads can be silenced in the models that were trained here: only they say what they make of it.")
        return state.amend(silence="")
    try:
        traced(drawn(asked))
    except InterventionError:
        state.note(f"“{assignment('silence', asked.silence)}” names no head of this model, so none is silenced.")
        return state.amend(silence="")
    return asked


def _mended(view: View, trace: Trace, kind: Kind) -> View:
    """Drop from a view that comes from a link what this model or this sentence has not, and say so."""
    changes: dict[str, str | None] = {}
    if view.kind and view.kind not in trace.kinds:
        state.note(f"“{assignment('kind', view.kind)}” in the link means nothing to this model and is left out.")
        changes["kind"] = ""
    if view.target and trace.target is None:
        state.note("“target” in the link is left out: this model reads only one sentence.")
        changes["target"] = ""
    if kind == view.kind or len(trace.kinds) == 1:  # another kind has other words, which the link doesn't speak of
        changes |= _mended_places(view, trace, kind)
    return state.amend(**changes) if changes else view


def _mended_places(view: View, trace: Trace, kind: Kind) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    queries, keys = trace.queries(kind), trace.keys(kind)
    axes = {"word": queries, "partner": keys} if view.direction == "to" else {"word": keys, "partner": queries}
    for field, tokens in axes.items():
        wanted = getattr(view, field)
        if wanted is not None and locate(group_tokens(tokens), wanted) is None:
            state.note(f"“{assignment(field, wanted)}” in the link names no word of this sentence: another is picked.")
            changes[field] = None
    word = opening_view(view.sentence).word if "word" in changes else view.word
    if changes:
        partner = None if "partner" in changes else view.partner
        changes = {"word": word, "partner": partner or own_partner(view.sentence, word, view.direction)}
    return changes


def default_word(groups: Sequence[Group], *, first: bool = False) -> int:
    """Choose the word to begin with: the last pronoun, else the last word that is no punctuation, or the first.

    The last row of a text across says where nothing comes from: it decides that the text ends.
    """
    signs = [place for place, group in enumerate(groups) if not group.special] or [0]
    words = [place for place in signs if any(character.isalnum() for character in groups[place].text)] or signs
    pronouns = [place for place in words if groups[place].text.casefold() in PRONOUNS]
    return pronouns[-1] if pronouns else words[0 if first else -1]


def strongest(row: np.ndarray, seen: np.ndarray, groups: Sequence[Group], but: int | None) -> int | None:
    """Find the word with the most weight in one row: no special token, and one other only where no third is seen."""
    allowed = [place for place, group in enumerate(groups) if not group.special]
    others = [place for place in allowed if place != but]
    visible = [place for place in others if seen[place]]
    alone = [place for place in allowed if place == but and seen[place]]
    return max(visible or alone or others, key=lambda place: row[place], default=None)


def native_scene(scene: Scene) -> Shown:
    """Make the same map of the model that was picked, under the mask that it was trained with."""
    view = replace(scene.asked, mask="native")
    native = traced(view)
    return shown(native, view, scene.kind if scene.kind in native.kinds else native.kinds[-1])


def grid_maps(scene: Scene) -> np.ndarray:
    """Make or fetch a thumbnail of every head, (L, H, height, width)."""
    view = scene.view
    key = ("thumbnails", *run_of(scene), scene.kind, view.unit, view.specials, view.renormalise)
    return cache.derived(key, lambda: thumbnails(scene.trace, view, scene.kind), lambda made: made.nbytes)


def pair_weights(scene: Scene) -> np.ndarray | None:
    """Say in every head how much the picked pair's query gives to its key, (L, H); None without a pair.

    Where the map is rescaled so is this. All NaN: the mask lets no head look there.
    """
    if scene.edge is None:
        return None
    query, key = scene.shown.queries[scene.edge[0]], scene.shown.keys[scene.edge[1]]
    among = scene.shown.keys if scene.view.renormalise else ()
    weights = between(scene.trace, scene.kind, query, key, among)
    if not weights.any() and not can_see(scene.trace, scene.kind, query, key):
        return np.full_like(weights, np.nan)
    return weights


def pair_title(scene: Scene) -> str:
    """Name the picked pair: "from she to customer"; empty without one."""
    if scene.edge is None:
        return ""
    row, column = scene.edge
    return f"from {brief(scene.shown.queries[row].text)} to {brief(scene.shown.keys[column].text)}"


def audit_text(scene: Scene) -> tuple[str, bool]:
    """Audit the run, once; return the sentence and whether it passed or does not apply."""
    audit = cache.derived(("audit", *run_of(scene)), scene.trace.audit, lambda made: 200)
    return str(audit), audit.passed or audit.relative is None


def run_of(scene: Scene) -> tuple[str, str, Mask, str, str]:
    """Name the run, as a part of keys."""
    return scene.view.model, scene.view.sentence, mask_of(scene.view), scene.view.target, scene.view.silence
