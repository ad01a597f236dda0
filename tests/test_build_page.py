"""The page Build: what is switched is what is counted, drawn, run and written as code."""

import json
import re
from base64 import b64decode
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.build_code import parts_of
from app.build_numbers import MOST_WORDS, _facts, layers_run
from app.build_words import bytes_text
from app.positions_words import ENCODINGS
from tests.app_pages import choice, errors, figures, hover_names, opened, plain, protos, said, title_of, typed
from tests.test_build_plan import KNOWN, plan

OWN_TOTAL = 162_624


def headline(test: AppTest) -> str:
    """What was built and how large it is."""
    return next(plain(str(element.value)) for element in test.markdown if " parameters\n" in str(element.value))


def diagram(test: AppTest) -> str:
    """The picture of the block."""
    return next(proto.body for proto in protos(test, "html") if 'class="flow"' in proto.body)


def figure(test: AppTest, start: str) -> dict[str, Any]:
    """The one figure whose title begins so."""
    (found,) = (made for made in figures(test) if made["layout"].get("title", {}).get("text", "").startswith(start))
    return found


def boxed(test: AppTest, label: str) -> Any:
    """A select box; its key changes whenever the page itself picks another value."""
    return next(box for box in test.selectbox if box.label == label)


def cells(made: dict[str, Any]) -> np.ndarray:
    """The weights that a map shows, in %, NaN where masked."""
    held = next(trace["z"] for trace in made["data"] if trace.get("hoverongaps") is False)
    shape = [int(size) for size in held["shape"].split(",")]
    return np.frombuffer(b64decode(held["bdata"]), dtype=held["dtype"]).reshape(shape)


@pytest.mark.parametrize("name", ["gpt2", "vit-b16", "llama-3-8b", "t5-small", "course-classifier"])
def test_a_known_model_says_its_count_on_the_page(name: str):
    test = opened("build", start=name)
    assert errors(test) == []
    assert f"with {KNOWN[name]:,} parameters" in headline(test)
    assert "nearest known model" not in said(test)
    assert test.query_params == {"start": name}


def test_the_nearest_known_model_is_named_once_something_is_changed():
    """Another mask takes no parameters, so GPT-2 is still as large as GPT-2."""
    assert "The nearest known model is GPT-2 with 124,439,808: exactly as many" in said(
        opened("build", start="gpt2", sees="both")
    )
    assert "The nearest known model is Course classifier with 1,069,570: this one has 0.15 ×" in said(opened("build"))


def test_a_start_sets_every_switch_and_forgets_what_was_changed():
    test = opened("build", depth="3", kv="1")
    assert "Changed: depth, key-value heads." in headline(test)
    boxed(test, "Start from").set_value("gpt2").run()
    assert errors(test) == []
    assert test.query_params == {"start": "gpt2"}
    assert (boxed(test, "Width").value, boxed(test, "Heads").value, boxed(test, "Positions").value) == (
        768,
        12,
        "learned",
    )
    boxed(test, "Depth, in layers").set_value(6).run()
    assert test.query_params == {"start": "gpt2", "depth": "6"}
    assert "Changed from GPT-2: depth." in headline(test)


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [
        ({"family": "both", "order": "alibi"}, "<span>Cross-attention</span>"),
        ({"sees": "window", "span": "2", "norm": "layer"}, "mask: only the last 2; then softmax"),
        ({"q": "one two three", "vocabulary": "5000"}, "3 tokens, as numbers"),
    ],
    ids=str,
)
def test_the_page_draws_what_its_address_says(chosen: dict[str, str], seen: str):
    test = opened("build", **chosen)
    assert errors(test) == []
    assert "could not be used" not in said(test)
    assert seen in diagram(test)


@pytest.mark.parametrize(
    ("chosen", "value"),
    [({}, "swiglu"), ({"start": "gpt2"}, "gelu_tanh"), ({"start": "gpt2", "feed": "gelu"}, "gelu")],
    ids=str,
)
def test_there_is_one_gelu_and_it_is_that_of_the_start(chosen: dict[str, str], value: str):
    """GPT-2 was trained with the tanh form; a link may still ask for the other."""
    groups: list[Any] = list(opened("build", **chosen).get("button_group"))
    (feeds,) = (group for group in groups if group.label == "Feed-forward")
    assert feeds.options == ["ReLU", "GELU", "SwiGLU", "GeGLU"]
    assert feeds.value == value


