"""The reasons that are offered where the grammar does not know the typed one: it knows them, and of whom they speak."""

import pytest

from app.reasons import offers
from engine.grammar import REASON_FRAMES, Frame, parse
from engine.grammar.slots import Say
from tests.app_pages import opened, said

CLEVER = "The shopkeeper gave the customer a discount because she was clever"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CLEVER, (("the shopkeeper", "was generous"), ("the customer", "was a regular"))),
        (
            "The guest got a cake from a cook since he is tall",
            (("the guest", "is a regular"), ("the cook", "is generous")),
        ),
        ("The guide helped Anna , because she was blue", (("the guide", "was kind"), ("Anna", "was lost"))),
        ("The guide helped Anna because she was blue", (("the guide", "was kind"), ("Anna", "was lost"))),
        ("The cook helped the guests as they were blue", (("the cook", "were kind"), ("the guests", "were lost"))),
        ("Anna gave Tom a book because she was blue", (("", "was generous"), ("", "was a regular"))),
        ("The horse raced past the barn fell", ()),
        ("The shopkeeper gave the customer a discount", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_the_offered_reasons_fit_the_typed_sentence(text: str, expected: tuple[tuple[str, str], ...]):
    """In its order, tense and number; without a name where the pronoun can mean only one."""
    assert tuple((offer.who, offer.reasons[0]) for offer in offers(text.split())) == expected


@pytest.mark.parametrize("frame", REASON_FRAMES, ids=lambda frame: frame.name)
def test_every_offered_reason_is_known_and_speaks_of_who_is_named(frame: Frame):
    """For every kind of sentence with a reason."""
    begun: list[str] = []
    for slot in frame.templates[0]:
        begun += slot.options[0].split() if isinstance(slot, Say) else ["the", slot.nouns[slot.label == "B"]]
    begun += ["because", "she" if frame.person else "it"]
    made = offers([*begun, "was", "unheard", "of"])
    assert len(made) == 2
    for offer in made:
        assert len(offer.reasons) == 2
        for reason in offer.reasons:
            sentence = parse(" ".join([*begun, reason]))
            assert sentence is not None
            assert f"the {sentence.words[sentence.referent or 0]}" == offer.who


def test_the_page_offers_them_beside_the_answer():
    text = said(opened(q=CLEVER)).replace("*", "")
    known = "was generous, was kind (the shopkeeper) or was a regular, was poor (the customer)"
    assert f"The grammar does not know this reason: the model was trained on others, such as {known}, so" in text
