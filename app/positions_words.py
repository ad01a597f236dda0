"""What the page Positions says of each encoding: its name, its door, its formula, its code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.positions import (
    ALiBi,
    Learned,
    Positions,
    RelativeBuckets,
    Sinusoidal,
    alibi_bias,
    alibi_slopes,
    relative_buckets,
    sinusoidal_table,
)
from engine.rotary import Rotary, rotary_frequencies, rotate

DOORS = ("input", "queries and keys", "scores")


@dataclass(frozen=True)
class Encoding:
    """One way to tell a model the order of the words.

    Attributes:
        name: on the button.
        kind: the engine's class, which says where it enters.
        what: what it is, in a sentence or two; markdown.
        formula: in LaTeX.
        symbols: what its letters mean, one line of markdown; "{width}" and "{base}" stand for what is picked.
        code: the engine's own functions, shown as they are.
        used: who uses it.
    """

    name: str
    kind: type[Positions]
    what: str
    formula: str
    symbols: str
    code: tuple[Callable[..., Any], ...]
    used: str


ENCODINGS = {
    "sinusoidal": Encoding(
        "Sinusoidal",
        Sinusoidal,
        "Every position has its own pattern of waves, fast ones and slow ones, like the hands of a clock. Nothing is "
        "learned. The pattern is **added to the word's vector at the input**, once, before the first layer.",
        r"""\begin{gathered} x_t = \text{word}_t + P_t \\
        P_{t,\,2i} = \sin\frac{t}{10000^{2i/C}} \\ P_{t,\,2i+1} = \cos\frac{t}{10000^{2i/C}} \end{gathered}""",
        "$t$ position; $i$ pair of dimensions, a sine and a cosine; $C$ width of the word's vector, here {width}; "
        "$P$ what is added. Another width gives other waves.",
        (sinusoidal_table, Sinusoidal.add),
        "the first transformer (2017)",
    ),
    "learned": Encoding(
        "Learned",
        Learned,
        "Every position has a vector of its own, learned in training just as a word's vector is. It is **added to the "
        "word's vector at the input**, once. The table has a last row, and no text may be longer.",
        r"\begin{gathered} x_t = \text{word}_t + P[t] \\ P \text{ learned},\ \text{length} \times C \end{gathered}",
        "$t$ position; $P[t]$ row $t$ of the table; length: its number of rows; $C$ width of the word's vector.",
        (Learned.add,),
        "BERT, GPT-2",
    ),
    "rotary": Encoding(
        "Rotary",
        Rotary,
        "Two numbers make an arrow in a plane. Rotary positions **turn the queries and keys**, pair by pair, by an "
        "angle that grows with the position, in every layer. If both words move on, both arrows turn equally, so their "
        "score knows only the distance.",
        r"\begin{gathered} \langle R_t\, q,\ R_s\, k \rangle = \langle q,\ R_{s-t}\, k \rangle \\"
        r"\theta_i = \text{base}^{-2i/D} \end{gathered}",
        r"$t$, $s$ positions of the query $q$ and the key $k$; $R_t$ turns pair $i$ by the angle $t \cdot \theta_i$; "
        "$i$ pair of numbers; $D$ head width; base: here {base}. Only queries and keys turn, never values.",
        (rotary_frequencies, rotate, Rotary.turn),
        "Llama, Mistral, Qwen, Gemma",
    ),
    "alibi": Encoding(
        "ALiBi",
        ALiBi,
        "Every head takes something off a score for each word of distance: much in heads that look near, little in "
        "heads that look far. It is **added to the scores**, in every layer, and nothing is learned.",
        r"\text{score}_{t,s} = \frac{q_t \cdot k_s}{\sqrt D} - m_h\,|t - s|",
        "$t$, $s$ positions of the query $q_t$ and the key $k_s$; $D$ head width; $m_h$ slope of head $h$; "
        "$|t - s|$ distance.",
        (alibi_slopes, alibi_bias),
        "BLOOM, MPT",
    ),
    "relative": Encoding(
        "T5 buckets",
        RelativeBuckets,
        "Every head learns one number for each distance, and far distances share one: they fall into the same bucket. "
        "The number is **added to the scores**, in every layer.",
        r"\text{score}_{t,s} = q_t \cdot k_s + b_h\big[\text{bucket}(s - t)\big]",
        r"$t$, $s$ positions of the query $q_t$ and the key $k_s$; $b_h[\cdot]$ number that head $h$ has learned for "
        r"a bucket. There is no $\sqrt D$, since T5 does not divide by it.",
        (relative_buckets, RelativeBuckets.bias),
        "T5",
    ),
    "none": Encoding(
        "None",
        Positions,
        "Nothing says where a word stands: order **enters nowhere**. Attention then sees a bag of words, in which “dog "
        "bites man” is “man bites dog”; only a causal mask lets some order leak in.",
        r"\text{score}_{t,s} = \frac{q_t \cdot k_s}{\sqrt D}",
        "$t$, $s$ positions of the query $q_t$ and the key $k_s$; $D$ head width.",
        (Positions,),
        "some decoders, which have only a causal mask",
    ),
}
