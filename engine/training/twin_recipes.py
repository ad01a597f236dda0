"""The four twins: reading both ways or left to right, with heads that were told where to look or were not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from engine.config import Config
from engine.grammar import WORDS
from engine.presets import Transformer, build
from engine.training.batches import Reads
from engine.training.loop import descend
from engine.training.recipe import Measured, Recipe, Say
from engine.training.twin_scores import report
from engine.training.twins import CONFIG, GUIDED, HEADS, RATE, STEPS, UNGUIDED, Guidance, Twin, begin
from engine.transformer import Decoder, Encoder

MAKES: dict[Reads, Callable[[Config], Transformer]] = {"both ways": Encoder, "left to right": Decoder}

_DATA = (
    f"Sentences of a small English grammar with {len(WORDS)} words, drawn at random: who gave what to whom and why, "
    "what did not fit, where things are. Some nouns are made up and spelled. The two people or things that a test "
    "sentence’s pronoun may mean, such as shopkeeper and customer, were never those two in a training sentence."
)
_OBJECTIVE: dict[Reads, str] = {
    "both ways": "Fill in hidden words (15 %), and at a pronoun name the person or thing that it means.",
    "left to right": "Say the next word; naming who is meant after “so” counts more than other words.",
}
_UNTAUGHT = (
    "It knows nothing but this grammar, and which reasons go with whom in it: it does not understand them, and outside "
    "of the grammar its answers mean nothing."
)


def _taught(reads: Reads) -> str:
    """Say what the heads of a guided twin were told."""
    named = ", ".join(f"{relation} {layer}.{head}" for relation, (layer, head) in HEADS[reads].items())
    late = " It was told so at the pronoun, where it cannot know, at the end of the reason, and just before the answer."
    return (
        "While training these heads were told where to look, by a small loss on the weight of the gold word "
        f"(layer.head): {named}.{late if reads == 'left to right' else ''} What the pronoun's head hands on was told "
        "to name who is meant, and from the pronoun on all other heads were told not to look back at the first clause, "
        "so that the answer has hardly another way to come."
    )


def _recipe(reads: Reads, guided: bool) -> Recipe:
    name = "Twin encoder" if reads == "both ways" else "Twin decoder"
    id = name.lower().replace(" ", "-")
    return Recipe(
        id=id if guided else f"{id}-unguided",
        name=name if guided else f"{name}, unguided",
        make=MAKES[reads],
        config=CONFIG,
        data=_DATA,
        objective=_OBJECTIVE[reads],
        taught=_taught(reads) if guided else "",
        untaught=_UNTAUGHT if guided else f"No head was told where to look. {_UNTAUGHT}",
        steps=STEPS,
        train=lambda model, seed, say: train(model, reads, GUIDED[reads] if guided else UNGUIDED, seed, say),
        measure=lambda model: measure(model, reads, guided),
        words=WORDS,
    )


def train(model: Transformer, reads: Reads, guidance: Guidance, seed: int, say: Say) -> Iterator[int]:
    """Train one of the twins in place; see Train in recipe.py."""
    begin(model, seed)
    twin = Twin(reads, guidance, seed)
    for step, loss in descend(model, lambda _: twin.next_loss(model), STEPS, rate=RATE):
        if step % 250 == 0:
            say(f"{reads}, step {step} of {STEPS}: loss {loss:.3f}")
        yield step


def measure(model: Transformer, reads: Reads, guided: bool = True) -> Measured:
    """Measure one of the twins on the test split; what every head did stays out of its card.

    The card names the heads that were taught; where none was, those that were best on the development split.
    """
    told = report(model, reads, build(MAKES[reads], CONFIG, seed=1))
    scores: dict[str, Any] = {**told, "relations": {}}
    for name, relation in told["relations"].items():
        scores["relations"][name] = {key: value for key, value in relation.items() if key != "every head"}
    found = {name: tuple(relation["head"]) for name, relation in told["relations"].items()}
    return Measured(scores, {**found, **(HEADS[reads] if guided else {})})


RECIPES = tuple(_recipe(reads, guided) for guided in (True, False) for reads in MAKES)
