"""The page Vision: what is chosen is what is drawn, looked at, answered, and kept in the link."""

import base64
import struct
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from app.charts_vision import STILL_SEEN, answer_bars, heads_figure, picture_figure, png, spotlight
from app.palette import ACCENT_LIGHT
from app.phrases import percent
from app.view import View
from app.vision_numbers import answer_without, drawn, looked, vision_model
from app.vision_words import STAGES, answer_text, looks_text, silenced_text, times, token_name
from engine import ShapeError
from engine.measures import attention_rollout
from engine.pictures import ACROSS, COLOURS, SHAPES, SIDE
from engine.vision import Answer
from tests.app_pages import choice, errors, figures, opened, said, title_of
from tests.conftest import Server, settle

HEAD_MAP, ROLLOUT = "where", "rollout"


def figure(test: AppTest, begins: str) -> dict[str, Any]:
    """The one figure whose title begins so."""
    (found,) = (made for made in figures(test) if title_of(made).startswith(begins))
    return found


def hovers(made: dict[str, Any]) -> list[str]:
    """What a figure's squares say when they are pointed at."""
    texts: list[str] = made["data"][0]["text"]
    return texts


def numbers(made: dict[str, Any]) -> np.ndarray:
    """The percentages at the end of a figure's hovers."""
    return np.array([float(text.removesuffix(" %").split()[-1]) for text in hovers(made)])


def boxed(test: AppTest, label: str) -> Any:
    """A select box; its key changes whenever the page itself picks another value."""
    return next(box for box in test.selectbox if box.label == label)


def pixels_of(address: str) -> np.ndarray:
    """Read a picture that was written by `png`, (height, width, 3)."""
    data = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length]) == (zlib.crc32(name + body),)
        chunks[name], at = body, at + 12 + length
    width, height, depth, kind, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, kind) == (8, 2)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, 1 + 3 * width)
    assert (lines[:, 0] == 0).all()
    return lines[:, 1:].reshape(height, width, 3)


def test_it_opens_on_a_right_answer_with_every_picture() -> None:
    test = opened("vision")
    view = View()
    assert errors(test) == []
    assert f"It says {view.vit_colour} {view.vit_shape}, which is right." in said(test)
    assert [title_of(made).split(":")[0] for made in figures(test)] == [
        "what it is given", "where [CLS] looks", "every head, from [CLS]", "what it takes the picture to be",
        "rollout",
    ]  # fmt: skip
    assert test.query_params == {}


@pytest.mark.parametrize("stage", list(STAGES))
def test_the_hovers_are_the_engines_numbers(stage: str) -> None:
    """One head's row and rollout's, to the digit, in every state of the model."""
    test = opened("vision", vit=stage, vitlayer="1", vithead="3", token="20", shape="ring", paint="blue", dots="5")
    assert errors(test) == []
    view = View(vit_stage=stage, vit_shape="ring", vit_colour="blue", vit_distractors=5)
    trace = vision_model(stage).look(drawn(view).images[0])
    expected = 100 * trace.weights(1, 3)[20, 1:].numpy()
    assert numbers(figure(test, HEAD_MAP)) == pytest.approx(expected, abs=0.0051)
    rolled = attention_rollout(torch.stack([trace.weights(layer) for layer in range(trace.layers())]))
    assert numbers(figure(test, ROLLOUT)) == pytest.approx(100 * rolled[20, 1:].numpy(), abs=0.0051)
    assert hovers(figure(test, HEAD_MAP))[9].startswith("r2 c3 → r1 c1")


