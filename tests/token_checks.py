"""What the tests of tokens share: small tokenizers, and what they ask a prompt (its labels, what was typed)."""

import pytest
from tiny_tokenizers import TEXTS, byte_level, metaspace, wordpiece

from engine.tokens import Prompt, Token, group_words

BUILDERS = (wordpiece, byte_level, metaspace)
SHOPKEEPER = TEXTS[0]
WORDPIECE, BYTE_LEVEL, METASPACE = (builder() for builder in BUILDERS)
TOKENIZERS = (WORDPIECE, BYTE_LEVEL, METASPACE)
NAMES = [builder.__name__ for builder in BUILDERS]
every_tokenizer = pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=NAMES)


def labels(prompt: Prompt) -> list[str]:
    """The words on an axis, special tokens left out."""
    return [group.text for group in group_words(prompt.tokens) if not group.special]


def typed(prompt: Prompt) -> list[str]:
    """What was typed for each token; nothing for those that were added."""
    sources = (prompt.text, prompt.pair or "")
    return [sources[token.source][slice(*(span(token) or (0, 0)))] for token in prompt.tokens]


def span(token: Token) -> tuple[int, int] | None:
    """Where the token lies in its text; None if it was not typed."""
    return None if token.start is None or token.end is None else (token.start, token.end)


def in_words(message: str, prompt: Prompt) -> bool:
    """Whether one of the notices says so."""
    return any(message in notice for notice in prompt.notices)
