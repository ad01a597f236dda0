"""The numbers behind the pictures of the page Positions.

Dimensions: P positions, C model width, D head width, F steps, N frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from app import cache
from app.charts_rotary import PARTS, Plane, Score
from app.scene import default_word
from app.view import View, locate
from app.view_positions import PositionsChoices
from engine import HuggingFaceModel
from engine.describe import learned_table
from engine.extrapolation import unmet_pairs
from engine.positions import sinusoidal_table
from engine.rotary import DynamicNTK, Linear, Llama3, NTKAware, Rotary, Scaling, YaRN, rotate, wavelengths
from engine.tokens import Group, Prompt
from engine.vocabulary import number_words

MOST_WORDS = 40
HEAD_WIDTH = 64  # D of the rotary pictures, as in Llama 3.2 1B
STEPS = 32  # of the moving picture
FARTHEST = 40  # tokens, on the axis of its curve
MIDDLE = 60  # positions for a full turn of the pair that stands for the middle ones
SPREAD = 0.02  # of untrained tables: what BERT and GPT-2 begin with
LEARNED_FROM = "minilm"


def words_of(text: str) -> Prompt:
    """Read a sentence by words, the first 40 of them.

    Raises:
        TextError: there is nothing to read.
    """
    return number_words(text, MOST_WORDS, MOST_WORDS)


def groups_of(prompt: Prompt) -> tuple[Group, ...]:
    """Give each word of a sentence a label of its own, so that places can be found."""
    return tuple(
        Group(token.text, (index,), False, index if token.word is None else token.word)
        for index, token in enumerate(prompt.tokens)
    )


def table_of(kind: str, length: int, width: int) -> Tensor:
    """Make or fetch a table of positions, (P, C): "sinusoidal", "random", or "trained", which may be smaller."""
    if kind == "sinusoidal":
        return sinusoidal_table(length, width)
    trained = trained_table() if kind == "trained" else None
    if trained is not None:
        return trained[:length, :width]
    return SPREAD * torch.randn(length, width, generator=torch.Generator().manual_seed(0))


def trained_table() -> Tensor | None:
    """Fetch the table that MiniLM has learned, whole; None where it is not installed."""
    if LEARNED_FROM not in {entry.id for entry in cache.entries()}:
        return None
    return cache.derived(
        ("learned table", LEARNED_FROM),
        _learned,
        lambda made: 0 if made is None else made.nbytes,
    )


def _learned() -> Tensor | None:
    model = cache.model(LEARNED_FROM)
    return learned_table(model.module) if isinstance(model, HuggingFaceModel) else None


def similarity(table: Tensor) -> np.ndarray:
    """Compare the directions of each two positions, (P, P), -1 to 1."""
    directions = torch.nn.functional.normalize(table, dim=1)
    made: np.ndarray = (directions @ directions.T).clamp(-1, 1).numpy()
    return made


def by_distance(alike: np.ndarray) -> np.ndarray:
    """Average a map over all pairs at each distance from 0 on, (P,)."""
    return np.array([np.diagonal(alike, distance).mean() for distance in range(len(alike))])


def scaling_of(view: PositionsChoices) -> Scaling:
    """Make the scaling that is picked."""
    factor, trained = float(view.factor), view.trained
    made: dict[str, Scaling] = {
        "plain": Scaling(),
        "linear": Linear(factor),
        "ntk": NTKAware(factor),
        # Its factor is how steeply it follows the text: with 1, that of NTK-aware is the length over the trained one.
        "dynamic": DynamicNTK(1.0, trained),
        "yarn": YaRN(factor, trained),
        "llama3": Llama3(factor, trained),
    }
    return made[view.scaling]


@dataclass(frozen=True)
class Pairs:
    """How far each pair of a head goes before it comes round.

    Attributes:
        before, after: positions per full turn, as trained and with the scaling, (D/2,).
        factor: what the scaling multiplies cosine and sine with.
    """

    before: np.ndarray
    after: np.ndarray
    factor: float

    def unfinished(self, length: int) -> int:
        """Count the pairs that don't come round once within a length, as trained."""
        return int((self.before > length).sum())

    def unmet(self, trained: int, length: int) -> int:
        """Count the pairs that reach angles not met in training, in a text of this length and with the scaling."""
        before, after = (2 * math.pi / torch.as_tensor(lengths) for lengths in (self.before, self.after))
        return int(unmet_pairs(after, trained, length, before).sum())


def pairs_of(view: PositionsChoices) -> Pairs:
    """Work out how fast the pairs turn, for a text `factor` times as long as those in training."""
    scaling, base = scaling_of(view), float(view.rotary_base)
    after = scaling.frequencies(HEAD_WIDTH, base, view.trained * view.factor)
    before = Scaling().frequencies(HEAD_WIDTH, base)
    return Pairs(wavelengths(before).numpy(), wavelengths(after).numpy(), scaling.attention_factor)


