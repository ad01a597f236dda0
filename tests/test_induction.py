"""Induction: the score in closed form, the sequences, and models that find it or cannot."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from engine.errors import ShapeError
from engine.recording import recording
from engine.training import copying
from engine.training.adam import Adam
from engine.training.copying import CHANCE, Copying, CopyTask, chance_score, held_out
from engine.training.induction import (
    LENGTH,
    SYMBOLS,
    CopyModel,
    after_equal,
    copying_loss,
    even_weights,
    induction_score,
    previous_score,
    repeated,
)

SOON = 250  # steps, a second or two


def drawn(count: int = 5, period: int | None = None, seed: int = 3) -> tuple[Tensor, Tensor]:
    """Some sequences and their periods."""
    return repeated(count, torch.Generator().manual_seed(seed), period=period)


def perfect(ids: Tensor) -> Tensor:
    """The attention of a head that looks at nothing but places after an earlier equal symbol; elsewhere at itself."""
    places = after_equal(ids).float()
    places = torch.where(places.sum(-1, keepdim=True) > 0, places, torch.eye(ids.shape[1]))
    return (places / places.sum(dim=-1, keepdim=True))[:, None]


def best(scores: dict[str, float], name: str = "induction") -> float:
    """The highest score of any head."""
    return max(score for key, score in scores.items() if key.startswith(name))


def trained(setting: Copying, steps: int = SOON) -> CopyTask:
    """A task after so many steps."""
    task = setting.task()
    for _ in range(steps):
        task.step()
    return task


def test_sequences_repeat_and_within_a_period_no_symbol_comes_twice():
    ids, periods = drawn(200)
    assert ids.shape == (200, LENGTH)
    assert set(periods.flatten().tolist()) == set(range(6, 17))
    for row, (period,) in zip(ids.tolist(), periods.tolist(), strict=True):
        assert len(set(row[:period])) == period
        assert row[period:] == row[: len(row) - period]


@pytest.mark.parametrize("period", [0, len(SYMBOLS) + 1])
def test_a_period_without_symbols_of_its_own_is_refused(period: int):
    with pytest.raises(ShapeError, match=f"A period of {period} does not fit"):
        drawn(period=period)


def test_the_places_after_an_earlier_equal_symbol_are_the_stripes_below_the_diagonal():
    """K R D K R D: the second K looks at R, the second R at D, the second D at the second K."""
    marked = after_equal(torch.tensor([[0, 1, 2, 0, 1, 2]]))[0]
    assert marked.nonzero().tolist() == [[3, 1], [4, 2], [5, 3]]


def test_a_perfect_head_scores_one():
    ids, periods = drawn()
    torch.testing.assert_close(induction_score(perfect(ids), ids, periods), torch.ones(1))


def test_a_head_that_looks_anywhere_else_scores_nothing():
    """At the first symbol, which never stands behind an equal one, and at itself."""
    ids, periods = drawn()
    first = torch.zeros(len(ids), 1, LENGTH, LENGTH)
    first[..., 0] = 1
    both = torch.cat([first, torch.eye(LENGTH).expand(len(ids), 1, -1, -1)], dim=1)
    assert induction_score(both, ids, periods).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("period", [6, 11, 16])
def test_even_attention_scores_its_share_of_the_past(period: int):
    """Row t spreads over t + 1 symbols, and ⌊t / p⌋ of them stand behind an equal one."""
    ids, periods = drawn(period=period)
    expected = sum((t // period) / (t + 1) for t in range(period, LENGTH)) / (LENGTH - period)
    score = induction_score(even_weights(*ids.shape), ids, periods)
    torch.testing.assert_close(score, torch.tensor([expected]))


def test_half_the_attention_is_half_the_score():
    ids, periods = drawn()
    mixed = 0.5 * perfect(ids) + 0.5 * torch.eye(LENGTH)
    torch.testing.assert_close(induction_score(mixed, ids, periods), torch.tensor([0.5]))


def test_a_head_that_looks_one_back_is_known_by_it():
    _, periods = drawn()
    back = torch.eye(LENGTH).roll(-1, dims=1).tril()  # row t looks at t - 1
    back[0, 0] = 1
    weights = torch.stack([back, torch.eye(LENGTH)]).expand(len(periods), 2, LENGTH, LENGTH)
    assert previous_score(weights, periods).tolist() == [1.0, 0.0]


def test_looking_one_back_counts_only_where_an_induction_head_looks():
    """The places 1 to p: what rows beyond do makes no difference."""
    _, periods = drawn(period=7)
    back = torch.eye(LENGTH).roll(-1, dims=1).tril()
    back[8:] = 1 / LENGTH
    assert previous_score(back.expand(len(periods), 1, LENGTH, LENGTH), periods).tolist() == [1.0]
    back[7] = 0
    torch.testing.assert_close(
        previous_score(back.expand(len(periods), 1, LENGTH, LENGTH), periods), torch.tensor([6 / 7])
    )


def test_the_loss_counts_what_the_past_decides_and_chance_is_five_bits():
    """Scores that favour the right symbol only where it is decided cost nothing; equal scores cost log₂ 32."""
    ids, periods = drawn()
    assert copying_loss(torch.zeros(len(ids), LENGTH, len(SYMBOLS)), ids, periods).item() == pytest.approx(math.log(32))
    assert CHANCE == 5
    right = 100.0 * nn.functional.one_hot(ids.roll(-1, dims=1), len(SYMBOLS)).float()
    right[torch.arange(LENGTH)[None] < periods] = 0  # the first round is guessed
    assert copying_loss(right, ids, periods).item() < 1e-6


def test_adam_takes_the_steps_that_pytorchs_takes():
    """With and without decay, over twenty steps."""
    for decay in (0.0, 0.1):
        torch.manual_seed(0)
        ours, theirs = nn.Linear(5, 3), nn.Linear(5, 3)
        theirs.load_state_dict(ours.state_dict())
        mine = Adam(ours, betas=(0.9, 0.98), decay=decay)
        stock = torch.optim.AdamW(theirs.parameters(), lr=0.01, betas=(0.9, 0.98), weight_decay=decay)
        for _ in range(20):
            x = torch.randn(7, 5)
            ours(x).square().mean().backward()
            mine.step(0.01)
            stock.zero_grad()
            theirs(x).square().mean().backward()
            stock.step()
        torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-5, atol=1e-7)


def test_the_causal_rule_holds_and_recording_gives_every_head():
    model = CopyModel(depth=3, heads=4)
    ids, _ = drawn(2)
    with recording() as recorder:
        model(ids)
    weights = torch.stack([held.call.weights() for held in recorder.recorded.values()])
    assert weights.shape == (3, 2, 4, LENGTH, LENGTH)
    assert weights.triu(1).abs().max() == 0
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 2, 4, LENGTH))


@pytest.mark.parametrize("order", ["learned", "rotary", "none"])
@pytest.mark.parametrize("heads", [1, 2, 3, 4])
def test_every_choice_makes_a_model_that_learns_something(order: str, heads: int):
    setting = Copying(depth=2, heads=heads, order=order)  # type: ignore[arg-type]
    task = setting.task()
    before = task.scores()["loss"]
    for _ in range(30):
        task.step()
    assert task.scores()["loss"] < before
    assert task.maps().shape == (2, heads, 30, 30) == (2, heads, *2 * (len(setting.tokens),))


@pytest.mark.parametrize(
    ("depth", "heads", "order"), [(0, 1, "learned"), (4, 1, "learned"), (2, 5, "learned"), (2, 1, "x")]
)
def test_what_makes_no_model_is_refused(depth: int, heads: int, order: str):
    with pytest.raises(ShapeError, match=r"layers of|positions here"):
        CopyModel(depth, heads, order)  # type: ignore[arg-type]


def test_untrained_heads_score_what_even_attention_scores():
    assert best(Copying().task().scores()) == pytest.approx(chance_score(), abs=0.03)
    assert chance_score() == pytest.approx(0.08, abs=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_two_layers_find_it_from_every_seed(seed: int):
    """Above 0.9 by step 250, with a head below that looks one back."""
    scores = trained(Copying(seed=seed)).scores()
    assert scores["induction 1.0"] > 0.9
    assert scores["previous 0.0"] > 0.9
    assert scores["loss"] < 0.2


@pytest.mark.parametrize("heads", [1, 4])
def test_one_layer_never_finds_it(heads: int):
    """It stays below 0.25 however many heads it has, and never knows what comes."""
    scores = trained(Copying(depth=1, heads=heads), 400).scores()
    assert best(scores) < 0.25
    assert scores["loss"] > 3


def test_with_a_fixed_period_it_cheats():
    """It knows what comes, by place alone: no head cares for symbols, and other periods are worse than chance."""
    task = trained(Copying(period=8), 300)
    assert task.step() < 0.1
    scores = task.scores()
    assert best(scores) < 0.25
    assert scores["loss"] > CHANCE


def test_the_same_seed_learns_the_same_bit_by_bit():
    one, other = (trained(Copying(seed=7), 20).state() for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)
    different = trained(Copying(seed=8), 20).state()
    assert not torch.equal(one["weight/symbols.weight"], different["weight/symbols.weight"])


def test_random_numbers_of_others_are_neither_used_nor_changed():
    """Many learn in one process: what they draw must not depend on who else draws."""
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    state = trained(Copying(), 3).state()
    torch.manual_seed(99)
    assert all(torch.equal(value, state[name]) for name, value in trained(Copying(), 3).state().items())
    torch.manual_seed(1)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_state_is_a_copy_that_learning_goes_on_from_bit_by_bit():
    task = trained(Copying(), 10)
    kept = task.state()
    before = {name: value.clone() for name, value in kept.items()}
    losses = [task.step() for _ in range(5)]
    assert all(torch.equal(value, before[name]) for name, value in kept.items())
    again = Copying().task()
    again.restore(kept, 10)
    assert [again.step() for _ in range(5)] == losses


def test_what_is_measured_on_is_never_learned_from():
    """The scores' sequences come from random numbers of their own: no batch of the first steps holds one."""
    measured = {tuple(row) for row in held_out()[0].tolist()}
    for step in range(50):
        batch, _ = repeated(copying.BATCH, torch.Generator().manual_seed(step))
        assert measured.isdisjoint(map(tuple, batch.tolist()))


def test_a_change_of_rate_alone_leaves_the_model_as_it_begins():
    one, other = (replace(Copying(), rate=rate).task().state() for rate in (0.01, 0.1))
    assert all(torch.equal(one[name], other[name]) for name in one)
