"""Several texts in one pass, targets of encoder-decoders, and text that a model writes on."""

from pathlib import Path
from typing import Any

import pytest
import torch

from engine import Mask, MaskError, ModelError, ShapeError, TextError, Trace
from engine.catalogue import load_huggingface
from tests.tiny_models import LONG, RECORDED, RETURNED, SHORT, inputs, save, stock, tiny

TEXTS = (SHORT, LONG, "Hello there world, hi!")
ALONE = sorted({*RECORDED, *RETURNED} - {"mt5"})  # tiny mT5 cannot write a target, see there


def assert_alike(trace: Trace, alone: Trace) -> None:
    assert [token.id for token in trace.tokens] == [token.id for token in alone.tokens]
    assert trace.sites.keys() == alone.sites.keys()
    for site in alone.sites:
        ours, theirs = (run.weights(site.layer, kind=site.kind) for run in (trace, alone))
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ALONE)
def test_a_text_in_a_batch_gets_the_weights_that_it_gets_alone(name: str):
    """Three lengths in one pass, each trace cut to its own tokens: GPT-2 has no padding token, BERT's has id 0."""
    model = tiny(name)
    traces = model.run_batch(TEXTS)
    assert len({len(trace.tokens) for trace in traces}) > 1
    for trace, text in zip(traces, TEXTS, strict=True):
        assert not any(token.padding for token in trace.tokens)
        assert_alike(trace, model.run(text))


@pytest.mark.parametrize("name", ["bert", "gpt2", "mistral", "modernbert"])
@pytest.mark.parametrize("mask", [Mask.causal(), Mask.window(2), Mask.bidirectional().only(heads=[1])])
def test_a_batch_under_a_foreign_mask_is_each_text_alone_under_it(name: str, mask: Mask):
    model = tiny(name)
    for trace, text in zip(model.run_batch(TEXTS, mask), TEXTS, strict=True):
        assert_alike(trace, model.run(text, mask=mask))
        assert trace.audit().passed


def test_padding_is_told_by_place_and_not_by_id():
    """GPT-2 fills up with its end token, id 0 here, which may well be read as a token too."""
    model = tiny("gpt2")
    assert (model.tokenizer.pad_token_id, model.tokenizer.eos_token_id) == (None, 0)
    text = "The cat<|endoftext|> sat"
    trace = model.run_batch([text, LONG])[0]
    place = trace.prompt.ids.index(0)
    assert bool((trace.weights(0)[:, place:, place] > 0).all())
    assert_alike(trace, model.run(text))


def test_an_empty_batch_is_refused():
    with pytest.raises(TextError, match="at least one text"):
        tiny("bert").run_batch([])


@pytest.mark.parametrize("name", ["t5", "mt5", "bart", "marian", "m2m-100"])
def test_cross_attention_has_target_rows_and_source_columns(name: str):
    source, target = "The house is wonderful.", "a cat"
    trace = tiny(name).run(source, target=target)
    assert trace.kinds == ("encoder", "decoder", "cross")
    assert trace.target is not None
    rows, columns = len(trace.target), len(trace.prompt)
    assert rows != columns
    assert trace.weights(0, 0, "cross").shape == (rows, columns)
    assert trace.weights(0, 0, "encoder").shape == (columns, columns)
    assert trace.weights(0, 0, "decoder").shape == (rows, rows)
    assert trace.queries("cross") == trace.queries("decoder") == trace.target.tokens
    assert trace.keys("cross") == trace.keys("encoder") == trace.prompt.tokens
    assert not bool(trace.weights(0, kind="decoder").triu(1).any())
    assert trace.audit().passed


def test_five_target_tokens_on_nine_source_tokens_make_a_rectangle_of_5_by_9():
    model = tiny("bart")
    source, target = "the cat on the mat", "a cat a"
    trace = model.run(source, target=target)
    assert trace.target is not None
    assert (len(trace.target), len(trace.prompt)) == (5, 9)
    assert trace.weights(1, 2, "cross").shape == (5, 9)
    with pytest.raises(ShapeError, match="encoder, decoder, cross; say one"):
        trace.weights(1)


