"""Predictions: what our own models would put where, in numbers that can be checked by hand.

Dimensions: T tokens, V vocabulary.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch

from engine import (
    Config,
    Decoder,
    Encoder,
    EncoderDecoder,
    Guess,
    Mask,
    ModelError,
    Prediction,
    ScratchModel,
    ShapeError,
    Silence,
    TextClassifier,
    build,
    load,
    number_words,
    untrained,
)
from engine.spelling import BEGIN, END, MASK, Vocabulary
from tests.shipped_models import LABELS, WORDS, module_of

SENTENCE = "The shopkeeper gave the customer a discount"
SIZES = Config(width=32, layers=2, heads=4, feed_forward=48, vocabulary=30, length=16, head="tied")
WORDY = Vocabulary(WORDS)


def model_of(id: str, *, ends: bool = True, **changes: Any) -> ScratchModel:
    """A model that reads by a vocabulary, like those that come with the app."""
    read = lambda text: WORDY.read(text, 512, ends=ends)  # noqa: E731
    return ScratchModel(
        module_of(id, **changes), read, id=id, name="Our model", source="", licence="", vocabulary=WORDY, labels=LABELS
    )


def made(probabilities: Any) -> Prediction:
    return Prediction((), torch.tensor(probabilities), 0, "abcd".__getitem__)


def test_guesses_come_likeliest_first_with_their_names():
    """Rows of numbers that were chosen by hand."""
    prediction = made([[0.1, 0.6, 0.05, 0.25], [0.25, 0.0, 0.75, 0.0]])
    assert [(guess.text, guess.id) for guess in prediction.at(0, top=3)] == [("b", 1), ("d", 3), ("a", 0)]
    assert prediction.at(1, top=1) == (Guess("c", 2, 0.75),)
    assert [len(prediction.at(0, top=top)) for top in (1, 4, 100)] == [1, 4, 4]
    assert len(prediction.at(0)) == 4
    assert prediction.of(1, 0) == 0.25


def test_a_place_or_a_token_that_is_not_there_is_refused():
    """Positions do not count from the end: −1 would be right by accident."""
    prediction = made([[0.5, 0.5], [1.0, 0.0]])
    for position in (-1, 2, None):
        with pytest.raises(ShapeError, match=f"Position {position} does not exist: positions count from 0 to 1"):
            prediction.at(position)
    for id in (-1, 2):
        with pytest.raises(ShapeError, match=f"There is no id {id} to predict: ids count from 0 to 1"):
            prediction.of(0, id)
    with pytest.raises(ShapeError, match="0 guesses cannot be listed"):
        prediction.at(0, top=0)


def test_a_classifier_speaks_of_the_whole_text():
    """One row, and no position in it."""
    prediction = made([0.25, 0.75])
    assert prediction.is_of_the_whole
    assert prediction.at(top=1) == (Guess("b", 1, 0.75),)
    assert prediction.of(None, 0) == 0.25
    with pytest.raises(ShapeError, match="there is no position 0"):
        prediction.at(0)


def test_an_encoder_says_what_each_token_is():
    """Every row is the softmax of the head's scores there; the row of [MASK] is the one that is worth asking."""
    model = model_of("twin-encoder")
    prediction = model.predict("The customer gave the [MASK] a discount")
    words = ["the", "customer", "gave", "the", "[MASK]", "a", "discount"]
    ids = torch.tensor([[BEGIN, *(WORDY.ids(word)[0] for word in words), END]])
    module: Any = model.module
    with torch.no_grad():
        expected = module.logits(module(ids)).softmax(-1)[0]
    torch.testing.assert_close(prediction.probabilities, expected, rtol=0, atol=1e-6)
    assert prediction.ahead == 0
    place = [token.id for token in prediction.tokens].index(MASK)
    assert place == 5
    best, *_ = prediction.at(place)
    assert best.id == int(expected[place].argmax())
    assert best.text == WORDY.text(best.id)
    assert prediction.of(place, best.id) == best.probability == float(prediction.probabilities[place].max())


def test_a_decoder_says_what_comes_next():
    """The guess at the last token is what the model writes, and the one at each token knows only the text so far."""
    model = model_of("twin-decoder", ends=False)
    prediction = model.predict(SENTENCE)
    assert prediction.ahead == 1
    assert prediction.at(7, top=1)[0].id == model.generate(SENTENCE, 2)[-1].prompt.ids[-1]
    shorter = model.predict("The shopkeeper gave the customer")
    torch.testing.assert_close(prediction.probabilities[:6], shorter.probabilities, rtol=0, atol=1e-6)


def test_an_encoder_decoder_speaks_of_its_target():
    """A row for every token of the target, each of the token after it."""
    model = model_of("translator-en-hi")
    prediction = model.predict(SENTENCE, target="ग्राहक को")
    assert [token.text for token in prediction.tokens] == ["[BOS]", "ग्राहक", "को"]
    assert (prediction.probabilities.shape, prediction.ahead) == ((3, len(WORDY)), 1)
    written = model.run(SENTENCE).target
    assert written is not None
    again = model.predict(SENTENCE)
    assert again.tokens == written.tokens
    for position, following in enumerate(written.tokens[1:]):
        assert again.at(position, top=1)[0].id == following.id


