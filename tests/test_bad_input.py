"""What goes wrong ends in a sentence: the page stays, and what was typed shows letter for letter."""

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Dialog, Page, expect
from safetensors.torch import load_file, save_file
from streamlit.testing.v1 import AppTest

from app import cache, scene
from app.view import MAX_CHARACTERS, View
from engine import Mask, MaskError, Model, load
from tests.app_pages import (
    MODEL_PAGES,
    PAGES,
    errors,
    figures,
    hover_names,
    on_minilm,
    operator_allows,
    ribbon_weights,
    ribbon_words,
    said,
    typed,
    view_of,
)
from tests.conftest import ROOT, Server, settle, streamlit_server
from tests.tiny_models import save

HOSTILE = 'a<b<c <s> "x" <img src=x onerror=alert(1)>'
MARKUP = "It costs $5 or $6 for __init__ *now*"
NOTHING = "Type a sentence first: there is nothing to read yet."


@pytest.mark.parametrize("nothing", ["", "   ", "\n", "\u200b", "\u00a0\t"])
@pytest.mark.parametrize("page", MODEL_PAGES)
def test_without_a_sentence_the_page_asks_for_one_and_keeps_the_last_picture(page: str, nothing: str):
    """And the next sentence works."""
    test = typed(on_minilm(page), nothing)
    assert errors(test) == [NOTHING]
    assert "Below is still the view of the last sentence, “The shopkeeper gave the customer" in said(test)
    assert len(figures(test)) > 0
    assert errors(typed(test, "hi")) == []
    assert "3 of 512 tokens" in said(test)


def test_five_thousand_words_are_cut_twice_and_each_cut_is_told():
    """The bar keeps 2,000 characters, the model 512 tokens; then "hi" works."""
    test = typed(on_minilm(), "an " * 5000)
    assert errors(test) == []
    assert len(str(test.text_input(key="sentence").value)) == MAX_CHARACTERS
    assert "Only the first 2,000 of 15,000 characters are read." in said(test)
    assert "The text makes 669 tokens and 512 is the most that can be read: the last 157 are left out." in said(test)
    assert "512 of 512 tokens" in said(test)
    assert errors(typed(test, "hi")) == []
    assert "left out" not in said(test)
    assert "characters are read" not in said(test)


def test_six_hundred_words_are_counted_and_the_cut_is_shown():
    """602 tokens with [CLS] and [SEP]; 510 words remain."""
    test = typed(on_minilm(), "at " * 600)
    assert "The text makes 602 tokens and 512 is the most that can be read: the last 90 are left out." in said(test)
    assert ribbon_weights(test).shape == (510, 510)
    assert "3 of 512 tokens" in said(typed(test, "hi"))


def test_what_is_not_in_the_vocabulary_is_named():
    """An emoji is one unknown token and keeps its own face in the ribbon."""
    test = typed(on_minilm(), "😀 hello 👩\u200d👩\u200d👧\u200d👦 there")
    assert errors(test) == []
    assert "Not in the model's vocabulary, so read as [UNK]: “😀”, “👩\u200d👩\u200d👧\u200d👦”." in said(test)
    assert ribbon_words(test) == ["😀", "hello", "👩\u200d👩\u200d👧\u200d👦", "there"]


@pytest.mark.parametrize("sign", ["\x00", "\x07", "\x7f"])
def test_characters_that_cannot_be_read_are_replaced_and_the_link_still_works(sign: str):
    """What stands in the address reads back as what is shown."""
    test = typed(on_minilm(), f"a{sign}b hello")
    assert errors(test) == []
    assert "Characters that cannot be read became “\ufffd”." in said(test)
    again = on_minilm(q=test.query_params["q"])
    assert "could not be used" not in said(again)
    assert ribbon_words(again) == ribbon_words(test)


def test_half_a_surrogate_pair_in_the_session_is_replaced():
    """It can't be sent to a browser, so it must not come into the view."""

    def script():
        import streamlit as st

        from app import state

        st.button("type", on_click=lambda: state.set(sentence="hello \ud800 there", target="\udfff"))
        st.text(state.asked().sentence + state.asked().target)
        state.publish()

    test = AppTest.from_function(script).run(timeout=30)
    test.button[0].click().run()
    assert test.text[0].value == "hello \ufffd there\ufffd"
    assert len(test.exception) == 0


@pytest.mark.parametrize("text", [HOSTILE, MARKUP, "**b** :smile: [x](http://q.com) `c` $$y$$"])
@pytest.mark.parametrize("page", PAGES)
def test_markup_stays_what_was_typed(page: str, text: str):
    """Plotly's ticks and hover names are escaped, the ribbon gets plain text, nothing fails."""
    test = typed(on_minilm(page), text)
    assert errors(test) == []
    if page == "explore":
        assert "".join(ribbon_words(test)) == text.replace(" ", "")
        for axis in ("x", "y"):
            assert not any("<" in name or name[0] == "$" for name in hover_names(figures(test)[0], axis))


