"""What a tokenizer calls its pieces, and what a reader should see instead.

A piece's content is bytes, because byte-level tokenizers may cut a character in two; a leading b" " means
that white space comes before it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_FALLBACK = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_PARTIAL = re.compile("[\udc80-\udcff]+")
_SIGNS = {"\n": "⏎", "\t": "⇥", "\r": "␍", "\xa0": "⍽", "\v": "␋", "\f": "␌", "\x85": "␤"}
_SPACE_SIGN = "␣"


@dataclass(frozen=True)
class Style:
    """How one tokenizer marks its pieces.

    `byte_level`: GPT-2's printable stand-ins for bytes. `raw_bytes`: ByT5's one character per byte.
    `metaspace`: SentencePiece's ▁. `continuing`: WordPiece's ## before. `ending`: </w> after the last
    piece of a word. `joining`: @@ after every piece but the last.
    """

    byte_level: bool = False
    raw_bytes: bool = False
    metaspace: bool = False
    continuing: str = ""
    ending: str = ""
    joining: str = ""


def style_of(tokenizer: "PreTrainedTokenizerBase", pieces: Iterable[str] = ()) -> Style:
    """Find out how a tokenizer marks its pieces.

    Args:
        tokenizer: any Hugging Face tokenizer.
        pieces: some of its pieces, looked at where the tokenizer itself does not say.
    """
    core = getattr(tokenizer, "backend_tokenizer", None)
    if core is None:
        return _style_from_pieces(tokenizer, tuple(pieces))
    described = f"{core.pre_tokenizer!r} {core.decoder!r}"
    byte_level = "ByteLevel(" in described
    return Style(
        byte_level=byte_level,
        metaspace=not byte_level and ("▁" in described or core.token_to_id("▁") is not None),
        continuing=getattr(core.model, "continuing_subword_prefix", None) or "",
        ending=getattr(core.model, "end_of_word_suffix", None) or "",
    )


def content(piece: str, style: Style) -> bytes:
    """Return what the piece stands for, in UTF-8, without the tokenizer's own marks."""
    if style.raw_bytes and len(piece) == 1 and ord(piece) < 256:
        return bytes([ord(piece)])
    piece = _without_marks(piece, style)
    if style.byte_level:
        stand_ins = [_BYTES.get(character) for character in piece]
        known = [byte for byte in stand_ins if byte is not None]
        return bytes(known) if len(known) == len(piece) else piece.encode()
    fallback = _FALLBACK.fullmatch(piece)
    if fallback:
        return bytes([int(fallback.group(1), 16)])
    return (piece.replace("▁", " ") if style.metaspace else piece).encode()


def starts_word(piece: str, style: Style) -> bool:
    """Whether the piece says by its marks that it can only begin a word or a punctuation mark."""
    if style.continuing:
        return not piece.startswith(style.continuing)
    return style.metaspace and piece.startswith("▁") and piece != "▁"


def readable(data: bytes) -> str:
    """Write a piece's content for a reader.

    One leading space is dropped. What would not be seen gets a sign: ␣ ⏎ ⇥ ␍ ⍽ (no-break space), any
    other its code as ⟨U+2003⟩. Bytes that are only part of a character are written as ⟨F0 9F⟩.
    """
    text = data.decode("utf-8", "surrogateescape")
    if text.strip():
        text = text.removeprefix(" ")
    core = text.strip(" ")
    lead, trail = len(text) - len(text.lstrip(" ")), len(text) - len(text.rstrip(" "))
    shown = _PARTIAL.sub(_as_hex, _visible(core))
    return _SPACE_SIGN * lead + shown + _SPACE_SIGN * trail if core else _SPACE_SIGN * len(text)


def join_characters(contents: Sequence[bytes]) -> list[tuple[list[int], str]]:
    """Put pieces together that are parts of one character.

    Returns:
        For each smallest run of pieces that is whole characters: which pieces, and their joined text.
    """
    units: list[tuple[list[int], str]] = []
    members: list[int] = []
    data = b""
    for index, piece in enumerate(contents):
        members.append(index)
        data += piece
        # Eight bytes hold any character with its neighbours' remains: beyond that the bytes are no text.
        if _is_whole(data) or len(members) > 8:
            units.append((members, data.decode("utf-8", "replace")))
            members, data = [], b""
    if members:
        units.append((members, data.decode("utf-8", "replace")))
    return units


def _style_from_pieces(tokenizer: "PreTrainedTokenizerBase", pieces: tuple[str, ...]) -> Style:
    if hasattr(tokenizer, "_utf_vocab_size"):
        return Style(raw_bytes=True)
    if hasattr(tokenizer, "byte_encoder") or hasattr(tokenizer, "byte_decoder"):
        return Style(byte_level=True)
    if hasattr(tokenizer, "sp_model") or any(piece.startswith("▁") for piece in pieces):
        return Style(metaspace=True)
    return Style(
        continuing="##" if any(piece.startswith("##") and piece != "##" for piece in pieces) else "",
        ending="</w>" if any(piece.endswith("</w>") for piece in pieces) else "",
        joining="@@" if any(piece.endswith("@@") and piece != "@@" for piece in pieces) else "",
    )


def _without_marks(piece: str, style: Style) -> str:
    bare = piece.removeprefix(style.continuing).removesuffix(style.ending).removesuffix(style.joining)
    return bare or piece


def _visible(text: str) -> str:
    """Put signs for characters that would break the line, and codes where nothing would be seen at all."""
    is_seen = any(character.isprintable() or _PARTIAL.match(character) for character in text)
    return "".join(
        _SIGNS.get(character) or (character if is_seen and not _breaks_line(character) else _code(character))
        for character in text
    )


def _code(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"


def _breaks_line(character: str) -> bool:
    return character in "\u2028\u2029\x1c\x1d\x1e"


def _as_hex(match: re.Match[str]) -> str:
    return "⟨" + " ".join(f"{ord(character) - 0xDC00:02X}" for character in match.group()) + "⟩"


def _is_whole(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _byte_stand_ins() -> dict[str, int]:
    """The printable character that stands for each byte in GPT-2's vocabulary (Radford et al., 2019)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + rank): byte for rank, byte in enumerate(others)}


_BYTES = _byte_stand_ins()
