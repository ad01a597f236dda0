"""What a link keeps of the page Vision: its choices, and how each is written in an address."""

from dataclasses import dataclass

from app.parameters import Parameter, matching, whole
from engine.pictures import ACROSS, COLOURS, MOST_DISTRACTORS, SHAPES

STAGES = ("trained", "early", "untrained")
MOST_PICTURES = 9999
MOST_LAYERS, MOST_HEADS = 12, 12


@dataclass(frozen=True)
class VisionChoices:
    """What the reader has chosen on the page Vision; layers, heads and patches count from 0."""

    vit_shape: str = "triangle"
    vit_colour: str = "red"
    vit_distractors: int = 8
    vit_picture: int = 1  # decides everything else about the picture
    vit_stage: str = "trained"  # the model: "trained", "early" in its training, or "untrained"
    vit_layer: int | None = None  # None for that of the head that looks most at the shape, as measured
    vit_head: int | None = None
    vit_token: int = 0  # whose row is shown: 0 for the class token, then the patches row by row


VISION_PARAMETERS: dict[str, Parameter] = {
    "vit_shape": Parameter("shape", matching("|".join(SHAPES))),
    "vit_colour": Parameter("paint", matching("|".join(COLOURS))),
    "vit_distractors": Parameter("dots", whole(MOST_DISTRACTORS)),
    "vit_picture": Parameter("picture", whole(MOST_PICTURES)),
    "vit_stage": Parameter("vit", matching("|".join(STAGES))),
    "vit_layer": Parameter("vitlayer", whole(MOST_LAYERS - 1)),
    "vit_head": Parameter("vithead", whole(MOST_HEADS - 1)),
    "vit_token": Parameter("token", whole(ACROSS**2)),
}
