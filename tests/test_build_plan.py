"""Switches become a configuration that fits, with the counts, shapes and code that belong to it; no page is drawn."""

import contextlib
import io
import re
from dataclasses import fields, replace
from typing import Any

import pytest

from app.build_cache import kept
from app.build_numbers import _facts, drawn, facts_of, words_of
from app.build_panels import labels_of, where_most
from app.build_plan import Plan, plan_of, snippet
from app.build_reach import family_sentences, part_masks
from app.build_words import bytes_text, group_label, mask_words, times_text
from app.charts_build import block_diagram
from app.view import View
from app.view_build import BuildChoices
from engine import PRESETS, Config, TextError, build, count_parameters
from engine.shapes import cache_numbers, steps

KNOWN = {
    "gpt2": 124_439_808,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "vit-b16": 86_389_248,
    "t5-small": 60_506_624,
    "bart-base": 139_420_416,
    "llama-2-7b": 6_738_415_616,
    "llama-3-8b": 8_030_261_248,
    "mistral-7b": 7_241_732_096,
    "course-classifier": 1_069_570,
}


def plan(**choices: Any) -> Plan:
    """A plan of these switches."""
    return plan_of(BuildChoices(**choices))[0]


def total_of(made: Plan) -> int:
    """All parameters of a plan."""
    return sum(count_parameters(build(made.make, made.config, device="meta")).values())


def picture(**choices: Any) -> str:
    """The same for some switches, without the page."""
    made = plan(**choices)
    prompt = words_of(View().sentence, made)
    return block_diagram(facts_of(made, len(prompt or ())).steps, labels_of(made, prompt))


@pytest.mark.parametrize(("name", "count"), KNOWN.items())
def test_a_known_model_is_counted_exactly(name: str, count: int):
    """As published, from switches that all stand as that model has them."""
    made = plan(start=name)
    assert total_of(made) == count
    assert made.changed() == []
    ours, theirs = made.config, PRESETS[name].config
    differing = {field.name for field in fields(Config) if getattr(ours, field.name) != getattr(theirs, field.name)}
    assert differing <= {"head_width"}
    assert ours.D == theirs.D


@pytest.mark.parametrize("name", ["gpt2", "bert-base", "llama-3-8b", "vit-b16", "t5-small", "bart-base"])
def test_one_layer_stands_for_all(name: str):
    """What the page measures on one layer is what all of them give."""
    known, made = PRESETS[name], plan(start=name, depth=3)
    facts, whole = _facts(made.make, made.config, 5), replace(known.config, layers=3)
    assert facts.steps == steps(known.make, whole, 5)
    assert facts.cached == cache_numbers(known.make, whole)
    assert facts.total == total_of(made)


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [
        ({"family": "encoder"}, "mask: both ways; then softmax"),
        ({"family": "both"}, "<span>Cross-attention</span>"),
        ({"norm": "layer"}, "<span>LayerNorm</span>"),
        ({"feed": "relu"}, "<span>Feed-forward, ReLU</span>"),
        ({"inner": 256}, "12 × 64 → 12 × 256 → 12 × 64"),
        ({"width": 128}, "queries 4 × 12 × 32"),
        ({"query_heads": 8}, "<span>Grouped-query attention, 8 heads</span>"),
        ({"kv_heads": 4}, "<span>Multi-head attention, 4 heads</span>"),
        ({"kv_heads": 1}, "keys, values 1 × 12 × 16"),
        ({"depth": 5}, "<span>× 5 layers</span>"),
        ({"word_order": "alibi"}, "plus ALiBi<"),
        ({"word_order": "learned"}, "<span>+ learned positions</span>"),
        ({"sees": "both"}, "mask: both ways; then softmax"),
        ({"qk_norm": True}, "queries and keys normed in each head"),
        ({"sees": "window", "span": 2}, "mask: only the last 2; then softmax"),
        ({"output": "own"}, '<span>A score for every token</span><span class="count">64,000</span>'),
        ({"vocabulary": 5000}, "12 × 5,000"),
    ],
    ids=str,
)
def test_a_switch_changes_the_picture(chosen: dict[str, Any], seen: str):
    assert seen in picture(**chosen)
    assert seen not in picture()


