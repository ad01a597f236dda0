"""What the page Cost is asked: a model as it is or with other heads and another reach, and a job for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from app import cache
from app.view import View
from app.view_cost import CostChoices
from engine import PRESETS, EncoderDecoder, EngineError, HuggingFaceModel, ScratchModel, VisionTransformer, number_words
from engine.activations import Kernel
from engine.cost import Job
from engine.sizes import Sizes, sizes_of, sizes_of_preset

HERE = "here:"  # in front of the id of a model that can be loaded, so that it is never taken for a preset
MOST_WORDS = 2000  # as many as the sentence bar takes characters
SIZES_BYTES = 5_000


@dataclass(frozen=True)
class CostPlan:
    """One question about cost.

    Attributes:
        of: which model, as it stands in a link.
        own: its sizes.
        sizes: its sizes with the heads and the window that the reader has chosen.
        job: what is to be done; its length is n.
        dtype: what numbers are stored in.
        kernel: "standard" builds the matrix of weights, one layer at a time; "flash" never does, nor does a window
            whose hidden pairs are skipped.
        window: the sliding window that was asked for; None where the model sees what it is used to.
        sentence: how many tokens the typed sentence has; None for a model that reads no text.
        limit: how many tokens the model can read or was trained on; None where that is not known.
    """

    of: str
    own: Sizes
    sizes: Sizes
    job: Job
    dtype: str
    kernel: Kernel
    window: int | None
    sentence: int | None
    limit: int | None

    @property
    def is_loaded(self) -> bool:
        """Whether it is a model of this machine, with a tokenizer; of a known one there are only sizes."""
        return self.of.startswith(HERE)

    @property
    def ends(self) -> bool:
        """Whether it cannot read more tokens than its limit, rather than not having been trained on more."""
        return self.is_loaded or self.own.config.positions == "learned"

    @property
    def pairs(self) -> str:
        """Which pairs of query and key are counted: "all", or only the "visible"."""
        return "visible" if self.job.visible_only else "all"

    @property
    def is_image(self) -> bool:
        """Whether it looks at the patches of an image."""
        return self.sizes.make is VisionTransformer

    @property
    def biased(self) -> bool:
        """Whether positions enter as a number for each pair of tokens, a matrix that every kernel has to be given."""
        return self.sizes.config.positions in ("relative", "alibi")

    @property
    def builds_matrix(self) -> bool:
        """Whether attention weights lie in memory; a bias that is learned needs them to be trained."""
        learns = self.job.training and self.sizes.config.positions == "relative"
        return self.kernel == "standard" or learns

    @property
    def hides(self) -> bool:
        """Whether a window, chosen or the model's own, is computed and hidden, so that it saves no operation."""
        return not self.job.visible_only and any(span is not None for span in self.sizes.windows)

    @property
    def bound(self) -> int | None:
        """How many tokens one looks at, at most, where what a window hides is skipped; None where it grows."""
        windows = self.sizes.windows
        if not self.job.visible_only or self.sizes.make is EncoderDecoder or not windows:
            return None
        spans = [span for span in windows if span is not None]
        return max(spans) if len(spans) == len(windows) else None

    @property
    def doubled(self) -> Job:
        """The same job with twice the tokens."""
        return replace(self.job, tokens=2 * self.job.tokens)

    def at(self, tokens: int) -> Job:
        """The same job with so many tokens."""
        return replace(self.job, tokens=tokens)


def titles() -> dict[str, str]:
    """Name every model that can be asked about: known ones by title, then those that can be loaded here."""
    known = {name: preset.title for name, preset in PRESETS.items()}
    return known | {HERE + entry.id: f"{entry.name}, installed here" for entry in cache.entries()}


