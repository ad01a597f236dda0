"""The page Train without a browser: what it opens on, what it says, and that it follows a training."""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from app import cache
from app.train_copying import besides
from app.train_copying_words import found
from app.train_lesson import Course
from app.train_plan import LESSONS, is_same_model, plan_of, preset_of
from app.train_pronoun_words import by_chance
from app.train_queue import Seen
from app.train_turning import SHOWN
from app.train_words import stage_text
from app.view import View
from engine.training.batches import VOCABULARY
from engine.training.copying import Copying
from engine.training.history import Checkpoint, Plan, Point
from engine.training.induction import after_equal
from engine.training.referent import Referent, shown_cell
from tests.app_pages import choice, errors, opened, plain, protos, said, title_of


@pytest.fixture(autouse=True)
def trainer() -> Iterator[None]:
    """A trainer that knows nobody, for each test."""
    cache.trainer.clear()
    yield
    cache.trainer().forget()
    cache.trainer.clear()


def button(test: AppTest, name: str) -> Any:
    """The button with this name."""
    return next(one for one in test.button if one.label == name)


def names(test: AppTest) -> list[str]:
    """What the buttons of the training are called."""
    return [one.label for one in test.button if str(one.key).startswith("train_")]


def figures(test: AppTest) -> list[dict[str, Any]]:
    """The figures that are seen: of each pair in one place, the newer."""
    turns = test.session_state[SHOWN]
    seen = {f"{key}_{held.now}" for key, held in turns.items()} | {"finetuning"}
    return [json.loads(one.spec) for one in protos(test, "plotly_chart") if one.id.rpartition("-")[2] in seen]


def titles(test: AppTest) -> list[str]:
    """What the figures are called."""
    return [title_of(figure) for figure in figures(test)]


def through(test: AppTest, seconds: float = 120) -> AppTest:
    """Look again and again until nothing moves any more."""
    end = time.monotonic() + seconds
    while "train_pause" in [one.key for one in test.run().button] or "Leave the line" in names(test):
        assert time.monotonic() < end, said(test)
        time.sleep(0.3)
    return test


def test_the_page_opens_on_the_model_before_its_first_step():
    """Curves with one point, untrained maps, and what to press; nothing runs."""
    test = opened("train")
    assert errors(test) == []
    assert names(test) == ["Start"]
    assert "Below is the model before its first step. Press Start." in said(test)
    assert "Nothing is learned yet" in said(test)
    loss, score, first, second, *_ = titles(test)
    assert (loss, score) == ("Loss: how surprised it is", "Induction score of each head")
    assert re.fullmatch(r"layer 0: induction 0\.\d\d", first)
    assert re.fullmatch(r"layer 1: induction 0\.\d\d", second)
    assert cache.trainer()._jobs == {}


def test_the_formula_the_baselines_and_the_reasons_are_there():
    text = said(opened("train"))
    assert "knows nothing" in str(figures(opened("train"))[0])
    assert "looks one back" in text
    assert "Olsson et al. 2022" in text
    assert any("induction score" in one.value for one in opened("train").latex)


@pytest.mark.parametrize(
    ("chosen", "models", "preset"),
    [
        ({}, (Copying(),), "two"),
        ({"layers": "1"}, (Copying(depth=1),), "one"),
        ({"beside": "one"}, (Copying(), Copying(depth=1)), "beside"),
        ({"period": "8"}, (Copying(period=8),), "fixed"),
        ({"layers": "3", "perlayer": "4", "orderby": "rotary", "rate": "0.03", "seed": "7"},
         (Copying(3, 4, "rotary", 0.03, 7),), None),
        ({"beside": "seed", "seed": "3"}, (Copying(seed=3), Copying(seed=4)), None),
        ({"learn": "pronoun"}, (Referent(True), Referent(False)), "both"),
        ({"learn": "pronoun", "twin": "untaught", "seed": "2"}, (Referent(False, seed=2),), "untaught"),
        ({"learn": "pronoun", "twin": "taught", "twinrate": "0.01"}, (Referent(True, 0.01),), None),
    ],
    ids=str,
)  # fmt: skip
def test_every_choice_in_the_address_makes_its_models_and_is_drawn(
    chosen: dict[str, str], models: tuple[Any, ...], preset: str | None
):
    test = opened("train", **chosen)
    assert errors(test) == []
    assert "could not be used" not in said(test)
    assert test.query_params == chosen
    view = test.session_state["view"]
    assert plan_of(view).settings == models
    assert preset_of(view) == preset
    assert sum(title.startswith("Loss") for title in titles(test)) == len(models)


