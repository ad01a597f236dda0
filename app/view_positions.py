"""What a link keeps of the page Positions: its choices, and how each is written in an address."""

from dataclasses import dataclass

from app.parameters import Parameter, counted, matching, one_of, read_flag, several, whole, write_flag, write_several

MOST_WIDTH = 384
MOST_LENGTH = 512
MOST_HEADS = 32
MOST_CURVES = 4
FACTORS = (2, 4, 8)
TRAINED = (512, 1024, 2048, 4096, 8192)
BASES = (10_000, 500_000)


@dataclass(frozen=True)
class PositionsChoices:
    """What the reader has chosen on the page Positions; dimensions, heads and positions count from 0."""

    positions: str = "sinusoidal"  # or "learned", "rotary", "alibi", "relative", "none"
    table: str = "trained"  # which learned table: a "trained" model's own, or "random" numbers
    table_width: int = 64  # dimensions
    table_length: int = 40  # positions
    curves: tuple[int, ...] = (0, 16, 40)  # the dimensions that are drawn as curves
    moving: str = "both"  # which of the two words is moved: "both", or "one" alone
    plane: str = "all"  # which pairs turn in the picture: "all" three, or the "fast", "middle" or "slow" one alone
    rotary_base: int = 10_000
    scaling: str = "plain"  # or "linear", "ntk", "dynamic", "yarn", "llama3"
    factor: int = 4  # how much longer than in training
    trained: int = 2048  # positions seen in training
    alibi_heads: int = 8
    alibi_head: int = 0
    both_ways: bool = True  # whether T5's buckets tell before from after
    places_head: int = 0  # of the small layer
    past_only: bool = False  # whether the small layer is masked causally
    shuffle: int = 1  # which order the words are shuffled into


POSITIONS_PARAMETERS = {
    "positions": Parameter("positions", matching("sinusoidal|learned|rotary|alibi|relative|none")),
    "table": Parameter("table", matching("trained|random")),
    "table_width": Parameter("dims", counted(MOST_WIDTH, 2)),
    "table_length": Parameter("rows", counted(MOST_LENGTH, 2)),
    "curves": Parameter("curves", several(MOST_WIDTH - 1, MOST_CURVES), write_several),
    "moving": Parameter("move", matching("both|one")),
    "plane": Parameter("plane", matching("all|fast|middle|slow")),
    "rotary_base": Parameter("base", one_of(*BASES)),
    "scaling": Parameter("scaling", matching("plain|linear|ntk|dynamic|yarn|llama3")),
    "factor": Parameter("longer", one_of(*FACTORS)),
    "trained": Parameter("trained", one_of(*TRAINED)),
    "alibi_heads": Parameter("slopes", counted(MOST_HEADS)),
    "alibi_head": Parameter("slope", whole(MOST_HEADS - 1)),
    "both_ways": Parameter("bothways", read_flag, write_flag),
    "places_head": Parameter("posthead", whole(MOST_HEADS - 1)),
    "past_only": Parameter("past", read_flag, write_flag),
    "shuffle": Parameter("shuffle", whole(9999)),
}
