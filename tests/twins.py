"""What the tests of the twins share: the opening sentences, and the engine's own numbers as the page writes them."""

from typing import Any

from streamlit.testing.v1 import AppTest

from app import cache
from app.examples import examples
from app.homes import FIRST, home
from app.phrases import percent
from engine import Mask, ScratchModel
from engine.interventions import Silence
from tests.app_pages import figures, plain, title_of

REGULAR, GENEROUS = (example.sentence for example in examples()[:2])
SHE, CUSTOMER, REASON_END = 8, 4, 11
UNKNOWN = "The wizard gave the elf a sword because she was generous"
LAYER, HEAD = home(FIRST)
HOME = Silence(LAYER, HEAD)


def model(name: str) -> ScratchModel:
    """A model as the app holds it."""
    held = cache.model(name)
    assert isinstance(held, ScratchModel)
    return held


def place_of(name: str, sentence: str, word: int) -> int:
    """The token that a word begins with."""
    return next(at for at, token in enumerate(model(name).prompt(sentence).tokens) if token.word == word)


def share(name: str, sentence: str, at: int, word: str, *silenced: Silence, mask: Mask = Mask.native()) -> str:
    """What the engine says a model gives to a word, as the page writes it."""
    made = model(name).predict(sentence, interventions=silenced, mask=mask)
    vocabulary = model(name).vocabulary
    assert vocabulary is not None
    return plain(percent(made.of(at, vocabulary.ids(word)[0])))


def map_title(test: AppTest) -> str:
    """The title of the map."""
    return title_of(figures(test)[0])


def silencing(test: AppTest) -> Any:
    """The switch that silences a head."""
    return next(toggle for toggle in test.toggle if toggle.key == "silence_switch")
