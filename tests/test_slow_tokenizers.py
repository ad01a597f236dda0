"""Tokenizers written in Python tell no offsets: their pieces are followed through the text."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceTrainer
from tiny_tokenizers import TEXTS, wordpiece
from token_checks import in_words, labels, span, typed
from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy
from transformers.models.bert_generation.tokenization_bert_generation import BertGenerationTokenizer
from transformers.models.byt5.tokenization_byt5 import ByT5Tokenizer
from transformers.models.canine.tokenization_canine import CanineTokenizer

from engine.tokens import encode

WORDPIECE = wordpiece()


@pytest.fixture
def slow(tmp_path):
    """A BERT tokenizer written in Python, without offsets, on the vocabulary of the fast one."""
    vocabulary = sorted(WORDPIECE.get_vocab().items(), key=lambda item: item[1])
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(piece for piece, _ in vocabulary), encoding="utf-8")
    return BertTokenizerLegacy(str(path))


def test_d15_a_slow_tokenizer_gives_the_same_prompt_as_its_fast_twin(slow):
    for text in (*TEXTS, "Naïve ✓ [MASK] [SEP] café?", unicodedata.normalize("NFD", "café Zoë")):
        ours, theirs = encode(slow, text), encode(WORDPIECE, text)
        assert not slow.is_fast
        assert (ours.tokens, ours.words, ours.notices) == (theirs.tokens, theirs.words, theirs.notices)


def test_d15_a_slow_tokenizer_cuts_and_pairs_like_its_fast_twin(slow):
    slow.model_input_names = WORDPIECE.model_input_names
    for limit in (7, 8, None):
        ours = encode(slow, "the cat sat on the mat", pair="the house is", limit=limit)
        assert ours.tokens == encode(WORDPIECE, ours.text, pair=ours.pair, limit=limit).tokens


@pytest.mark.parametrize("tokenizer", [ByT5Tokenizer(), CanineTokenizer()], ids=["byt5", "canine"])
@settings(max_examples=60, deadline=None)
@given(text=st.text(st.sampled_from("aé अ🙂\u200d✓\n\u3000."), min_size=1, max_size=12))
def test_d15_a_slow_tokenizer_of_bytes_or_characters_places_each_where_it_was_typed(tokenizer, text):
    if not text.strip(" \n\u200d\u3000"):
        return
    prompt = encode(tokenizer, text)
    spans = [span(token) for token in prompt.tokens if not token.special]
    assert list(dict.fromkeys(spans)) == [(i, i + 1) for i in range(len(text))]


def test_d15_a_slow_sentencepiece_tokenizer_places_unknown_pieces_and_ligatures(tmp_path):
    SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 3),
        model_prefix=str(tmp_path / "tiny"),
        vocab_size=200,
        hard_vocab_limit=False,
        pad_id=3,
        minloglevel=2,
    )
    tokenizer = BertGenerationTokenizer(str(tmp_path / "tiny.model"))
    prompt = encode(tokenizer, "The ﬁne cat ✓✓ X [\nsat")
    assert labels(prompt) == ["The", "ﬁne", "cat", "✓", "X", "[", "sat"]
    assert typed(prompt).count("ﬁ") == 2
    assert in_words("read as <unk>: “✓✓”, “X”, “[”.", prompt)
