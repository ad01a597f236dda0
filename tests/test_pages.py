"""Every page, run through app/main.py: it says what is so, whatever is chosen, and never breaks."""

import re
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest

from app.examples import Example, examples
from engine import HuggingFaceModel, Mask
from tests.app_pages import (
    MODEL_PAGES,
    choice,
    data_of,
    errors,
    figures,
    has_piece,
    hover_names,
    on_minilm,
    operator_allows,
    other_word,
    plain,
    ribbon_weights,
    ribbon_words,
    said,
    title_of,
    typed,
    view_of,
)
from tests.tiny_models import save

SHE, CUSTOMER = 8, 4
CHOICES: tuple[dict[str, str], ...] = (
    {},
    {"view": "tokens"},
    {"special": "1"},
    {"rescale": "1"},
    {"mean": "layer"},
    {"mean": "all"},
    {"colour": "log"},
    {"min": "10"},
    {"min": "100"},
    {"direction": "by"},
    {"direction": "by", "mask": "causal"},
    {"heads": "pair"},
    {"word": "none", "to": "none"},
    {"view": "tokens", "special": "1", "word": "t0"},
    {"mask": "native"},
    {"mask": "bidirectional"},
    {"mask": "causal"},
    {"mask": "prefix:3"},
    {"mask": "window:1"},
    {"mask": "blocking:10>5"},
    {"layer": "0", "head": "0"},
    {"layer": "5", "head": "11"},
    {"side": "left", "pads": "6", "lesson": "window", "window": "1"},
    {"lesson": "prefix", "prefix": "99", "mask": "causal"},
)


@pytest.mark.parametrize("chosen", CHOICES, ids=lambda chosen: urlencode(chosen) or "-")
@pytest.mark.parametrize("page", MODEL_PAGES)
def test_a_page_runs_whatever_is_chosen(page: str, chosen: dict[str, str]):
    """No error, no exception, and the choice still stands in the address."""
    test = on_minilm(page, **chosen)
    assert errors(test) == []
    assert len(figures(test)) == (1 if page == "explore" else 9)
    assert "could not be used" not in said(test)


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
@pytest.mark.parametrize("page", MODEL_PAGES)
def test_every_example_runs_and_says_what_to_look_for(page: str, example: Example):
    """Its word is picked and its partner marked."""
    test = on_minilm(page, q=example.sentence)
    assert errors(test) == []
    assert example.note in said(test)
    if page == "explore":
        steered = view_of(test, "ribbon")
        assert [steered["pinned"], steered["partner"]] == [int(example.word or -1), int(example.partner or -1)]


@pytest.mark.parametrize(
    ("sentence", "word"), [("The nurse met him because she cared.", "she"), ("What a day!", "day"), ("?!", "!")]
)
def test_a_sentence_of_ones_own_begins_with_its_last_pronoun_or_else_its_last_word(sentence: str, word: str):
    """A full stop is no word, unless there is nothing else."""
    test = typed(on_minilm(), sentence)
    assert ribbon_words(test)[view_of(test, "ribbon")["pinned"]] == word


def test_on_minilm_explore_shows_she_and_her_29_percent_for_customer(minilm: HuggingFaceModel):
    """The ribbon, the map and the ranking hold the engine's own number: a word's pieces are averaged and summed."""
    test = on_minilm()
    weights = minilm.run("The shopkeeper gave the customer a discount because she was a regular").weights(5, 8)
    places = [token.word for token in minilm.prompt(examples()[0].sentence).tokens]
    truth = float(weights[places.index(SHE), places.index(CUSTOMER)])
    assert round(truth, 3) == 0.294
    assert ribbon_words(test)[SHE] == "she"
    assert ribbon_words(test)[CUSTOMER] == "customer"
    assert ribbon_weights(test)[SHE, CUSTOMER] == pytest.approx(truth, abs=1 / 65535)
    assert view_of(test, "ribbon")["pinned"] == SHE
    assert plain(test.button[0].label) == "L5 H8 · 29.4 %"
    assert title_of(figures(test)[0]) == "layer 5, head 8"


