"""What the page Vision says about what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.phrases import percent
from engine.pictures import ACROSS
from engine.trained import TrainedCard
from engine.vision import CLASS_TOKEN, Answer

STAGES = {"trained": "Trained", "early": "Early in training", "untrained": "Untrained"}
TIMES = "\u202f×"
INTRODUCTION = (
    f"A vision transformer cuts a picture into patches, here {ACROSS} × {ACROSS}, and reads them as a sentence of "
    f"{ACROSS**2} words. In front stands one token that is no patch, **{CLASS_TOKEN}**: it gathers from the patches "
    "what the answer needs, and the answer is read from it alone."
)
ROLLOUT = (
    "A head shows one step. **Rollout** follows all steps: it averages the heads of a layer, counts half of every "
    "token as its own, because each layer adds to what was there, and multiplies the layers. What comes out is how "
    "much of each patch has arrived in the token, if attention were all there is."
)
CAUTION = (
    "**Attention is not explanation.** It says where a head looked, not what it took from there, and not why the "
    "answer is what it is. Try the model early in its training: it already looks at the shape, and often cannot "
    "name it."
)


def token_name(token: int) -> str:
    """Name a token: 0 is the class token, the others are patches, named by row and column."""
    if token == 0:
        return CLASS_TOKEN
    row, column = divmod(token - 1, ACROSS)
    return f"r{row} c{column}"


def answer_text(answer: Answer, shape: str, colour: str) -> str:
    """Say what the model takes the picture to be, and whether that is right."""
    right = (answer.colour == colour, answer.shape == shape)
    said = f"It says **{answer.colour} {answer.shape}**"
    if all(right):
        return f"{said}, which is right."
    if any(right):
        return f"{said}: the {'colour' if right[0] else 'shape'} is right, but it is a {colour} {shape}."
    return f"{said}, but it is a {colour} {shape}."


def looks_text(mass: float, area: float) -> str:
    """Say how much of the class token's attention is on the shape, and how much more than its area that is."""
    return (
        f"{CLASS_TOKEN} puts {percent(mass)} on the patches that the shape reaches into, which are {percent(area)} of "
        f"the picture: {times(mass / area)} as much as even attention would."
    )


def silenced_text(with_head: Answer, without: Answer, layer: int, head: int) -> str:
    """Say what the answer is with one head silenced, beside what it was."""
    before = (with_head.colours[with_head.colour], with_head.shapes[with_head.shape])
    after = (without.colours[with_head.colour], without.shapes[with_head.shape])
    parts = ", ".join(
        f"{name} {percent(old)} → {percent(new)}"
        for name, old, new in zip((with_head.colour, with_head.shape), before, after, strict=True)
    )
    same = (with_head.colour, with_head.shape) == (without.colour, without.shape)
    told = "the answer stays" if same else f"the answer becomes **{without.colour} {without.shape}**"
    return f"With layer {layer}, head {head} silenced {told} ({parts})."


def times(ratio: float) -> str:
    """Write how many times as much: "7.4 ×"."""
    return f"{ratio:.1f}{TIMES}"


def scores_table(stages: Mapping[str, Mapping[str, Any]], chance: Mapping[str, str]) -> str:
    """Write what was measured as a table in markdown: a line for each measure, a column for each model, and chance.

    Args:
        stages: for each column's name its scores, as engine/training/vision.py gives them.
        chance: for "shape", "colour", "times" and "top", what guessing gives.
    """
    lines = [f"| On never-seen pictures | {' | '.join(stages)} | Chance |", f"|---|{'---:|' * (len(stages) + 1)}"]
    names = {
        "shape": "Names the shape right",
        "colour": "Names the colour right",
        "times": "Attention of the best head on the shape, as a multiple of its area",
        "top": "Rollout’s largest patch is one of the shape’s",
    }
    for key, name in names.items():
        write = times if key == "times" else percent
        cells = [write(scores[key]) for scores in stages.values()]
        lines.append(f"| {name} | {' | '.join(cells)} | {chance[key]} |")
    return "\n".join(lines)


def measured_text(card: TrainedCard) -> str:
    """Say what the numbers in the table mean, and what they do not."""
    scores = card.scores
    silenced, random = scores["silenced"], scores["random"]
    layer, head = card.heads["object"]
    return (
        f"Measured on {scores['pictures']:,} pictures that none of them has seen. The best head is chosen on other "
        f"pictures than it is reported on; for the trained model it is layer {layer}, head {head}, with "
        f"{percent(scores['mass'])} of its attention on {percent(scores['area'])} of the picture. Silencing it leaves "
        f"{percent(silenced['shape'])} of the shapes and {percent(silenced['colour'])} of the colours right. Mind the "
        f"last line: even with random weights rollout’s largest patch lies on the shape in {percent(random['top'])} of "
        "the pictures, probably because a patch full of colour stands out from grey whatever the weights. A picture of "
        "attention that looks right proves little by itself."
    )


def learned_text(card: TrainedCard) -> str:
    """Say what the model was trained on and for, what it was told of where to look, and what it cannot do."""
    taught = f"Taught beside that: {card.taught}" if card.taught else "Nothing told it where to look."
    return (
        f"**Data.** {card.data} **Objective.** {card.objective} {taught} **Limits.** {card.untaught} "
        f"{card.steps:,} steps, seed {card.seed}."
    )