def test_a_link_keeps_every_choice() -> None:
    test = opened("vision")
    boxed(test, "Shape").set_value("cross").run()
    boxed(test, "Colour").set_value("yellow").run()
    boxed(test, "Layer").set_value(2).run()
    boxed(test, "Head").set_value(1).run()
    boxed(test, "Whose attention is shown").set_value(13).run()
    choice(test, "vit_stage").set_value("untrained").run()
    test.slider[0].set_value(2).run()
    test.button(key="vit_another").click().run()
    assert errors(test) == []
    expected = {"shape": "cross", "paint": "yellow", "vitlayer": "2", "vithead": "1", "token": "13", "vit": "untrained"}
    assert test.query_params == {**expected, "dots": "2", "picture": str(View().vit_picture + 1)}
    again = opened("vision", **test.query_params)
    assert [title_of(made) for made in figures(again)] == [title_of(made) for made in figures(test)]
    assert hovers(figure(again, HEAD_MAP)) == hovers(figure(test, HEAD_MAP))
    assert title_of(figure(again, HEAD_MAP)) == "where r1 c4 looks: layer 2, head 1"


def test_another_picture_is_another_picture_of_the_same_thing() -> None:
    test = opened("vision")
    before = figure(test, "what it is given")["layout"]["images"][0]["source"]
    test.button(key="vit_another").click().run()
    after = figure(test, "what it is given")["layout"]["images"][0]["source"]
    assert before != after
    assert f"{View().vit_colour} {View().vit_shape}" in said(test)


def test_a_head_that_is_not_there_is_said_and_mended() -> None:
    test = opened("vision", vitlayer="9", vithead="11")
    assert errors(test) == []
    assert "Little ViT has 3 × 4 heads: showing layer 2, head 3." in said(test)
    assert test.query_params == {"vitlayer": "2", "vithead": "3"}


@pytest.mark.parametrize("stage", ["trained", "early"])
def test_it_opens_on_the_head_that_looks_most_at_the_shape_and_one_choice_brings_the_other_along(stage: str) -> None:
    layer, head = vision_model(stage).trained.heads["object"]
    test = opened("vision", vit=stage)
    assert title_of(figure(test, HEAD_MAP)) == f"where [CLS] looks: layer {layer}, head {head}"
    boxed(test, "Layer").set_value(2).run()
    assert (test.query_params["vitlayer"], test.query_params["vithead"]) == ("2", str(head))


def test_what_no_link_can_mean_falls_back_with_a_note() -> None:
    test = opened("vision", shape="heart", token="65", dots="11")
    assert errors(test) == []
    for name in ("shape", "token", "dots"):
        assert f"“{name}” in the link could not be used" in said(test)


def test_the_page_says_what_was_measured_with_the_baseline_and_what_was_not_taught() -> None:
    text = said(opened("vision"))
    trained, early = (vision_model(stage).trained for stage in ("trained", "early"))
    for scores in (trained.scores, early.scores, trained.scores["random"]):
        assert f"{percent(scores['shape'])}".replace("\u202f", " ") in text
        assert f"{times(scores['times'])}".replace("\u202f", " ") in text
    assert "Nothing taught it where to look" in text
    assert "Attention is not explanation." in text
    assert "This page reads its picture, not the sentence above." in text
    assert trained.data in text


def test_it_needs_no_text_model() -> None:
    assert errors(opened("vision", model="minilm")) == []
    assert not any(box.label == "Model" for box in opened("vision").selectbox)


def test_the_silenced_answer_is_the_engines() -> None:
    view = View(vit_picture=3)
    best = vision_model("trained").trained.heads["object"]
    before, without = looked(view).answer, answer_without(view, *best)
    assert before != without
    text = silenced_text(before, without, *best).replace("\u202f", " ").replace("**", "")
    assert text.startswith(f"With layer {best[0]}, head {best[1]} silenced the answer ")
    assert text in said(opened("vision", picture="3"))