def test_the_page_says_what_ran_and_that_the_numbers_were_checked():
    """Model, size, length, place, backend, audit; and that layers count from 0."""
    test = on_minilm()
    assert (
        "MiniLM · 22.7 M parameters · 6 × 12 heads · 15 of 512 tokens · 69 of 2,000 characters · cpu, float32 · sdpa · "
        in (said(test))
    )
    assert ", all rows" in said(test)
    assert "Layers and heads count from 0" in said(test)
    assert "A high weight says where a head reads from, not why the model decides." in said(test)


def test_hidden_special_tokens_are_accounted_for():
    """What she gives to words and what she gives to hidden tokens is everything; shown, they close the sum."""
    hidden, shown = on_minilm(), on_minilm(special="1")
    share = 1 - ribbon_weights(hidden)[SHE].sum()
    assert re.search(rf"she: .*{share * 100:.1f} % goes to special tokens, which are hidden", said(hidden))
    assert ribbon_weights(shown).sum(axis=1) == pytest.approx(1, abs=1e-3)
    assert ribbon_words(shown)[0] == "[CLS]"
    assert "goes to special tokens" not in said(shown)


def test_rescaled_rows_sum_to_100_percent_and_say_so():
    """And special tokens stay out, even where they were asked for."""
    test = on_minilm(rescale="1", special="1")
    assert ribbon_weights(test).sum(axis=1) == pytest.approx(1, abs=1e-3)
    assert "[CLS]" not in ribbon_words(test)
    assert "rescaled: each row's shown weights sum to 100 %" in said(test)
    assert re.search("goes to special tokens.* left out and the rest rescaled", said(test))


def test_tokens_are_shown_where_tokens_are_asked_for():
    """A word of two pieces becomes two chips, the picked word its first piece."""
    test = on_minilm(view="tokens")
    assert ribbon_words(test)[1:3] == ["shop", "keeper"]
    assert view_of(test, "ribbon")["pinned"] == SHE + 1


def test_attended_by_picks_a_column_of_the_same_map():
    """The direction changes who is asked, not the numbers."""
    test = on_minilm(direction="by")
    assert np.array_equal(ribbon_weights(test), ribbon_weights(on_minilm()))
    assert view_of(test, "ribbon")["direction"] == "by"
    assert "Which heads look at she from" in said(test)


def test_a_mean_says_so_in_the_title_and_is_the_mean(minilm: HuggingFaceModel):
    """Of the layer's twelve heads, or of all 72."""
    trace = minilm.run(examples()[0].sentence)
    layer, everything = (
        on_minilm(mean="layer", view="tokens", special="1"),
        on_minilm(mean="all", view="tokens", special="1"),
    )
    assert ribbon_weights(layer) == pytest.approx(trace.weights(5).mean(dim=0).numpy(), abs=1e-5)
    assert ribbon_weights(everything) == pytest.approx(
        np.mean([trace.weights(number).mean(dim=0).numpy() for number in range(6)], axis=0), abs=1e-5
    )
    assert title_of(figures(layer)[0]) == "layer 5, mean of its heads"
    assert title_of(figures(everything)[0]) == "mean of all heads"


def test_a_foreign_mask_is_named_as_one_and_compared_with_the_model_as_trained(minilm: HuggingFaceModel):
    """GPT-style over BERT's weights: nothing looks ahead, and the page says what this is not."""
    test = on_minilm(mask="causal", view="tokens", special="1")
    expected = minilm.run(examples()[0].sentence, mask=Mask.causal()).weights(5, 8).numpy()
    assert ribbon_weights(test) == pytest.approx(expected, abs=1e-5)
    assert np.triu(ribbon_weights(test), 1).max() == 0
    assert "Not what this model was trained with." in said(test)
    assert "What changed for she" in said(test)
    assert len(test.get("vega_lite_chart")) == 1


def test_the_own_mask_of_a_model_is_not_foreign():
    """BERT-style over BERT's weights changes nothing, so nothing is compared."""
    test = on_minilm(mask="bidirectional")
    assert "Not what this model was trained with." not in said(test)
    assert len(test.get("vega_lite_chart")) == 0
    assert np.array_equal(ribbon_weights(test), ribbon_weights(on_minilm()))


