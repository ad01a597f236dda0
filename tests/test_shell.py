"""The frame round every page: text stays text, and errors end in a sentence."""

import pytest
from playwright.sync_api import Browser, Page, expect
from streamlit.testing.v1 import AppTest

from app.shell import literal
from app.view import View
from tests.conftest import Server, settle, streamlit_server

HOSTILE = (
    'a<b<c <s> "x" <img src=x onerror=alert(1)>',
    "**b** _i_ `c` $x^2$ $$y$$ \\alpha ~~s~~ [^1]",
    "https://example.com www.example.com WWW.example.com a@b.co",
    "[x](http://q.com) ![i](http://q.com/i.png)",
    ":smile: :red[x] :material/home: :streamlit:",
    "-> <- <-> >= <= ~= --- a -- b",
    "&amp; &lt; &#60;",
    "1. one",
    "- item",
    "# head",
    "> quote",
    "| a | b |",
)


def framed():
    """A page that fails as its sentence tells it to."""
    import streamlit as st

    from app import shell, state
    from engine.errors import TextError

    def page():
        shown = state.view()
        if shown.sentence == "bad":
            raise TextError("Type a *few* words.")
        if shown.sentence == "worse":
            raise ValueError("a secret path")
        st.write(f"shown: {shown.sentence}, head {shown.head}")

    st.text_input("Sentence", **state.mirror("sentence"))
    st.button("pick", on_click=lambda: state.set(head=1))
    shell.show(page, "Explore")


def shown_by(test: AppTest) -> str:
    """Give what the page itself wrote."""
    return " ".join(text.value for text in test.markdown)


def test_an_error_keeps_the_last_view_that_worked():
    """The sentence typed stays in the bar, the reason stands above, the old picture below."""
    test = AppTest.from_function(framed).run(timeout=30)
    test.text_input[0].set_value("good").run()
    test.text_input[0].set_value("bad").run()
    assert [error.value for error in test.error] == [literal("Type a *few* words.")]
    assert test.text_input[0].value == "bad"
    assert shown_by(test) == f"shown: good, head {View().head}"


def test_the_picture_that_stands_in_can_still_be_clicked():
    """A click on a head changes what is seen, though the sentence can't be shown."""
    test = AppTest.from_function(framed).run(timeout=30)
    test.text_input[0].set_value("bad").run()
    test.button[0].click().run()
    assert shown_by(test).endswith("head 1")
    assert len(test.error) == 1


def test_a_better_sentence_clears_the_error():
    """Nothing sticks."""
    test = AppTest.from_function(framed).run(timeout=30)
    test.text_input[0].set_value("bad").run()
    test.text_input[0].set_value("good").run()
    assert shown_by(test) == f"shown: good, head {View().head}"
    assert len(test.error) == 0


def test_an_unexpected_error_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture):
    """The reader gets a sentence, the operator the traceback."""
    test = AppTest.from_function(framed).run(timeout=30)
    test.text_input[0].set_value("worse").run()
    assert len(test.error) == 1
    assert len(test.exception) == 0
    assert "secret" not in test.error[0].value
    assert "a secret path" in caplog.text


@pytest.mark.browser
def test_hostile_text_shows_as_typed(page: Page, hosts: set[str], tmp_path_factory: pytest.TempPathFactory):
    """Whatever a user types shows letter for letter in labels and errors: no link, no picture, no formula."""
    script = tmp_path_factory.mktemp("hostile") / "script.py"
    script.write_text(
        "import streamlit as st\n"
        "from app.shell import literal\n"
        "from tests.test_shell import HOSTILE\n"
        "for number, text in enumerate(HOSTILE):\n"
        "    st.error(literal(text))\n"
        "    st.checkbox(literal(text), key=str(number))\n"
        "st.write('done')\n",
        encoding="utf-8",
    )
    with streamlit_server(
        script, script.parent, "--server.address=127.0.0.1", "--browser.gatherUsageStats=false"
    ) as server:
        page.goto(server.url)
        page.get_by_text("done", exact=True).wait_for()
        settle(page)
        for kind in ("stAlertContainer", "stCheckbox"):
            elements = page.get_by_test_id(kind)
            texts = [text.replace("\u2060", "").strip() for text in elements.all_inner_texts()]
            assert texts == list(HOSTILE)
            assert elements.locator("a, img, code, em, strong, del, s, li, h1, table, .katex").count() == 0
    assert hosts == {"127.0.0.1"}