def test_without_weight_a_patch_fades_into_the_page_and_with_the_largest_it_is_whole() -> None:
    image = np.full((4, 4, 3), 0.5)
    weights = np.array([0.0, 0.2, 0.4, 0.1])
    for dark, page in ((False, (1.0, 1.0, 1.0)), (True, (0x12 / 255, 0x18 / 255, 0x1B / 255))):
        faded = spotlight(image, weights, dark=dark)
        for corner, share in zip(((0, 0), (0, 2), (2, 0), (2, 2)), (0.0, 0.5, 1.0, 0.25), strict=True):
            kept = STILL_SEEN + (1 - STILL_SEEN) * share
            expected = kept * 0.5 + (1 - kept) * np.array(page)
            block = faded[corner[0] : corner[0] + 2, corner[1] : corner[1] + 2]
            np.testing.assert_allclose(block, np.broadcast_to(expected, (2, 2, 3)), atol=1e-12)


def test_where_nothing_is_looked_at_everything_fades_alike() -> None:
    faded = spotlight(np.zeros((2, 2, 3)), np.zeros(4), dark=False)
    np.testing.assert_allclose(faded, 1 - STILL_SEEN)


@pytest.mark.parametrize(("side", "patches"), [(4, 3), (4, 9), (5, 4)])
def test_weights_that_are_not_those_of_the_picture_are_refused(side: int, patches: int) -> None:
    with pytest.raises(ShapeError):
        spotlight(np.zeros((side, side, 3)), np.ones(patches), dark=False)


def test_a_picture_is_written_pixel_for_pixel() -> None:
    image = np.random.default_rng(0).random((3, 3, 3))
    found = pixels_of(png(image, 2))
    expected = np.rint(image * 255).astype(np.uint8).repeat(2, axis=0).repeat(2, axis=1)
    np.testing.assert_array_equal(found, expected)


def test_words_in_hovers_are_literal_and_the_chosen_patch_is_framed() -> None:
    names = ["<b>x</b>", "$y$", "&", "plain"]
    made = picture_figure(np.zeros((4, 4, 3)), names, title="<i>t</i>", chosen=2).to_plotly_json()
    assert list(made["data"][0]["text"]) == ["&lt;b&gt;x&lt;/b&gt;", "&#36;y&#36;", "&amp;", "plain"]
    assert made["layout"]["title"]["text"] == "&lt;i&gt;t&lt;/i&gt;"
    frame = made["layout"]["shapes"][-1]
    assert (frame["x0"], frame["x1"], frame["y0"], frame["y1"]) == (0, 1, 1, 2)
    assert frame["line"]["color"] == ACCENT_LIGHT


def test_every_head_has_a_picture_where_its_target_is() -> None:
    weights = np.random.default_rng(0).random((2, 3, 4))
    image = np.random.default_rng(1).random((4, 4, 3))
    names = [f"{layer}.{head}" for layer in range(2) for head in range(3)]
    made = heads_figure(image, weights, names, title="t", meaning="m", chosen=(1, 2)).to_plotly_json()
    targets = made["data"][0]
    for index, held in enumerate(made["layout"]["images"]):
        assert (targets["x"][index] - held["x"], targets["y"][index] - held["y"]) == pytest.approx((0.5, 0.5))
        expected = spotlight(image, weights[divmod(index, 3)], dark=False)
        assert held["source"] == png(expected, 4)
    assert list(targets["text"]) == names
    with pytest.raises(ShapeError):
        heads_figure(image, weights, names[:5], title="t", meaning="m", chosen=(0, 0))


def test_bars_are_per_cent_and_the_right_answers_are_in_colour() -> None:
    groups = [("shape", ["a", "b"], np.array([0.25, 0.75]), "a"), ("colour", ["c", "d"], np.array([1.0, 0.0]), "c")]
    (bars,) = answer_bars(groups, title="t").data
    assert list(bars.x) == [25, 75, 100, 0]
    assert [colour == ACCENT_LIGHT for colour in bars.marker.color] == [True, False, True, False]


def test_tokens_are_named_as_the_trace_names_them() -> None:
    trace = vision_model("trained").look(drawn(View()).images[0])
    assert [token_name(index) for index in range(1 + ACROSS**2)] == [token.text for token in trace.tokens]