def test_vowel_signs_that_a_tokenizer_strips_are_told_and_words_stay_whole():
    """MiniLM's tokenizer drops accents and with them Hindi's vowel signs; the ribbon shows what was typed."""
    test = typed(on_minilm(), "अपने पोस्ट ऑफिस में")
    assert "The tokenizer drops accents or vowel signs: “अपने” is read as “अपन”" in said(test)
    assert ribbon_words(test) == ["अपने", "पोस्ट", "ऑफिस", "में"]


def test_right_to_left_words_keep_their_order_and_rows():
    """Four words, four rows, in the order in which they were typed."""
    test = typed(on_minilm(), "שלום עולם טוב abc")
    assert errors(test) == []
    assert ribbon_words(test) == ["שלום", "עולם", "טוב", "abc"]
    assert view_of(test, "ribbon")["pinned"] == 3


def test_a_script_without_spaces_stays_at_tokens_and_says_so():
    """There are no words to join to."""
    test = typed(on_minilm(), "我喜欢自然语言处理")
    assert errors(test) == []
    assert "This script writes no spaces between words, so the words view shows tokens." in said(test)
    assert len(ribbon_words(test)) == 9


@pytest.mark.parametrize(
    ("parameter", "text", "note"),
    [
        ("layer", "99", "This model has 6 × 12 heads: showing layer 5, head 8."),
        ("head", "12", "This model has 6 × 12 heads: showing layer 5, head 11."),
        ("head", "abc", "“head” in the link could not be used, so the default is shown."),
        ("model", "nope", "“model” in the link could not be used, so the default is shown."),
        ("model", "../../etc", "“model” in the link could not be used, so the default is shown."),
        ("word", "%00", "“word” in the link could not be used, so the default is shown."),
        ("word", "\x00", "“word” in the link could not be used, so the default is shown."),
        ("mask", "foo", "“mask” in the link could not be used, so the default is shown."),
        ("mask", "window:0", "“mask” in the link could not be used, so the default is shown."),
        ("rescale", "2", "“rescale” in the link could not be used, so the default is shown."),
        ("min", "-1", "“min” in the link could not be used, so the default is shown."),
        ("q", ["one", "two"], "“q” (the sentence) in the link could not be used, so the default is shown."),
        ("q", "a\x00b", "“q” (the sentence) in the link could not be used, so the default is shown."),
        ("q", "x" * 2001, "Only the first 2,000 of 2,001 characters are read."),
        ("word", "999", "“word=999” in the link names no word of this sentence: another is picked."),
        ("word", "t15", "“word=t15” in the link names no word of this sentence: another is picked."),
        ("to", "999", "“to=999” in the link names no word of this sentence: another is picked."),
        ("kind", "cross", "“kind=cross” in the link means nothing to this model and is left out."),
        ("target", "hello", "“target” in the link is left out: this model reads only one sentence."),
    ],
)
def test_a_link_that_asks_for_what_is_not_there_shows_the_default_with_a_note(
    parameter: str, text: str | list[str], note: str
):
    """No error, the rest of the link still counts, and the address is mended."""
    test = on_minilm(**{parameter: text, "colour": "log"})
    assert errors(test) == []
    assert note in said(test)
    assert test.query_params["colour"] == "log"
    assert test.query_params.get(parameter) != text
    assert note not in said(test.run())


def test_a_word_beyond_the_sentence_falls_back_to_the_last():
    """A link to word 55 of a sentence of two."""
    test = on_minilm(q="hello there", word="55", to="t99")
    assert errors(test) == []
    assert view_of(test, "ribbon")["pinned"] == 1


def test_a_mask_that_does_not_fit_the_sentence_is_explained_and_the_last_view_stays():
    """Documents of 3 and 4 tokens are not 15."""
    test = on_minilm(mask="document:3,4")
    assert errors(test) == ["The document lengths 3, 4 add up to 7, not to the 15 tokens."]
    assert len(figures(test)) == 1


def test_a_model_that_vanished_is_explained_and_the_last_view_stays():
    """Its folder was removed while the page was open."""

    def prepare(test: AppTest) -> None:
        test.session_state["view"] = View(model="gone")

    test = on_minilm("explore", prepare)
    there = ", ".join(entry.id for entry in cache.entries())
    assert there.endswith("minilm, minilm-scratch")
    assert errors(test) == [f"There is no model 'gone' here. There is: {there}."]
    assert ribbon_words(test)[8] == "she"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An operator's folder with a pickle, weights under a wrong prefix, weights cut short, and one good model."""
    root = tmp_path_factory.mktemp("broken")
    good = save("bert", root / "good")
    for name in ("pickle", "prefix", "short", "without"):
        shutil.copytree(good, root / name)
    (root / "pickle" / "model.safetensors").rename(root / "pickle" / "pytorch_model.bin")
    weights = load_file(good / "model.safetensors")
    save_file({f"wrong.{name}": weights[name] for name in weights}, root / "prefix" / "model.safetensors")
    (root / "without" / "tokenizer.json").unlink()
    path = root / "short" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-5000])
    return root


