"""What the page Train says about copying, and how it finds out which head has found what.

Dimensions: L layers, H heads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from app.phrases import percent
from app.train_lesson import Course
from engine.training.copying import Copying, chance_score

FOUND = 0.8  # of the induction score: from here on a head is said to have found it
BEGUN = 0.3  # from here on it is on its way
BACK = 0.7  # likewise, of looking one back
KNOWS = 1.0  # bits of loss, below which a model is said to know what comes

INTRODUCTION = (
    "Random symbols that repeat: **K R D A M W K R D …** What comes next? Find the earlier **D** and say the symbol "
    "**right after** it: **A**. Nobody tells the model this trick: it reads sequences, always new ones, and is told "
    "what would have been right. The sequences are this page’s own; it does not read the sentence above."
)
LOSS = "$-\\log_2 p$ of the symbol that came, from the second round on: 5 bits is guessing, 0 is knowing."
SCORE = (
    "How much of its attention a head gives to symbols that came right after an earlier copy of the one just read (the "
    "orange squares), from the second round on. **Looks one back**: how much the best head gives to the symbol just "
    "before, in the first round. Grey: the other heads."
)
TWO_LAYERS = (
    "1. **The first layer looks one back.** The place of *A* fetches “I came right after a *D*” and keeps it beside "
    "its own symbol.\n"
    "2. **The second layer looks for its like.** At the next *D* the query asks: “who came right after a *D*?” The "
    "place of *A* answers, and its own symbol, *A*, is what comes next.\n\n"
    "The second step works only once the first is there, and the first alone helps nobody. So for a while hardly "
    "anything happens; then both arrive together, and the loss falls off a cliff."
)
ELSEWHERE = (
    "Such *induction heads* were found in all the language models of two and more layers that were looked at, and "
    "there, too, they appear suddenly (Olsson et al. 2022, [arXiv 2209.11895](https://arxiv.org/abs/2209.11895)). "
    "One layer could do it only if it were enormously wide (Sanford et al. 2024, "
    "[arXiv 2408.14332](https://arxiv.org/abs/2408.14332)). The models here know 32 symbols and nothing else: they "
    "show the trick, not what a large model makes of it."
)
TRY = (
    "**Try** under *More*: no positions (nothing tells which symbol stood *one back*), a learning rate of 0.03 (it "
    "jumps about and never gets there) or of 0.001 (it takes its time), another seed, four heads (which will it be?)."
)
FORMULA = (
    "**The score as a formula**: $x$ are the symbols, $A$ one head’s attention, and the mean is over all places $t$ "
    "from the second round on, in 64 sequences that it never learned from."
)
SCORE_FORMULA = r"\text{induction score}=\operatorname*{mean}_{t}\ \sum_{s\le t:\ x_{s-1}=x_t} A_{t,s}"


def found(course: Course) -> str:
    """Say what a model has found out at the step that is looked at, in markdown."""
    now, setting = course.now, course.setting
    best = best_of(now, "induction")
    score = now[key_of("induction", best)]
    if score >= FOUND:
        return (
            f"**Found.** Layer {best[0]}, head {best[1]} gives {percent(score)} of its attention to the orange squares."
            f"{_helper(now, best)}"
        )
    if setting.period is not None and course.loss < KNOWS:
        return (
            f"**It cheats.** With period {setting.period} every time it is enough to look {setting.period - 1} back: "
            f"no head cares for the symbols. On other periods that is worse than guessing: {now['loss']:.1f} bits."
        )
    so_far = f"The best head gives {percent(score)} of its attention to the orange squares."
    if course.at == 0:
        return f"{so_far} **Nothing is learned yet**: the weights are random, and attention is spread about evenly."
    if setting.depth == 1:
        return (
            f"{so_far} **One layer never gets there**: a place knows its own symbol, not the one before it, so nothing "
            "tells which place to look for. It can but guess among the symbols that it has seen."
        )
    return f"{so_far} **{'It is on its way.' if score > BEGUN else 'Not found yet.'}**"


def loss(setting: Copying) -> str:
    """Say what the loss is, and what its curve shows, in markdown."""
    if setting.period is not None:
        return f"{LOSS} The dashed line: sequences that repeat themselves after another number of symbols."
    if setting.depth == 1:
        return f"{LOSS} It falls a little: a symbol that was not seen yet cannot be the answer."
    return f"{LOSS} **The sudden drop**: its heads find the trick."


def maps(setting: Copying) -> str:
    """Say what the maps show, in markdown."""
    first = (
        "Each row is a symbol; its colours say where it looks, from 0 to 100 %. **Orange squares**: the symbols right "
        "after an earlier copy of the row’s own."
    )
    if setting.depth == 1:
        return first
    return f"{first} In **layer 0** look for the line just below the diagonal: one back. Only the first round needs it."


def heads_of(scores: Mapping[str, float], name: str = "induction") -> list[tuple[int, int]]:
    """List the heads that have a score: layer and head."""
    keys = (key.removeprefix(f"{name} ").split(".") for key in scores if key.startswith(f"{name} "))
    return [(int(layer), int(head)) for layer, head in keys]


def best_of(scores: Mapping[str, float], name: str) -> tuple[int, int]:
    """Find the head with the highest score."""
    return max(heads_of(scores, name), key=lambda head: scores[key_of(name, head)])


def key_of(name: str, head: Iterable[int]) -> str:
    """Name the score of one head as engine/training/copying.py does."""
    return f"{name} {'.'.join(map(str, head))}"


def _helper(now: Mapping[str, float], best: tuple[int, int]) -> str:
    """Name the head in a layer below that looks one back."""
    below = [head for head in heads_of(now) if head[0] < best[0]]
    back = max(below, key=lambda head: now[key_of("previous", head)], default=None)
    if back is None or now[key_of("previous", back)] < BACK:
        return ""
    share = percent(now[key_of("previous", back)])
    return f" It can, because layer {back[0]}, head {back[1]} looks **one back**: {share} in the first round."


@lru_cache(maxsize=1)
def chance() -> float:
    """Give the induction score of attention that is spread evenly."""
    return chance_score()
