"""Tokens: what was typed, what the model gets, and the words between; the rows D of the reported faults."""

import logging
import unicodedata

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_tokenizers import TEXTS, byte_level, metaspace, wordpiece
from token_checks import (
    BYTE_LEVEL,
    METASPACE,
    NAMES,
    SHOPKEEPER,
    TOKENIZERS,
    WORDPIECE,
    every_tokenizer,
    in_words,
    labels,
    span,
    typed,
)
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AddedToken, PreTrainedTokenizerFast
from transformers.models.canine.tokenization_canine import CanineTokenizer

from engine.errors import ShapeError, TextError
from engine.tokens import Prompt, decoded, encode, group_words


def texts(prompt: Prompt) -> list[str]:
    return [token.text for token in prompt.tokens]


@every_tokenizer
def test_ids_are_those_of_the_tokenizer_itself(tokenizer):
    for text in TEXTS:
        prompt = encode(tokenizer, text)
        assert list(prompt.ids) == tokenizer(text)["input_ids"]
        assert [token.raw for token in prompt.tokens] == tokenizer.convert_ids_to_tokens(prompt.ids)
        assert len(prompt) == prompt.total
        assert not prompt.cut


@every_tokenizer
def test_every_word_of_the_text_has_tokens_whose_spans_lie_in_it(tokenizer):
    for text in TEXTS:
        prompt = encode(tokenizer, text)
        assert {token.word for token in prompt.tokens} - {None} == set(range(len(prompt.words)))
        for token in prompt.tokens:
            place = span(token)
            if token.word is not None and place and token.text != "␣":
                word = prompt.words[token.word]
                assert word.start <= place[0] < place[1] <= word.end
                assert token.word_text == word.text


@every_tokenizer
@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=40))
def test_any_text_is_read_or_refused_with_a_sentence(tokenizer, text):
    try:
        prompt = encode(tokenizer, text)
    except TextError:
        return
    assert len(prompt.text) == len(text)
    for token in prompt.tokens:
        assert token.text
        start, end = span(token) or (0, 1)
        assert 0 <= start < end <= len(text)
    indices = [index for group in group_words(prompt.tokens) for index in group.indices]
    assert sorted(indices) == list(range(len(prompt)))


@every_tokenizer
def test_special_tokens_that_were_added_have_no_place_in_the_text(tokenizer):
    added = [token for token in encode(tokenizer, "The cat").tokens if token.special]
    assert all(token.word is token.start is token.end is None for token in added)
    assert [token.text for token in added] == {
        "wordpiece": ["[CLS]", "[SEP]"],
        "byte_level": [],
        "metaspace": ["</s>"],
    }[NAMES[TOKENIZERS.index(tokenizer)]]


@every_tokenizer
def test_d1_labels_are_readable_without_the_tokenizers_marks(tokenizer):
    prompt = encode(tokenizer, "Seán met Zoë at the café\nnew line")
    for token in prompt.tokens:
        assert not any(mark in token.text for mark in ("Ġ", "Ċ", "▁", "##", "Ã", "\n", "<0x"))
    assert labels(prompt)[:6] == ["Seán", "met", "Zoë", "at", "the", "café"]


def test_d1_a_leading_space_is_neither_in_the_text_nor_in_the_span_but_stays_in_raw():
    prompt = encode(BYTE_LEVEL, "The shopkeeper gave")
    gave = prompt.tokens[-1]
    assert (gave.text, gave.raw, prompt.text[gave.start : gave.end]) == ("gave", "Ġgave", "gave")


@pytest.mark.parametrize("trim_offsets", [True, False])
def test_d1_spans_do_not_depend_on_whether_the_tokenizer_trims_its_offsets(trim_offsets):
    tokenizer = byte_level()
    tokenizer.backend_tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
    prompt = encode(tokenizer, "The cat  sat \n on")
    assert [text for text in typed(prompt) if not text.isspace()] == [
        token.text for token in prompt.tokens if token.text not in ("␣", "⏎")
    ]
    assert typed(prompt).count(" ") == texts(prompt).count("␣") > 0


def test_d1_the_bytes_of_a_character_cut_in_pieces_are_written_in_hex_and_stay_in_their_word():
    prompt = encode(BYTE_LEVEL, "hi🙂!")
    assert texts(prompt) == ["hi", "⟨F0⟩", "⟨9F⟩", "⟨99⟩", "⟨82⟩", "!"]
    assert typed(prompt)[1:5] == ["🙂"] * 4
    assert labels(prompt) == ["hi", "🙂", "!"]


