"""Words: how a typed text is split, and attention between words instead of pieces."""

import unicodedata
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_tokenizers import wordpiece

from engine.errors import ShapeError
from engine.tokens import Group, Token, encode, group_tokens, group_words, pool_words, split_words

WORDPIECE = wordpiece()


def words(text: str) -> list[str]:
    return [word.text for word in split_words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("An 18th century poet", ["An", "18th", "century", "poet"]),
        ("don't, post-office: she,", ["don't", ",", "post-office", ":", "she", ","]),
        ("It cost $3.50... wow!! 1,000", ["It", "cost", "$", "3.50", "...", "wow", "!!", "1,000"]),
        ("snake_case 'quoted' dogs'", ["snake_case", "'", "quoted", "'", "dogs", "'"]),
        ("अपने पोस्ट ऑफिस में।", ["अपने", "पोस्ट", "ऑफिस", "में", "।"]),
        ("שלום עולם טוב abc", ["שלום", "עולם", "טוב", "abc"]),
        ("👩‍👩‍👧👍🏽 🇩🇪🇫🇷❤️", ["👩‍👩‍👧", "👍🏽", "🇩🇪", "🇫🇷", "❤️"]),
        ("می‌خواهم \ufeffx\u200b", ["می‌خواهم", "x"]),
        ("a<b", ["a", "<", "b"]),
        ("", []),
    ],
)
def test_words_are_split_on_white_space_with_punctuation_apart(text, expected):
    assert words(text) == expected


@given(st.text())
def test_words_are_slices_of_the_text_in_order_and_cover_all_that_is_seen(text):
    found = split_words(text)
    assert all(text[word.start : word.end] == word.text for word in found)
    assert all(one.end <= two.start for one, two in pairwise(found))
    covered = {position for word in found for position in range(word.start, word.end)}
    for position in set(range(len(text))) - covered:
        assert text[position].isspace() or unicodedata.category(text[position]) == "Cf"


def token(text: str, word: int | None, **more) -> Token:
    return Token(text, text, 0, word, False, None, None, **more)


def test_a_word_is_the_mean_of_its_rows_and_the_sum_of_its_columns():
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.6, 0.3], [0.3, 0.2, 0.5]])
    groups = (Group("a", (0,), False, 0), Group("bc", (1, 2), False, 1))
    torch.testing.assert_close(pool_words(weights, groups, groups), torch.tensor([[0.5, 0.5], [0.2, 0.8]]))


def test_a_masked_row_of_zeros_counts_in_the_mean():
    groups = (Group("ab", (0, 1), False, 0),)
    pooled = pool_words(torch.tensor([[0.0, 0.0], [0.5, 0.5]]), groups, groups)
    torch.testing.assert_close(pooled, torch.tensor([[0.5]]))


@settings(deadline=None)
@given(st.lists(st.sampled_from([None, 0, 1, 2, 3]), min_size=1, max_size=12), st.integers(0, 2**31))
def test_pooled_rows_sum_to_one_when_the_rows_do(owners, seed):
    groups = group_words([token("x", owner) for owner in owners])
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(2, 3, len(owners), len(owners), generator=generator).softmax(-1)
    pooled = pool_words(weights, groups, groups)
    assert pooled.shape == (2, 3, len(groups), len(groups))
    torch.testing.assert_close(pooled.sum(-1), torch.ones(2, 3, len(groups)))


def test_groups_follow_the_first_piece_and_specials_padding_and_wordless_stand_alone():
    pieces = [token("x", 0), token("y", 1), token("x", 0), token("n", None), token("p", None, padding=True)]
    special = replace(token("[SEP]", 2), special=True)
    groups = group_words([*pieces, special, special])
    assert [group.indices for group in groups] == [(0, 2), (1,), (3,), (4,), (5,), (6,)]


def test_each_token_is_a_group_of_its_own_whatever_its_word():
    pieces = [token("x", 0, word_text="xyz"), token("yz", 0, word_text="xyz"), token("n", None)]
    special = replace(token("[SEP]", None), special=True)
    assert group_tokens([*pieces, special]) == (
        Group("x", (0,), False, 0),
        Group("yz", (1,), False, 0),
        Group("n", (2,), False, None),
        Group("[SEP]", (3,), True, None),
    )


def test_rectangular_weights_pool_on_both_axes():
    prompt = encode(WORDPIECE, "she didn't stay")
    keys = group_words(prompt.tokens)
    weights = torch.full((2, len(prompt)), 1 / len(prompt))
    queries = (Group("both", (0, 1), False, 0),)
    assert pool_words(weights, queries, keys).shape == (1, len(keys))


def test_groups_that_do_not_fit_the_weights_are_refused():
    good = (Group("a", (0,), False, 0),)
    for bad in (Group("b", (2,), False, 0), Group("b", (), False, 0), Group("b", (-1,), False, 0)):
        with pytest.raises(ShapeError, match="“b”"):
            pool_words(torch.ones(2, 2), good, (bad,))
    with pytest.raises(ShapeError, match="two dimensions"):
        pool_words(torch.ones(2), good, good)