def plan_of(view: View) -> tuple[CostPlan, dict[str, Any], tuple[str, ...]]:
    """Turn what the reader has chosen into a question that can be answered.

    Returns:
        The question; the fields of the view that had to give way, with their new values; and why, in sentences.

    Raises:
        EngineError: the model cannot be loaded, or the sentence is blank.
    """
    known = view.cost_of in titles()
    of = view.cost_of if known else CostChoices.cost_of
    own, limit = _sizes(of)
    changed, said = _possible(view, own)
    if not known:
        changed["cost_of"] = of
        said.append(f"The model in the link is not here: showing {own.name}.")
    choices = replace(view, **changed)
    groups = own.config.G if choices.cost_groups is None else choices.cost_groups
    window = choices.cost_window if choices.cost_kernel == "window" else None
    sentence = None if own.make is VisionTransformer else sentence_tokens(of, view.sentence)
    plan = CostPlan(
        of=of,
        own=own,
        sizes=_changed(own, groups, window),
        job=job_of(choices, sentence),
        dtype=choices.cost_dtype,
        kernel=kernel_of(choices),
        window=window,
        sentence=sentence,
        limit=limit,
    )
    return plan, changed, tuple(said)


def _possible(view: View, own: Sizes) -> tuple[dict[str, Any], list[str]]:
    """Find the choices that a model cannot follow, with what stands in for them, and say why."""
    changed: dict[str, Any] = {}
    said: list[str] = []
    heads, groups = own.config.heads, view.cost_groups
    if view.cost_job == "write" and not own.writes:
        changed["cost_job"] = "read"
        said.append(f"{own.name} reads texts and does not write them: counting what it takes to read one.")
    if groups is not None and heads % groups:
        changed["cost_groups"] = None
        said.append(f"{heads} heads cannot share {groups} key-value heads evenly: they have {own.config.G}, as made.")
    if view.cost_from == "sentence" and own.make is VisionTransformer:
        changed["cost_from"] = "length"
        said.append(f"{own.name} reads the patches of an image, not a sentence.")
    return changed, said


def job_of(choices: CostChoices, sentence: int | None) -> Job:
    """Make the job; a model that reads no sentence has none to follow."""
    follows = choices.cost_from == "sentence" and sentence is not None
    return Job(
        tokens=sentence if follows and sentence is not None else choices.cost_tokens,
        batch=choices.cost_batch,
        step="write" if choices.cost_job == "write" else "read",
        training=choices.cost_job == "train",
        visible_only=pairs_of(choices) == "visible",
    )


def pairs_of(choices: CostChoices) -> str:
    """Say which pairs are counted: as chosen, or else all, and with a window, which saves nothing else, the visible."""
    return choices.cost_pairs or ("visible" if choices.cost_kernel == "window" else "all")


def kernel_of(choices: CostChoices) -> Kernel:
    """Say whether the matrix is built: by standard attention, and where a window is computed and hidden."""
    skips = choices.cost_kernel == "window" and pairs_of(choices) == "visible"
    return "flash" if choices.cost_kernel == "flash" or skips else "standard"


def sentence_tokens(of: str, text: str) -> int:
    """Count the tokens of a sentence: a loaded model's own, special ones too, or else its words.

    Raises:
        EngineError: the sentence is blank, or the model cannot be loaded.
    """
    if of.startswith(HERE):
        model = cache.model(of.removeprefix(HERE))
        if isinstance(model, HuggingFaceModel | ScratchModel):
            return model.prompt(text).total
        raise EngineError(f"{model.card.name} cannot say how many tokens a sentence has.")
    return number_words(text, MOST_WORDS).total


def _sizes(of: str) -> tuple[Sizes, int | None]:
    """Read off the sizes of a model once, and how many tokens it was made for."""
    if of.startswith(HERE):
        model = cache.model(of.removeprefix(HERE))
        return cache.derived(("sizes", of), lambda: sizes_of(model), lambda made: SIZES_BYTES), model.card.limit
    known = PRESETS[of]
    limit = 1 + known.config.patches if known.make is VisionTransformer else known.config.length
    return cache.derived(("sizes", of), lambda: sizes_of_preset(known), lambda made: SIZES_BYTES), limit


def _changed(own: Sizes, groups: int, window: int | None) -> Sizes:
    sizes = own if groups == own.config.G else own.sharing(groups)
    return sizes if window is None else sizes.windowed(window)