BAD = {
    "learn": "chess", "layers": "4", "perlayer": "0", "orderby": "alibi", "rate": "1", "seed": "-1", "period": "7",
    "beside": "me", "steps": "401", "pace": "hurry", "twin": "maybe", "twinrate": "0.5",
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_address_falls_back_and_says_so(name: str):
    test = opened("train", **{name: BAD[name]})
    assert errors(test) == []
    assert "could not be used, so the default is shown" in said(test)


def test_a_prepared_choice_sets_what_it_says_and_keeps_the_seed():
    test = opened("train", seed="5", perlayer="4")
    preset = choice(test, "train_preset")
    assert preset.value is None
    preset.set_value("fixed").run()
    assert test.query_params == {"seed": "5", "period": "8"}
    assert "Fixed period" in str(preset.proto)


def test_a_training_is_started_followed_rewound_and_gone_on_with():
    """As a reader would: start, see it found, look back, go on from there."""
    test = opened("train", steps="200", pace="fast")
    button(test, "Start").click().run()
    assert names(test) == ["Pause", "Cancel"] or "Start again" in names(test)
    through(test)
    assert errors(test) == []
    assert "Done after 200 steps." in said(test)
    assert "Found. Layer 1, head 0 gives 9" in said(test)
    assert "looks one back" in said(test)
    assert names(test) == ["Start again", "Go on from step 200"]
    slider = test.select_slider(key="train_at")
    slider.set_value(0).run()
    assert "Nothing is learned yet" in said(test)
    assert re.search(r"layer 1: induction 0\.0\d", " ".join(titles(test)))
    test.select_slider(key="train_at").set_value(100).run()
    button(test, "Go on from step 100").click().run()
    through(test)
    assert "Done after 300 steps." in said(test)
    assert test.select_slider(key="train_at").options[-1] == "step 300"


def test_another_choice_shows_the_new_model_and_the_old_result_comes_back():
    test = opened("train", steps="200", pace="fast")
    button(test, "Start").click().run()
    through(test)
    preset = choice(test, "train_preset")
    preset.set_value("one").run()
    assert "below is the new model before its first step" in said(test)
    assert "Nothing is learned yet" in said(test)
    assert names(test) == ["Start"]
    choice(test, "train_preset").set_value("two").run()
    assert "Done after 200 steps." in said(test)


def test_two_side_by_side_have_the_same_axes_and_say_what_is_different():
    test = opened("train", beside="one", steps="200", pace="fast")
    button(test, "Start").click().run()
    through(test)
    losses = [figure for figure in figures(test) if title_of(figure).startswith("Loss")]
    scores = [figure for figure in figures(test) if title_of(figure).startswith("Induction")]
    for one, other in (losses, scores):
        assert one["layout"]["yaxis"]["range"] == other["layout"]["yaxis"]["range"]
        assert one["layout"]["xaxis"]["range"] == other["layout"]["xaxis"]["range"]
        assert one["layout"]["margin"] == other["layout"]["margin"]
    assert "One layer never gets there" in said(test)
    assert "Found." in said(test)


def test_who_comes_second_is_told_to_wait_and_can_leave():
    cache.trainer().start("somebody", Plan((Copying(),), steps=5000))
    test = opened("train")
    button(test, "Start").click().run()
    assert "One training is before yours. It begins by itself." in said(test)
    assert names(test) == ["Leave the line"]
    assert "Nothing is learned yet" in said(test)
    button(test, "Leave the line").click().run()
    assert names(test) == ["Start"]


def test_nothing_of_another_session_is_shown():
    cache.trainer().start("somebody", Plan((Copying(),), steps=20))
    assert "before its first step. Press Start" in said(opened("train"))


def paused() -> AppTest:
    """Start a training and wait until it stands still."""
    test = opened("train", steps="1600", pace="slow")
    button(test, "Start").click().run()
    button(test, "Pause").click().run()
    end = time.monotonic() + 60
    while "Go on" not in names(test.run()):
        assert time.monotonic() < end
        time.sleep(0.2)
    return test


def test_a_training_can_be_paused_and_cancelled():
    test = paused()
    assert re.search(r"Paused after [\d,]+ steps?\.", said(test))
    button(test, "Go on").click().run()
    button(test, "Cancel").click().run()
    assert "Start again" in names(test.run())
    assert "Cancelled after" in said(test)


def test_a_failed_training_is_a_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("engine.training.live._ALONE", "raise MemoryError('no room')")
    test = opened("train")
    button(test, "Start").click().run()
    end = time.monotonic() + 60
    while "It failed." not in said(through(test)) and time.monotonic() < end:
        time.sleep(0.3)
    assert "It failed. The process that trained failed: MemoryError: no room" in said(test)
    assert errors(test) == []


def measured(step: int, loss: float, induction: tuple[float, ...], previous: tuple[float, ...]) -> Point:
    """A measurement of one model with a head in each layer."""
    scores = {f"induction {layer}.0": score for layer, score in enumerate(induction)}
    scores |= {f"previous {layer}.0": score for layer, score in enumerate(previous)}
    return Point(step, (loss,), ({"loss": loss, **scores},))


@pytest.mark.parametrize(
    ("setting", "held", "start"),
    [
        (Copying(), measured(100, 0.1, (0.1, 0.95), (0.9, 0.0)), "**Found."),
        (Copying(), measured(9, 4.0, (0.1, 0.2), (0.1, 0.0)), "The best head gives 20"),
        (Copying(depth=1), measured(100, 3.3, (0.15,), (0.0,)), "The best head gives 15"),
        (Copying(period=8), measured(100, 0.1, (0.1, 0.1), (0.0, 0.0)), "**It cheats"),
    ],
)  # fmt: skip
def test_the_page_says_what_the_numbers_say(setting: Copying, held: Point, start: str):
    assert found(Course(setting, 0, [held], held.step, 400)).startswith(start)


def test_a_head_is_named_as_the_helper_only_where_it_looks_back():
    held = measured(100, 0.1, (0.1, 0.95), (0.3, 0.0))
    assert "one back" not in found(Course(Copying(), 0, [held], 100, 400))


def test_what_is_beside_is_different():
    for first in (Copying(), Copying(depth=1, rate=0.001), Copying(order="none", period=8)):
        for name, (_, changes) in besides(first).items():
            assert (name == "nothing") == (changes == {})
            assert all(getattr(first, field) != value for field, value in changes.items())


def test_only_a_rate_can_be_changed_on_the_way():
    plan = plan_of(View())
    assert is_same_model(plan, plan_of(View(learn_rate="0.001", learn_steps=800)))
    assert not is_same_model(plan, plan_of(View(learn_depth=1)))
    assert not is_same_model(plan, plan_of(View(learn_period=8)))
    assert not is_same_model(plan, plan_of(View(learn="pronoun")))


def test_the_orange_squares_are_where_the_score_looks():
    tokens = Copying().tokens
    ids = torch.tensor([[sorted(set(tokens)).index(token) for token in tokens]])
    marked = LESSONS["copying"].marked(Copying())
    assert marked.tolist() == after_equal(ids)[0].tolist()
    cells = LESSONS["pronoun"].marked(Referent())
    row, column = shown_cell()
    assert cells.sum() == 1
    assert (Referent().tokens[row], Referent().tokens[column]) == ("she", "customer")


def answered(share: float, step: int = 100) -> str:
    """What is said of a model that answers so often right, and whose heads have found nothing."""
    scores = {"loss": 9.0, "answer": share, "silenced": share, "pronoun 2.0": 0.1}
    return plain(
        LESSONS["pronoun"].found_words(Course(Referent(False), 0, [Point(step, (9.0,), (scores,))], step, 400))
    )


@pytest.mark.parametrize(("share", "by_luck"), [(0.43, True), (0.5, True), (0.57, True), (0.6, False), (0.4, False)])
def test_a_share_that_a_coin_might_reach_is_called_no_result(share: float, by_luck: bool):
    assert by_chance() == pytest.approx((0.5 - 1 / 12, 0.5 + 1 / 12))  # 144 sentences: 2 · √(¼ / 144)
    assert ("no better than a coin: 42 to 58 %." in answered(share)) == by_luck


def test_the_first_question_is_answered_where_it_comes_up():
    """Half is what a guess gets, on how many sentences, and what 9.8 bits are."""
    test = opened("train", learn="pronoun", twin="untaught")
    text = said(test)
    assert "Nothing is learned yet." in text
    assert "no better than a coin" in text
    assert "a guess is right in half" in text
    assert "On 144 sentences a coin gets 42 to 58 %" in text
    words, tokens = len(VOCABULARY.words), len(VOCABULARY)
    assert f"guessing among {tokens:,}: {words:,} words, 256 bytes that spell others, 4 signs" in text
    score = next(figure for figure in figures(test) if title_of(figure).startswith("How often"))
    (band,) = (shape for shape in score["layout"]["shapes"] if shape["type"] == "rect")
    assert (band["y0"], band["y1"]) == by_chance()


def test_the_page_says_that_it_does_not_read_the_sentence():
    for task in LESSONS:
        assert re.search(r"does not read the (sentence|one) above", said(opened("train", learn=task)))


STAGES = {
    "same": (View(learn_steps=200), 150, "Move the slider to look back."),
    "back": (View(), 70, "“Go on” resumes at step 150; “Go on from step 70” drops what came after step 70."),
    "model": (View(learn_depth=1), 70, "“Start again” trains it. “Go on” resumes the one below at step 150."),
    "task": (View(learn="pronoun"), 150, "Another model is chosen above"),
    "rate": (View(learn_rate="0.03"), 150, "“Go on” resumes at step 150 with the rate as it was"),
}


@pytest.mark.parametrize("case", STAGES)
def test_a_paused_training_says_what_each_button_does(case: str):
    view, at, told = STAGES[case]
    points = (Point(150, (1.0,), ({},)),)
    own = Seen(
        plan_of(View()), points, (Checkpoint(0, b""), Checkpoint(70, b""), Checkpoint(150, b"")), "paused", 0, 400
    )
    text = stage_text(own, own, plan_of(view), at)
    assert text.startswith("Paused after 150 steps. ")
    assert told in text


def test_a_training_that_was_cancelled_before_it_began_leaves_nothing():
    own = Seen(plan_of(View()), (), (), "cancelled", 0, 400)
    drawn = Seen(plan_of(View()), (Point(0, (1.0,), ({},)),), (Checkpoint(0, b""),), "done", 0, 400)
    assert stage_text(own, drawn, plan_of(View()), 0) == "Below is the model before its first step. Press Start."


def test_a_running_training_says_that_loading_the_page_anew_ends_it():
    own = Seen(plan_of(View()), (Point(7, (1.0,), ({},)),), (Checkpoint(0, b""),), "running", 0, 400)
    assert stage_text(own, own, plan_of(View()), 0) == "Step 7 of 400. Reloading the page ends it."
    assert "Another model is chosen above" in stage_text(own, own, plan_of(View(learn_depth=1)), 0)


def test_a_choice_made_while_it_is_paused_is_said_beside_the_buttons():
    test = paused()
    choice(test, "train_preset").set_value("one").run()
    assert "Another model is chosen above: “Start again” trains it." in said(test)
    assert names(test)[:2] == ["Go on", "Start again"]


def test_a_chart_that_changes_stays_until_the_new_one_is_there():
    """Its place holds the one before as it was, the same element, and the new one beside it."""
    test = opened("train")
    (before,) = (one for one in protos(test, "plotly_chart") if "train_loss_0" in one.id)
    choice(test, "train_preset").set_value("one").run()
    after = [one for one in protos(test, "plotly_chart") if "train_loss_0" in one.id]
    assert len(after) == 2
    assert [one.spec for one in after if one.id == before.id] == [before.spec]
    again = [one.id for one in protos(test.run(), "plotly_chart") if "train_loss_0" in one.id]
    assert again == [one.id for one in after]
