"""The view: what a link keeps, what it refuses, and what changes with what."""

import string
from dataclasses import fields, replace
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from app.examples import examples
from app.homes import home
from app.view import MAX_CHARACTERS, PARAMETERS, View, from_address, locate, opening_view, place, to_address
from app.view_build import BuildChoices
from app.view_cost import CostChoices
from app.view_positions import PositionsChoices
from app.view_train import TrainChoices
from app.view_vision import VisionChoices
from engine.tokens import Group, split_words
from tests.view_choices import BUILD_CHOICES, COST_CHOICES, POSITIONS_CHOICES, TRAIN_CHOICES, VISION_CHOICES

MODELS = ("twin-encoder", "twin-decoder", "minilm", "org/name", "/models/my folder")

places = st.none() | st.from_regex(r"t?(0|[1-9][0-9]{0,5})", fullmatch=True, alphabet=string.printable)
typed = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("\n\t"), max_size=200)
views = st.builds(
    View,
    sentence=typed | st.sampled_from([example.sentence for example in examples()]),
    model=st.sampled_from(MODELS),
    mask=st.sampled_from(["native", "bidirectional", "causal", "window:3", "prefix:2", "twin"]),
    silence=st.sampled_from(["", "2.0", "cross:0.1", "99.99"]),
    layer=st.integers(0, 999),
    head=st.integers(0, 999),
    word=places,
    partner=places,
    direction=st.sampled_from(["to", "by"]),
    unit=st.sampled_from(["words", "tokens"]),
    specials=st.booleans(),
    average=st.sampled_from(["head", "layer", "all"]),
    colour=st.sampled_from(["linear", "log"]),
    threshold=st.integers(0, 100),
    renormalise=st.booleans(),
    heads_by=st.sampled_from(["weights", "pair"]),
    kind=st.sampled_from(["", "encoder", "decoder", "cross", "vision"]),
    target=typed,
    prefix=st.integers(1, 50),
    window=st.integers(1, 50),
    pads=st.integers(1, 6),
    side=st.sampled_from(["right", "left"]),
    lesson=st.sampled_from(["causal", "bidirectional", "prefix", "window"]),
    **POSITIONS_CHOICES,
    **BUILD_CHOICES,
    **COST_CHOICES,
    **VISION_CHOICES,
    **TRAIN_CHOICES,
)


@given(views)
def test_every_view_survives_the_address(shown: View):
    """Written, encoded, decoded and read, a view is itself again, and nothing was complained about."""
    query = urlencode(to_address(shown))
    assert from_address(parse_qs(query, keep_blank_values=True), MODELS) == (shown, ())


def test_the_opening_view_leaves_the_address_clean():
    """What the app opens with anyway, and what an example brings along, is not written."""
    assert to_address(View()) == {}
    for example in examples()[1:]:
        assert to_address(opening_view(example.sentence)) == {"q": example.sentence}


def test_one_change_is_one_parameter():
    """A link stays short enough to read aloud."""
    assert to_address(replace(View(), head=3)) == {"head": "3"}
    assert to_address(replace(View(), word=None, partner=None)) == {"word": "none"}


def test_a_link_that_names_a_word_alone_leaves_its_partner_open():
    """The example's partner belongs to the example's word, and to what that attends to."""
    assert from_address({"word": ["4"]}, MODELS)[0].partner is None
    assert from_address({"word": [str(View().word)]}, MODELS)[0].partner == View().partner
    assert from_address({"direction": ["by"]}, MODELS)[0].partner is None
    assert to_address(replace(View(), word="4", partner=None)) == {"word": "4"}
    assert to_address(replace(View(), word="4")) == {"word": "4", "to": "4"}