def test_d1_sentencepiece_bytes_are_shown_as_what_they_are_and_placed_one_by_one():
    prompt = encode(METASPACE, "at\nQ✓Q")
    assert texts(prompt)[-7:-1] == ["⏎", "Q", "⟨E2⟩", "⟨9C⟩", "⟨93⟩", "Q"]
    assert typed(prompt)[-7:-1] == ["\n", "Q", "✓", "✓", "✓", "Q"]


def test_d1_a_lone_space_mark_is_the_first_piece_of_the_word_it_leads():
    prompt = encode(METASPACE, "The house")
    first = prompt.tokens[0]
    assert (first.raw, first.text, first.word, first.start) == ("▁", "␣", 0, None)
    assert labels(prompt) == ["The", "house"]


def test_d3_a_normaliser_that_drops_vowel_signs_is_told_and_the_words_stay_as_typed():
    prompt = encode(WORDPIECE, "अपने पोस्ट ऑफिस में")
    assert in_words("drops accents or vowel signs: “अपने” is read as “अपन”", prompt)
    assert texts(prompt)[1] == "अपन"
    assert labels(prompt) == ["अपने", "पोस्ट", "ऑफिस", "में"]


def test_d3_accents_are_told_once_with_offsets_in_the_text_as_typed():
    prompt = encode(WORDPIECE, "Zoë  met Zoë at the café")
    assert prompt.notices == (
        "The tokenizer drops accents or vowel signs: “Zoë” is read as “zoe”, “café” is read as “cafe”.",
    )
    assert typed(prompt)[1:-1] == ["Zoë", "met", "Zoë", "at", "the", "café"]


def test_d3_decomposed_accents_keep_their_spans():
    text = unicodedata.normalize("NFD", "Zoë met Zoë")
    prompt = encode(WORDPIECE, text)
    assert labels(prompt) == text.split()


@pytest.mark.parametrize("text", ["अपने पोस्ट ऑफिस में", "An 18th century poet met Zoë at the café", SHOPKEEPER])
def test_d3_a_cased_tokenizer_does_not_warn(text):
    assert encode(wordpiece(lowercase=False), text).notices == ()


def test_d3_lower_casing_alone_is_not_worth_a_notice():
    assert encode(WORDPIECE, "THE CAT  SAT").notices == ()


def test_d3_rewritten_and_left_out_characters_are_told():
    tokenizer = metaspace()
    assert in_words("rewrites part of the text: “ﬁne” is read as “fine”", encode(tokenizer, "ﬁne cat"))
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("%", "")
    assert in_words("leaves out: “%”", encode(tokenizer, "the % cat"))


def test_d5_right_to_left_words_keep_their_logical_order_and_their_labels():
    prompt = encode(WORDPIECE, "שלום עולם טוב abc")
    assert labels(prompt) == ["שלום", "עולם", "טוב", "abc"]
    assert typed(prompt)[1:5] == ["שלום", "עולם", "טוב", "abc"]


@every_tokenizer
def test_d6_markup_is_literal_text(tokenizer):
    text = 'a<b<c "x" <img src=x onerror=alert(1)>'
    prompt = encode(tokenizer, text)
    assert prompt.text == text
    assert "".join(labels(prompt)) == text.replace(" ", "")


def test_d6_a_typed_special_token_is_one_word_with_a_notice():
    prompt = encode(METASPACE, "the <s> cat")
    token = next(token for token in prompt.tokens if token.raw == "<s>")
    assert (token.special, token.word_text, prompt.text[token.start : token.end]) == (True, "<s>", "<s>")
    assert in_words("“<s>” in the text is read as a special token.", prompt)
    assert [group.text for group in group_words(prompt.tokens)] == ["the", "␣", "<s>", "cat", "</s>"]


def test_d6_several_typed_special_tokens_are_told_in_one_sentence_and_where_they_are():
    prompt = encode(WORDPIECE, "[CLS] the [SEP] cat [SEP] [PAD]")
    assert prompt.notices[0] == (
        "“[CLS]”, “[SEP]” and “[PAD]” in the text are read as special tokens. "
        "Like the model's other ones they are hidden unless special tokens are shown."
    )


def test_d6_an_end_token_that_is_also_the_unknown_one_is_special_when_typed():
    prompt = encode(BYTE_LEVEL, "cat<|endoftext|>")
    assert prompt.tokens[-1].special
    assert prompt.tokens[-1].word_text == "<|endoftext|>"


