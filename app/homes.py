"""Where each model is opened: on the head that says something; and which model is another's twin.

A head is (layer, head), both counted from 0.
"""

from collections.abc import Mapping
from functools import cache

from engine.errors import ModelError
from engine.shipped import SHIPPED
from engine.trained import Head, TrainedCard, card_of

FIRST = "twin-encoder"
TWINS = {
    "twin-encoder": "twin-decoder",
    "twin-decoder": "twin-encoder",
    "twin-encoder-unguided": "twin-decoder-unguided",
    "twin-decoder-unguided": "twin-encoder-unguided",
}
# What a model that was trained here is opened on: who is meant or, of a translator, what a word comes from.
RELATIONS = ("pronoun", "alignment")
MINILM: Head = (5, 8)
_KNOWN = {"minilm": MINILM, "minilm-scratch": MINILM}


@cache
def trained(model: str) -> TrainedCard | None:
    """Read the card of a model that was trained here; None for another, and where the card is lost."""
    if model not in SHIPPED:
        return None
    try:
        return card_of(model)
    except ModelError:
        return None


def home(model: str) -> Head:
    """Say which head a model is opened on."""
    card = trained(model)
    heads = {} if card is None else card.heads
    return next((heads[relation] for relation in RELATIONS if relation in heads), _KNOWN.get(model, (0, 0)))


def relative(model: str) -> str | None:
    """Name the model that differs only in whether its heads were told where to look; None where there is none."""
    other = model.removesuffix("-unguided") if model.endswith("-unguided") else f"{model}-unguided"
    return other if other in SHIPPED else None


def counterpart(model: str, head: Head) -> Head:
    """Say which head of its twin stands for a head: the one for the same relation, else the same layer and head.

    No two heads have the same one, so the way back is the twin's own counterpart.
    """
    return _counterparts(model).get(head, head)


@cache
def _counterparts(model: str) -> Mapping[Head, Head]:
    own, other = trained(model), trained(TWINS[model])
    if own is None or other is None:
        return {}
    pairs: dict[Head, Head] = {}
    for relation in sorted(own.heads.keys() & other.heads.keys(), key=lambda name: (name not in RELATIONS, name)):
        one, another = own.heads[relation], other.heads[relation]
        if one not in pairs and another not in pairs.values():
            pairs[one] = another
    every = [(layer, head) for layer in range(own.config.layers) for head in range(own.config.heads)]
    pairs |= {head: head for head in every if head not in pairs and head not in pairs.values()}
    left = [head for head in every if head not in pairs]
    return pairs | dict(zip(left, [head for head in every if head not in pairs.values()], strict=True))
