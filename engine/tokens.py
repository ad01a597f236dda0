"""What the reader typed, what the model got, and which word each piece belongs to.

T tokens; positions in text count Python characters (code points) from 0.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from engine import _notices
from engine._groups import Group, group_tokens, group_words, pool_words
from engine._pieces import Style, content, readable, style_of
from engine._rows import Row, placed, rows_of, shortened
from engine._words import Word, is_blank, replace_unreadable, split_words, writes_spaces
from engine.errors import ShapeError, TextError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = [
    "Group",
    "Prompt",
    "Token",
    "Word",
    "decoded",
    "encode",
    "group_tokens",
    "group_words",
    "pool_words",
    "split_words",
]


@dataclass(frozen=True)
class Token:
    """One position of a model's input.

    Attributes:
        text: what a reader sees; a piece that is white space is a sign such as ␣ or ⏎.
        raw: the piece as the tokenizer writes it.
        id: what the model gets.
        word: which of the Prompt's words it belongs to; None for special tokens, white space between words,
            generated tokens, and throughout in text that writes no spaces between words.
        special: put in by the tokenizer, or typed but read as such a token ([SEP]). A typed mask is not.
        start, end: its place in the text as typed, without leading white space; None if it was not typed.
        segment: the token type the model gets; 0 when the tokenizer has none.
        generated: made by the model rather than read.
        padding: there only to fill up the length.
        source: which text `start` and `end` count in: 0 the text, 1 the second text of a pair.
        word_text: the whole word as typed, for a reader; in text that writes no spaces between words, the
            characters typed for this token alone. Empty without a word or such a place in the text.
        unmet: a piece of a word that is spelled because the model has never met it.
    """

    text: str
    raw: str
    id: int
    word: int | None
    special: bool
    start: int | None
    end: int | None
    segment: int = 0
    generated: bool = False
    padding: bool = False
    source: int = 0
    word_text: str = ""
    unmet: bool = False


@dataclass(frozen=True)
class Prompt:
    """A text as typed and as a model gets it.

    Attributes:
        text, pair: as typed, with unreadable characters replaced one for one.
        tokens: in the order of the model's input, T of them.
        words: those of the text, then those of the pair; also the words that a cut left without tokens.
        notices: sentences on what happened to the text on its way.
        total: how many tokens there were before any cut, special ones included.
        limit: the most that was allowed, if there was a limit.
    """

    text: str
    pair: str | None
    tokens: tuple[Token, ...]
    words: tuple[Word, ...]
    notices: tuple[str, ...]
    total: int
    limit: int | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def ids(self) -> tuple[int, ...]:
        """The id of each token."""
        return tuple(token.id for token in self.tokens)

    @property
    def real(self) -> tuple[bool, ...]:
        """For each token, whether it is more than padding."""
        return tuple(not token.padding for token in self.tokens)

    @property
    def segments(self) -> tuple[int, ...]:
        """The token type of each token."""
        return tuple(token.segment for token in self.tokens)

    @property
    def cut(self) -> bool:
        """Whether tokens were left out to keep to the limit."""
        return self.limit is not None and self.total > self.limit

    @property
    def spaced(self) -> bool:
        """Whether the text is written with spaces between words; if not, tokens have no words."""
        return writes_spaces(self.text + (self.pair or ""))

    def padded(
        self, length: int, side: Literal["left", "right"] = "right", pad_id: int = 0, pad_text: str = "[PAD]"
    ) -> "Prompt":
        """Fill up with padding to `length` tokens.

        Raises:
            ShapeError: `length` is less than there are tokens, or `side` is neither left nor right.
        """
        if length < len(self):
            raise ShapeError(f"A prompt of {len(self)} tokens cannot be padded to {length}.")
        if side not in ("left", "right"):
            raise ShapeError(f"Padding goes on the left or on the right, not on the “{side}”.")
        pad = Token(pad_text, pad_text, pad_id, None, True, None, None, padding=True)
        padding = (pad,) * (length - len(self))
        tokens = padding + self.tokens if side == "left" else self.tokens + padding
        return replace(self, tokens=tokens)

    def extended(self, tokens: Iterable[Token]) -> "Prompt":
        """Add tokens at the end, such as those a model generated."""
        return replace(self, tokens=(*self.tokens, *tokens))


def encode(
    tokenizer: "PreTrainedTokenizerBase", text: str, *, pair: str | None = None, limit: int | None = None
) -> Prompt:
    """Turn text into what a model gets, and tell for each piece where it comes from.

    A text beyond the limit loses its last tokens but keeps the closing special ones; of a pair, the longer
    text is cut first.

    Args:
        tokenizer: any Hugging Face tokenizer, fast or slow; its special tokens are added.
        text: the text as typed.
        pair: a second text, for models that read two.
        limit: the most tokens allowed, special ones included.

    Raises:
        TextError: there is nothing to read, or the limit leaves no room for text.
    """
    sources, codes = _sources(text, pair)
    rows = rows_of(tokenizer, sources)
    if all(row.source is None for row in rows):
        raise TextError(f"This tokenizer finds nothing to read in “{sources[0]}”. Type some other text.")
    style = style_of(tokenizer, [row.raw for row in rows])
    rows = placed(tokenizer, rows, sources, style)
    kept = shortened(rows, limit)
    words = _words(rows, sources)
    spaced = writes_spaces("".join(sources))
    tokens = _tokens(kept, words, style) if spaced else _wordless(_tokens(kept, (), style), sources)
    prompt = Prompt(sources[0], sources[1] if pair is not None else None, tokens, words, (), len(rows), limit)
    return replace(prompt, notices=_notices_on(tokenizer, prompt, kept, codes))


def decoded(tokenizer: "PreTrainedTokenizerBase", ids: Iterable[int]) -> tuple[Token, ...]:
    """Return tokens for ids that a model generated: readable, of no word, with no place in the typed text."""
    numbers = [int(number) for number in ids]
    raws = [raw if raw is not None else "" for raw in tokenizer.convert_ids_to_tokens(numbers)]
    style = style_of(tokenizer, raws)
    specials = frozenset(tokenizer.all_special_ids)
    return tuple(
        Token(_shown(raw, number, style), raw, number, None, number in specials, None, None, generated=True)
        for number, raw in zip(numbers, raws, strict=True)
    )


def _sources(text: str, pair: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the texts to read, cleaned, and the code points that were replaced in them."""
    if is_blank(text):
        raise TextError("Type a sentence first: there is nothing to read yet.")
    if pair is not None and is_blank(pair):
        raise TextError("Type a second sentence too: this model was asked to read two.")
    cleaned = [replace_unreadable(part) for part in (text, pair) if part is not None]
    codes = dict.fromkeys(code for _, found in cleaned for code in found)
    return tuple(part for part, _ in cleaned), tuple(codes)


