"""What the page Cost says about operations, in sentences with this question's numbers in them."""

from __future__ import annotations

from app.cost_numbers import BOOK, QUADRATIC, by_part, in_layers, overtakes, total
from app.cost_plan import CostPlan
from app.cost_units import flop_text, in_words, many_times, times, tokens_text
from app.shell import literal
from engine import EncoderDecoder

DOING = {"read": "reading", "write": "one more token after", "train": "training on"}
PAIRS = {"all": "all pairs counted", "visible": "only visible pairs counted"}


def doing(plan: CostPlan) -> str:
    """Say what is done, to stand before a number of tokens."""
    if plan.is_image and not plan.job.training:
        return "looking at an image of"
    return DOING["train" if plan.job.training else plan.job.step]


def thing(plan: CostPlan) -> str:
    """Say what is read."""
    return "image" if plan.is_image else "text"


def batch_text(plan: CostPlan) -> str:
    """Say how many texts, where there are several."""
    return f" × {plan.job.batch:,} {thing(plan)}s" if plan.job.batch > 1 else ""


def title(plan: CostPlan) -> str:
    """Name the picture of operations."""
    done = "looking at an" if plan.is_image and not plan.job.training else f"{doing(plan)} a{'n' * plan.is_image}"
    return f"Work: {done} {thing(plan)}{batch_text(plan)}"


def headline(plan: CostPlan) -> str:
    """Answer the doubling question in one line."""
    n = plan.job.tokens
    now, later = by_part(plan, plan.job), by_part(plan, plan.doubled)
    factor = times(in_layers(later) / in_layers(now))
    name, what = literal(plan.sizes.name), "patches" if plan.is_image else "tokens"
    return (
        f"#### {name}, {doing(plan)} {n:,} → {2 * n:,} {what}: twice the {thing(plan)}, × {factor} the work in its "
        f"layers ({PAIRS[plan.pairs]})"
    )


def doubling(plan: CostPlan) -> str:
    """Say by how much each part grows when the text is twice as long."""
    now, later = by_part(plan, plan.job), by_part(plan, plan.doubled)
    attention = times(later[QUADRATIC] / now[QUADRATIC])
    rest = times(later["projections"] / now["projections"])
    layers, everything = times(in_layers(later) / in_layers(now)), times(sum(later.values()) / sum(now.values()))
    head = f", and with the head × {everything}" if "head" in now else ""
    return (
        f"**Twice the {thing(plan)}:** scores and mixing × **{attention}**, projections and feed-forward × **{rest}**, "
        f"all layers together × **{layers}**{head}. {_why_doubling(plan)}"
    )


def _why_doubling(plan: CostPlan) -> str:
    writes = plan.job.step == "write"
    if plan.bound is not None:
        grows = "no more" if writes else "no faster than the rest"
        return (
            f"No token looks farther than {plan.bound:,} tokens, so once the text is longer than that, scores and "
            f"mixing grow {grows}."
        )
    if plan.hides:
        hidden = (
            " A plain kernel computes all pairs and hides what the window hides, and saves nothing: count only the "
            "visible pairs to see what a window kernel saves."
        )
    else:
        hidden = _beside_windows(plan)
    if writes:
        return f"The new token looks at every token before it, so only scores and mixing grow.{hidden}"
    return f"Every token meets every token, so scores and mixing grow with the square of the length.{hidden}"


def _beside_windows(plan: CostPlan) -> str:
    """Say where a window does not bound all that is counted."""
    spans = [span for span in plan.sizes.windows if span is not None]
    if not spans:
        return ""
    if plan.sizes.make is EncoderDecoder:
        return " That holds across the two texts; within one, a window bounds it."
    return " That holds in the layers without a window; in the others, it bounds them."