def test_the_answer_is_told_with_what_is_right_about_it() -> None:
    def answer(shape: str, colour: str) -> Answer:
        return Answer(
            {name: float(name == shape) for name in SHAPES}, {name: float(name == colour) for name in COLOURS}
        )

    assert answer_text(answer("ring", "red"), "ring", "red") == "It says **red ring**, which is right."
    assert answer_text(answer("ring", "red"), "cross", "red").endswith("the colour is right, but it is a red cross.")
    assert answer_text(answer("ring", "red"), "ring", "blue").endswith("the shape is right, but it is a blue ring.")
    assert answer_text(answer("ring", "red"), "cross", "blue").endswith("**, but it is a blue cross.")


def test_even_attention_is_once_the_area() -> None:
    assert "1.0\u202f× as much as even attention would" in looks_text(0.25, 0.25)
    assert "4.0\u202f×" in looks_text(0.5, 0.125)


def test_one_picture_is_looked_at_once_for_everybody() -> None:
    first, again = looked(View(vit_picture=77)), looked(View(vit_picture=77))
    assert first is again
    assert first is not looked(View(vit_picture=78))
    assert first.image.shape == (SIDE, SIDE, 3)


def clicked(page: Page, key: str, across: float, down: float) -> None:
    """Press a figure where a share of its width and height says."""
    area = page.locator(f".st-key-{key} .nsewdrag").first
    box = area.bounding_box()
    assert box is not None
    area.click(position={"x": across * box["width"], "y": down * box["height"]})


@pytest.mark.browser
def test_a_click_on_a_head_or_a_patch_shows_it_and_stands_in_the_link(page: Page, app_server: Server) -> None:
    """The second of three layers, the third of four heads; then the patch in row 5, column 3, and it again."""
    page.goto(f"{app_server.url}/vision")
    expect(page.locator(".js-plotly-plot")).to_have_count(5, timeout=60_000)
    settle(page)
    page.wait_for_timeout(1000)
    clicked(page, "vit_heads", (2 * 1.22 + 0.5) / (4 * 1.22 - 0.22), (1.22 + 0.5) / (3 * 1.22 - 0.22))
    page.wait_for_url("**vitlayer=1&vithead=2*")
    expect(page.locator(".st-key-vit_head_map .gtitle").first).to_contain_text("layer 1, head 2")
    settle(page)
    clicked(page, "vit_image", 3.5 / ACROSS, 5.5 / ACROSS)
    page.wait_for_url("**token=44*")
    expect(page.locator(".st-key-vit_head_map .gtitle").first).to_contain_text("where r5 c3 looks: layer 1, head 2")
    settle(page)
    page.wait_for_timeout(500)
    clicked(page, "vit_head_map", 3.5 / ACROSS, 5.5 / ACROSS)
    expect(page.locator(".st-key-vit_head_map .gtitle").first).to_contain_text("where [CLS] looks: layer 1, head 2")


@pytest.mark.browser
def test_nothing_moves_when_a_head_is_picked(page: Page, app_server: Server) -> None:
    page.goto(f"{app_server.url}/vision")
    expect(page.locator(".js-plotly-plot")).to_have_count(5, timeout=60_000)
    settle(page)
    page.wait_for_timeout(1500)

    def places() -> list[float]:
        keys = ("vit_image", "vit_head_map", "vit_heads", "vit_answer", "vit_rollout")
        boxes = [page.locator(f".st-key-{key} .nsewdrag").first.bounding_box() for key in keys]
        return [round(box[side], 1) for box in boxes if box is not None for side in ("x", "y", "width", "height")]

    before = places()
    clicked(page, "vit_heads", 0.9, 0.9)
    page.wait_for_url("**vithead=3*")
    settle(page)
    page.wait_for_timeout(1000)
    assert places() == before
