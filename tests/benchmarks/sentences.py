"""Sentences of a known length: every word is one piece of MiniLM's vocabulary, and no two sentences are the same."""

TEXT = (
    "the cat sat on a mat and we saw it go up to an old oak by the sea as he had to run for it but she was at a "
    "big red bus in my own way so do not ask me if you can see all of us"
)
WORDS = TEXT.split()
SPECIAL = 2  # [CLS] and [SEP]


def sentence(tokens: int, number: int) -> str:
    """Make the sentence with this number; MiniLM reads it as `tokens` tokens, [CLS] and [SEP] among them.

    At 512 tokens it still fits into the 2,000 characters that the app takes.
    """
    count = tokens - SPECIAL
    turns, start = divmod(number, len(WORDS))
    words = [WORDS[(start + place * (1 + turns)) % len(WORDS)] for place in range(count)]
    return " ".join(words)
