"""Train in a real browser: a head finds it while one watches, is rewound, and a second session waits."""

import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import Server, settle

SCORE = re.compile(r"layer 1: induction (0\.\d\d|1\.00)")
WITHIN = 60_000  # milliseconds, in which an induction head has to be there


def score(page: Page) -> float:
    """The induction score that stands above the second layer's map, where it is seen."""
    seen = page.locator(".gtitle").filter(visible=True)
    found = SCORE.search(" ".join(seen.all_text_contents()))
    return float(found[1]) if found else 0.0


def start(page: Page, server: Server, query: str = "") -> None:
    """Open the page and press Start."""
    page.goto(f"{server.url}/train{query}")
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_visible(timeout=60_000)
    expect(page.locator(".js-plotly-plot").first).to_be_visible(timeout=60_000)
    settle(page)
    page.get_by_role("button", name="Start", exact=True).click()


@pytest.mark.browser
def test_an_induction_head_appears_while_one_watches_and_is_rewound(page: Page, app_server: Server):
    """Above 0.8 within a minute of pressing Start; paused; at step 0 it is at chance; gone on with from there."""
    page.goto(f"{app_server.url}/train?steps=1600")  # so that it still runs when Pause is pressed
    expect(page.locator(".gtitle", has_text=SCORE).first).to_be_visible(timeout=60_000)
    settle(page)
    assert score(page) < 0.2
    page.get_by_role("button", name="Start", exact=True).click()
    seen = [score(page)]
    for _ in range(WITHIN // 250):
        page.wait_for_timeout(250)
        seen.append(score(page))
        if seen[-1] > 0.8:
            break
    assert seen[-1] > 0.8
    assert any(0.0 < one < 0.8 for one in seen)  # it was seen on its way
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text(re.compile(r"Paused after [\d,]+ steps"))).to_be_visible(timeout=60_000)
    slider = page.get_by_role("slider").first
    slider.focus()
    slider.press("Home")
    expect(page.get_by_text("Nothing is learned yet")).to_be_visible(timeout=60_000)
    settle(page)
    assert score(page) < 0.2
    slider.press("End")
    expect(page.get_by_text("Found.")).to_be_visible(timeout=60_000)
    slider.press("Home")
    page.get_by_role("button", name="Go on from step 0").click()
    expect(page.get_by_text(re.compile(r"Step [\d,]+ of 1,600"))).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Start again")).to_be_visible(timeout=60_000)
    assert page.get_by_test_id("stException").count() == 0


@pytest.mark.browser
def test_a_second_session_is_told_to_wait_and_then_trains(page: Page, app_server: Server, browser: Browser):
    """The first one's training is long; it is told that somebody waits, and cancels."""
    start(page, app_server, "?learn=pronoun&steps=1600")
    expect(page.get_by_role("button", name="Pause")).to_be_visible(timeout=60_000)
    window = browser.new_context(viewport={"width": 1440, "height": 900})
    other = window.new_page()
    start(other, app_server, "?layers=1&steps=200")
    expect(other.get_by_text("One training is before yours.")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("Others are waiting, so it goes as fast as it can.")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Cancel").click()
    expect(other.get_by_text("Done after 200 steps.")).to_be_visible(timeout=240_000)
    expect(other.get_by_text("One layer never gets there")).to_be_visible(timeout=60_000)
    expect(page.get_by_text(re.compile(r"Cancelled after [\d,]+ steps"))).to_be_visible(timeout=60_000)
    window.close()


@pytest.mark.browser
def test_a_closed_page_makes_room(page: Page, app_server: Server, browser: Browser):
    """Its training ends, and whoever waits begins."""
    window = browser.new_context()
    gone = window.new_page()
    start(gone, app_server, "?steps=1600&learn=pronoun")
    expect(gone.get_by_role("button", name="Pause")).to_be_visible(timeout=60_000)
    start(page, app_server, "?steps=200")
    expect(page.get_by_text("One training is before yours.")).to_be_visible(timeout=60_000)
    window.close()
    expect(page.get_by_text("Done after 200 steps.")).to_be_visible(timeout=240_000)


BLANK = """() => { window.blank = new Set(); window.looked = 0; const look = () => { window.looked += 1;
  for (const pair of document.querySelectorAll('[class*="st-key-turning_"]')) {
    const seen = [...pair.querySelectorAll('.main-svg')].some(one => getComputedStyle(one).visibility === 'visible');
    if (!seen) window.blank.add(pair.className); }
  requestAnimationFrame(look); }; look(); }"""


@pytest.mark.browser
def test_no_chart_is_blank_for_a_single_frame_of_a_training(page: Page, app_server: Server):
    page.goto(f"{app_server.url}/train?steps=200")
    expect(page.locator(".js-plotly-plot").first).to_be_visible(timeout=60_000)
    settle(page)
    page.evaluate(BLANK)
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_text("Done after 200 steps.")).to_be_visible(timeout=60_000)
    page.wait_for_timeout(1000)
    assert page.evaluate("window.looked") > 20
    assert page.evaluate("[...window.blank]") == []


def workers(server: Server) -> set[int]:
    """The processes that the app has started and that still run."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, *_ = status.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(parent) == server.pid and state != "Z":
            found.add(int(status.parent.name))
    return found


@pytest.mark.browser
def test_a_page_that_is_loaded_anew_ends_its_training_and_frees_its_place(page: Page, app_server: Server):
    """It says so before; after that the process is gone, and the next training begins."""
    before = workers(app_server)
    start(page, app_server, "?steps=1600&learn=pronoun")
    expect(page.get_by_text("Reloading the page ends it.")).to_be_visible(timeout=60_000)
    (worker,) = workers(app_server) - before
    page.reload()
    expect(page.get_by_text("Press Start.")).to_be_visible(timeout=60_000)
    settle(page)
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible(timeout=60_000)
    end = time.monotonic() + 20
    while worker in workers(app_server) and time.monotonic() < end:
        time.sleep(0.2)
    assert worker not in workers(app_server)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name=re.compile("^Start"))).to_be_visible(timeout=60_000)
