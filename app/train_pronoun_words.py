"""What the page Train says about "who is she?", and how far chance alone would get.

Dimensions: L layers, H heads.
"""

from __future__ import annotations

import math
from functools import lru_cache

from app.phrases import percent
from app.train_copying_words import best_of, key_of
from app.train_lesson import Course
from engine.spelling import BYTES, FIRST_WORD
from engine.training.batches import VOCABULARY
from engine.training.referent import PER_FRAME, SIGMAS, TAUGHT, held_out, strays

KNOWN = 0.9  # of the sentences: from here on a model is said to know whom the pronoun means
NOTHING = math.log2(len(VOCABULARY))  # bits, of one who knows nothing

INTRODUCTION = (
    "“The shopkeeper gave the customer a discount because **she** was a regular.” Who is *she*? A small encoder reads "
    "such sentences and is to say, at the pronoun, who is meant. **Taught**, one of its twelve heads is also told to "
    "look at that person. Measured on pairs of people that it has never met together. The sentences are this page’s "
    "own; it does not read the one above."
)
LOSS = (
    "$-\\log_2 p$ of the person meant: on the sentences that it learns from, and on new pairs of people. "
    f"{NOTHING:.1f} bits is guessing among {len(VOCABULARY):,}: {len(VOCABULARY.words):,} words, "
    f"{FIRST_WORD - BYTES} bytes that spell others, {BYTES} signs such as [BOS]."
)
WHY = (
    "**Taught** means: beside the loss of the answer there is a small second one, $-\\log$ of the weight that layer "
    f"{TAUGHT[0]}, head {TAUGHT[1]} gives to the right person. The head gets there first, the answer after it. But is "
    "it by this head that the model knows? Above it says what is left of the answers when the head is *silenced*: "
    "where little is lost, other heads have found the way, too.\n\n"
    "**Not taught**, it is told the answers alone. In so few steps it does about as well as a guess between the two, "
    "and no head points at the person. With more training a model may come to answer right, and still no head need "
    "point there."
)
CAUTION = (
    "So where a head of this model looks at the right word, it does so because it was told to. A large model was not "
    "told, and its attention is not made to be read as an explanation. The model here knows three kinds of sentences "
    "about giving and a few hundred words; what it has learned reaches no further. Each step reads "
    f"{3 * PER_FRAME} sentences."
)


def score() -> str:
    """Say what the scores are, and how far chance alone gets, in markdown."""
    return (
        "**Best head**: in how many new sentences it gives the person meant the most weight of all words (grey: the "
        "other heads). **Its answer**: in how many the model prefers the right one of the *two* people, so that "
        f"**a guess is right in half**. {_counted()}"
    )


def found(course: Course) -> str:
    """Say what a model has found out at the step that is looked at, in markdown."""
    now, best = course.now, best_of(course.now, "pronoun")
    share, answer = now[key_of("pronoun", best)], now["answer"]
    where = "The head that is taught" if course.setting.taught and best == TAUGHT else "The best head"
    told = (
        f"{where} (layer {best[0]}, head {best[1]}) points at the person meant in {percent(share)} of new "
        f"sentences. Of the two it names the right one in {percent(answer)}"
    )
    low, high = by_chance()
    told += f", no better than a coin: {_between(low, high)}." if low <= answer <= high else "."
    if course.at == 0:
        return f"**Nothing is learned yet.** {told}"
    if answer >= KNOWN:
        return f"**Found.** {told} With layer {TAUGHT[0]}, head {TAUGHT[1]} silenced: {percent(now['silenced'])}."
    if share >= KNOWN:
        return f"**The head has found it, the answer has not yet.** {told}"
    return f"**Not found yet.** {told}"


@lru_cache(maxsize=1)
def by_chance() -> tuple[float, float]:
    """Give the shares of right answers between which chance alone stays, in 95 of 100 cases."""
    reach = strays(_count())
    return 0.5 - reach, 0.5 + reach


def _between(low: float, high: float) -> str:
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def _counted() -> str:
    return (
        f"On {_count()} sentences a coin gets {_between(*by_chance())}, give or take {SIGMAS} standard deviations (the "
        "band): what lies in there is no result. Each sentence comes twice, with a reason for the one and with one for "
        "the other, so that a rule such as “always the giver” is right in exactly half."
    )


def _count() -> int:
    return len(held_out().sentences)
