"""The models that come with the app, from a terminal: listed, looked into, asked, and with heads silenced."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine import Silence, load
from engine.__main__ import main
from engine.trained import FOLDER
from tests.shipped_models import LABELS, opened, write_all

SENTENCE = "The shopkeeper gave the customer a discount because she was a regular."


@pytest.fixture(autouse=True)
def _small_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One small model of each kind in a folder that the catalogue takes for the app's own."""
    write_all(tmp_path)
    monkeypatch.setattr("engine.shipped.FOLDER", tmp_path)


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_they_lead_the_list(capsys: pytest.CaptureFixture[str]):
    first, _, third, *_ = answered(capsys, "models").splitlines()
    assert first.split("  ")[0] == "twin-encoder"
    assert first.endswith("BERT-style  encoder  2 × 4 heads  25,201 parameters  comes with the app")
    assert "not available: its card is missing or broken." in third


def test_a_row_is_shown_and_says_what_is_silenced(capsys: pytest.CaptureFixture[str]):
    asked = ("attend", SENTENCE, "--model", "twin-encoder", "--layer", "1", "--word", "she")
    plain, silenced = (answered(capsys, *asked, *more) for more in ((), ("--silence", "0.2", "--silence", "0.3")))
    assert "layer 1, head 0, as trained: she attends to" in plain
    assert "layer 1, head 0, as trained, layer 0, head 2 silenced, layer 0, head 3 silenced: she" in silenced
    shares = [[line.split()[0] for line in text.splitlines() if "%" in line] for text in (plain, silenced)]
    assert shares[0] != shares[1]
    answer = json.loads(answered(capsys, *asked, "--silence", "0.2", "--json"))
    expected = opened("twin-encoder").run(SENTENCE, interventions=[Silence(0, 2)])
    assert answer["silenced"] == ["0.2"]
    place = next(place for place, token in enumerate(expected.tokens) if token.text == "she")
    assert [key["weight"] for key in answer["row"]] == pytest.approx(expected.weights(1, 0)[place].tolist(), abs=1e-6)


def test_a_translation_is_told(capsys: pytest.CaptureFixture[str]):
    answer = json.loads(answered(capsys, "attend", SENTENCE, "--model", "translator-en-hi", "--json"))
    target = opened("translator-en-hi").run(SENTENCE).target
    assert target is not None
    assert answer["target"] == [token.text for token in target.tokens]
    assert answer["kind"] == "cross"


def test_guesses_are_printed_for_every_mask(capsys: pytest.CaptureFixture[str]):
    text = "The [MASK] gave the [MASK] a discount"
    asked = ("predict", text, "--model", "twin-encoder", "--top", "2")
    head, one, *rest = answered(capsys, *asked, "--silence", "1.2").splitlines()
    assert head == "Small twin-encoder, as trained, layer 1, head 2 silenced"
    assert one == "at [MASK] (token 2):"
    assert rest[2] == "at [MASK] (token 5):"
    assert len(rest) == 5
    answer = json.loads(answered(capsys, *asked, "--silence", "1.2", "--json"))
    made = opened("twin-encoder").predict(text, interventions=[Silence(1, 2)])
    assert [place["position"] for place in answer["places"]] == [2, 5]
    for place in answer["places"]:
        assert [guess["id"] for guess in place["guesses"]] == [guess.id for guess in made.at(place["position"], 2)]
    assert (answer["silenced"], answer["ahead"]) == (["1.2"], 0)


@pytest.mark.parametrize(
    ("id", "more", "line"),
    [
        ("twin-encoder", ("--word", "SHE"), "at she (token 9):"),
        ("twin-decoder", (), "after . (token 13):"),
        ("twin-decoder", ("--word", "customer"), "after customer (token 5):"),
        ("translator-en-hi", ("--target", "ग्राहक को"), "after को (token 2):"),
        ("classifier", (), "the whole text:"),
    ],
)
def test_every_kind_of_model_says_where_it_guesses(
    capsys: pytest.CaptureFixture[str], id: str, more: tuple[str, ...], line: str
):
    lines = answered(capsys, "predict", SENTENCE, "--model", id, *more).splitlines()
    assert lines[1] == line
    assert len(lines) == 2 + min(5, len(LABELS) if id == "classifier" else 5)


@pytest.mark.parametrize(
    ("id", "line"), [("twin-encoder", "at generous (token 2):"), ("twin-decoder", "after generous (token 9):")]
)
def test_a_spelled_word_is_asked_at_its_first_letter_and_followed_after_its_last(
    capsys: pytest.CaptureFixture[str], id: str, line: str
):
    asked = ("predict", "The generous customer", "--model", id, "--word", "generous")
    assert line in answered(capsys, *asked).splitlines()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("predict", SENTENCE), "Hide a word as [MASK], or say with --word in whose place"),
        (("predict", SENTENCE, "--word", "dog"), "'dog' is not in the sentence."),
        (("predict", SENTENCE, "--model", "minilm"), "MiniLM is not one of our own models"),
        (("predict", SENTENCE, "--model", "minilm-scratch"), "has no head on top that predicts words"),
        (("predict", "[MASK]", "--top", "0"), "0 guesses cannot be listed"),
        (("predict", ""), "Type a sentence first"),
        (("predict", "[MASK]", "--silence", "2"), "'2' names no head. Write layer.head"),
        (("predict", "[MASK]", "--silence", "2.0"), "has no layer 2: layers count from 0 to 1."),
        (("attend", "she", "--model", "twin-encoder", "--silence", "0.4"), "has no head 4 in layer 0"),
        (("attend", "she", "--model", "translator-en-hi", "--silence", "0.1"), "say which, such as cross:0.1."),
        (("predict", "[MASK]", "--target", "she"), "has no second text to read"),
    ],
)
def test_what_is_wrong_is_one_plain_line(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert sentence in err


@pytest.mark.skipif(not (FOLDER / "little-vit.json").is_file(), reason="little-vit has not been trained yet")
def test_the_one_that_looks_at_pictures_is_refused_a_text(capsys: pytest.CaptureFixture[str]):
    model: Any = load("little-vit", device="cpu")
    assert model.card.style == "vision"
    assert hasattr(model, "look")
    assert main(["attend", SENTENCE, "--model", "little-vit"]) == 2
    assert "looks at pictures, and only text can be given here" in capsys.readouterr().err