@pytest.mark.parametrize("name", ["q", "target"])
def test_a_long_text_in_a_link_is_cut_as_a_typed_one_is(name: str):
    """With the same sentence."""
    shown, problems = from_address({name: ["x" * (MAX_CHARACTERS + 1)]}, MODELS)
    assert {"q": shown.sentence, "target": shown.target}[name] == "x" * MAX_CHARACTERS
    assert problems == ("Only the first 2,000 of 2,001 characters are read.",)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("she " * 499 + "shopkeeper", "she " * 498 + "she"),
        ("she " * 500 + "was", "she " * 500),
        ("the " * 499 + "she was", "the " * 499 + "she "),
        ("a " + "語" * 2000, "a " + "語" * 1998),
        (" " * 2001, " " * 2000),
    ],
)
def test_a_long_text_is_cut_between_words(text: str, kept: str):
    """Half a word would be another word; a script without spaces is cut where it has to be."""
    shown, problems = from_address({"q": [text]}, MODELS)
    assert shown.sentence == kept
    assert problems == (f"Only the first {len(kept):,} of {len(text):,} characters are read.",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("layer", "1000"),
        ("layer", "-1"),
        ("layer", "abc"),
        ("layer", "1.5"),
        ("layer", "٣"),
        ("layer", "²"),
        ("layer", " 1"),
        ("layer", "9" * 5000),
        ("head", "\x00"),
        ("head", ""),
        ("model", "nope"),
        ("model", "\x00"),
        ("mask", "zzz"),
        ("mask", "window:0"),
        ("mask", "window:" + "9" * 400),
        ("mask", "twins"),
        ("silence", "head"),
        ("silence", "2"),
        ("silence", ""),
        ("word", "t"),
        ("word", "-1"),
        ("word", "01"),
        ("to", "she"),
        ("direction", "up"),
        ("view", "letters"),
        ("special", "yes"),
        ("mean", "median"),
        ("colour", "red"),
        ("min", "101"),
        ("rescale", "2"),
        ("q", "a\x00b"),
        ("target", "a\x00b"),
        ("positions", "rope"),
        ("curves", "1,1"),
        ("curves", "1,,2"),
        ("curves", "1,2,3,4,5"),
        ("longer", "3"),
        ("dims", "1"),
        ("slopes", "0"),
    ],
)
def test_what_cannot_be_read_falls_back_with_a_note(name: str, text: str):
    """The default is shown and one sentence says so, without repeating what was in the link."""
    shown, problems = from_address({name: [text]}, MODELS)
    assert shown == View()
    assert len(problems) == 1
    assert problems[0].endswith("could not be used, so the default is shown.")


@given(
    st.dictionaries(
        st.sampled_from(sorted(parameter.name for parameter in PARAMETERS.values())),
        st.lists(st.text(max_size=30), min_size=1, max_size=3),
    )
)
def test_no_address_is_an_error(parameters: dict[str, list[str]]):
    """Whatever a link says, a view comes of it."""
    shown, _ = from_address(parameters, MODELS)
    assert isinstance(shown, View)
    assert to_address(shown) is not None


def test_a_repeated_parameter_is_not_guessed_at():
    """Two layers are no layer; the rest of the link still counts."""
    shown, problems = from_address({"layer": ["1", "2"], "head": ["3"]}, MODELS)
    assert (shown.layer, shown.head, len(problems)) == (View().layer, 3, 1)


def test_unknown_parameters_are_ignored():
    """What others append to links does no harm."""
    assert from_address({"utm_source": ["x"]}, MODELS) == (View(), ())


def test_a_sentence_of_ones_own_opens_with_nothing_picked():
    """Word 8 of the opening sentence means nothing in another."""
    shown, _ = from_address({"q": ["Hello there"]}, MODELS)
    assert (shown.word, shown.partner) == (None, None)


def test_every_field_has_a_parameter_of_its_own():
    """No two fields share a name, whichever page they belong to, and none is forgotten."""
    assert PARAMETERS.keys() == {field.name for field in fields(View)}
    names = [parameter.name for parameter in PARAMETERS.values()]
    assert len(set(names)) == len(names)


def test_pages_have_choices_of_their_own():
    """No field of one page's choices hides one of another's, or one that all pages share."""
    parts = (PositionsChoices, BuildChoices, CostChoices, VisionChoices, TrainChoices)
    names = [field.name for part in parts for field in fields(part)] + list(View.__annotations__)
    assert len(set(names)) == len(names) == len(fields(View))


@given(views, views)
def test_every_field_that_differs_is_written(one: View, other: View):
    """Two views with one address are one view."""
    assert (to_address(one) == to_address(other)) == (one == other)


def test_the_examples_point_at_the_words_they_speak_of():
    """Places in the examples are word numbers of their own sentences."""
    expected = [
        "she→customer", "she→shopkeeper", "fell→horse", "are→keys", "वह→ग्राहक", "cat→cat", "she→customer",
        "she→shopkeeper", "she→doctor", "she→nurse", "it→trophy", "it→suitcase", "she→Anna", "she→girl",
    ]  # fmt: skip
    found = []
    for example in examples():
        words = split_words(example.sentence)
        assert example.word is not None
        assert example.partner is not None
        found.append(f"{words[int(example.word)].text}→{words[int(example.partner)].text}")
    assert found == expected


# [CLS] shop ##keeper she [SEP]
TOKENS = (
    Group("[CLS]", (0,), True, None),
    Group("shop", (1,), False, 0),
    Group("##keeper", (2,), False, 0),
    Group("she", (3,), False, 1),
    Group("[SEP]", (4,), True, None),
)
WORDS = (TOKENS[0], Group("shopkeeper", (1, 2), False, 0), TOKENS[3], TOKENS[4])


