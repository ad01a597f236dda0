"""The twins: what they are given, what they are told, and what the shipped ones have learned."""

import math
from itertools import islice

import pytest
import torch

from engine import Mask, load
from engine.grammar import REASON_FRAMES, parse, sentences
from engine.presets import build
from engine.spelling import BEGIN, BYTES, END, FIRST_WORD, MASK
from engine.trained import card_of, module_of
from engine.training.batches import RELATIONS, VOCABULARY, Reads, batch_of, batches
from engine.training.heads import equally_far, followed, joint, preferred, weights_of
from engine.training.loop import descend, one_thread, share_of_rate
from engine.training.twin_recipes import MAKES, RECIPES
from engine.training.twin_scores import HEADLINES, Examined, headlines, material
from engine.training.twins import CONFIG, GUIDED, HEADS, UNGUIDED, Twin, answers, begin, given, hide, missed

REGULAR, GENEROUS = HEADLINES
BOTH: tuple[Reads, Reads] = ("both ways", "left to right")
STRUCTURE = {
    "both ways": ("determiner", "subject", "object", "verb"),
    "left to right": ("determiner", "subject", "object"),
}
IDS = {"both ways": "twin-encoder", "left to right": "twin-decoder"}
PER_FRAME = 120


def one(text: str, reads: Reads = "both ways"):
    """Put one typed sentence of the grammar into a batch."""
    sentence = parse(text)
    assert sentence is not None
    return batch_of([sentence], reads)


@pytest.fixture(scope="module", params=BOTH)
def examined(request) -> Examined:
    """A shipped twin on the test split."""
    reads: Reads = request.param
    return Examined(module_of(card_of(IDS[reads])), reads, material("test", reads, PER_FRAME, 400))


# What they are given.


def test_a_sentence_begins_and_ends_with_signs_of_its_own_and_is_filled_up_with_padding():
    batch = batch_of([*islice(sentences("test", 0), 8)], "both ways")
    assert (batch.ids[:, 0] == BEGIN).all()
    for row, real, sentence in zip(batch.ids, batch.real, batch.sentences, strict=True):
        assert int(real.sum()) == len(sentence.words) + 2
        assert int(row[int(real.sum()) - 1]) == END
        assert not row[~real].any()


def test_a_label_stands_where_its_word_begins_even_after_a_word_that_is_spelled():
    batch = one("The wizard gave the elf a sword because she was generous")
    ((_, row, column),) = batch.links["pronoun"].tolist()
    assert VOCABULARY.text(int(batch.ids[0, row])) == "she"
    assert int(batch.ids[0, column]) == BYTES + ord("w")


def test_left_to_right_no_label_points_ahead_and_nouns_look_back_at_their_determiners():
    batch = batch_of([*islice(sentences("training", 0), 64)], "left to right")
    for labels in batch.links.values():
        assert (labels[:, 2] < labels[:, 1]).all()
    assert len(batch.links["determiner"])
    assert not len(batch.links["next"])


def test_left_to_right_the_person_is_asked_for_at_the_pronoun_the_reasons_end_and_before_the_answer():
    batch = one(f"{REGULAR}, so the customer smiled", "left to right")
    rows = [VOCABULARY.text(int(batch.ids[0, row])) for _, row, _ in batch.links["pronoun"].tolist()]
    assert sorted(rows) == ["regular", "she", "the"]


def test_batches_hold_sentences_of_like_length_and_come_the_same_for_the_same_seed():
    def first(seed):
        return [batch.ids for batch in islice(batches(sentences("training", seed), 16, "both ways", seed), 4)]

    assert all(torch.equal(here, there) for here, there in zip(first(3), first(3), strict=True))
    drawn = iter(sentences("training", 3))
    unsorted = [batch_of(islice(drawn, 16), "both ways").ids for _ in range(32)]

    def padding(held):
        return sum(int((ids == 0).sum()) for ids in held) / sum(ids.numel() for ids in held)

    sorted_ones = [batch.ids for batch in islice(batches(sentences("training", 3), 16, "both ways", 3), 32)]
    assert padding(sorted_ones) < 0.5 * padding(unsorted)  # words that are spelled count with all of their bytes


def test_fifteen_in_a_hundred_words_are_asked_for_and_seven_in_ten_of_those_are_hidden():
    ids = torch.full((400, 100), FIRST_WORD)
    read, labels = hide(ids, torch.Generator().manual_seed(0))
    chosen = labels >= 0
    assert 0.14 < chosen.float().mean() < 0.16
    assert 0.67 < (read[chosen] == MASK).float().mean() < 0.73
    assert torch.equal(read[~chosen], ids[~chosen])


