"""The README's figures on the small models are those of their cards."""

from pathlib import Path
from typing import Any

from engine.grammar import WORDS
from engine.trained import card_of
from engine.training.vision import EARLY

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")


def scores(name: str) -> dict[str, Any]:
    """What was measured about a model."""
    return dict(card_of(name).scores)


def share(value: float, digits: int = 1) -> str:
    """Write a share of 1 as the README does: with more digits where it would round to all."""
    if value == 1:
        return "100 %"
    written = f"{100 * value:.{digits}f} %"
    return f"{100 * value:.2f} %" if written == "100.0 %" else written


def row(name: str) -> str:
    """Find a model's row in the table."""
    return next(line for line in README.splitlines() if line.startswith(f"| `{name}`"))


def said(answer: dict[str, Any]) -> str:
    """What is right in a twin's own words, and without its pronoun's head."""
    silenced = share(answer["with the pronoun's head silenced"])
    return f"in its own words {share(answer['right'])}, with that head silenced {silenced}"


def test_the_encoders_figures():
    found = scores("twin-encoder")
    pronoun = found["relations"]["pronoun"]
    head, recent = ".".join(map(str, pronoun["head"])), share(pronoun["baselines"]["most recent of the two"])
    assert f"its head {head} finds who is meant in {share(pronoun['right'])}" in row("twin-encoder")
    assert f"({share(pronoun['weight'])} of its weight there), the most recent of the two {recent}" in row(
        "twin-encoder"
    )
    assert said(found["answer"]) in row("twin-encoder")


def test_the_decoders_figures():
    found = scores("twin-decoder")
    at_pronoun, at_end = found["at the pronoun itself, of the two"], found["relations"]["pronoun"]["right"]
    assert f"at the pronoun {share(at_pronoun)} of two, at the reason's end {share(at_end)}" in row("twin-decoder")
    assert said(found["answer"]) in row("twin-decoder")


def test_the_unguided_ones_figures():
    found = [scores(f"twin-{one}-unguided") for one in ("encoder", "decoder")]
    best = " and ".join(share(one["relations"]["pronoun"]["right"]) for one in found)
    words = " and ".join(share(one["answer"]["right"]) for one in found)
    assert f"best heads {best}; in their own words {words}" in row("…-unguided")


def test_the_translators_figures():
    found, unguided = scores("translator-en-hi"), scores("translator-en-hi-unguided")
    head = ".".join(map(str, card_of("translator-en-hi").heads["alignment"]))
    told = row("translator-en-hi")
    assert f"{share(found['exact_match'])} of sentences right to the last word" in told
    assert f"({share(found['riddles'])} where only the reason tells who *she* is)" in told
    assert f"its head {head} (cross) finds the English word in {share(found['alignment'])}" in told
    random = share(found["random_weights"]["alignment"])
    assert f"(unguided {share(unguided['alignment'])}, random weights {random})" in told


def test_the_classifiers_and_the_vision_transformers_figures():
    found, looking = scores("classifier"), scores("little-vit")
    told, random = row("little-vit"), looking["random"]
    assert f"{share(found['right'], 2)} (random weights {share(found['baselines']['random weights'])})" in row(
        "classifier"
    )
    assert f"shape {share(looking['shape'])}, colour {share(looking['colour'])}" in told
    head = ".".join(map(str, card_of("little-vit").heads["object"]))
    assert f"its head {head} gives the object {looking['times']:.1f} times its share of the area" in told
    assert f"rollout's top patch lies on it in {share(looking['top'])}" in told
    by_chance = (
        f"{share(random['shape'])}, {share(random['colour'])}, {random['times']:.1f} times, {share(random['top'])}"
    )
    assert f"(random weights: {by_chance})" in told
    assert card_of("little-vit-early").steps == EARLY


def test_the_number_of_words_is_the_grammars():
    assert f"{len(WORDS)} words" in README