@pytest.mark.browser
def test_back_undoes_a_click_and_forward_repeats_it(page: Page, app_server: Server):
    """Each change is a step in the browser's history, and the controls follow it."""
    page.goto(app_server.url)
    page.get_by_text("GPT-style", exact=True).click()
    page.wait_for_url("**/?mask=causal")
    settle(page)
    page.go_back()
    expect(page.get_by_role("radio", name="As trained", exact=True)).to_be_checked()
    page.go_forward()
    expect(page.get_by_role("radio", name="GPT-style", exact=True)).to_be_checked()


@pytest.mark.browser
def test_the_view_goes_along_to_another_page_and_back(page: Page, app_server: Server):
    """Sentence and mask are the reader's, whichever page shows them."""
    page.goto(app_server.url)
    page.get_by_label("Sentence").fill("Hello <b>there</b> & $x$ 100%")
    page.get_by_label("Sentence").press("Enter")
    page.wait_for_url("**/?q=Hello*")
    settle(page)
    page.get_by_role("link", name="Masks").click()
    page.wait_for_url("**/masks?q=Hello*")
    settle(page)
    assert page.get_by_label("Sentence").input_value() == "Hello <b>there</b> & $x$ 100%"
    for address in ("**/masks?q=Hello*", "**/?q=Hello*"):
        page.go_back()
        page.wait_for_url(address)
        settle(page)
        assert page.get_by_label("Sentence").input_value() == "Hello <b>there</b> & $x$ 100%"


@pytest.mark.browser
def test_a_copied_link_shows_the_same_view_elsewhere(page: Page, browser: Browser, app_server: Server):
    """What one reader copies another can open."""
    page.goto(app_server.url)
    page.get_by_text("BERT-style", exact=True).click()
    page.wait_for_url("**/?mask=bidirectional")
    settle(page)
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    elsewhere = browser.new_context().new_page()
    elsewhere.goto(link)
    expect(elsewhere.get_by_role("radio", name="BERT-style", exact=True)).to_be_checked(timeout=30_000)
    elsewhere.context.close()


@pytest.mark.browser
def test_a_broken_link_opens_with_a_note(page: Page, app_server: Server):
    """And the address is mended."""
    page.goto(f"{app_server.url}/?head=%00&layer=abc&mask=causal")
    page.get_by_text("“head” in the link could not be used").wait_for()
    page.get_by_text("“layer” in the link could not be used").wait_for()
    page.wait_for_url("**/?mask=causal")


@pytest.mark.browser
def test_a_long_sentence_in_another_script_survives_reloading(page: Page, app_server: Server):
    """2,000 letters of Devanagari are 18,000 characters of address."""
    sentence = ("दुकानदार " * 223)[:2000].strip()
    page.goto(app_server.url)
    page.get_by_label("Sentence").fill(sentence)
    page.get_by_label("Sentence").press("Enter")
    page.wait_for_function("location.search.length > 10000")
    page.reload()
    expect(page.get_by_label("Sentence")).to_have_value(sentence)


@pytest.mark.browser
def test_the_app_starts_clean_and_speaks_to_nobody_else(page: Page, hosts: set[str], app_server: Server):
    """Started from /, its settings hold: one host, one address, no statistics, no traceback."""
    page.goto(app_server.url)
    page.get_by_label("Sentence").wait_for()
    settle(page)
    log = app_server.log.read_text(encoding="utf-8")
    assert hosts == {"127.0.0.1"}
    assert "URL: http://127.0.0.1" in log
    assert not any(word in log for word in ("Traceback", "WARNING", "External URL", "Network URL", "usage statistics"))


@pytest.mark.browser
def test_a_reader_can_choose_light_or_dark(page: Page, app_server: Server):
    """The menu offers both, and the page follows."""
    page.goto(app_server.url)
    page.get_by_label("Sentence").wait_for()
    settle(page)
    colour = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    page.get_by_test_id("stMainMenuButton").click()
    page.get_by_role("menuitemradio", name="Dark").click()
    page.wait_for_function(f"{colour} === 'rgb(18, 24, 27)'")