@pytest.mark.parametrize("id", ["twin-encoder", "twin-decoder", "translator-en-hi", "classifier"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_probabilities_are_float32_and_sum_to_1_in_any_precision(id: str, dtype: torch.dtype):
    model = model_of(id)
    model.module.to(dtype)
    shown = model.predict(SENTENCE).probabilities
    assert shown.dtype == torch.float32
    torch.testing.assert_close(shown.sum(-1), torch.ones(shown.shape[:-1]), rtol=0, atol=1e-5)
    shown += 0  # nobody's but the caller's, and no tensor that PyTorch keeps from being worked with


@pytest.mark.parametrize("count", [10, 17, 60])
@pytest.mark.parametrize("side", ["right", "left"])
def test_a_classifier_answers_the_same_whatever_padding_is_added(count: int, side: Any):
    """The mean is of the real tokens, and nobody looks at the others."""
    model = model_of("classifier")
    prompt = model.prompt(SENTENCE)
    plain = model.predict_prompt(prompt)
    padded = model.predict_prompt(prompt.padded(count, side=side))
    torch.testing.assert_close(padded.probabilities, plain.probabilities, rtol=0, atol=1e-6)
    assert {guess.text for guess in plain.at()} == set(LABELS)
    assert plain.at() == model.predict(SENTENCE).at()


def test_a_prediction_from_a_traces_prompts_is_the_same():
    """Nothing need be written twice to see maps and answers of one run."""
    model = model_of("translator-en-hi")
    trace = model.run(SENTENCE)
    one, two = model.predict_prompt(trace.prompt, trace.target), model.predict(SENTENCE)
    assert torch.equal(one.probabilities, two.probabilities)


@pytest.mark.parametrize("id", ["twin-encoder", "classifier"])
def test_masks_and_silenced_heads_change_the_answer(id: str):
    """Each its own way; and what was changed for one answer is not changed for the next."""
    model = model_of(id)
    plain = model.predict(SENTENCE).probabilities
    masked = model.predict(SENTENCE, mask=Mask.causal()).probabilities
    silenced = model.predict(SENTENCE, interventions=[Silence(1, 2)]).probabilities
    assert not torch.equal(plain, masked)
    assert not torch.equal(plain, silenced)
    assert not torch.equal(masked, silenced)
    assert torch.equal(plain, model.predict(SENTENCE).probabilities)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_translation_is_written_with_a_silenced_head_silent(kind: Any):
    """What is written is what the changed model would write: the projection's slice gone, the same tokens come."""
    model, changed = model_of("translator-en-hi"), model_of("translator-en-hi")
    module: Any = changed.module
    stack = module.encoder if kind == "encoder" else module.decoder
    (stack.blocks[0].cross if kind == "cross" else stack.blocks[0].attention).out.weight.data[:, 8:16] = 0.0
    plain, silenced = model.run(SENTENCE), model.run(SENTENCE, interventions=[Silence(0, 1, kind)])
    expected = changed.run(SENTENCE)
    assert silenced.target == expected.target != plain.target


def test_without_a_head_on_top_there_is_no_answer():
    """An encoder that only reads, and MiniLM in our own code: said before anything runs."""
    for model in (untrained(Encoder, replace(SIZES, head="none")), load("minilm-scratch", device="cpu")):
        assert isinstance(model, ScratchModel)
        with pytest.raises(ModelError, match="has no head on top that predicts words"):
            model.predict("")
        with pytest.raises(ModelError, match="has no head on top that predicts words"):
            model.predict_prompt(model.prompt("a cat"))


def test_an_untrained_model_names_the_words_of_its_text_and_numbers_the_rest():
    """Seven different words have names; of thirty ids the others are numbers."""
    prediction = untrained(Encoder, SIZES).predict(SENTENCE)
    names = {guess.id: guess.text for guess in prediction.at(0, top=30)}
    assert [names[id] for id in range(7)] == ["The", "shopkeeper", "gave", "the", "customer", "a", "discount"]
    assert names[7] == "⟨id 7⟩"
    assert len(names) == 30
    shown = untrained(TextClassifier, replace(SIZES, head="none", classes=2)).predict(SENTENCE).at()
    assert sorted(guess.text for guess in shown) == ["label 0", "label 1"]


def test_an_untrained_encoder_decoder_is_asked_about_its_target():
    """Its target has numbers of its own: the names are the target's."""
    prediction = untrained(EncoderDecoder, SIZES).predict(SENTENCE, target="le client")
    names = {guess.id: guess.text for guess in prediction.at(1, top=30)}
    assert (names[0], names[1], names[2]) == ("le", "client", "⟨id 2⟩")


def test_what_cannot_be_read_is_refused_as_in_a_run():
    model = untrained(Encoder, SIZES)
    with pytest.raises(ModelError, match="no second text to read"):
        model.predict(SENTENCE, target="a cat")
    prompt = number_words("one", 40)
    wrong = replace(prompt, tokens=(replace(prompt.tokens[0], id=30),))
    with pytest.raises(ShapeError, match="Token 30 does not exist"):
        model.predict_prompt(wrong)


def test_a_prediction_prints_in_one_short_line():
    assert repr(untrained(Encoder, SIZES).predict(SENTENCE)) == "Prediction(7 tokens, 30 tokens at each position)"
    assert repr(model_of("classifier").predict(SENTENCE)) == "Prediction(9 tokens, 2 labels)"


def test_a_text_beyond_the_table_of_positions_is_cut_for_its_answer_too():
    """Sixteen positions are sixteen rows."""
    prediction = model_of("twin-encoder", positions="learned", length=512).predict("the " * 600)
    assert prediction.probabilities.shape == (512, len(WORDY))
    assert build(Decoder, SIZES).config.length == len(untrained(Decoder, SIZES).predict("a b " * 20).tokens)
