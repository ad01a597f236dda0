"""The topic classifier and the fine-tuning beside it: what they get right, and that padding changes nothing."""

from itertools import islice
from typing import cast

import pytest
import torch

from engine import load
from engine.errors import ModelError
from engine.grammar import TOPICS, sentences
from engine.presets import build
from engine.trained import card_of, module_of
from engine.training import finetuned, finetuning
from engine.training.batches import batch_of
from engine.training.classifier import CONFIG, accuracy, measure, scored
from engine.transformer import TextClassifier

SHIPPED = card_of("classifier")


@pytest.fixture(scope="module")
def module() -> TextClassifier:
    return cast(TextClassifier, module_of(SHIPPED))


def test_it_names_the_topic_of_sentences_it_has_never_seen(module):
    assert measure(module).scores == SHIPPED.scores
    assert SHIPPED.scores["right"] >= 0.98
    assert SHIPPED.scores["baselines"]["random weights"] < 0.3


def test_its_labels_are_the_topics_of_the_grammar_and_every_one_is_found(module):
    assert SHIPPED.labels == TOPICS
    drawn = list(islice(sentences("test", 5), 500))
    for topic in TOPICS:
        of_topic = [sentence for sentence in drawn if sentence.topic == topic]
        assert accuracy(module, of_topic) > 0.85, topic


@pytest.mark.parametrize("more", [1, 7, 40])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_its_output_by_nothing_but_the_order_of_additions(module, more, side):
    """In double precision what is left is below 1e-12; in single precision, in which it runs, below a millionth."""
    for dtype, most in ((torch.float64, 1e-12), (torch.float32, 2e-6)):
        exact = cast(TextClassifier, module_of(SHIPPED).to(dtype))
        batch = batch_of(list(islice(sentences("test", 2), 1)), "both ways")
        fill = torch.zeros(1, more, dtype=torch.long)
        parts = (fill, batch.ids) if side == "left" else (batch.ids, fill)
        ids = torch.cat(parts, dim=1)
        with torch.inference_mode():
            alone = exact.logits(exact(batch.ids))
            padded = exact.logits(exact(ids, ids != 0), ids != 0)
        torch.testing.assert_close(padded, alone, rtol=0, atol=most * float(alone.abs().max()))
        assert int(padded.argmax()) == int(alone.argmax())


def test_padded_columns_hold_nothing_that_reaches_the_output(module):
    batch = batch_of(list(islice(sentences("test", 2), 4)), "both ways")
    ids = torch.cat([batch.ids, torch.zeros(4, 5, dtype=torch.long)], dim=1)
    other = torch.where(ids == 0, 300, ids)  # another word under the padding
    with torch.inference_mode():
        scores = [module.logits(module(read, ids != 0), ids != 0) for read in (ids, other)]
    assert torch.equal(*scores)


def test_from_python_it_says_what_a_typed_sentence_is_about():
    guess = load("classifier").predict("The hammer broke the vase because it was fragile").at(None, 1)[0]  # type: ignore[attr-defined]
    assert guess.text == "breaking"
    assert guess.probability > 0.9


def test_with_random_weights_it_guesses():
    drawn = list(islice(sentences("test", 3), 300))
    assert accuracy(build(TextClassifier, CONFIG, seed=3), drawn) < 0.4
    assert scored(build(TextClassifier, CONFIG, seed=3), batch_of(drawn[:2], "both ways")).shape == (2, len(TOPICS))


def test_the_few_sentences_for_fine_tuning_hold_every_topic_equally_often():
    drawn = finetuning.drawn("training", 22, 0)
    assert sorted(sentence.topic for sentence in drawn) == sorted([*TOPICS, *TOPICS])


def test_the_curves_of_fine_tuning_are_whole_and_rise_with_more_sentences():
    told = finetuned.read()
    assert told.counts == finetuning.COUNTS
    for shares in told.right.values():
        assert all(0 <= share <= 1 for share in shares)
        assert shares[-1] > shares[0]


def test_what_was_read_before_is_worth_most_where_there_is_little_to_learn_from():
    told = finetuned.read()
    assert told.right["frozen"][0] > told.right["scratch"][0] + 0.1


def test_figures_are_read_as_they_were_written_and_broken_ones_are_refused(tmp_path):
    file = tmp_path / "figures.json"
    made = finetuned.Curves((1, 2), 5, 0, dict.fromkeys(finetuned.WAYS, (0.1, 0.2)))
    finetuned.write(made, file)
    assert finetuned.read(file) == made
    for broken in ("", "{}", "[1]", '{"counts": [1], "tested": 1, "seed": 0, "right": {}}', '{"counts": "x"}'):
        file.write_text(broken)
        with pytest.raises(ModelError):
            finetuned.read(file)
    finetuned.write(finetuned.Curves((1, 2), 5, 0, dict.fromkeys(finetuned.WAYS, (0.1,))), file)
    with pytest.raises(ModelError):
        finetuned.read(file)


def test_a_head_on_frozen_vectors_gives_the_figure_that_was_written():
    """The cheapest of the three curves, made again at its first point."""
    told = finetuned.read()
    assert finetuning.frozen(told.counts[0], told.seed) == pytest.approx(told.right["frozen"][0], abs=0.02)
