"""The frame round every page: text stays text, and errors end in a sentence."""

import pytest
from playwright.sync_api import Page
from streamlit.testing.v1 import AppTest

from app.shell import literal
from tests.conftest import settle, streamlit_server

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
    assert shown_by(test) == "shown: good, head 8"


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
    assert shown_by(test) == "shown: good, head 8"
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