def test_sharing_keys_and_values_divides_the_cache():
    """2 layers · 2 · G · 16 numbers: 256, 128 and 64 for 4, 2 and 1 heads."""
    for groups, numbers in (("4", 256), ("2", 128), ("1", 64)):
        text = said(opened("build", kv=groups))
        assert f"{numbers} numbers per token, over all layers" in text
        assert (
            f"{bytes_text(4 * numbers)} in float32 and {bytes_text(2 * numbers)} in bfloat16".replace("\u202f", " ")
            in text
        )
    assert "With multi-head attention it would be 4 times as much." in text


def test_llama_3_keeps_an_eighth_of_a_mebibyte_per_token():
    """2 · 32 · 8 · 128 numbers in 2 bytes, so that 8,192 words take 1 GiB."""
    assert "256 KiB in float32 and 128 KiB in bfloat16" in said(opened("build", start="llama-3-8b"))
    assert (
        bytes_text(8192 * 2 * _facts(plan(start="llama-3-8b").make, plan(start="llama-3-8b").config, 1).cached)
        == "1\u202fGiB"
    )


@pytest.mark.parametrize("family", ["encoder", "vision", "classifier"])
def test_what_only_reads_keeps_no_cache(family: str):
    assert "keeps no cache: it reads everything at once" in said(opened("build", family=family))


def test_sizes_that_do_not_fit_are_made_to_and_said():
    test = opened("build", queries="12", kv="3")
    assert errors(test) == []
    assert "12 heads do not divide a width of 64, so there are 8." in said(test)
    assert "8 heads cannot share 3 key-value heads evenly, so there are 2." in said(test)
    assert test.query_params == {"queries": "8", "kv": "2"}
    assert "cannot" not in said(test.run())


def test_heads_that_nobody_chose_come_back():
    """12 heads of GPT-2 do not divide 1,024; they are its own again as soon as they fit."""
    test = opened("build", start="gpt2")
    boxed(test, "Width").set_value(1024).run()
    assert boxed(test, "Heads").value == 8
    for shown in (test, test.run()):
        assert "12 heads do not divide a width of 1,024, so there are 8." in said(shown)
    assert test.query_params == {"start": "gpt2", "width": "1024"}
    boxed(test, "Width").set_value(768).run()
    assert (boxed(test, "Heads").value, boxed(test, "Key-value heads").value) == (12, 12)
    assert "do not divide" not in said(test)


def test_an_encoder_and_decoder_can_both_be_looked_at():
    """The toggle changes diagram and table, and a link keeps it; other families have none."""
    test = opened("build", family="both", sees="window", span="3")
    assert "mask: only the last 3; then softmax" in diagram(test)
    choice(test, "looked_at").set_value("encoder").run()
    assert errors(test) == []
    assert "mask: up to 2 on either side; then softmax" in diagram(test)
    assert "Cross-attention" not in diagram(test)
    assert "goes into every cross-attention of the decoder" in diagram(test)
    assert not any("other text" in proto.body for proto in protos(test, "html") if 'class="steps"' in proto.body)
    assert test.query_params["look"] == "encoder"
    assert not any(group.key == "looked_at" for group in opened("build", look="encoder").get("button_group"))


def test_the_masks_of_both_halves_are_named():
    test = opened("build", family="both")
    assert (
        "As the family has it: encoder both ways, decoder only the past" in boxed(test, "Mask: who sees whom").options
    )
    assert "That is: encoder both ways, decoder only the past." in said(test)


def test_a_word_is_a_token_here_and_positions_are_called_as_on_their_page():
    test = opened("build", order="relative")
    assert "Here every word counts as one token." in said(test)
    assert "T tokens, S tokens looked at" in said(test)
    assert boxed(test, "Positions").options[4] == ENCODINGS["relative"].name
    assert "plus T5 buckets (" in diagram(test)
    assert "Here every word counts" not in said(opened("build", family="vision"))