def test_the_norm_after_each_part_stands_below_the_sum():
    order = [
        re.findall(r"(RMSNorm|class=\"plus\"|attention,|Feed-forward)", picture(norm_place=place))
        for place in ("pre", "post")
    ]
    assert order[0][:3] == ["RMSNorm", "attention,", 'class="plus"']
    assert order[1][:3] == ["attention,", 'class="plus"', "RMSNorm"]


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        ({"vocabulary": 5000}, {"token embedding"}),
        ({"vocabulary": 5000, "output": "own"}, {"token embedding", "head"}),
        ({"kv_heads": 1}, {"attention"}),
        ({"inner": 256}, {"feed-forward"}),
        ({"feed": "gelu"}, {"feed-forward"}),
        ({"norm": "layer"}, {"norms"}),
        ({"word_order": "learned"}, {"positions"}),
        ({"sees": "window"}, set()),
        ({"biases": True}, {"attention", "feed-forward"}),
        ({"qk_norm": True}, {"attention"}),
    ],
    ids=str,
)
def test_a_switch_changes_the_parts_that_it_concerns(changed: dict[str, Any], parts: set[str]):
    before, after = (
        count_parameters(build(made.make, made.config, device="meta")) for made in (plan(), plan(**changed))
    )
    assert {name for name in before | after if before.get(name) != after.get(name)} == parts


def test_rotary_positions_get_heads_of_an_even_width():
    made, notes = plan_of(BuildChoices(width=6, query_heads=6))
    assert made.query_heads == 3
    why = "6 heads of width 1 cannot turn all their numbers in pairs, as rotary positions do, so there are 3."
    assert notes["query_heads"] == why
    assert plan(width=6, query_heads=6, word_order="none").query_heads == 6


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"start": "gpt2", "width": 1024}, ["12 heads do not divide a width of 1,024, so there are 8."]),
        ({"query_heads": 3, "width": 2}, [
            "3 heads do not divide a width of 2, so there is 1.",
            "1 head cannot share 2 key-value heads evenly, so there is 1.",
        ]),
        ({"kv_heads": 3}, ["4 heads cannot share 3 key-value heads evenly, so there are 2."]),
        ({"start": "gpt2"}, []),
    ],
    ids=str,
)  # fmt: skip
def test_heads_that_do_not_fit_say_why(choices: dict[str, Any], said: list[str]):
    assert list(plan_of(BuildChoices(**choices))[1].values()) == said


def test_multi_head_attention_stays_multi_head():
    """Another number of heads is no reason to share keys."""
    assert plan(start="gpt2", query_heads=16).kv_heads == 16
    assert plan(start="llama-3-8b", query_heads=16).kv_heads == 8


@pytest.mark.parametrize("order", ["rotary", "learned", "alibi", "relative", "none"])
def test_the_cache_changes_no_row_whatever_the_positions(order: str):
    made = plan(word_order=order, sees="window", span=3)
    prompt = words_of("the cat sat on the mat and slept", made)
    assert prompt is not None
    run = drawn(made, prompt)
    assert run is not None
    assert run.difference < 1e-6
    assert len(run.written) == 5


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"start": "gpt2"},
        {"start": "t5-small", "depth": 2},
        {"start": "vit-b16", "depth": 1},
        {"start": "course-classifier", "feed": "swiglu"},
        {"start": "llama-3-8b"},
        {"family": "encoder", "sees": "past", "qk_norm": True, "word_order": "learned"},
    ],
    ids=str,
)
def test_the_code_builds_exactly_this(choices: dict[str, Any]):
    """Run as it stands, it makes the same configuration and says the same number."""
    made = plan(**choices)
    text = snippet(made, total_of(made))
    space: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(text, space)
    assert space["config"] == made.config
    assert printed.getvalue() == f"{total_of(made):,} parameters\n"


def test_words_for_numbers():
    assert [group_label(groups, 4) for groups in (4, 2, 1)] == ["4 · MHA", "2 · GQA", "1 · MQA"]
    assert [bytes_text(count) for count in (0, 1023, 1024, 1536, 2**30)] == [
        "0\u202fB", "1,023\u202fB", "1\u202fKiB", "1.5\u202fKiB", "1\u202fGiB",
    ]  # fmt: skip
    assert [times_text(ratio) for ratio in (0.8049, 12.3, 1234.0)] == ["0.8", "12", "1,234"]
    assert mask_words("encoder", "window", 4) == "up to 3 on either side"


HALVES = {"embedding": 1, "end": 1}


@pytest.mark.parametrize("choices", [
    {"start": "t5-small"}, {"start": "bart-base"}, {"family": "both"},
    {"family": "both", "norm_place": "post", "word_order": "learned", "output": "own"},
], ids=str)  # fmt: skip
def test_both_halves_together_are_the_whole(choices: dict[str, Any]):
    """The steps of encoder and decoder, L times a layer, with the token embedding once."""
    made = plan(**choices)
    facts = _facts(made.make, made.config, 5)
    total = sum(
        step.parameters * HALVES.get(step.part, made.depth) for half in (facts.steps, facts.reading) for step in half
    )
    assert total - facts.parts["token embedding"] == facts.total