def test_signs_that_are_no_words_are_never_hidden():
    read, labels = hide(torch.tensor([[0, BEGIN, END, MASK] * 200]), torch.Generator().manual_seed(0))
    assert (labels < 0).all()
    assert torch.equal(read, torch.tensor([[0, BEGIN, END, MASK] * 200]))


def test_the_answer_is_asked_for_at_the_pronoun_unless_it_is_hidden():
    batch = one(REGULAR)
    ((_, place, id),) = answers(batch, "both ways", batch.ids).tolist()
    assert (VOCABULARY.text(int(batch.ids[0, place])), VOCABULARY.text(id)) == ("she", "customer")
    hidden = batch.ids.clone()
    hidden[0, place] = MASK
    assert not len(answers(batch, "both ways", hidden))


def test_what_each_head_gives_its_gold_words_is_looked_up_for_all_relations_at_once():
    """The same numbers as one look-up after the other, in order, and nothing for a relation without labels."""
    weights = torch.rand(3, 2, 4, 5, 5)
    told = {
        "pronoun": torch.tensor([[0, 4, 1], [1, 3, 2]]), "object": torch.empty(0, 3, dtype=torch.long),
        "verb": torch.tensor([[1, 2, 0]]),
    }  # fmt: skip
    found = given(weights, told, HEADS["both ways"])
    assert found["pronoun"].tolist() == [float(weights[2, 0, 0, 4, 1]), float(weights[2, 1, 0, 3, 2])]
    assert found["verb"].tolist() == [float(weights[0, 1, 3, 2, 0])]
    assert found["object"].tolist() == []


def test_missed_weights_cost_their_logarithm_and_no_labels_cost_nothing():
    assert float(missed(torch.tensor([0.5, 0.25]))) == pytest.approx(1.5 * math.log(2))
    assert float(missed(torch.empty(0))) == 0


# How heads are measured.


def test_a_head_that_always_looks_at_the_gold_word_is_right_on_every_label_and_others_are_not():
    labels = torch.tensor([[0, 1, 2], [0, 3, 0]])
    weights = torch.full((1, 1, 2, 4, 4), 0.25)
    weights[0, 0, 1] = 0.0
    weights[0, 0, 1, 1, 2] = weights[0, 0, 1, 3, 0] = 1.0
    found = followed(weights, labels)
    assert found.best == (0, 1)
    assert found.right.tolist() == [[0.5, 1.0]]  # of equal weights the first counts: right on the label at column 0
    assert found.weight.tolist() == [[0.25, 1.0]]


def test_what_is_counted_on_two_sets_is_put_together_by_their_sizes():
    weights = torch.eye(3).expand(1, 1, 1, 3, 3)
    right, wrong = followed(weights, torch.tensor([[0, 0, 0]])), followed(weights, torch.tensor([[0, 0, 1]] * 3))
    assert joint([right, wrong]).right.tolist() == [[0.25]]


def test_of_two_words_the_one_with_more_weight_is_preferred():
    weights = torch.tensor([0.1, 0.6, 0.3]).expand(1, 1, 1, 3, 3)
    rows = torch.tensor([[0, 2]])
    assert float(preferred(weights, rows, torch.tensor([1]), torch.tensor([2]))) == 1.0
    assert float(preferred(weights, rows, torch.tensor([0]), torch.tensor([2]))) == 0.0


def test_looking_equally_far_takes_the_best_distance_of_the_other_split():
    development = torch.tensor([[0, 5, 4], [0, 6, 5], [0, 7, 9]])
    assert equally_far(development, torch.tensor([[0, 3, 2], [0, 3, 1]])) == (-1, 0.5)


# How they are trained.


def test_the_rate_rises_in_a_line_and_falls_to_a_tenth():
    shares = [share_of_rate(step, 1000) for step in range(1000)]
    assert shares[:50] == pytest.approx([(step + 1) / 50 for step in range(50)])
    assert shares[50:] == sorted(shares[50:], reverse=True)
    assert shares[-1] == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize("reads", BOTH)
def test_a_few_steps_from_the_same_seed_give_the_same_weights_bit_for_bit(reads):
    def trained(seed):
        with one_thread(seed):
            model = build(MAKES[reads], CONFIG, seed=seed)
            begin(model, seed)
            twin = Twin(reads, GUIDED[reads], seed, size=8)
            list(descend(model, lambda _: twin.next_loss(model), 3))
        return torch.cat([value.flatten() for value in model.state_dict().values()])

    assert torch.equal(trained(5), trained(5))
    assert not torch.equal(trained(5), trained(6))


