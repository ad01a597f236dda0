"""Build in a real browser: every switch changes the count, the diagram or the figures, and the address keeps it."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import Server, settle

HEADING = re.compile(r"with [\d,]+ parameters")
SHOWN = ".flow, .steps, .js-plotly-plot"  # diagram, table and figures
MORE = "More switches"


def pick(page: Page, label: str, choice: str) -> None:
    """Choose from a box."""
    option = page.get_by_role("option", name=choice, exact=True)
    for _ in range(3):  # a box that is drawn anew while it is pressed closes again
        page.get_by_role("combobox", name=label, exact=True).click()
        page.wait_for_timeout(500)
        if option.count():
            break
    option.click()
    settle(page)


def press(page: Page, label: str, choice: str) -> None:
    """Choose one of the buttons that belong together."""
    page.get_by_role("radiogroup", name=label, exact=True).get_by_text(choice, exact=True).click()
    settle(page)


def flip(page: Page, label: str) -> None:
    """Turn something on or off."""
    page.get_by_text(label, exact=True).click()
    settle(page)


def total(page: Page) -> int:
    """The number of parameters in the page's headline."""
    text = str(page.get_by_role("heading", name=HEADING).text_content())
    return int(re.search(r"([\d,]+) parameters", text)[1].replace(",", ""))  # type: ignore[index]


def look(page: Page) -> str:
    """Count, diagram, table, what the figures say, and the outlined row, as text."""
    row = page.get_by_text(re.compile("The outlined row is|The row from the cache")).all_text_contents()
    return "\n".join([str(total(page)), *page.locator(SHOWN).all_text_contents(), *row])


@pytest.fixture
def build(page: Page, app_server: Server) -> Page:
    """The page, drawn."""
    page.goto(f"{app_server.url}/build")
    expect(page.get_by_role("heading", name=HEADING)).to_be_visible(timeout=60_000)
    expect(page.locator(".flow")).to_be_visible(timeout=30_000)
    expect(page.locator(".js-plotly-plot")).to_have_count(5, timeout=30_000)
    settle(page)
    return page


def changed(page: Page, label: str, choice: str = "") -> None:
    """Turn a switch and wait until something else is to be seen.

    Args:
        page: the page.
        label: of the switch.
        choice: what to pick from a box or to press; empty for something that is turned on or off.
    """
    before = look(page)
    if not choice:
        flip(page, label)
    elif page.get_by_role("radiogroup", name=label, exact=True).count():
        press(page, label, choice)
    else:
        pick(page, label, choice)
    for _ in range(50):  # figures are drawn a moment after the script has run
        if look(page) != before:
            return
        page.wait_for_timeout(100)
    pytest.fail(f"{label}: {choice or 'flipped'} changes nothing that is drawn or counted")


def test_every_switch_of_a_decoder_changes_what_is_drawn_or_counted(build: Page):
    """One after the other, on the page as it opens; at the end, the link reproduces all of it."""
    for label, choice in (
        ("Feed-forward", "GELU"),
        ("Norm", "LayerNorm"),
        ("Norm before or after each part", "After (post)"),
        ("Width", "128"),
        ("Depth, in layers", "3"),
        ("Heads", "8"),
        ("Key-value heads", "8 · MHA"),
        ("Inner width", "512 (4 ×)"),
        ("Mask: who sees whom", "Sliding window"),
        ("Window, in tokens", "2"),
        ("Mask: who sees whom", "Both ways"),
        ("Mask: who sees whom", "Only the past"),
        ("Positions", "T5 buckets"),
        ("Positions", "Learned"),
        ("Layer", "2"),
        ("Head", "3"),
    ):
        changed(build, label, choice)
    flip(build, MORE)
    for label, choice in (
        ("Vocabulary", "5,000"),
        ("Longest text, in tokens", "1,024"),
        ("Head: what scores the tokens", "Its own matrix"),
        ("Biases: a learned constant in every linear layer", ""),
        ("Norm queries and keys, too", ""),
    ):
        changed(build, label, choice)
    last = look(build)
    build.goto(build.url)
    expect(build.get_by_role("heading", name=HEADING)).to_be_visible(timeout=30_000)
    expect(build.locator(".js-plotly-plot")).to_have_count(5, timeout=30_000)
    settle(build)
    assert look(build) == last


def test_an_encoder_and_decoder_have_two_halves_and_three_kinds_of_attention(build: Page):
    """Family, half and kind change what is drawn as well."""
    for label, choice in (
        ("Family", "BERT-style"),
        ("Family", "Encoder–decoder"),
        ("Look at", "Its encoder"),
        ("Look at", "Its decoder"),
        ("Attention", "In the decoder"),
    ):
        changed(build, label, choice)


def test_each_step_of_writing_is_another_row(build: Page):
    """The slider moves the row and its outline."""
    before = look(build)
    slider = build.get_by_role("slider")
    slider.focus()
    slider.press("ArrowRight")
    settle(build)
    expect(build.get_by_text("step 2: 1 query × 14 keys")).to_be_visible()
    assert look(build) != before


def test_counts_follow_the_switches(build: Page):
    """Less sharing is dearer, a gate is a third matrix, depth adds layers."""
    start = total(build)
    pick(build, "Key-value heads", "4 · MHA")
    shared = total(build)
    assert shared > start
    press(build, "Feed-forward", "GELU")
    plain = total(build)
    assert plain < shared
    pick(build, "Depth, in layers", "4")
    assert total(build) > plain


def test_a_known_model_fills_every_switch(build: Page):
    """GPT-2 has its published number and its learned positions."""
    changed(build, "Start from", "GPT-2")
    assert total(build) == 124_439_808
    expect(build.locator(".flow").get_by_text("+ learned positions")).to_be_visible()