@pytest.mark.parametrize("name", ["pickle", "short"])
def test_a_checkpoint_that_is_a_pickle_or_broke_off_is_not_offered(broken: Path, name: str):
    """A pickle could run code; a link to either is refused like any unknown model."""
    with operator_allows(broken):
        test = on_minilm(model=str(broken / name))
        options = test.selectbox(key="model").options
    assert not any(option.startswith(name) for option in options)
    assert any(option.startswith("good") for option in options)
    assert "“model” in the link could not be used" in said(test)


@pytest.mark.parametrize("name", ["prefix", "without"])
@pytest.mark.parametrize("page", MODEL_PAGES)
def test_a_model_that_fails_to_load_is_explained_and_the_last_view_stays(broken: Path, page: str, name: str):
    """One sentence that names it, no traceback, the picture of before; picking another model mends it."""
    with operator_allows(broken):
        test = on_minilm(page, head="3")
        before = [figure["data"] for figure in figures(test)]
        test.selectbox(key="model").set_value(str(broken / name)).run()
        (message,) = errors(test)
        assert name in message
        assert "Traceback" not in message
        assert [figure["data"] for figure in figures(test)] == before
        test.selectbox(key="model").set_value("minilm").run()
        assert errors(test) == []


def test_a_model_that_fails_is_loaded_once_for_each_try(
    broken: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """Clicks on the picture that stands in don't load it again."""
    tries: list[str] = []

    def counted(name: str, **settings: Any) -> Model:
        tries.append(name)
        return load(name, **settings)

    with operator_allows(broken):
        monkeypatch.setattr(cache, "load", counted)
        test = on_minilm(model=str(broken / "prefix"))
        assert len(errors(test)) == 1
        other = next(one for one in test.button if str(one.key).startswith("rank_") and one.proto.type == "secondary")
        layer, head = (int(number) for number in str(other.key).split("_")[1:])
        other.click().run()
        assert (view_of(test, "grid")["layer"], view_of(test, "grid")["head"]) == (layer, head)
        assert len(errors(test)) == 1
        assert tries.count(str(broken / "prefix")) == 1
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_an_unexpected_failure_is_one_sentence_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """The reader isn't shown paths and lines; the log has them."""

    def fail(*_: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(scene, "shown", fail)
    test = on_minilm()
    assert errors(test) == ["Something went wrong here, and it is not your doing. Another sentence or model may work."]
    assert "/secret/path" in caplog.text


def test_masks_that_a_link_cannot_carry_are_refused_by_the_engine_too():
    """The address is not the only door."""
    for spec in ("foo", "window:0", "prefix:-1"):
        with pytest.raises(MaskError):
            Mask.parse(spec)


@pytest.mark.browser
def test_html_is_drawn_letter_by_letter_in_a_browser(page: Page, hosts: set[str], app_server: Server):
    """No dialog, no image, no strike-through: in words, ticks, hover and captions, on both pages."""
    dialogs: list[str] = []

    def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    page.goto(app_server.url)
    page.get_by_test_id("ribbon").wait_for()
    for text in (HOSTILE, MARKUP):
        page.get_by_label("Sentence").fill(text)
        page.get_by_label("Sentence").press("Enter")
        first = page.locator("[data-testid=chip] bdi").first
        expect(first).to_have_text("a" if text is HOSTILE else "It")
        settle(page)
        words = [word.strip() for word in page.locator("[data-testid=chip] bdi").all_inner_texts()]
        assert "".join(words) == text.replace(" ", "")
        ticks = page.locator(".js-plotly-plot .y2tick text, .js-plotly-plot .ytick text").all_text_contents()
        assert (">" if text is HOSTILE else "$") in ticks
        assert (
            page.locator("[data-testid=stMain] img, .js-plotly-plot a, s, .katex, [data-testid=ribbon] em").count() == 0
        )
    page.get_by_role("link", name="Masks").click()
    page.get_by_text("Who may see whom").wait_for()
    settle(page)
    page.get_by_label("Sentence").fill(HOSTILE)
    page.get_by_label("Sentence").press("Enter")
    expect(page.get_by_text("The outlined row is").first).to_contain_text("1")
    settle(page)
    assert page.locator("[data-testid=stMain] img, .js-plotly-plot a, s").count() == 0
    assert dialogs == []
    assert hosts == {"127.0.0.1"}


@pytest.mark.browser
def test_what_a_browser_cannot_send_does_not_end_the_session(page: Page, tmp_path: Path):
    """Half a surrogate pair breaks the connection; it comes back, and the next sentence works."""
    # A server of its own, since Streamlit logs the broken message with a traceback.
    with streamlit_server(ROOT / "app" / "main.py", tmp_path) as server:
        page.goto(f"{server.url}/?q=a%ED%A0%80b")
        page.get_by_test_id("ribbon").wait_for()
        settle(page)
        field = page.get_by_label("Sentence")
        field.evaluate(
            """(element) => {
              const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
              set.call(element, "hello " + String.fromCharCode(0xd800));
              element.dispatchEvent(new Event("input", { bubbles: true }));
            }"""
        )
        field.press("Enter")
        page.wait_for_timeout(1500)
        field.fill("hello there")
        field.press("Enter")
        expect(page.get_by_test_id("chip").nth(1)).to_contain_text("there", timeout=30_000)
        assert page.get_by_test_id("stException").count() == 0
