"""Words on the axes of a map: which tokens make a word, and attention between words.

T queries, S keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.errors import ShapeError

if TYPE_CHECKING:
    from engine.tokens import Token


@dataclass(frozen=True)
class Group:
    """One label on an axis: the tokens at `indices`, under the word as typed or the piece as it is."""

    text: str
    indices: tuple[int, ...]
    special: bool
    word: int | None


def group_tokens(tokens: "Sequence[Token]") -> tuple[Group, ...]:
    """Put each token in a group of its own, under the text that the model's piece stands for.

    Args:
        tokens: those of a Prompt, T of them.

    Returns:
        T groups, in order.
    """
    return tuple(Group(token.text, (index,), token.special, token.word) for index, token in enumerate(tokens))


def group_words(tokens: "Sequence[Token]") -> tuple[Group, ...]:
    """Put the tokens of each word together.

    Args:
        tokens: those of a Prompt, T of them.

    Returns:
        Groups in order of their first token; together they hold each of 0..T-1 once. Special tokens,
        padding and tokens without a word stand alone; in text that writes no spaces between words that is
        every token, under the characters typed for it.
    """
    members: dict[tuple[str, int], list[int]] = {}
    for index, token in enumerate(tokens):
        alone = token.special or token.padding or token.word is None
        key = ("token", index) if alone or token.word is None else ("word", token.word)
        members.setdefault(key, []).append(index)
    return tuple(_group(tokens, tuple(indices)) for indices in members.values())


def pool_words(weights: Tensor, queries: Sequence[Group], keys: Sequence[Group]) -> Tensor:
    """Turn attention between tokens into attention between words.

    A word's row is the mean of its tokens' rows, its column the sum of their columns, so that rows which
    sum to 1 still do.

    Args:
        weights: (..., T, S).
        queries: groups of 0..T-1.
        keys: groups of 0..S-1.

    Returns:
        (..., len(queries), len(keys)).

    Raises:
        ShapeError: a group is empty or names a token that the weights do not have.
    """
    if weights.dim() < 2:
        raise ShapeError(f"Weights need two dimensions, queries and keys, or more; these have {weights.dim()}.")
    columns = _sum_groups(weights, keys)
    rows = _sum_groups(columns.transpose(-1, -2), queries).transpose(-1, -2)
    sizes = torch.tensor([len(group.indices) for group in queries], dtype=weights.dtype, device=weights.device)
    return rows / sizes.unsqueeze(-1)


def _sum_groups(weights: Tensor, groups: Sequence[Group]) -> Tensor:
    size = weights.shape[-1]
    for group in groups:
        if not group.indices or not all(0 <= index < size for index in group.indices):
            raise ShapeError(f"The word “{group.text}” has tokens {group.indices}; the weights have {size}.")
    chosen = torch.tensor([index for group in groups for index in group.indices], dtype=torch.long)
    owners = torch.tensor([n for n, group in enumerate(groups) for _ in group.indices], dtype=torch.long)
    sums = weights.new_zeros(*weights.shape[:-1], len(groups))
    return sums.index_add(-1, owners.to(weights.device), weights.index_select(-1, chosen.to(weights.device)))


def _group(tokens: "Sequence[Token]", indices: tuple[int, ...]) -> Group:
    first = tokens[indices[0]]
    return Group(first.word_text or first.text, indices, first.special, first.word)
