"""The raw output of any Hugging Face tokenizer as rows: one per id, with where it comes from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine._alignment import follow, tidy
from engine._pieces import Style, content, starts_word
from engine._words import Span
from engine.errors import TextError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Row:
    """One id of a model's input.

    `source` is 0 for the text, 1 for the second of a pair, None for what the tokenizer added. `reserved`
    tells that the reader typed the name of a special token, `special` that it is one for the model too (a
    typed mask is not), `unknown` that the vocabulary lacks what was typed. `span` is in the source's text.
    """

    id: int
    raw: str
    source: int | None
    segment: int = 0
    span: Span | None = None
    reserved: bool = False
    special: bool = False
    unknown: bool = False


def rows_of(tokenizer: "PreTrainedTokenizerBase", sources: Sequence[str]) -> list[Row]:
    """Tokenize one text or a pair, special tokens added, nothing cut.

    Spans are as a fast tokenizer gives them, or None throughout.
    """
    return _fast_rows(tokenizer, sources) if tokenizer.is_fast else _slow_rows(tokenizer, sources)


def placed(
    tokenizer: "PreTrainedTokenizerBase", rows: Sequence[Row], sources: Sequence[str], style: Style
) -> list[Row]:
    """Give each row its true span, and tell typed special tokens and unknown pieces from the others."""
    result = [replace(row, special=row.source is None) for row in rows]
    specials = frozenset(tokenizer.all_special_ids)
    ordinary = _ordinary(tokenizer)
    for source, text in enumerate(sources):
        own = [index for index, row in enumerate(rows) if row.source == source]
        spans = _spans(tokenizer, [rows[index] for index in own], text, style)
        for index, span in zip(own, spans, strict=True):
            row = replace(rows[index], span=span)
            if row.id in specials:
                literal = span is not None and text[slice(*span)].strip() == row.raw.strip()
                unknown = row.id == tokenizer.unk_token_id and not literal
                special = literal and row.id not in ordinary
                row = replace(row, reserved=literal, special=special, unknown=unknown)
            result[index] = row
    return result


def shortened(rows: list[Row], limit: int | None) -> list[Row]:
    """Leave out rows at the end of the text (of the longer of a pair first) until the limit is met.

    Raises:
        TextError: the limit leaves no room for text.
    """
    if limit is None or len(rows) <= limit:
        return rows
    counts = [sum(row.source == source for row in rows) for source in (0, 1)]
    added = len(rows) - sum(counts)
    room = limit - added
    if room < sum(count > 0 for count in counts):
        raise TextError(f"A limit of {limit} tokens leaves no room for text beside {added} special tokens.")
    quotas = _quotas(counts, room)
    kept = []
    for row in rows:
        if row.source is not None:
            quotas[row.source] -= 1
            if quotas[row.source] < 0:
                continue
        kept.append(row)
    return kept


def _quotas(counts: Sequence[int], room: int) -> list[int]:
    """Share the room as the tokenizers' own "longest first": an odd token goes to the longer text."""
    shorter = min(min(counts), room // 2)
    return [room - shorter, shorter] if counts[0] > counts[1] else [shorter, room - shorter]


def _fast_rows(tokenizer: "PreTrainedTokenizerBase", sources: Sequence[str]) -> list[Row]:
    # verbose=False: the tokenizer need not warn of lengths, they are dealt with here.
    encoded = tokenizer(*sources, verbose=False)
    encoding = encoded.encodings[0]
    ids: list[int] = encoding.ids
    segments = encoded.get("token_type_ids") or [0] * len(ids)
    raws = tokenizer.convert_ids_to_tokens(ids)
    columns = zip(ids, raws, encoding.sequence_ids, segments, encoding.offsets, strict=True)
    return [Row(number, raw, source, segment, span) for number, raw, source, segment, span in columns]


def _slow_rows(tokenizer: "PreTrainedTokenizerBase", sources: Sequence[str]) -> list[Row]:
    parts = [tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"] for text in sources]
    # Ids no vocabulary has stand for the texts, to learn which special tokens go around them.
    layout = tokenizer.build_inputs_with_special_tokens(*([-1 - source] for source in range(len(parts))))
    ids: list[int] = []
    owners: list[int | None] = []
    for number in layout:
        source = -1 - number if number < 0 else None
        held = [number] if source is None else parts[source]
        ids += held
        owners += [source] * len(held)
    segments = [0] * len(ids)
    if "token_type_ids" in tokenizer.model_input_names:
        segments = tokenizer.create_token_type_ids_from_sequences(*parts)
    raws = tokenizer.convert_ids_to_tokens(ids)
    columns = zip(ids, raws, owners, segments, strict=True)
    return [Row(number, raw, source, segment) for number, raw, source, segment in columns]


def _spans(tokenizer: "PreTrainedTokenizerBase", rows: Sequence[Row], text: str, style: Style) -> list[Span | None]:
    contents = [content(row.raw, style) for row in rows]
    if tokenizer.is_fast:
        return tidy(contents, [row.span or (0, 0) for row in rows], text)
    unknown = [row.id == tokenizer.unk_token_id for row in rows]
    return follow(contents, unknown, [starts_word(row.raw, style) for row in rows], text)


def _ordinary(tokenizer: "PreTrainedTokenizerBase") -> frozenset[int | None]:
    """Special ids that stand for text when typed: the mask, and the unknown token if it is nothing else."""
    others = {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id}
    return frozenset({tokenizer.mask_token_id, tokenizer.unk_token_id} - others)
