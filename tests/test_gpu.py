"""What must hold on a GPU too: the same numbers, the audit, half precision, masks."""

import pytest
import torch

from engine import HuggingFaceModel, Mask
from engine.catalogue import load_huggingface
from tests.benchmarks.gpu import LENGTHS, long_texts

pytestmark = pytest.mark.gpu
SENTENCE = "The shopkeeper gave the customer a discount because she was a regular"


@pytest.fixture(scope="module")
def on_gpu() -> HuggingFaceModel:
    return load_huggingface("minilm", device="cuda")


def test_auto_takes_the_gpu() -> None:
    assert load_huggingface("minilm").card.device.startswith("cuda")


@pytest.mark.parametrize("mask", [Mask.native(), Mask.causal(), Mask.window(3), Mask.causal().only(heads=[2])])
def test_weights_equal_those_of_the_cpu(minilm: HuggingFaceModel, on_gpu: HuggingFaceModel, mask: Mask) -> None:
    ours, theirs = on_gpu.run(SENTENCE, mask=mask), minilm.run(SENTENCE, mask=mask)
    for layer in range(6):
        torch.testing.assert_close(ours.weights(layer), theirs.weights(layer), atol=1e-4, rtol=0)
    assert ours.audit().passed


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_audits_within_its_tolerance(dtype: str) -> None:
    trace = load_huggingface("minilm", device="cuda", dtype=dtype).run(SENTENCE)
    assert trace.audit().passed
    torch.testing.assert_close(trace.weights(0).sum(dim=-1), torch.ones(12, 15), atol=1e-5, rtol=0)


def test_a_batch_and_the_overview_work_there(on_gpu: HuggingFaceModel) -> None:
    short, long = on_gpu.run_batch(["hello there", "word " * 500])
    torch.testing.assert_close(short.weights(5), on_gpu.run("hello there").weights(5), atol=1e-4, rtol=0)
    assert long.overview(pixels=64).shape == (6, 12, 64, 64)
    assert long.audit().passed


def test_recording_costs_next_to_nothing_at_128k_tokens() -> None:
    """A Llama-shaped stack in bfloat16: the ratios of `python -m tests.benchmarks gpu`, with room for a busy device."""
    ratios = {(row.what, row.tokens): row.value for row in long_texts()}
    for tokens in LENGTHS:
        assert ratios["recorded over plain, time", tokens] <= 1.15
        assert ratios["256 rows of one head over the run", tokens] <= 0.1
