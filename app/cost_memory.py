"""What the page Cost says about memory, in sentences that follow from this question's numbers."""

from __future__ import annotations

from app.cost_numbers import activations, same_either_way
from app.cost_plan import CostPlan
from app.shell import literal
from engine.cost import kv_cache_bytes


def memory_text(plan: CostPlan) -> str:
    """Explain the picture of memory."""
    sentences = (_matrix(plan), _instead(plan), _biased(plan), _cache(plan), _activations(plan), _same(plan))
    return " ".join(filter(None, (*sentences, _training(plan), _wider(plan))))


def _matrix(plan: CostPlan) -> str:
    if plan.job.training:
        return "While training, standard attention keeps every layer's matrix of attention weights for the way back."
    if plan.job.step == "write":
        return "Standard attention needs one layer's row of attention weights at a time, the new token's."
    return (
        "Standard attention needs one layer's matrix of attention weights at a time; who asks for those of all layers "
        "keeps all."
    )


def _instead(plan: CostPlan) -> str:
    """Say which kernel the picture is for, and what it does without."""
    flash = "FlashAttention never builds the matrix and keeps one number per token and head instead"
    if plan.builds_matrix:
        learned = (
            ", except that a bias that is learned needs the matrix to be trained" if plan.kernel == "flash" else ""
        )
        return f"{flash}{learned}."
    if plan.window is None:
        return f"**{flash}**, so what is not built is drawn thin here and struck through in the table."
    rows = "1" if plan.job.step == "write" else "n"
    return (
        f"**A kernel for windows works on {rows} × {plan.window:,} pairs**, block by block as FlashAttention does, and "
        f"never builds the {rows} × n matrix: it is drawn thin here and struck through in the table."
    )


def _biased(plan: CostPlan) -> str:
    """Say where no kernel does without a matrix, since positions enter as one."""
    if not plan.biased or plan.builds_matrix:
        return ""
    name = literal(plan.sizes.name)
    grow = "with the length" if plan.job.step == "write" else "with the square of the length"
    return (
        f"But {name} adds a number for every pair of tokens to the scores, its bias for distances, and any kernel has "
        f"to be given that matrix: its activations still grow {grow}."
    )


def _cache(plan: CostPlan) -> str:
    if plan.job.training:
        return "Training keeps no cache of keys and values."
    if not plan.sizes.writes:
        return "It writes nothing, so it keeps no cache."
    now, later = (kv_cache_bytes(plan.sizes, job, plan.dtype) for job in (plan.job, plan.doubled))
    if later == now:
        return (
            "The cache of keys and values holds what its windows reach, and is full: longer texts need no more of it."
        )
    if later < 2 * now:
        return "The cache of keys and values grows with the length, but where a window is full it grows no more."
    return "The cache of keys and values grows with the length, and stays while the model writes."


def _activations(plan: CostPlan) -> str:
    if activations(plan, plan.job) is None:
        return ""
    scores = ", the scores over the vocabulary too" if plan.sizes.config.head != "none" else ""
    alive = (
        "what is kept for the way back"
        if plan.job.training
        else f"the most that a run holds at once beside the parameters{scores}"
    )
    matrix = "with such a matrix" if plan.builds_matrix else "" if plan.biased else "without such a matrix"
    return (
        f"Activations are {alive}{matrix and ', ' + matrix}: counted by running the model without numbers at a few "
        "lengths, n among them; lines between counted lengths are straight."
    )


def _same(plan: CostPlan) -> str:
    """Say so where one kernel needs as much at once as the other, since something else takes more."""
    if plan.job.training or plan.biased or not same_either_way(plan):
        return ""
    most = "scores over the vocabulary take" if plan.sizes.config.head != "none" else "rest of the layer takes"
    return (
        f"**At {plan.job.tokens:,} tokens standard attention and FlashAttention hold the same at once:** the {most} "
        "more there than one layer's matrix. FlashAttention saves where the matrix is the larger of the two."
    )


def _training(plan: CostPlan) -> str:
    if not plan.job.training:
        return ""
    return (
        "Beside the parameters lie a gradient for each, as many bytes again, and the optimizer's numbers: Adam keeps "
        "two moments for each parameter, here in float32, 8 bytes together. These do not grow with the text."
    )


def _wider(plan: CostPlan) -> str:
    return "Weights may lie in float8; what is computed with them is in bfloat16." if plan.dtype == "float8" else ""
