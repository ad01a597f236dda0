"""Plain sentences about what happened to a text on its way into a model; the text is quoted as it is."""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from engine._pieces import content, style_of
from engine._words import is_variation, is_wordlike

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SHOWN = 3
_MOST_WORDS = 5000
_LONGEST = 60

RIGHT_TO_LEFT = "Words written from right to left keep their order on a map: the first read is leftmost and on top."
UNSPACED = "This script writes no spaces between words, so the words view shows tokens."


def replaced(codes: Sequence[str]) -> str:
    """Say which characters could not be given to a tokenizer."""
    noun = "A character" if len(codes) == 1 else "Characters"
    return f"{noun} that cannot be read ({', '.join(codes)}) became “\ufffd”."


def typed_specials(texts: Iterable[str]) -> str:
    """Say which typed characters became the model's special tokens, and that they are treated as such."""
    names = list(dict.fromkeys(_quoted(text) for text in texts))
    if len(names) == 1:
        what = f"{names[0]} in the text is read as a special token. Like the model's other ones it is"
    else:
        what = f"{_enumerated(names)} in the text are read as special tokens. Like the model's other ones they are"
    return f"{what} hidden unless special tokens are shown."


def reads_right_to_left(text: str) -> bool:
    """Say whether some of the letters are written from right to left."""
    return any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)


def unknown(texts: Iterable[str], name: str) -> str:
    """Say which parts of the text are outside the vocabulary."""
    return f"Not in the model's vocabulary, so read as {name}: {_listed(_quoted(text) for text in texts)}."


def unmet(words: Iterable[str]) -> str:
    """Say which words a small model has never met; letters of most scripts are several bytes each."""
    unmet = tuple(words)
    how = "letter by letter" if all(word.isascii() for word in unmet) else "byte by byte"
    return f"This model has never met {_listed(map(_quoted, unmet))}: spelled {how}."


def cut(total: int, limit: int, kept: Sequence[str]) -> str:
    """Say that the text was cut, and where."""
    where = " and ".join(_quoted(word) for word in kept)
    last = f" The last word kept is {where}." if len(kept) == 1 else f" The last words kept are {where}."
    return (
        f"The text makes {total} tokens and {limit} is the most that can be read: "
        f"the last {total - limit} are left out.{last if kept else ''}"
    )


def rewritten(tokenizer: "PreTrainedTokenizerBase", words: Iterable[str]) -> tuple[str, ...]:
    """Say which words the tokenizer changes by more than letter case and white space.

    Args:
        tokenizer: any Hugging Face tokenizer.
        words: the words as typed; the first 5,000 different ones are looked at.
    """
    read = _reader(tokenizer)
    bare: list[str] = []
    other: list[str] = []
    gone: list[str] = []
    for word in list(dict.fromkeys(words))[:_MOST_WORDS]:
        seen = read(word)
        if seen is None or _same(word) == _same(seen):
            continue
        if not _same(seen):
            gone.append(_quoted(word))
        else:
            kind = bare if _without_accents(word) == _without_accents(seen) else other
            kind.append(f"{_quoted(word)} is read as {_quoted(seen)}")
    sentences = (
        ("The tokenizer drops accents or vowel signs", bare),
        ("The tokenizer rewrites part of the text", other),
        ("The tokenizer leaves out", gone),
    )
    return tuple(f"{what}: {_listed(examples)}." for what, examples in sentences if examples)


def _reader(tokenizer: "PreTrainedTokenizerBase") -> Callable[[str], str | None]:
    """Return what gives the text a tokenizer reads for a word as typed, or None where it cannot be told."""
    core = getattr(tokenizer, "backend_tokenizer", None)
    if core is None:
        return lambda word: _joined_pieces(tokenizer, word)
    normalizer = core.normalizer
    if normalizer is None:
        return lambda word: word
    return lambda word: normalizer.normalize_str(word).replace("▁", " ").strip()


def _joined_pieces(tokenizer: "PreTrainedTokenizerBase", word: str) -> str | None:
    pieces = tokenizer.tokenize(word)
    ids = [tokenizer.convert_tokens_to_ids(piece) for piece in pieces]
    if tokenizer.unk_token_id is not None and tokenizer.unk_token_id in ids:
        return None
    style = style_of(tokenizer, pieces)
    return b"".join(content(piece, style) for piece in pieces).decode("utf-8", "replace").strip()


def _same(text: str) -> str:
    """Reduce text to what letter case, white space and composition leave alone."""
    composed = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower()).replace("ς", "σ")
    # A joiner shapes letters (Persian, Hindi); between pictures its loss leaves each of them as it was.
    shapes = any(is_wordlike(character) for character in text)
    return "".join(character for character in composed if not _is_unseen(character, shapes))


def _is_unseen(character: str, shapes: bool) -> bool:
    if character.isspace() or character in "▁\ufffd" or is_variation(character):
        return True
    return unicodedata.category(character) == "Cf" and not (shapes and character in "\u200c\u200d")


def _without_accents(text: str) -> str:
    parts = unicodedata.normalize("NFD", _same(text))
    return "".join(part for part in parts if unicodedata.category(part)[0] != "M")


def _quoted(text: str) -> str:
    return f"“{text}”" if len(text) <= _LONGEST else f"“{text[: _LONGEST - 1]}…”"


def _enumerated(items: Sequence[str]) -> str:
    """Write two or more items as in a sentence: "one, two and three"."""
    if len(items) > _SHOWN:
        return _listed(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def _listed(items: Iterable[str]) -> str:
    different = list(dict.fromkeys(items))
    rest = len(different) - _SHOWN
    return ", ".join(different[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