def test_a_ranking_button_goes_to_its_head():
    """Layer 3, head 1 is the second: pressed, its map is shown and it is marked."""
    test = on_minilm()
    second = test.button[1]
    assert plain(second.label) == "L3 H1 · 24.9 %"
    second.click().run()
    assert title_of(figures(test)[0]) == "layer 3, head 1"
    assert (view_of(test, "grid")["layer"], view_of(test, "grid")["head"]) == (3, 1)
    assert test.query_params == {"model": "minilm", "layer": "3", "head": "1"}


def test_another_partner_asks_other_heads():
    """The list of heads is for the pair that is picked."""
    test = on_minilm()
    other_word(test).set_value("1").run()
    assert view_of(test, "ribbon")["partner"] == 1
    assert view_of(test, "grid")["shadeTitle"] == "from she to shopkeeper"
    assert test.query_params == {"model": "minilm", "to": "1"}


def test_a_click_on_another_head_leaves_the_heavy_data_alone():
    """The grid's picture and the ribbon's mask travel once; what a click changes is a few numbers."""
    before, after = on_minilm(), on_minilm(head="3")
    assert np.array_equal(data_of(before, "grid")["thumbs"], data_of(after, "grid")["thumbs"])
    assert view_of(before, "grid")["head"] == 8
    assert view_of(after, "grid")["head"] == 3


def test_repeated_words_are_kept_apart():
    """Eight words, three of them "the": eight rows and eight columns, told apart by number."""
    words = ["the", "cat", "sat", "on", "the", "mat", "the", "end"]
    test = typed(on_minilm(), " ".join(words))
    assert ribbon_weights(test).shape == (8, 8)
    figure = figures(test)[0]
    assert hover_names(figure, "x") == hover_names(figure, "y") == words
    assert figure["layout"]["xaxis"]["tickvals"] == list(range(8))
    labels = other_word(test).options
    assert len(set(labels)) == 8


def test_a_long_sentence_goes_to_the_canvas():
    """Up to 128 words plotly draws the map, with its PNG and zoom; from 129 on the canvas does."""
    test = typed(on_minilm(), "at " * 128)
    assert (len(figures(test)), has_piece(test, "map")) == (1, False)
    typed(test, "at " * 129)
    assert (len(figures(test)), has_piece(test, "map")) == (0, True)
    assert len(data_of(test, "map")["weights"]) == 129 * 129


def test_the_mask_page_draws_five_masks_and_three_stages():
    """And counts for the picked word how many it sees: 15 tokens, of which GPT-style shows the first 11."""
    test = on_minilm("masks")
    titles = [title_of(figure) for figure in figures(test)]
    assert titles[:5] == ["BERT-style", "GPT-style", "Padding", "Prefix", "Sliding window"]
    assert titles[5:8] == ["1 · scores q·k/√D", "2 · masked to −∞", "3 · softmax of each row"]
    for seen in ("15 of 15", "11 of 15", "15 of 17", "5 of 15"):
        assert f"she may look at {seen} tokens." in said(test)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An operator's folder with tiny checkpoints of other families."""
    root = tmp_path_factory.mktemp("models")
    for family in ("t5", "llama", "modernbert", "bloom"):
        save(family, root / family)
    return root


def test_an_operators_models_are_offered_beside_the_packaged_one(folder: Path):
    """By the name of their folder, with style and size; MiniLM comes twice; what looks at pictures is not for here."""
    with operator_allows(folder):
        options = on_minilm().selectbox(key="model").options
    assert options[0] == "Twin encoder, BERT-style, 3 × 4"
    assert "MiniLM, BERT-style, 6 × 12" in options
    assert "llama, GPT-style, 2 × 8" in options
    assert "t5, encoder–decoder, 2 × 4" in options
    assert "MiniLM, our own code, BERT-style, 6 × 12" in options
    assert not any("vision" in option or "ViT" in option for option in options)