@pytest.mark.parametrize("axis", [TOKENS, WORDS, TOKENS[1:4], WORDS[1:3]])
def test_a_place_is_found_again_on_its_own_axis(axis: tuple[Group, ...]):
    """With or without special tokens, in words or in tokens, a click stays where it was."""
    assert [locate(axis, place(axis, index)) for index in range(len(axis))] == list(range(len(axis)))


def test_a_place_survives_the_switch_between_words_and_tokens():
    """A word becomes its first piece; any piece becomes its word; a special token stays itself."""
    assert locate(TOKENS, place(WORDS, 1)) == 1
    assert locate(WORDS, place(TOKENS, 2)) == 1
    assert locate(WORDS, place(TOKENS, 4)) == 3


def test_a_place_that_is_not_there_is_nowhere():
    """A hidden special token, a word of a longer sentence, and nothing at all."""
    assert locate(WORDS[1:3], "t0") is None
    assert locate(WORDS, "99") is None
    assert locate(WORDS, None) is None


# Kept in a session


def run(script, **parameters: str) -> AppTest:
    """Run a script as Streamlit would, at an address."""
    test = AppTest.from_function(script)
    for name, text in parameters.items():
        test.query_params[name] = text
    return test.run(timeout=30)


def shell():
    """A page of controls, as small as it can be."""
    import streamlit as st

    from app import state

    state.sync(["twin-encoder", "minilm", "tiny"])
    st.text_input("Sentence", **state.mirror("sentence"))
    st.selectbox("Model", ["twin-encoder", "minilm", "tiny"], **state.mirror("model"))
    st.segmented_control("Mask", ["native", "causal"], **state.mirror("mask"))
    st.button("pick", on_click=lambda: state.set(head=1, word="t2"))
    layers, heads = {"twin-encoder": (3, 4), "minilm": (6, 12), "tiny": (2, 4)}[state.view().model]
    st.session_state["shown"] = state.clamp(layers=layers, heads=heads)
    st.session_state["said"] = state.take_notes()
    state.publish()


def test_a_widget_and_a_click_change_the_same_view():
    """Both end in the view and in the address."""
    test = run(shell)
    test.text_input[0].set_value("Hello there").run()
    test.button[0].click().run()
    shown = test.session_state["shown"]
    assert (shown.sentence, shown.head, shown.word) == ("Hello there", 1, "t2")
    assert test.query_params == {"q": "Hello there", "head": "1", "word": "t2"}


def test_a_link_sets_the_widgets():
    """What the address says is what the controls show."""
    test = run(shell, q="Hello", model="tiny", mask="causal", layer="1", head="0")
    assert (test.text_input[0].value, test.selectbox[0].value) == ("Hello", "tiny")
    assert test.session_state["said"] == []


def test_a_link_to_a_head_that_is_not_there_is_brought_into_range():
    """5.8 becomes 1.3 where there are 2 × 4 heads, and a sentence says so."""
    test = run(shell, model="tiny", layer="5", head="8")
    assert (test.session_state["shown"].layer, test.session_state["shown"].head) == (1, 3)
    assert test.session_state["said"] == ["This model has 2 × 4 heads: showing layer 1, head 3."]
    test.run()
    assert test.session_state["said"] == []


def test_another_model_is_opened_on_its_own_head_unless_a_link_names_one():
    """Who is meant, of those trained here; 5.8 of MiniLM; 0.0 of a stranger; and nothing stays silenced."""
    test = run(shell, silence="1.1", head="3")
    for model, head in (("minilm", (5, 8)), ("tiny", (0, 0)), ("twin-encoder", home("twin-encoder"))):
        test.selectbox[0].set_value(model).run()
        shown = test.session_state["shown"]
        assert (shown.layer, shown.head) == head
        assert shown.silence == ""
        assert test.query_params == ({} if model == "twin-encoder" else {"model": model})
        assert test.session_state["said"] == []
    assert run(shell, model="minilm", head="3").session_state["shown"].layer == 5


def test_another_model_forgets_tokens_but_not_words():
    """Token 2 is something else to another tokenizer, word 8 is not."""
    test = run(shell)
    test.button[0].click().run()
    test.selectbox[0].set_value("tiny").run()
    assert (test.session_state["shown"].word, test.session_state["shown"].partner) == (None, "4")


def test_another_sentence_forgets_the_word_but_not_the_head():
    """And an example brings its own."""
    test = run(shell, head="3")
    test.text_input[0].set_value("Hello there").run()
    assert (test.session_state["shown"].word, test.session_state["shown"].head) == (None, 3)
    test.text_input[0].set_value(examples()[1].sentence).run()
    assert (test.session_state["shown"].word, test.session_state["shown"].partner) == ("8", "1")