def test_only_an_encoder_and_decoder_have_two_halves():
    made = plan()
    facts = _facts(made.make, made.config, 5)
    assert facts.reading == ()
    assert facts.crossed == 0


def test_the_other_text_is_kept_once():
    """2 · 6 layers · 8 heads · 64 numbers per token of the text that T5-small reads; half as many heads, half of it."""
    for heads in (8, 4):
        made = plan(start="t5-small", kv_heads=heads)
        facts = _facts(made.make, made.config, 5)
        assert facts.crossed == 2 * 6 * heads * 64
        text = f"are kept as well, made once: **{facts.crossed:,} numbers per token of that text**, which do not grow"
        assert text in kept(made, facts)


def test_a_window_lets_a_rolling_cache_drop_the_rest():
    """2 · 2 · 2 · 16 numbers in 2 bytes for each of the last 4, and nothing of it without a window."""
    made = plan(sees="window", span=4)
    text = kept(made, _facts(made.make, made.config, 5))
    assert "These numbers are for keeping all. Only the last 4 tokens are ever read" in text
    assert f"never grows beyond {bytes_text(4 * 2 * 128)} in bfloat16" in text
    assert "rolling" not in kept(plan(), _facts(made.make, made.config, 5))


@pytest.mark.parametrize(
    ("choices", "words", "never"),
    [
        ({}, "reads only what came before: so it can write", "both ways"),
        ({"sees": "past"}, "reads only what came before: so it can write", "both ways"),
        ({"sees": "both"}, "Under this mask it reads both ways", "can write"),
        ({"sees": "window", "span": 4}, "sees only the last 4 words: so it can write", "both ways"),
        ({"sees": "window", "span": 1}, "sees only the newest word: so it can write", "last 1"),
        ({"output": "none"}, "without a head gives one vector per word. It reads only what came before; it scores no",
         "can write"),
        ({"family": "encoder"}, "It reads both ways: every word sees every other.", "past"),
        ({"family": "encoder", "sees": "past"}, "Under this mask it reads only the past", "both ways"),
        ({"family": "classifier", "sees": "window", "span": 4}, "sees up to 3 others on either side", "both ways"),
        ({"family": "encoder", "sees": "window", "span": 1}, "a word sees only itself", "both ways"),
        ({"family": "vision"}, "every patch sees every other", "every word"),
        ({"family": "vision", "sees": "past"}, "a patch sees itself and what came before it", "both ways"),
        ({"family": "both"}, "The encoder reads both ways, the decoder only what came before: so it can write",
         "Under this mask"),
        ({"family": "both", "sees": "both"}, "both read both ways", "can write"),
        ({"family": "both", "sees": "past"}, "both read only what came before: so it can write", "both ways"),
        ({"family": "both", "sees": "window", "span": 4},
         "the encoder sees up to 3 on either side, one of the decoder only the last 4: so it can write", "both ways"),
        ({"family": "both", "output": "none"}, "a **decoder** reads another", "can write"),
    ],
    ids=str,
)  # fmt: skip
def test_what_it_is_said_to_read_follows_from_its_mask(choices: dict[str, Any], words: str, never: str):
    text = family_sentences(plan(**choices))
    assert words in text
    assert never not in text


def test_the_mask_of_two_halves_names_both():
    assert part_masks(plan(family="both")) == "encoder both ways, decoder only the past"
    assert part_masks(plan(family="both", sees="past")) == "both halves only the past"
    assert part_masks(plan(family="both", sees="window", span=3)) == (
        "encoder up to 2 on either side, decoder only the last 3"
    )


def test_the_largest_share_is_most_only_above_half():
    """73,728 of 162,624 are 45 %; with a vocabulary of 5,000 the token embedding has 77 %."""
    made = plan()
    facts = _facts(made.make, made.config, 5)
    assert where_most(made, facts).startswith("The largest share, 45.3\u202f%, is in the feed-forward: its matrices")
    made = plan(vocabulary=5000)
    assert where_most(made, _facts(made.make, made.config, 5)).startswith("Most, 76.4\u202f%, are in the token")


def test_a_blank_sentence_is_refused_by_the_numbers():
    with pytest.raises(TextError):
        words_of(" ", plan())