@pytest.mark.parametrize("family", ["t5", "llama", "modernbert", "bloom"])
def test_an_operators_model_runs_on_every_page(folder: Path, family: str):
    """Kinds, windows, groups and eager weights are all drawn."""
    with operator_allows(folder):
        for page in MODEL_PAGES:
            test = on_minilm(page, model=str(folder / family), q="The cat sat on the mat")
            assert errors(test) == []
            assert f"{family} · " in said(test)


def test_an_encoder_decoder_switches_between_its_three_kinds(folder: Path):
    """Encoder and decoder are squares, cross is a rectangle: rows the target, columns the source."""
    chosen = {"model": str(folder / "t5"), "q": "The house is wonderful.", "target": "the mat", "view": "tokens"}
    with operator_allows(folder):
        shapes = {}
        for kind in ("encoder", "decoder", "cross"):
            test = on_minilm(**chosen, special="1", kind=kind)
            assert errors(test) == []
            assert title_of(figures(test)[0]).startswith(f"{kind}, layer 0, head 0")
            shapes[kind] = ribbon_weights(test).shape
        source, target = shapes["cross"][1], shapes["cross"][0]
        assert source != target
        assert shapes == {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}


def test_an_encoder_decoder_reads_a_target_or_writes_one(folder: Path):
    """Empty, the model writes; typed, the decoder reads it; and other models take no notice."""
    with operator_allows(folder):
        test = on_minilm(model=str(folder / "t5"), q="The house is wonderful.")
        assert test.text_input(key="target").value == ""
        test.text_input(key="target").set_value("the cat sat").run()
        assert errors(test) == []
        assert [word for word in ribbon_words(test) if not word.startswith("<")] == ["the", "cat", "sat"]
        test.selectbox(key="model").set_value("minilm").run()
        assert errors(test) == []
        assert ribbon_words(test)[0] == "The"


def test_grouped_queries_are_eight_maps_and_name_their_group(folder: Path):
    """Eight query heads share two pairs of keys and values."""
    with operator_allows(folder):
        test = on_minilm(model=str(folder / "llama"), q="The cat sat on the mat", layer="0", head="5")
    assert data_of(test, "grid")["shape"][:2] == [2, 8]
    assert title_of(figures(test)[0]) == "layer 0, head 5 (key-value group 1: heads 4 to 7)"


def test_local_and_global_layers_are_told_apart(folder: Path):
    """ModernBERT alternates: a window here, everything there."""
    with operator_allows(folder):
        titles = [
            title_of(figures(on_minilm(model=str(folder / "modernbert"), q="The cat sat on the mat", layer=layer))[0])
            for layer in ("0", "1")
        ]
    assert titles[0].endswith("(global)")
    assert "(local, window " in titles[1]


def test_a_mask_that_cannot_be_imposed_is_greyed_out_with_the_reason(folder: Path):
    """BLOOM can't be recorded: its mask stays what it is, on both pages, also where a link asks for another."""
    with operator_allows(folder):
        test = on_minilm(model=str(folder / "bloom"), q="The cat sat on the mat", mask="causal")
        assert errors(test) == []
        assert choice(test, "mask").proto.disabled
        assert "bloom runs only under the mask that it was trained with: transformers builds" in said(test)
        assert "The mask was set back to what this model was trained with." in said(test)
        assert "mask" not in test.query_params
        test.switch_page("../pages/masks.py").run()
        assert all(button.disabled for button in test.button if str(button.key).startswith("use_"))
        test.selectbox(key="model").set_value("minilm").run()
        assert not choice(test, "mask").proto.disabled


def test_the_twin_sentence_is_spoken_of_only_where_its_words_are_shown(folder: Path):
    """Word 8 of the target is not word 8 of the sentence, though both are "she"."""
    sentence = examples()[0].sentence
    with operator_allows(folder):
        texts = {
            kind: said(on_minilm(model=str(folder / "t5"), target=sentence, kind=kind))
            for kind in ("encoder", "decoder")
        }
    assert "In the other sentence" in texts["encoder"]
    assert "In the other sentence" not in texts["decoder"]