def overtaking_text(plan: CostPlan) -> str:
    """Say from which length on attention costs more than the rest of the layers."""
    length = overtakes(plan)
    if length is None:
        return (
            "**Never overtaken:** a window bounds what each token looks at, so scores and mixing always cost less "
            "than projections and feed-forward."
        )
    now = by_part(plan, plan.job)
    share = now[QUADRATIC] / in_layers(now)
    beyond = plan.limit is not None and length > plan.limit
    texts = "it can read" if plan.ends else "it was trained on"
    ruler = f" That is longer than the {thing(plan)}s {texts}, in which the rest always costs more." if beyond else ""
    where = "in the cache" if plan.job.step == "write" else f"of {thing(plan)}"
    return (
        f"**Attention overtakes the rest at {tokens_text(length)}** {where}: from there on, scores and mixing cost as "
        f"much as projections and feed-forward together. At {plan.job.tokens:,} they are {100 * share:.3g}\u202f% of "
        f"the layers.{ruler}"
    )


def sentence_text(plan: CostPlan) -> str:
    """Say what the typed sentence costs, in a number and in words."""
    if plan.sentence is None:
        return f"**Your sentence** is not read by {literal(plan.sizes.name)}: it reads the patches of an image."
    count = total(plan, plan.at(plan.sentence))
    words = "words and marks, since its own way to cut text is not here; most models make some more"
    how = "cut by its own tokenizer, special tokens too" if plan.is_loaded else words
    done = "One more token after it" if plan.job.step == "write" else f"{doing(plan).capitalize()} it"
    return (
        f"**Your sentence** is {tokens_text(plan.sentence)} ({how}). {done} costs "
        f"**{flop_text(count)}**, that is {in_words(count)} multiplications and additions{_at_once(plan)}."
    )


def book_text(plan: CostPlan) -> str:
    """Say what a book would cost, and how much more than its length that is."""
    count = total(plan, plan.at(BOOK))
    if plan.is_image:
        return f"At **{BOOK:,} patches** it would be {flop_text(count)}."
    start = "**One more token after a book**" if plan.job.step == "write" else "**A book**"
    text = f"{start} of {BOOK:,} tokens would cost **{flop_text(count)}**, {in_words(count)}{_at_once(plan)}"
    if plan.sentence is None:
        return text + "."
    longer, dearer = BOOK / plan.sentence, count / total(plan, plan.at(plan.sentence))
    return f"{text}: the book is {in_words(longer)} times as long as your sentence, and costs {many_times(dearer)}."


def _at_once(plan: CostPlan) -> str:
    return f", for {plan.job.batch:,} such texts" if plan.job.batch > 1 else ""


def beyond_limit(plan: CostPlan) -> str:
    """Say where the curves go on although the model cannot; empty where it can, or where that is not known."""
    if plan.limit is None:
        return ""
    name = literal(plan.sizes.name)
    if plan.ends:
        return (
            f"{name} has no positions beyond {plan.limit:,} tokens; to the right of that the formula goes on, the "
            "model cannot."
        )
    return (
        f"{name} was trained on {plan.limit:,} tokens; longer texts can be computed, but how well it reads them is "
        "another matter."
    )


def picture_text(plan: CostPlan) -> str:
    """Explain the picture of operations."""
    if plan.job.step == "write":
        seen = (
            f"scores and mixing rise until {plan.bound:,} tokens are in reach and are flat from there on."
            if plan.bound is not None
            else "the rising one is its look at all of them."
        )
        return (
            "Both axes are logarithmic: each step to the right is ten times as many tokens before the new one. The "
            f"flat lines are the new token's own work, which knows nothing of the others; {seen}"
        )
    longer = "an image with ten times as many patches" if plan.is_image else "a text ten times as long"
    slope = f"Both axes are logarithmic: each step to the right is {longer}. "
    if plan.bound is not None:
        return slope + (
            "Scores and mixing begin twice as steep as the rest; where the text outgrows the window they bend and run "
            "beside it."
        )
    parts = [name for name in ("patches", "projections", "feed-forward", "head") if name in by_part(plan, plan.job)]
    rising = f"{', '.join(parts[:-1])} and {parts[-1]}"
    if _beside_windows(plan) and plan.job.visible_only:
        return slope + (
            f"{rising.capitalize()} rise tenfold with it; **scores and mixing rise a hundredfold** where no window "
            "bounds them, so in the end their line is twice as steep."
        )
    return slope + (
        f"{rising.capitalize()} rise tenfold with it; **scores and mixing rise a hundredfold**, so their line is twice "
        "as steep and must cross the others somewhere."
    )