def _words(rows: Sequence[Row], sources: Sequence[str]) -> tuple[Word, ...]:
    words: list[Word] = []
    for source, text in enumerate(sources):
        whole = [row.span for row in rows if row.source == source and row.reserved and row.span]
        words += [replace(word, segment=source) for word in split_words(text, whole=whole)]
    return tuple(words)


def _tokens(rows: Sequence[Row], words: Sequence[Word], style: Style) -> tuple[Token, ...]:
    owners = [_word_of(row, words) for row in rows]
    for index in reversed(range(len(rows) - 1)):
        if owners[index] is None and _is_lead(rows[index], rows[index + 1], style):
            owners[index] = owners[index + 1]
    return tuple(_token(row, owner, words, style) for row, owner in zip(rows, owners, strict=True))


def _wordless(tokens: Sequence[Token], sources: Sequence[str]) -> tuple[Token, ...]:
    """Let what was typed for each token stand for the word it would be in: 猫, where the model got [UNK]."""
    return tuple(
        token
        if token.start is None
        else replace(token, word_text=readable(sources[token.source][token.start : token.end].encode()))
        for token in tokens
    )


def _token(row: Row, owner: int | None, words: Sequence[Word], style: Style) -> Token:
    start, end = row.span if row.source is not None and row.span else (None, None)
    is_named = row.source is None or row.special or row.reserved or row.unknown
    return Token(
        text=readable(row.raw.replace("▁", " ").encode()) if is_named else _shown(row.raw, row.id, style),
        raw=row.raw,
        id=row.id,
        word=owner,
        special=row.special,
        start=start,
        end=end,
        segment=row.segment,
        source=row.source or 0,
        word_text=words[owner].text if owner is not None else "",
    )


