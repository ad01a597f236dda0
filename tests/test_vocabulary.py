"""Reading by words: one number for each different word, and nothing of the text lost without a word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import TextError, number_words
from engine._words import is_blank

SENTENCE = "The cat saw the other cat."


def test_words_are_numbered_in_order_of_appearance():
    """The second cat has the number of the first; "The" and "the" are two words; the full stop is one."""
    prompt = number_words(SENTENCE, vocabulary=10)
    assert [token.text for token in prompt.tokens] == ["The", "cat", "saw", "the", "other", "cat", "."]
    assert prompt.ids == (0, 1, 2, 3, 4, 1, 5)
    assert [token.word for token in prompt.tokens] == list(range(7))
    assert all(SENTENCE[token.start : token.end] == token.text for token in prompt.tokens)
    assert not any(token.special for token in prompt.tokens)


def test_too_small_a_vocabulary_is_refused_with_both_numbers():
    """Six different words do not fit into five numbers; into six they do."""
    assert len(number_words(SENTENCE, vocabulary=6)) == 7
    with pytest.raises(TextError, match="6 different words, and the vocabulary holds 5"):
        number_words(SENTENCE, vocabulary=5)


def test_a_long_text_is_cut_with_a_notice():
    """What is left out counts, and the last word kept is named; ids count only what was kept."""
    prompt = number_words(SENTENCE, vocabulary=3, limit=3)
    assert [token.text for token in prompt.tokens] == ["The", "cat", "saw"]
    assert prompt.cut
    assert prompt.total == 7
    assert "the last 4 are left out" in prompt.notices[-1]
    assert "“saw”" in prompt.notices[-1]
    assert number_words(SENTENCE, vocabulary=10, limit=7).notices == ()


@pytest.mark.parametrize("blank", ["", "   ", "\n\t", "\u200b\u00ad"])
def test_nothing_to_read_is_refused(blank: str):
    """White space and characters of no width are no words."""
    with pytest.raises(TextError, match="Type a sentence first"):
        number_words(blank, vocabulary=10)


def test_a_script_without_spaces_is_read_by_characters():
    """Each character is a token of no word, and the reader is told."""
    prompt = number_words("我喜欢我", vocabulary=10)
    assert [token.text for token in prompt.tokens] == ["我", "喜", "欢", "我"]
    assert prompt.ids == (0, 1, 2, 0)
    assert {token.word for token in prompt.tokens} == {None}
    assert "each character is read by itself" in prompt.notices[0]


def test_right_to_left_and_broken_text_are_told_about():
    """A lone surrogate is replaced with a notice, Hebrew keeps its order with one."""
    prompt = number_words("שלום \ud800 עולם", vocabulary=10)
    assert [token.text for token in prompt.tokens][1] == "\ufffd"
    assert "U+D800" in prompt.notices[0]
    assert any("right to left" in notice for notice in prompt.notices)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_a_sentence(text: str):
    """Every token stands in the text at its place, equal words have equal numbers, and no number is left out."""
    try:
        prompt = number_words(text, vocabulary=100)
    except TextError:
        assert is_blank(text)
        return
    assert all(prompt.text[token.start : token.end] == token.text for token in prompt.tokens)
    numbers = {token.text: token.id for token in prompt.tokens}
    assert [numbers[token.text] for token in prompt.tokens] == list(prompt.ids)
    assert set(prompt.ids) == set(range(len(set(prompt.ids))))
