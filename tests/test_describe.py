"""What is read off a transformers model besides its weights."""

import pytest
import torch
from torch import Tensor, nn

from engine.describe import learned_table
from tests.tiny_models import build


def whole_table(module: nn.Module) -> Tensor:
    """The one parameter that holds positions, or the first of them."""
    names = ("position_embeddings.weight", "embed_positions.weight")
    return next(value for name, value in module.named_parameters() if name.endswith(names))


def test_a_learned_table_is_the_models_own_and_a_copy():
    """BERT's, row for row; changing it changes no model."""
    module, _ = build("bert")
    own = whole_table(module)
    table = learned_table(module)
    assert table is not None
    assert table.equal(own.detach())
    table.zero_()
    assert bool(own.any())


@pytest.mark.parametrize("name", ["roberta", "bart", "opt"])
def test_rows_kept_for_padding_are_no_positions(name: str):
    """RoBERTa begins to count behind its padding id, BART and OPT at 2."""
    module, _ = build(name)
    own = whole_table(module).detach()
    table = learned_table(module)
    assert table is not None
    assert len(table) < len(own)
    torch.testing.assert_close(table, own[len(own) - len(table) :])


@pytest.mark.parametrize("name", ["llama", "t5", "bloom"])
def test_a_model_without_learned_positions_has_no_table(name: str):
    """Rotary, relative buckets, ALiBi."""
    module, _ = build(name)
    assert learned_table(module) is None
