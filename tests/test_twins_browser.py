"""A class looks at the twins, in a real browser: the twin beside the masks, where it can know, and a head silenced."""

import re

import pytest
from playwright.sync_api import Page, expect

from app.homes import FIRST, home
from tests.conftest import Server, settle

pytestmark = pytest.mark.browser

LAYER, HEAD = home(FIRST)
UNKNOWN = "The+wizard+gave+the+elf+a+sword+because+she+was+generous"


def arrive(page: Page, address: str) -> None:
    """Open an address and wait until all is drawn."""
    page.goto(address)
    page.get_by_test_id("grid").wait_for()
    settle(page)


def test_a_class_sees_the_twin_where_it_can_know_and_what_a_head_is_for(page: Page, app_server: Server):
    """One page, four clicks: the twin, the end of the reason, the head silenced, every head in turn."""
    arrive(page, app_server.url)
    title = page.locator(".js-plotly-plot .gtitle").first
    expect(title).to_have_text(f"layer {LAYER}, head {HEAD}")

    page.get_by_text("Twin, trained GPT-style", exact=True).click()
    page.wait_for_url("**/?mask=twin")
    expect(title).to_have_text(re.compile("^Twin decoder: layer"))
    expect(page.get_by_text("cannot know who is meant")).to_be_visible()

    page.get_by_role("button", name="Go to regular, where it can know").click()
    page.wait_for_url("**/?mask=twin&word=11")
    chip = page.locator("[data-testid=chip]").filter(has=page.get_by_text("regular", exact=True))
    expect(chip).to_have_class(re.compile(r"\bpinned\b"))
    expect(page.get_by_text("can know", exact=True)).to_be_visible()
    settle(page)
    line = page.locator(".st-key-answer")
    expect(line).not_to_contain_text("→")

    page.get_by_text("Silence this head").click()
    page.wait_for_url(f"**/?mask=twin&silence={LAYER}.{HEAD}&word=11")
    expect(line).to_contain_text(re.compile(r"customer [\d.<]+\s%\s*→\s*[\d.<]+\s%"))
    expect(title).to_have_text(re.compile(", silenced$"))

    page.get_by_role("button", name="Every head in turn").click()
    expect(page.get_by_text("Every head silenced in turn:")).to_be_visible()
    expect(page.get_by_text("points lost by the right answer")).to_be_attached()
    expect(page.get_by_test_id("stException")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_word_never_met_is_underlined_and_read_out_as_such(page: Page, app_server: Server, scheme: str):
    """By eye and by ear, and nothing else is."""
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    arrive(page, f"{app_server.url}/?q={UNKNOWN}")
    marked = page.locator("[data-testid=chip].unmet")
    assert [" ".join(text.split()) for text in marked.locator("bdi").all_inner_texts()] == ["wizard", "elf", "sword"]
    expect(marked.first).to_have_attribute("aria-label", re.compile("^wizard, a word the model has never met: "))
    line = marked.first.locator("bdi").evaluate("word => getComputedStyle(word).textDecorationLine")
    assert line == "underline"
