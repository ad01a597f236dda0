"""What a link keeps of the page Train: its choices, and how each is written in an address."""

from dataclasses import dataclass

from app.parameters import Parameter, counted, matching, one_of, whole

MOST_SEED = 9999
STEPS = (200, 400, 800, 1600)
RATES = ("0.001", "0.003", "0.01", "0.03", "0.1")
TWIN_RATES = ("0.001", "0.003", "0.01")
PERIODS = (0, 6, 8, 12, 16)


@dataclass(frozen=True)
class TrainChoices:
    """What the reader has chosen on the page Train."""

    learn: str = "copying"  # what is learned: "copying", or who a "pronoun" is
    learn_depth: int = 2  # layers
    learn_heads: int = 1  # in each
    learn_order: str = "learned"  # positions: "learned", "rotary" or "none"
    learn_rate: str = "0.01"
    learn_seed: int = 0
    learn_period: int = 0  # symbols; 0 draws one for each sequence
    learn_beside: str = "nothing"  # what a second model beside it has otherwise
    learn_steps: int = 400
    learn_pace: str = "watch"  # "slow", "watch" or "fast"
    twin_taught: str = "both"  # whether a head is told where to look: "taught", "untaught", or "both" side by side
    twin_rate: str = "0.003"


TRAIN_PARAMETERS: dict[str, Parameter] = {
    "learn": Parameter("learn", matching("copying|pronoun")),
    "learn_depth": Parameter("layers", counted(3)),
    "learn_heads": Parameter("perlayer", counted(4)),
    "learn_order": Parameter("orderby", matching("learned|rotary|none")),
    "learn_rate": Parameter("rate", matching("|".join(rate.replace(".", r"\.") for rate in RATES))),
    "learn_seed": Parameter("seed", whole(MOST_SEED)),
    "learn_period": Parameter("period", one_of(*PERIODS)),
    "learn_beside": Parameter("beside", matching("nothing|one|none|rotary|fixed|slow|fast|seed")),
    "learn_steps": Parameter("steps", one_of(*STEPS)),
    "learn_pace": Parameter("pace", matching("slow|watch|fast")),
    "twin_taught": Parameter("twin", matching("taught|untaught|both")),
    "twin_rate": Parameter("twinrate", matching("|".join(rate.replace(".", r"\.") for rate in TWIN_RATES))),
}