def test_a_decoder_reads_its_start_token_and_then_the_target_without_its_end():
    """What it was trained on: each row predicts the next token of the target."""
    model = tiny("t5")
    trace = model.run(LONG, target="The cat")
    assert trace.target is not None
    whole = model.tokenizer("The cat")["input_ids"]
    assert whole[-1] == model.tokenizer.eos_token_id
    assert list(trace.target.ids) == [model.module.config.decoder_start_token_id, *whole[:-1]]
    assert trace.target.tokens[0].special


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_without_a_target_the_model_writes_one_and_then_reads_it(name: str):
    model = tiny(name)
    trace = model.run("translate English to German: The house is wonderful.")
    assert trace.target is not None
    assert all(token.generated for token in trace.target.tokens[1:])
    assert not trace.target.tokens[0].generated
    with torch.inference_mode():
        given = inputs(model, [trace.prompt])
        own: Any = stock(name)
        written = own.generate(**given, max_new_tokens=64, do_sample=False, num_beams=1)[0].tolist()
    assert list(trace.target.ids) == written[: len(trace.target)]
    assert trace.weights(1, 0, "cross").shape == (len(trace.target), len(trace.prompt))
    again = model.run_prompt(trace.prompt, trace.target)
    assert torch.equal(again.weights(1, kind="cross"), trace.weights(1, kind="cross"))


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt-neox", "mistral", "bloom"])
def test_tokens_that_a_model_writes_on_stand_on_both_axes_and_are_marked(name: str):
    model = tiny(name)
    read = model.prompt("Generate a positive review")
    trace = model.run("Generate a positive review", generate=5)
    new = trace.tokens[len(read) :]
    assert 1 <= len(new) <= 5
    assert all(token.generated for token in new)
    assert not any(token.generated for token in trace.tokens[: len(read)])
    assert trace.queries() == trace.keys() == trace.tokens
    assert trace.weights(0, 0).shape == (len(trace.tokens), len(trace.tokens))
    with torch.inference_mode():
        given = inputs(model, [read])
        own: Any = stock(name)
        written = own.generate(**given, max_new_tokens=5, do_sample=False, pad_token_id=0)[0].tolist()
    assert list(trace.prompt.ids) == written
    again = model.run_prompt(trace.prompt)
    assert torch.equal(again.weights(1), trace.weights(1))


def test_nothing_is_written_beyond_the_limit(tmp_path: Path):
    model = load_huggingface(str(save("gpt2", tmp_path / "gpt2", n_positions=12)), device="cpu")
    assert model.card.limit == 12
    trace = model.run("The cat sat on the mat.", generate=50)
    assert len(trace.tokens) == 12


@pytest.mark.parametrize(("name", "limit"), [("bart", 20), ("pegasus", 20)])
def test_a_written_target_keeps_to_the_limit(tmp_path: Path, name: str, limit: int):
    model = load_huggingface(str(save(name, tmp_path / name, max_position_embeddings=limit)), device="cpu")
    trace = model.run("The cat sat.")
    assert trace.target is not None
    assert len(trace.target) <= limit


def test_models_that_cannot_write_say_so():
    with pytest.raises(ModelError, match="does not write text"):
        tiny("bert").run(SHORT, generate=3)
    with pytest.raises(ModelError, match="does not write text"):
        tiny("clip-text").run(SHORT, generate=3)
    with pytest.raises(ModelError, match="has no second text to read"):
        tiny("gpt2").run(SHORT, target="a cat")


def test_a_window_that_a_short_text_never_reaches_hides_nothing(tmp_path: Path):
    model = load_huggingface(str(save("mistral", tmp_path / "mistral", sliding_window=4096)), device="cpu")
    assert model.card.windows == (4096, 4096)
    trace = model.run(SHORT)
    seen = trace.visible(0, 0)
    assert torch.equal(seen, torch.ones_like(seen).tril())


def test_two_sentences_to_compare_differ_in_segment():
    """BERT is told which tokens belong to the second sentence."""
    model = tiny("bert")
    trace = model.run(SHORT, pair="The cat lay on the rug.")
    assert set(trace.prompt.segments) == {0, 1}
    given = {**inputs(model, [trace.prompt]), "token_type_ids": torch.tensor([trace.prompt.segments])}
    with torch.inference_mode():
        returned = stock("bert")(**given, output_attentions=True).attentions
    torch.testing.assert_close(trace.weights(1), returned[1][0], rtol=0, atol=1e-5)


def test_what_is_no_mask_or_no_text_is_refused_with_what_would_do() -> None:
    model = tiny("bert")
    with pytest.raises(MaskError, match=r"Mask\.causal\(\).*'causal'"):
        model.run("hello there", mask="causal")  # type: ignore[arg-type]
    with pytest.raises(TextError, match="not None"):
        model.run(None)  # type: ignore[arg-type]


def test_a_mask_for_a_layer_that_is_not_there_is_refused() -> None:
    model = tiny("bert")
    with pytest.raises(MaskError, match="no layer 9"):
        model.run("hello there", mask=Mask.causal().only(layers=[0, 9]))


def test_a_trace_prints_in_one_short_line() -> None:
    printed = repr(tiny("bert").run("hello there"))
    assert len(printed) < 120
    assert "as trained" in printed