def _word_of(row: Row, words: Sequence[Word]) -> int | None:
    """Return the first word that the row's span touches."""
    if row.source is None or row.span is None:
        return None
    start, end = row.span
    index = bisect_right(words, (row.source, start), key=lambda word: (word.segment, word.end))
    if index == len(words) or words[index].segment != row.source or words[index].start >= end:
        return None
    return index


def _is_lead(row: Row, following: Row, style: Style) -> bool:
    """Whether the row is a space split off the piece after it, which has none of its own."""
    if row.source is None or row.source != following.source or following.special:
        return False
    if content(row.raw, style) != b" ":
        return False
    joined = row.span is None or following.span is None or row.span[1] == following.span[0]
    return joined and not content(following.raw, style)[:1].isspace()


def _shown(raw: str, number: int, style: Style) -> str:
    return readable(content(raw, style)) if raw else f"⟨id {number}⟩"


def _notices_on(
    tokenizer: "PreTrainedTokenizerBase", prompt: Prompt, rows: Sequence[Row], codes: Sequence[str]
) -> tuple[str, ...]:
    found: list[str] = [_notices.replaced(codes)] if codes else []
    typed = [token.raw for token in prompt.tokens if token.special and token.start is not None]
    if typed:
        found.append(_notices.typed_specials(typed))
    found += _notices.rewritten(tokenizer, _plain_words(prompt, rows))
    unknown = [_typed(prompt, row) for row in rows if row.unknown]
    if unknown:
        found.append(_notices.unknown(unknown, str(tokenizer.unk_token)))
    if _notices.reads_right_to_left(prompt.text + (prompt.pair or "")):
        found.append(_notices.RIGHT_TO_LEFT)
    if not prompt.spaced:
        found.append(_notices.UNSPACED)
    if prompt.cut:
        found.append(_notices.cut(prompt.total, prompt.limit or 0, _last_words(prompt, rows)))
    return tuple(found)


def _plain_words(prompt: Prompt, rows: Sequence[Row]) -> list[str]:
    """Return the words that were kept by a cut and are not a special token's name."""
    reserved = {_word_of(row, prompt.words) for row in rows if row.reserved}
    ends = [max((row.span[1] for row in rows if row.source == n and row.span), default=0) for n in (0, 1)]
    return [
        word.text
        for index, word in enumerate(prompt.words)
        if index not in reserved and word.start < ends[word.segment]
    ]


def _last_words(prompt: Prompt, rows: Sequence[Row]) -> list[str]:
    """Return the last word kept of each text; the last piece where words are not told apart by spaces."""
    last = {row.source: row for row in rows if row.source is not None and row.span}
    found = []
    for row in (last[source] for source in sorted(last, key=str)):
        owner = _word_of(row, prompt.words) if prompt.spaced else None
        found.append(_typed(prompt, row) if owner is None else prompt.words[owner].text)
    return found


def _typed(prompt: Prompt, row: Row) -> str:
    text = prompt.pair if row.source == 1 else prompt.text
    return (text or "")[slice(*row.span)] if row.span else row.raw