@pytest.mark.parametrize("reads", BOTH)
def test_what_heads_are_told_changes_the_loss_and_only_where_it_is_told(reads):
    def loss(guidance):
        model = build(MAKES[reads], CONFIG, seed=0)
        return float(Twin(reads, guidance, 0, size=16).next_loss(model).detach())

    assert loss(GUIDED[reads]) > loss(UNGUIDED)


def test_twins_have_the_same_sizes_and_a_fifth_of_a_million_parameters_and_more():
    counts = {recipe.id: card_of(recipe.id) for recipe in RECIPES}
    assert len({card.config for card in counts.values()}) == 1
    assert len({card.steps for card in counts.values()}) == 1
    module = module_of(counts["twin-decoder"])
    assert 200_000 < sum(parameter.numel() for parameter in module.parameters()) < 300_000


# What they have learned.


def test_the_pronouns_head_finds_who_is_meant_in_every_frame(examined):
    head = HEADS[examined.reads]["pronoun"]
    assert set(examined.pronoun) == {frame.name for frame in REASON_FRAMES}
    assert joint(list(examined.pronoun.values())).right[head] >= 0.97
    for name, found in examined.pronoun.items():
        assert found.right[head] >= (0.97 if examined.reads == "both ways" else 0.94), name
        assert found.best == head, name
        if examined.reads == "both ways":
            assert found.weight[head] >= 0.9, name


def test_heads_follow_the_relations_that_they_were_taught(examined):
    for relation in STRUCTURE[examined.reads]:
        assert examined.relations[relation].right[HEADS[examined.reads][relation]] >= 0.95, relation
    assert examined.relations["repetition"].right[HEADS[examined.reads]["repetition"]] >= 0.9


def test_the_model_names_who_is_meant_and_not_without_the_head(examined):
    said, silent = examined.said(), examined.said(HEADS[examined.reads]["pronoun"])
    mean, without = (sum(shares.values()) / len(shares) for shares in (said, silent))
    assert mean >= (0.9 if examined.reads == "both ways" else 0.97)
    assert mean - without >= 0.2


def test_left_to_right_the_pronoun_itself_cannot_know():
    reads: Reads = "left to right"
    model = module_of(card_of("twin-decoder"))
    tested = Examined(model, reads, material("test", reads, PER_FRAME, 50))
    assert 0.42 <= tested.at_the_pronoun(HEADS[reads]["pronoun"]) <= 0.58
    rows = [weights_of(model, one(text, reads), "decoder")[:, 0, :, 9] for text in HEADLINES]
    assert torch.equal(rows[0][..., :10], rows[1][..., :10])


@pytest.mark.parametrize("reads", BOTH)
def test_both_opening_sentences_are_read_right_by_the_same_head(reads):
    found = headlines(module_of(card_of(IDS[reads])), reads, HEADS[reads]["pronoun"])
    assert [told["looks at"] for told in found.values()] == ["customer", "shopkeeper"]


def test_nobody_told_the_unguided_heads_and_none_of_theirs_is_as_clear():
    for reads in BOTH:
        guided, unguided = card_of(IDS[reads]), card_of(f"{IDS[reads]}-unguided")
        assert unguided.taught == ""
        assert guided.scores["relations"]["pronoun"]["right"] > unguided.scores["relations"]["pronoun"]["right"] + 0.1


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_a_card_tells_what_was_measured_beside_its_baselines(recipe):
    card = card_of(recipe.id)
    pronoun = card.scores["relations"]["pronoun"]
    assert {"most recent of the two", "always who gives or acts", "random weights, best head"} <= set(
        pronoun["baselines"]
    )
    assert set(card.scores["relations"]) <= set(RELATIONS)
    assert set(pronoun["frames"]) == {frame.name for frame in REASON_FRAMES}
    assert card.heads["pronoun"] == tuple(pronoun["head"])


def test_from_python_the_opening_sentence_is_read_as_the_app_shows_it():
    model = load("twin-encoder")
    for text, meant in (("a regular", 5), ("generous", 2)):
        trace = model.run(f"The shopkeeper gave the customer a discount because she was {text}")
        row = trace.weights(2, 0)[9]
        assert int(row.argmax()) == meant
        assert float(row[meant]) > 0.9
    causal = model.run(REGULAR, mask=Mask.causal())
    assert float(causal.weights(2, 0)[9, 10:].sum()) == 0.0