@dataclass(frozen=True)
class Turning:
    """What the moving picture of rotary positions shows.

    Attributes:
        planes: a fast, a middle and a slow pair.
        score: the score of all pairs against the distance.
        query_places, key_places: where the two words stand at each step.
        steps: what each step is called.
    """

    planes: tuple[Plane, ...]
    score: Score
    query_places: tuple[int, ...]
    key_places: tuple[int, ...]
    steps: tuple[str, ...]


def turning_of(query: int, key: int, base: float, moving: str) -> Turning:
    """Turn two arrows that begin alike: by moving both words along, or by moving the query away from the key.

    Args:
        query, key: where the two words stand in the sentence.
        base: of the rotary positions.
        moving: "both" or "one".
    """
    frames = np.arange(PARTS * STEPS + 1) / PARTS
    key_at = key + (frames if moving == "both" else 0 * frames)
    query_at = (query if moving == "both" else key) + frames
    q, k, away = turned(query_at, base), turned(key_at, base), (query_at - key_at).round(6)
    distances = np.linspace(0, FARTHEST, 4 * FARTHEST + 1)
    curve = (turned(distances, base) * turned(np.zeros(1), base)).sum(dim=(-2, -1)).numpy()
    products = (q * k).sum(dim=(-2, -1))[::PARTS].tolist()
    far = np.abs(away)[::PARTS].astype(int).tolist()
    said = [f"distance {distance}: q · k = {product:.2f}" for distance, product in zip(far, products, strict=True)]
    return Turning(
        tuple(_plane(name, pair, q, k, away, base) for name, pair in _pictured(base).items()),
        Score(distances, curve, np.abs(away), [text.replace("-", "−") for text in said]),
        tuple(query_at[::PARTS].astype(int).tolist()),
        tuple(key_at[::PARTS].astype(int).tolist()),
        tuple(map(str, range(STEPS + 1))),
    )


def turned(places: np.ndarray, base: float) -> Tensor:
    """Turn a vector whose pairs all point to the right by each of these places, (N,) -> (N, D/2, 2)."""
    rotary = Rotary(HEAD_WIDTH, base, layout="interleaved")
    start = torch.tensor([1.0, 0.0]).repeat(len(places), HEAD_WIDTH // 2)
    return rotate(start, rotary.angles(torch.as_tensor(places)), rotary.layout).unflatten(-1, (-1, 2))


def _pictured(base: float) -> dict[str, int]:
    """Choose three pairs: the fastest, one that comes round in about a sentence or two, and the slowest."""
    lengths = wavelengths(Scaling().frequencies(HEAD_WIDTH, base))
    middle = int((lengths.log() - torch.tensor(float(MIDDLE)).log()).abs().argmin())
    return {"Fast": 0, "Middle": middle, "Slow": HEAD_WIDTH // 2 - 1}


def _plane(name: str, pair: int, q: Tensor, k: Tensor, away: np.ndarray, base: float) -> Plane:
    """Describe one pair in each frame: arrows (N, D/2, 2), the query `away` tokens behind the key, (N,)."""
    speed = float(Scaling().frequencies(HEAD_WIDTH, base)[pair])
    degrees, length = np.degrees(speed), 2 * np.pi / speed
    products = (q[:, pair] * k[:, pair]).sum(dim=-1)[::PARTS].tolist()
    turn = significant(degrees, 5)  # so many digits that the product is right as it stands
    said = [
        f"angle {far} × {turn}° = {significant(far * degrees, 3)}°, q · k = {product:.2f}".replace("-", "−")
        for far, product in zip(np.abs(away)[::PARTS].astype(int).tolist(), products, strict=True)
    ]
    title = f"{name} pair {pair}: round in {length:,.{0 if length >= 10 else 1}f} positions"
    turns = [torch.atan2(arrow[:, pair, 1], arrow[:, pair, 0]).numpy() for arrow in (q, k)]
    return Plane(title, turns[0], turns[1], np.sign(away) * (np.abs(away) * speed % (2 * np.pi)), said)


def significant(value: float, digits: int) -> str:
    """Write a number, 0 or more, with so many digits that count, and all of those before the point."""
    if value <= 0:
        return "0"
    return f"{value:,.{max(digits - 1 - math.floor(math.log10(value)), 0)}f}"


def picked(view: View, prompt: Prompt) -> tuple[int, int]:
    """Find the two words that are picked, the query and the key; without them, Explore's first word and a near one."""
    groups = groups_of(prompt)
    query, key = locate(groups, view.word), locate(groups, view.partner)
    if query is None:
        query = default_word(groups)
    if key is None:
        key = max(query - 4, 0) if query else min(4, len(groups) - 1)
    return query, key