def test_d9_what_the_vocabulary_lacks_is_named():
    core = Tokenizer(models.WordLevel({"[UNK]": 0, "the": 1, "?": 2}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    prompt = encode(PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]"), "the naïve? ✓")
    assert prompt.notices == ("Not in the model's vocabulary, so read as [UNK]: “naïve”, “✓”.",)
    assert texts(prompt) == ["the", "[UNK]", "?", "[UNK]"]
    assert labels(prompt) == ["the", "naïve", "?", "✓"]
    assert not any(token.special for token in prompt.tokens)


def test_d9_a_long_list_of_unknown_words_is_shortened():
    assert in_words("“①”, “②”, “③” and 2 more.", encode(wordpiece(lowercase=False), "① ② ③ ④ ⑤ ①"))


@every_tokenizer
@pytest.mark.parametrize("text", ["", "   ", "\n", "\u200b\u200d", "\ufeff \u2060", "\ufe0f", "\u3164"])
def test_d10_nothing_to_read_is_a_message(tokenizer, text):
    with pytest.raises(TextError, match="Type a sentence first"):
        encode(tokenizer, text)
    with pytest.raises(TextError, match="Type a second sentence"):
        encode(tokenizer, "the cat", pair=text)


def test_d10_a_text_that_makes_no_token_is_a_message():
    with pytest.raises(TextError, match="finds nothing to read"):
        encode(WORDPIECE, "\x00\x01")


@every_tokenizer
def test_d11_a_cut_counts_everything_and_keeps_what_the_tokenizer_would_keep(tokenizer, caplog):
    text = "the cat sat " * 200
    with caplog.at_level(logging.WARNING):
        prompt = encode(tokenizer, text, limit=12)
    assert list(prompt.ids) == tokenizer(text, truncation=True, max_length=12)["input_ids"]
    assert prompt.cut
    assert prompt.limit == len(prompt) == 12
    assert prompt.total == len(tokenizer(text, verbose=False)["input_ids"])
    assert in_words(f"The text makes {prompt.total} tokens and 12 is the most that can be read", prompt)
    assert in_words("The last word kept is “", prompt)
    assert not caplog.records
    assert not encode(tokenizer, "the cat", limit=12).cut


def test_d11_the_last_word_kept_is_named():
    assert encode(WORDPIECE, "the cat sat on the mat", limit=5).notices == (
        "The text makes 8 tokens and 5 is the most that can be read: the last 3 are left out. "
        "The last word kept is “sat”.",
    )


@every_tokenizer
@settings(max_examples=40, deadline=None)
@given(first=st.integers(1, 9), second=st.integers(1, 9), limit=st.integers(6, 20))
def test_d11_of_a_pair_the_longer_text_is_cut_first_as_the_tokenizer_does(tokenizer, first, second, limit):
    text, pair = "the cat " * first, "on the " * second
    prompt = encode(tokenizer, text, pair=pair, limit=limit)
    assert list(prompt.ids) == tokenizer(text, pair, truncation="longest_first", max_length=limit)["input_ids"]


def test_d11_a_limit_without_room_for_text_is_a_message():
    with pytest.raises(TextError, match="limit of 2 tokens leaves no room"):
        encode(WORDPIECE, "the cat", limit=2)
    assert len(encode(WORDPIECE, "the cat", limit=3)) == 3


def test_d14_white_space_tokens_have_signs_distinct_per_kind():
    prompt = encode(BYTE_LEVEL, "a\n\n\tb  c")
    assert texts(prompt) == ["a", "⏎", "⏎", "⇥", "b", "␣", "c"]
    assert [token.word for token in prompt.tokens] == [0, None, None, None, 1, None, 2]
    others = [token.text for token in encode(CanineTokenizer(), "a\xa0\r\u2003\u200bb").tokens[2:-2]]
    assert others == ["⍽", "␍", "⟨U+2003⟩", "⟨U+200B⟩"]


def test_d17_four_words_are_four_words_whatever_the_pieces():
    for tokenizer in TOKENIZERS:
        assert labels(encode(tokenizer, "An 18th century poet")) == ["An", "18th", "century", "poet"]


def test_d17_a_token_over_two_words_belongs_to_the_first():
    core = Tokenizer(models.WordLevel({"ab.": 0, "c": 1}, unk_token="c"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    prompt = encode(PreTrainedTokenizerFast(tokenizer_object=core), "ab. c")
    assert [token.word for token in prompt.tokens] == [0, 2]


def test_d21_a_typed_mask_is_one_token_of_the_text():
    prompt = encode(WORDPIECE, "The [MASK] sat")
    mask = prompt.tokens[2]
    assert (mask.text, mask.special, mask.word, mask.start, mask.end) == ("[MASK]", False, 1, 4, 10)
    assert labels(prompt) == ["The", "[MASK]", "sat"]
    assert prompt.notices == ()


def test_d21_a_mask_that_takes_the_space_before_it_is_trimmed():
    tokenizer = byte_level()
    tokenizer.add_special_tokens({"mask_token": AddedToken("<mask>", lstrip=True, special=True)})
    prompt = encode(tokenizer, "The <mask> cat")
    assert (labels(prompt), typed(prompt)[1]) == (["The", "<mask>", "cat"], "<mask>")


@every_tokenizer
def test_d22_repeated_words_stay_apart_by_position(tokenizer):
    prompt = encode(tokenizer, "the cat sat on the mat. the cat lay on the rug.")
    groups = [group for group in group_words(prompt.tokens) if not group.special]
    assert [group.word for group in groups] == list(range(14))
    assert [group.text for group in groups].count("the") == 4


def test_characters_that_cannot_be_read_are_replaced_one_for_one_with_a_notice():
    prompt = encode(BYTE_LEVEL, "the\x00 ca\ud800t\x00\t")
    assert prompt.text == "the\ufffd ca\ufffdt\ufffd\t"
    assert prompt.notices == ("Characters that cannot be read (U+0000, U+D800) became “\ufffd”.",)


def test_segments_are_the_tokenizers_and_words_count_on_through_the_pair():
    prompt = encode(WORDPIECE, "the cat", pair="the mat")
    assert prompt.segments == (0, 0, 0, 0, 1, 1, 1)
    assert [token.word for token in prompt.tokens] == [None, 0, 1, None, 2, 3, None]
    assert [(word.text, word.segment, word.start) for word in prompt.words][2:] == [
        ("the", 1, 0),
        ("mat", 1, 4),
    ]
    assert typed(prompt) == ["", "the", "cat", "", "the", "mat", ""]


def test_a_tokenizer_without_segments_gives_zeros_and_spans_still_know_their_text():
    prompt = encode(METASPACE, "the cat", pair="on the mat")
    assert set(prompt.segments) == {0}
    assert labels(prompt) == ["the", "cat", "on", "the", "mat"]
    assert {prompt.words[token.word].segment == token.source for token in prompt.tokens if token.word} == {True}


def test_c4_padding_is_known_from_the_prompt_and_never_from_ids():
    """The padding id is 0 here, and so is the id of a real token."""
    prompt = encode(BYTE_LEVEL, "cat<|endoftext|>")
    assert prompt.ids[-1] == 0
    padded = prompt.padded(len(prompt) + 2, pad_id=0)
    assert padded.real == (True,) * len(prompt) + (False, False)
    assert prompt.padded(len(prompt) + 1, side="left").real == (False, *prompt.real)
    assert padded.total == prompt.total
    assert prompt.padded(len(prompt)) == prompt


@pytest.mark.parametrize("pad", [None, "<|endoftext|>"])
def test_c4_a_missing_padding_token_or_one_equal_to_the_end_changes_nothing(pad):
    tokenizer = byte_level()
    tokenizer.pad_token = pad
    assert encode(tokenizer, SHOPKEEPER) == encode(BYTE_LEVEL, SHOPKEEPER)


def test_padding_to_less_than_the_length_is_refused():
    prompt = encode(WORDPIECE, "the cat")
    with pytest.raises(ShapeError, match="4 tokens cannot be padded to 3"):
        prompt.padded(3)
    with pytest.raises(ShapeError, match="middle"):
        prompt.padded(9, side="middle")  # type: ignore[arg-type]


def test_generated_tokens_are_readable_and_marked():
    prompt = encode(BYTE_LEVEL, "The cat")
    more = decoded(BYTE_LEVEL, torch.tensor(BYTE_LEVEL(" gave\n✓<|endoftext|>")["input_ids"]))
    assert [token.text for token in more] == ["gave", "⏎", "⟨E2⟩", "⟨9C⟩", "⟨93⟩", "<|endoftext|>"]
    assert [token.special for token in more] == [False] * 5 + [True]
    assert all(token.generated and token.word is token.start is None for token in more)
    longer = prompt.extended(more)
    assert len(longer) == 8
    assert longer.total == prompt.total
    assert not longer.cut


def test_an_id_outside_the_vocabulary_is_shown_by_its_number():
    assert decoded(BYTE_LEVEL, [9999])[0].text == "⟨id 9999⟩"