def test_all_maps_have_one_scale():
    """Up to 100 %, so that rows of one, two and three words are told apart; and up to 20 words all are labelled."""
    test = opened("build", step="1", q="a b c d e f g h i j k l m n o p")
    for start in ("layer 0, head 0, untrained", "step 1", "all words read at once"):
        made = figure(test, start)
        assert {trace["zmax"] for trace in made["data"] if trace.get("hoverongaps") is False} == {100}
        assert len(made["layout"]["xaxis2"]["ticktext"]) == len(made["layout"]["xaxis"]["ticktext"])
    assert "The colours of all maps here go from 0 to 100 %" in said(test)
    assert "The outlined row is" in said(test)


BAD = {
    "start": ("gpt9", "", "own|gpt2"),
    "width": ("63", "0", "abc", "99999"),
    "depth": ("0", "129", "1.5"),
    "queries": ("0", "-1"),
    "kv": ("0", "%00"),
    "order": ("rope",),
    "vocabulary": ("63", "9999999"),
    "family": ("gpt",),
    "sees": ("native",),
    "ownlayer": ("999",),
    "biases": ("yes",),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_address_falls_back_and_says_so(name: str):
    for text in BAD[name]:
        test = opened("build", **{name: text})
        assert errors(test) == []
        assert "could not be used, so the default is shown" in said(test)
        assert f"{OWN_TOTAL:,} parameters" in headline(test)


@pytest.mark.parametrize(
    "chosen",
    [
        {"start": "vit-b16", "order": "rotary", "sees": "past"},
        {"family": "vision"},
        {"family": "classifier", "sees": "both"},
        {"family": "both", "order": "relative", "sees": "window", "ownkind": "encoder"},
        {"family": "encoder", "sees": "past", "order": "sinusoidal", "output": "own"},
        {"start": "bart-base", "place": "pre", "feed": "geglu", "qknorm": "1"},
        {"start": "bert-base", "family": "decoder"},
        {"width": "16384", "depth": "128", "inner": "65536", "queries": "128", "kv": "1"},
        {"order": "learned", "places": "1"},
        {"order": "learned", "places": "5"},
        {"width": "2", "queries": "1", "kv": "1", "inner": "1", "depth": "1"},
        {"output": "none"},
        {"queries": "64", "kv": "64", "order": "none"},
    ],
    ids=json.dumps,
)
def test_any_combination_is_shown(chosen: dict[str, str]):
    test = opened("build", **chosen)
    assert errors(test) == []
    assert "could not be used" not in said(test)


@pytest.mark.parametrize(
    ("sentence", "count"),
    [
        ("one", 1),
        ("<b>x</b> $y$ [z](w) :smile:", None),
        ("القطة جلست على السجادة", 4),
        ("猫坐在垫子上", 6),
        ("word " * 400, 64),
    ],
)
def test_any_sentence_is_read_by_words_and_shown_literally(sentence: str, count: int | None):
    test = opened("build", q=sentence[:2000])
    assert errors(test) == []
    if count is not None:
        assert f"{count} token{'s' * (count > 1)}, as numbers" in diagram(test)
    for proto in protos(test, "html"):
        assert "<b>" not in proto.body
    assert not any("<b>" in str(element.value) for element in test.markdown)


def test_a_long_sentence_is_cut_with_a_notice():
    test = opened("build", q="word " * 400)
    assert f"The text makes 400 tokens and {MOST_WORDS} is the most that can be read" in said(test)
    assert f"the first {MOST_WORDS} words of it" in said(test)


def test_nothing_to_read_is_said_and_the_page_goes_on():
    test = typed(opened("build", kv="4"), "   ")
    assert errors(test) == ["Type a sentence first: there is nothing to read yet."]
    assert "Multi-head attention" in diagram(test)
    assert errors(typed(test, "a cat")) == []


def test_the_mask_is_drawn_before_anything_is_learned():
    """A causal map is empty above its diagonal, and its rows are nearly even."""
    shown = cells(figure(opened("build"), "layer 0, head 0, untrained"))
    assert np.isnan(shown[np.triu_indices(len(shown), 1)]).all()
    np.testing.assert_allclose(np.nansum(shown, axis=1), 100, rtol=1e-5)
    even = 100 / np.arange(1, len(shown) + 1)[:, None]
    assert np.nanmax(np.abs(shown / even - 1)) < 0.2
    assert not np.isnan(cells(figure(opened("build", sees="both"), "layer 0, head 0, untrained"))).any()


def test_scores_that_nothing_divides_make_an_untrained_row_uneven():
    assert "The scores are not divided by √D here" in said(opened("build", start="t5-small", depth="1"))
    assert "not divided" not in said(opened("build", start="gpt2", depth="1"))


def test_a_window_hides_what_is_far():
    shown = cells(figure(opened("build", sees="window", span="2"), "layer 0, head 0, untrained"))
    assert (~np.isnan(shown)).sum(axis=1).tolist() == [1] + [2] * (len(shown) - 1)


def test_untrained_weights_are_called_so_and_audited():
    text = said(opened("build", ownlayer="1", ownhead="3"))
    assert "Untrained, random weights (seed 0)" in text
    assert re.search(r"audit \d(\.\d)?e-\d\d, all rows", text)
    assert "vocabulary cut to the 11 different words, the only ones it reads" in text
    assert "The outlined row is she, which sees 9 of 12 words. Spread evenly, each would get 11.11 %" in text


def test_a_layer_that_was_not_run_falls_back_with_a_note():
    test = opened("build", ownlayer="9", ownhead="9")
    assert figure(test, "layer 1, head 3, untrained")
    assert "2 × 4 heads were run here: showing layer 1, head 3 before training." in said(test)


def test_a_large_model_is_run_in_part_and_a_larger_one_not_at_all():
    assert "the first 2 layers of 12" in said(opened("build", start="gpt2", q="a cat"))
    test = opened("build", start="llama-2-7b")
    assert "too large to run while you wait. Its shapes and counts above are exact all the same." in said(test)
    assert layers_run(plan(start="llama-2-7b").make, replace(plan(start="llama-2-7b").config, vocabulary=9)) == 0


def test_a_vision_transformer_is_not_run_on_words():
    test = opened("build", start="vit-b16", q=" ")
    assert errors(test) == []
    assert "reads the patches of an image, not the sentence, so there is nothing to draw here" in said(test)
    assert "197 × 768" in diagram(test)


def test_rows_from_the_cache_are_rows_of_the_full_map():
    """Each step's row is the same row of the run without a cache, up to rounding."""
    test = opened("build", step="3")
    row, whole = cells(figure(test, "step 3")), cells(figure(test, "all words read at once"))
    assert row.shape == (1, 15)
    np.testing.assert_allclose(row[0], whole[14, :15], rtol=1e-4)
    assert hover_names(figure(test, "step 3"), "x") == hover_names(figure(test, "all words read at once"), "x")[:15]
    assert hover_names(figure(test, "step 3"), "y") == hover_names(figure(test, "all words read at once"), "y")[14:15]


def test_reading_the_sentence_is_step_nought():
    assert cells(figure(opened("build", step="0"), "step 0")).shape == (12, 12)


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({"sees": "both"}, "No cache here"),
        ({"output": "none"}, "without a head there are no scores"),
        ({"family": "encoder"}, "an encoder reads"),
        ({"family": "classifier"}, "a classifier reads"),
        ({"family": "both", "sees": "both"}, "where its decoder’s words see later ones"),
        ({"order": "learned", "places": "12"}, "there is no room to write"),
    ],
    ids=str,
)
def test_what_does_not_write_says_why(chosen: dict[str, str], why: str):
    test = opened("build", **chosen)
    assert why in said(test)
    assert not [made for made in figures(test) if "title" in made["layout"] and title_of(made).startswith("step")]


def test_the_code_on_the_page_is_that_of_the_switches():
    test = opened("build", feed="relu", norm="layer", order="alibi", place="post")
    sources = [str(block.value) for block in test.code]
    assert 'positions="alibi"' in sources[0]
    assert [source.split("(")[0].split()[1].rstrip(":") for source in sources[1:]] == [
        "Block", "Attention", "FeedForward", "LayerNorm", "ALiBi", "attend",
    ]  # fmt: skip
    assert [part.__name__ for part in parts_of(plan())] == [
        "Block", "Attention", "GatedFeedForward", "RMSNorm", "Rotary", "attend",
    ]  # fmt: skip
