"""What the page Cost says in sentences, with this question's numbers in them."""

from __future__ import annotations

from app.cost_numbers import BOOK, QUADRATIC, by_part, in_layers, overtakes, total
from app.cost_plan import CostPlan
from app.cost_units import flop_text, in_words, times, tokens_text
from app.shell import literal
from engine import VisionTransformer

DOING = {"read": "reading", "write": "one more token after", "train": "training on"}


def doing(plan: CostPlan) -> str:
    """Say what is done, to stand before a number of tokens."""
    return DOING["train" if plan.job.training else plan.job.step]


def batch_text(plan: CostPlan) -> str:
    """Say how many texts, where there are several."""
    return f" × {plan.job.batch:,} texts" if plan.job.batch > 1 else ""


def headline(plan: CostPlan) -> str:
    """Answer the doubling question in one line."""
    n = plan.job.tokens
    now, later = by_part(plan, plan.job), by_part(plan, plan.doubled)
    factor = times(in_layers(later) / in_layers(now))
    name = literal(plan.sizes.name)
    return f"#### {name}, {doing(plan)} {n:,} → {2 * n:,} tokens: twice the text, × {factor} the work in its layers"


def doubling(plan: CostPlan) -> str:
    """Say by how much each part grows when the text is twice as long."""
    now, later = by_part(plan, plan.job), by_part(plan, plan.doubled)
    attention = times(later[QUADRATIC] / now[QUADRATIC])
    rest = times(later["projections"] / now["projections"])
    layers, everything = times(in_layers(later) / in_layers(now)), times(sum(later.values()) / sum(now.values()))
    head = f", and with the head × {everything}" if "head" in now else ""
    return (
        f"**Twice the text:** scores and mixing × **{attention}**, projections and feed-forward × **{rest}**, all "
        f"layers together × **{layers}**{head}. {_why_doubling(plan)}"
    )


def _why_doubling(plan: CostPlan) -> str:
    if plan.bound is not None:
        return (
            f"No token looks farther than {plan.bound:,} tokens, so once the text is longer than that, scores and "
            "mixing grow no faster than the rest."
        )
    computed = " A window is computed and hidden here, and saves nothing: count only the visible pairs."
    hidden = computed if plan.window is not None and not plan.job.visible_only else ""
    if plan.job.step == "write":
        return f"The new token looks at every token in the cache, so only scores and mixing grow.{hidden}"
    return f"Every token meets every token, so scores and mixing grow with the square of the length.{hidden}"


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
    ruler = f" That is longer than the texts {texts}, in which the rest always costs more." if beyond else ""
    where = "in the cache" if plan.job.step == "write" else "of text"
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
    return (
        f"**Your sentence** is {tokens_text(plan.sentence)} ({how}). {doing(plan).capitalize()} it costs "
        f"**{flop_text(count)}**, that is {in_words(count)} multiplications and additions{_at_once(plan)}."
    )


def book_text(plan: CostPlan) -> str:
    """Say what a book would cost, and how much more than its length that is."""
    if plan.sizes.make is VisionTransformer:
        return f"At **{BOOK:,} tokens** it would be {flop_text(total(plan, plan.at(BOOK)))}."
    count = total(plan, plan.at(BOOK))
    text = f"**A book** of {BOOK:,} tokens would cost **{flop_text(count)}**, {in_words(count)}{_at_once(plan)}"
    if plan.sentence is None:
        return text + "."
    longer, dearer = BOOK / plan.sentence, count / total(plan, plan.at(plan.sentence))
    return f"{text}: {in_words(longer)} times as long as your sentence, {in_words(dearer)} times the work."


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
        return (
            "Both axes are logarithmic: each step to the right is a cache ten times as long. The flat lines are the "
            "new token's own work, which knows nothing of the others; the rising one is its look at all of them."
        )
    slope = "Both axes are logarithmic: each step to the right is a text ten times as long. "
    if plan.bound is not None:
        return slope + (
            "Scores and mixing begin twice as steep as the rest; where the text outgrows the window they bend and run "
            "beside it."
        )
    return slope + (
        "Projections, feed-forward and head rise tenfold with it; **scores and mixing rise a hundredfold**, so their "
        "line is twice as steep and must cross the others somewhere."
    )


def _alive(plan: CostPlan) -> str:
    if plan.job.training:
        return "what is kept for the way back"
    return "the most that a run holds at once beside the parameters, the scores of all tokens too"


def _wider(plan: CostPlan) -> str:
    return " Weights may lie in float8; what is computed with them is in bfloat16." if plan.dtype == "float8" else ""


def memory_text(plan: CostPlan) -> str:
    """Explain the picture of memory."""
    kept = (
        "While training, standard attention keeps every layer's matrix for the way back"
        if plan.job.training
        else "Standard attention needs one layer's matrix at a time; who asks for the weights of all layers keeps all"
    )
    cache = (
        "The cache of keys and values grows with the length, and stays while the model writes"
        if plan.sizes.writes
        else "It writes nothing, so it keeps no cache"
    )
    return (
        f"{kept}. FlashAttention never builds the matrix and keeps one number per token and head instead. {cache}. "
        f"Activations are {_alive(plan)}, {'with' if plan.kernel == 'standard' else 'without'} such a matrix: counted "
        f"by running the model without numbers at a few lengths, which straight lines join.{_wider(plan)}"
    )
