"""Text in scripts that write no spaces between words."""

import pytest
from token_checks import BYTE_LEVEL, every_tokenizer, labels, typed
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from engine.tokens import encode, group_tokens, group_words


@every_tokenizer
@pytest.mark.parametrize("text", ["我喜欢自然语言处理", "私は猫が好き", "ฉันรักแมว"])
def test_d19_text_without_spaces_says_so_and_stays_at_tokens(tokenizer, text):
    prompt = encode(tokenizer, text)
    assert not prompt.spaced
    assert "This script writes no spaces between words, so the words view shows tokens." in prompt.notices
    assert [group.indices for group in group_words(prompt.tokens)] == [(i,) for i in range(len(prompt))]


@every_tokenizer
@pytest.mark.parametrize("text", ["我喜欢自然语言处理", "私は猫が好き", "ฉันรักแมว"])
def test_d19_in_the_words_view_each_token_shows_what_was_typed_for_it(tokenizer, text):
    prompt = encode(tokenizer, text)
    shown = [token for token in prompt.tokens if token.start is not None]
    assert [token.word_text for token in shown] == [piece for piece in typed(prompt) if piece]
    assert all(token.word is None for token in shown)


def test_d19_what_the_vocabulary_lacks_is_typed_characters_among_words_and_unknown_among_tokens():
    core = Tokenizer(models.WordLevel({"[UNK]": 0, "我": 1}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Split("", "isolated")]
    )
    prompt = encode(PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]"), "我喜欢猫")
    assert labels(prompt) == ["我", "喜", "欢", "猫"]
    assert [group.text for group in group_tokens(prompt.tokens)] == ["我", "[UNK]", "[UNK]", "[UNK]"]


def test_d19_white_space_keeps_its_sign_where_there_are_no_words():
    prompt = encode(BYTE_LEVEL, "我们\n你")
    assert "⏎" in labels(prompt)
    assert "\n" not in labels(prompt)


def test_d19_a_foreign_word_among_others_changes_nothing():
    assert encode(BYTE_LEVEL, "I say 你好 to my friends").spaced
