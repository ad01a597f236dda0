"""What the page Build calls its switches, and what it says of them."""

from __future__ import annotations

OWN_TITLE = "Your own"

SWITCHES = {
    "family": "family",
    "width": "width",
    "depth": "depth",
    "query_heads": "heads",
    "kv_heads": "key-value heads",
    "feed": "feed-forward",
    "inner": "inner width",
    "norm": "norm",
    "norm_place": "place of the norm",
    "word_order": "positions",
    "places": "longest text",
    "sees": "mask",
    "span": "window",
    "vocabulary": "vocabulary",
    "biases": "biases",
    "output": "head",
    "qk_norm": "query-key norm",
}
"""The fields of a plan that a reader can switch, and their names in a sentence."""

FAMILIES = {
    "encoder": "BERT-style",
    "decoder": "GPT-style",
    "both": "Encoder–decoder",
    "vision": "Vision",
    "classifier": "Classifier",
}
HEADINGS = {
    "encoder": "A BERT-style encoder",
    "decoder": "A GPT-style decoder",
    "both": "An encoder–decoder",
    "vision": "A vision transformer",
    "classifier": "A classifier",
}
NORMS = {"layer": "LayerNorm", "rms": "RMSNorm"}
NORM_PLACES = {"pre": "Before (pre)", "post": "After (post)"}
FEEDS = {"relu": "ReLU", "gelu": "GELU", "gelu_tanh": "GELU (tanh)", "swiglu": "SwiGLU", "geglu": "GeGLU"}
ORDERS = {
    "learned": "Learned",
    "sinusoidal": "Sinusoidal",
    "rotary": "Rotary",
    "alibi": "ALiBi",
    "relative": "T5 buckets",
    "none": "None",
}
MASKS_SEEN = {
    "family": "As the family has it",
    "both": "Both ways",
    "past": "Only the past",
    "window": "Sliding window",
}
OUTPUTS = {"tied": "Tied to the embedding", "own": "Its own matrix", "none": "None"}
KNOWN_VOCABULARIES = {
    100: "",
    1000: "",
    5000: "",
    30_522: "BERT",
    32_000: "Llama 2",
    32_128: "T5",
    50_257: "GPT-2",
    50_265: "BART",
    128_256: "Llama 3",
}
WIDTHS = (16, 32, 64, 128, 256, 512, 768, 1024, 1280, 1600, 2048, 4096, 8192)
DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 36, 48, 64, 96)
PLACES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 32_768)
SPANS = (1, 2, 3, 4, 6, 8, 16, 64, 512, 4096)


def sharing_name(heads: int, groups: int) -> str:
    """Say what sharing keys and values among query heads is called."""
    if heads == groups:
        return "multi-head"
    return "multi-query" if groups == 1 else "grouped-query"


def group_label(groups: int, heads: int) -> str:
    """Name one choice of key-value heads, short enough for a narrow box: "2 · GQA"."""
    short = {"multi-head": "MHA", "grouped-query": "GQA", "multi-query": "MQA"}
    return f"{groups} · {short[sharing_name(heads, groups)]}"


def times_label(inner: int, width: int) -> str:
    """Name one width of the feed-forward layer, short enough for a narrow box: "256 (4 ×)"."""
    return f"{inner:,} ({inner / width:.3g} ×)"


def mask_words(family: str, sees: str, span: int) -> str:
    """Say who sees whom, in a few words."""
    past = family in ("decoder", "both")
    if sees == "window":
        return f"only the last {span:,}" if past else f"up to {span - 1:,} on either side"
    if sees == "family":
        return "only the past" if past else "both ways"
    return "both ways" if sees == "both" else "only the past"


def bytes_text(count: int) -> str:
    """Write a number of bytes as a person would: "512 B", "36 KiB", "1.5 GiB"; a KiB is 1,024 B."""
    size, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:,.4g}\u202f{units[0]}"


def times_text(ratio: float) -> str:
    """Write how many times as many: "0.83", "12", "0.0041"."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2g}"
