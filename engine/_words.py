"""Words as a reader sees them in the text as typed: where they start and end, and what cannot be read.

Positions count Python characters (code points) from 0; an end is one past the last character.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

Span = tuple[int, int]

REPLACEMENT = "\ufffd"
ZERO_WIDTH_JOINER = "\u200d"

# Marks that belong to a word when both neighbours do: don't, post-office, snake_case, col·lega, צה״ל.
_INSIDE_WORDS = frozenset("'’-‐‑_·׳״")
_INSIDE_NUMBERS = frozenset(".,")
# Drawn as nothing although Unicode calls them letters, marks or symbols.
_DRAWN_AS_NOTHING = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")
# Scripts that write no spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han.
_UNSPACED_SCRIPTS: tuple[Span, ...] = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3005, 0x3007),
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),
    (0x20000, 0x3FFFF),
)


@dataclass(frozen=True)
class Word:
    """One word or punctuation mark of the typed text.

    `start` and `end` index the text when `segment` is 0, the second text of a pair when it is 1.
    """

    text: str
    start: int
    end: int
    segment: int = 0


def split_words(text: str, *, whole: Sequence[Span] = ()) -> tuple[Word, ...]:
    """Split text on white space, with punctuation apart.

    Letters, digits and their combining marks make a word. An apostrophe, hyphen or underscore between two
    of them stays inside ("don't", "post-office"), so does a point or comma between two digits ("3.14").
    Any other mark is a word of its own; a run of one same mark is one ("..."), and so is an emoji with all
    that modifies it.

    Args:
        text: the text as typed.
        whole: spans to keep as one word each, in order, whatever is in them (a typed "[MASK]").

    Returns:
        The words in order; white space and invisible characters around them belong to none.
    """
    words: list[Word] = []
    position = 0
    for start, end in (*whole, (len(text), len(text))):
        while position < start:
            if _is_gap(text[position]):
                position += 1
                continue
            stop = min(_word_end(text, position), start)
            words.append(Word(text[position:stop], position, stop))
            position = stop
        if end > start:
            words.append(Word(text[start:end], start, end))
        position = max(position, end)
    return tuple(words)


def writes_spaces(text: str) -> bool:
    """Whether at least half the letters are of scripts that write spaces between words; True without any."""
    counts = {
        ord(character): count
        for character, count in Counter(text).items()
        if unicodedata.category(character)[0] in "LM"
    }
    unspaced = sum(count for code, count in counts.items() if _is_unspaced(code))
    return 2 * unspaced <= sum(counts.values())


def is_blank(text: str) -> bool:
    """Whether nothing of the text would be seen: empty, white space, or characters of no width."""
    return all(_is_gap(character) or character in _DRAWN_AS_NOTHING or is_variation(character) for character in text)


def is_variation(character: str) -> bool:
    """Whether the character only selects how the one before it is drawn."""
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def is_wordlike(character: str) -> bool:
    """Whether the character is a letter, a digit, or a mark that combines with one."""
    return unicodedata.category(character)[0] in "LNM"


def starts_pretoken(text: str, position: int) -> bool:
    """Whether a tokenizer that splits on white space and punctuation may begin a piece here."""
    if position == 0:
        return True
    before, here = text[position - 1], text[position]
    joined = is_wordlike(before) and is_wordlike(here)
    return not joined or _is_unspaced(ord(before)) or _is_unspaced(ord(here))


def replace_unreadable(text: str) -> tuple[str, tuple[str, ...]]:
    """Put U+FFFD for each lone surrogate and control character other than tab and line ends.

    Returns:
        The text, as long as before, and the code points replaced ("U+0000"), each once.
    """
    bad = [ord(character) for character in dict.fromkeys(text) if _is_unreadable(character)]
    clean = text.translate(dict.fromkeys(bad, REPLACEMENT))
    return clean, tuple(f"U+{code:04X}" for code in bad)


def _is_unreadable(character: str) -> bool:
    category = unicodedata.category(character)
    return category == "Cs" or (category == "Cc" and character not in "\t\n\r\x85")


def _is_gap(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) == "Cf"


def _is_unspaced(code: int) -> bool:
    return any(first <= code <= last for first, last in _UNSPACED_SCRIPTS)


def _word_end(text: str, start: int) -> int:
    if not is_wordlike(text[start]):
        return _mark_end(text, start)
    end = start + 1
    while end < len(text) and (is_wordlike(text[end]) or _is_inside_word(text, end)):
        end += 1
    return end


def _is_inside_word(text: str, position: int) -> bool:
    character, following = text[position], text[position + 1 : position + 2]
    if unicodedata.category(character) == "Cf":
        # A zero-width joiner shapes the letters around it; one at the end of a word belongs to nothing.
        return bool(following) and (is_wordlike(following) or _is_inside_word(text, position + 1))
    if not following or not is_wordlike(following) or not is_wordlike(text[position - 1]):
        return False
    if character in _INSIDE_NUMBERS:
        return text[position - 1].isdigit() and following.isdigit()
    return character in _INSIDE_WORDS


def _mark_end(text: str, start: int) -> int:
    end = _emoji_end(text, start)
    if end == start + 1 and unicodedata.category(text[start]) != "So":
        while end < len(text) and text[end] == text[start]:
            end += 1
    return end


def _emoji_end(text: str, start: int) -> int:
    end = start + 1
    if _is_flag_letter(text[start]) and end < len(text) and _is_flag_letter(text[end]):
        end += 1
    while end < len(text):
        if text[end] == ZERO_WIDTH_JOINER and _is_picture(text[end + 1 : end + 2]):
            end += 2
        elif _modifies(text[end]):
            end += 1
        else:
            break
    return end


def _is_picture(character: str) -> bool:
    return bool(character) and unicodedata.category(character) == "So"


def _modifies(character: str) -> bool:
    is_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    is_tag = "\U000e0020" <= character <= "\U000e007f"
    return unicodedata.category(character)[0] == "M" or is_tone or is_tag


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
