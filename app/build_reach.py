"""Who sees whom under the mask in force, in sentences: whatever the page Build says of it is said here."""

from __future__ import annotations

from app.build_plan import Plan
from app.build_words import mask_words

LEADS = {
    "encoder": "An **encoder** gives one vector per word: good for understanding.",
    "decoder": "A **decoder** scores the next word.",
    "both": "An **encoder** reads one text; a **decoder** writes another and looks across at the first.",
    "vision": "A **vision transformer** is an encoder that reads the patches of an image, not the sentence.",
    "classifier": "A **classifier** is an encoder, the mean of its words, and one score per label.",
}
HEADLESS = {
    "decoder": "A **decoder** without a head gives one vector per word.",
    "both": "An **encoder** reads one text; a **decoder** reads another and looks across at the first.",
}


def family_sentences(plan: Plan) -> str:
    """Say what was built, what it reads under this mask, and whether it can write."""
    headless = plan.output == "none" and plan.family in HEADLESS
    lead = (HEADLESS if headless else LEADS)[plan.family]
    if plan.family == "both":
        return f"{lead} {_both_read(plan)}{_writing(plan)}"
    if plan.family == "decoder":
        return f"{lead} {_decoder_reads(plan)}{_writing(plan)}"
    return f"{lead} {_encoder_reads(plan)}"


def part_masks(plan: Plan) -> str:
    """Say what the mask means to both halves of an encoder–decoder."""
    encoder, decoder = (mask_words(half, plan.sees, plan.span) for half in ("encoder", "decoder"))
    return f"both halves {encoder}" if encoder == decoder else f"encoder {encoder}, decoder {decoder}"


def window_words(plan: Plan) -> str:
    """Say which words a decoder's window holds."""
    return "only the newest word" if plan.span == 1 else f"only the last {plan.span:,} words"


def _encoder_reads(plan: Plan) -> str:
    thing = "word" if plan.reads_text else "patch"
    if plan.sees == "past":
        return (
            f"Under this mask it reads only the past, as a decoder does: a {thing} sees itself and what came before it."
        )
    if plan.sees == "window" and plan.span == 1:
        return f"Its window is so narrow that a {thing} sees only itself."
    if plan.sees == "window":
        return f"Under this mask a {thing} sees up to {plan.span - 1:,} others on either side."
    return f"It reads both ways: every {thing} sees every other."


def _decoder_reads(plan: Plan) -> str:
    if plan.sees == "both":
        return "Under this mask it reads both ways, as an encoder does: a word sees later ones, too"
    if plan.sees == "window":
        return f"It looks back only, and not far: it sees {window_words(plan)}"
    return "It reads only what came before"


def _both_read(plan: Plan) -> str:
    if plan.sees == "both":
        return "Under this mask both read both ways: a word of the decoder sees later ones, too"
    if plan.sees == "past":
        return "Under this mask both read only what came before"
    if plan.sees == "window":
        masks = [mask_words(half, plan.sees, plan.span) for half in ("encoder", "decoder")]
        return f"Under this mask a word of the encoder sees {masks[0]}, one of the decoder {masks[1]}"
    return "The encoder reads both ways, the decoder only what came before"


def _writing(plan: Plan) -> str:
    if plan.output == "none":
        return "; it scores no next word, so it writes nothing."
    return ": so it can write." if plan.looks_back_only else ", so it cannot write: what comes next is not there yet."


def kept_in_cache(plan: Plan) -> str:
    """Say which words' keys and values a step of writing looks up."""
    if plan.sees != "window":
        return "the keys and values of all earlier words come from the cache"
    return (
        f"keys and values come from the cache, which here keeps all earlier words, although the window reads "
        f"{window_words(plan)}"
    )


def no_writing(plan: Plan) -> str:
    """Say why a model that reads text shows nothing of writing with a cache."""
    if plan.family in ("encoder", "classifier"):
        kind = "an encoder" if plan.family == "encoder" else "a classifier"
        return f"**It writes nothing**: {kind} reads. Choose GPT-style to see writing with a cache, step by step."
    if plan.output == "none":
        return "**It writes nothing**: without a head there are no scores for a next word."
    if not plan.looks_back_only:
        who = "its decoder’s words" if plan.family == "both" else "words"
        return f"**No cache here**: where {who} see later ones, each new word would change all earlier rows."
    if plan.family == "both":
        return "Its decoder writes as a GPT-style one does. Choose GPT-style to see writing with a cache, step by step."
    return (
        f"It has learned positions for {plan.places:,} words, and the sentence fills them: there is no room to write "
        "more. Rotary positions, for one, have no end."
    )
