"""The packaged MiniLM, on real weights: the numbers were measured with transformers' own eager attention."""

import pytest
import torch

from engine import HuggingFaceModel, Mask, ModelError, Trace, load, models
from engine.catalogue import MINILM

SHOPKEEPER = "The shopkeeper gave the customer a discount because she was a regular"
GENEROUS = "The shopkeeper gave the customer a discount because she was generous"
CLS, SHOP, KEEPER, CUSTOMER, SHE = 0, 2, 3, 6, 10

MEASURED = [
    ("native", 5, 8, 0.293547, 0.138684, 0.044718),
    ("native", 3, 1, 0.248558, 0.373056, 0.225126),
    ("native", 0, 0, 0.102081, 0.320463, 0.197443),
    ("causal", 5, 8, 0.362750, 0.185754, 0.076624),
    ("causal", 3, 1, 0.158623, 0.507916, 0.253801),
]


@pytest.fixture(scope="module")
def native(minilm: HuggingFaceModel) -> Trace:
    return minilm.run(SHOPKEEPER)


@pytest.mark.parametrize(("mask", "layer", "head", "customer", "shopkeeper", "cls"), MEASURED)
def test_she_attends_as_measured(
    minilm: HuggingFaceModel, mask: str, layer: int, head: int, customer: float, shopkeeper: float, cls: float
) -> None:
    row = minilm.run(SHOPKEEPER, mask=Mask.parse(mask)).weights(layer, head)[SHE]
    shown = torch.stack([row[CUSTOMER], row[SHOP] + row[KEEPER], row[CLS]])
    torch.testing.assert_close(shown, torch.tensor([customer, shopkeeper, cls]), atol=1e-5, rtol=0)


def test_tokens_are_those_of_bert(native: Trace) -> None:
    pieces = "[CLS] the shop ##keeper gave the customer a discount because she was a regular [SEP]"
    assert [token.raw for token in native.tokens] == pieces.split()
    assert [token.text for token in native.tokens][3] == "keeper"


def test_head_5_8_looks_from_she_to_customer_more_than_any_other(native: Trace) -> None:
    weights = native.rows([SHE])[:, :, 0, CUSTOMER]
    assert divmod(int(weights.argmax()), 12) == (5, 8)


def test_no_head_follows_the_reason(minilm: HuggingFaceModel, native: Trace) -> None:
    """With "generous" the shopkeeper is meant; no head gives the right person more in both sentences."""
    generous = minilm.run(GENEROUS).rows([SHE])[:, :, 0]
    regular = native.rows([SHE])[:, :, 0]
    torch.testing.assert_close(float(generous[5, 8, CUSTOMER]), 0.330, atol=5e-4, rtol=0)
    torch.testing.assert_close(float(generous[5, 8, [SHOP, KEEPER]].sum()), 0.163, atol=5e-4, rtol=0)
    right_with_regular = regular[..., CUSTOMER] > regular[..., [SHOP, KEEPER]].sum(-1)
    right_with_generous = generous[..., [SHOP, KEEPER]].sum(-1) > generous[..., CUSTOMER]
    assert int((right_with_regular & right_with_generous).sum()) == 0


@pytest.mark.parametrize("mask", [Mask.native(), Mask.causal(), Mask.window(3), Mask.prefix(2)])
def test_audit_holds_to_1e_5(minilm: HuggingFaceModel, mask: Mask) -> None:
    audit = minilm.run(SHOPKEEPER, mask=mask).audit()
    assert audit.passed
    assert audit.rows == "all"
    assert audit.relative is not None
    assert audit.relative <= 1e-5


def test_weights_equal_what_eager_transformers_returns(minilm: HuggingFaceModel, native: Trace) -> None:
    from transformers import AutoModel

    eager = AutoModel.from_pretrained(str(MINILM.path), attn_implementation="eager").eval()
    with torch.inference_mode():
        returned = eager(torch.tensor([native.prompt.ids]), output_attentions=True).attentions
    for layer, expected in enumerate(returned):
        torch.testing.assert_close(native.weights(layer), expected[0], atol=1e-5, rtol=0)


def test_card_says_what_it_is(minilm: HuggingFaceModel) -> None:
    card = minilm.card
    assert (card.family, card.style, card.kinds) == ("bert", "BERT-style", ("encoder",))
    assert (card.layers, card.heads, card.parameters, card.limit) == (6, 12, 22_713_216, 512)
    assert card.backend == "sdpa"
    assert "Apache-2.0" in card.licence
    assert "MIT" in card.licence
    assert card.missing == ()
    entry = next(entry for entry in models() if entry.id == "minilm")
    assert (entry.parameters, entry.layers, entry.heads) == (card.parameters, card.layers, card.heads)


def test_runs_in_a_batch_equal_runs_alone(minilm: HuggingFaceModel, native: Trace) -> None:
    traces = minilm.run_batch(["hello there", SHOPKEEPER, "a"])
    assert [len(trace.tokens) for trace in traces] == [4, 15, 3]
    for layer in range(6):
        torch.testing.assert_close(traces[1].weights(layer), native.weights(layer), atol=1e-5, rtol=0)


def test_a_long_text_is_cut_and_says_so_and_the_next_run_works(minilm: HuggingFaceModel) -> None:
    trace = minilm.run("word " * 600)
    assert len(trace.tokens) == 512
    assert trace.prompt.total == 602
    assert any("602" in notice and "512" in notice for notice in trace.prompt.notices)
    assert len(minilm.run("hi").tokens) == 3


def test_hindi_keeps_its_words_and_says_what_was_stripped(minilm: HuggingFaceModel) -> None:
    sentence = "दुकानदार ने ग्राहक को छूट दी क्योंकि वह नियमित थी"
    prompt = minilm.run(sentence).prompt
    assert [word.text for word in prompt.words] == sentence.split()
    assert any("vowel signs" in notice for notice in prompt.notices)
    assert {token.word for token in prompt.tokens if not token.special} == set(range(len(sentence.split())))


def test_tampered_weights_are_refused(minilm: HuggingFaceModel, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    monkeypatch.setitem(__import__("engine.catalogue").catalogue.PACKAGED, "minilm", replace(MINILM, sha256="0" * 64))
    with pytest.raises(ModelError, match="not those that were published"):
        load("minilm")
