"""Our own transformers behind the Model interface: run, record, write, and refuse in sentences."""

from dataclasses import replace
from typing import Literal

import pytest
import torch

from engine import (
    Config,
    Decoder,
    Encoder,
    EncoderDecoder,
    Mask,
    MaskError,
    ModelError,
    ScratchModel,
    ShapeError,
    TextClassifier,
    TextError,
    VisionTransformer,
    build,
    load,
    number_words,
    untrained,
)
from engine.rotary import DynamicNTK

SENTENCE = "The cat sat on the mat"
SIZES = Config(width=32, layers=2, heads=4, kv_heads=2, feed_forward=48, vocabulary=30, length=16, head="tied")


def test_a_run_leaves_a_trace_like_any_other_models():
    """Kinds, tokens, maps whose rows sum to 1, an audit of all rows, and a card that says what it is."""
    model = untrained(Encoder, SIZES)
    trace = model.run(SENTENCE)
    assert trace.kinds == ("encoder",)
    assert [token.text for token in trace.tokens] == SENTENCE.split()
    weights = trace.weights(layer=1)
    assert weights.shape == (4, 6, 6)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(4, 6))
    assert trace.audit().passed
    card = model.card
    assert (card.style, card.layers, card.heads, card.kv_heads) == ("BERT-style", 2, 4, 2)
    assert card.parameters == sum(parameter.numel() for parameter in model.module.parameters())
    assert "random" in card.notes[0]


def test_the_same_seed_gives_the_same_attention_and_another_seed_another():
    """Weights are drawn from the seed alone."""
    first, again, other = (untrained(Encoder, SIZES, seed=seed).run(SENTENCE).weights(0, 0) for seed in (3, 3, 4))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert (first - other).abs().max() > 1e-4


def test_masks_are_imposed_on_our_own_models_too():
    """A decoder sees only the past; told to look both ways it sees everything, with one layer left alone."""
    model = untrained(Decoder, SIZES)
    future = torch.ones(6, 6).triu(1).bool()
    assert model.run(SENTENCE).weights(0, 0)[future].max() == 0
    both = model.run(SENTENCE, mask=Mask.bidirectional().only(layers=[1]))
    assert both.weights(0, 0)[future].max() == 0
    assert both.weights(1, 0)[future].min() > 0


def test_a_mask_for_a_layer_that_is_not_there_is_refused():
    """The layer is named."""
    with pytest.raises(MaskError, match="has no layer 2"):
        untrained(Encoder, SIZES).run(SENTENCE, mask=Mask.causal().only(layers=[0, 2]))


def test_an_encoder_decoder_reads_two_texts():
    """Three kinds of attention; without a target the decoder reads the same text."""
    model = untrained(EncoderDecoder, replace(SIZES, decoder_layers=3, positions="relative"))
    trace = model.run(SENTENCE, target="Le chat")
    assert trace.kinds == ("encoder", "decoder", "cross")
    assert trace.weights(2, 0, "cross").shape == (2, 6)
    assert (trace.layers("encoder"), trace.layers("decoder")) == (2, 3)
    assert len(model.run(SENTENCE).queries("decoder")) == 6
    with pytest.raises(ModelError, match="no second text"):
        untrained(Encoder, SIZES).run(SENTENCE, target="Le chat")


def test_padding_is_seen_by_nobody():
    """A padded prompt: padding has no weight, and the real rows are those without it, on either side."""
    model = untrained(Encoder, SIZES)
    prompt = model.prompt(SENTENCE)
    plain = model.run_prompt(prompt).weights(1, 2)
    sides: tuple[tuple[Literal["left", "right"], slice], ...] = (("right", slice(0, 6)), ("left", slice(3, 9)))
    for side, real in sides:
        padded = model.run_prompt(prompt.padded(9, side=side))
        weights = padded.weights(1, 2)
        torch.testing.assert_close(weights[real, real], plain, rtol=0, atol=1e-6)
        assert weights[real].sum() == pytest.approx(6, abs=1e-5)


def test_writing_with_a_cache_leaves_rectangles_labelled_by_absolute_position():
    """First T × T, then one row over all keys so far; together they are the rows of one full pass."""
    model = untrained(Decoder, replace(SIZES, positions="rotary", window=4))
    steps = model.generate(SENTENCE, 4)
    assert [(len(step.queries()), len(step.keys())) for step in steps] == [(6, 6), (1, 7), (1, 8), (1, 9)]
    last = steps[-1]
    assert last.first == 8
    assert last.queries()[0] == last.keys()[8]
    assert all(token.generated for token in last.keys()[6:])
    assert all(step.audit().passed for step in steps)
    full = model.run_prompt(last.prompt)
    for layer in range(2):
        rows = torch.cat([torch.nn.functional.pad(step.weights(layer), (0, 9 - len(step.keys()))) for step in steps], 1)
        torch.testing.assert_close(rows, full.weights(layer), rtol=0, atol=1e-6)
    torch.testing.assert_close(last.overview(pixels=4).shape, torch.Size([2, 4, 1, 4]))


def test_what_is_written_is_what_repeated_full_passes_would_write():
    """Greedy choice by choice, without any cache."""
    model = untrained(Decoder, SIZES)
    module = model.module
    ids = torch.tensor([model.prompt(SENTENCE).ids])
    with torch.inference_mode():
        for _ in range(5):
            ids = torch.cat([ids, module.logits(module(ids))[:, -1:].argmax(dim=-1)], dim=1)
    written = model.generate(SENTENCE, 5)[-1].keys()
    assert [token.id for token in written] == ids[0, :-1].tolist()


def test_what_cannot_write_is_refused_in_a_sentence():
    """An encoder, a decoder without a head, no tokens, and more than its table of positions holds."""
    with pytest.raises(ModelError, match="does not write"):
        untrained(Encoder, SIZES).generate(SENTENCE, 2)
    with pytest.raises(ModelError, match="does not write"):
        untrained(Decoder, replace(SIZES, head="none")).generate(SENTENCE, 2)
    with pytest.raises(ModelError, match="0 tokens cannot be written"):
        untrained(Decoder, SIZES).generate(SENTENCE, 0)
    with pytest.raises(ModelError, match="6 tokens and 11 more do not fit into 16"):
        untrained(Decoder, SIZES).generate(SENTENCE, 11)
    assert len(untrained(Decoder, SIZES).generate(SENTENCE, 10)) == 10


def test_text_beyond_the_table_of_positions_is_cut_with_a_notice():
    """Seventeen words, sixteen positions; rotary positions have no end."""
    long = " ".join(["word"] * 17)
    trace = untrained(Encoder, SIZES).run(long)
    assert len(trace.tokens) == 16
    assert "the last 1 are left out" in trace.prompt.notices[-1]
    assert len(untrained(Encoder, replace(SIZES, positions="rotary")).run(long).tokens) == 17


def test_a_classifier_reads_text_and_a_vision_model_does_not():
    """One is an encoder with a label on top; the other has no words."""
    trace = untrained(TextClassifier, replace(SIZES, classes=2)).run(SENTENCE)
    assert trace.kinds == ("encoder",)
    with pytest.raises(ModelError, match="looks at images"):
        untrained(VisionTransformer, replace(SIZES, image=8, patch=4))


def test_nothing_to_read_is_refused():
    """As everywhere."""
    with pytest.raises(TextError, match="Type a sentence first"):
        untrained(Encoder, SIZES).run("  ")


def test_minilm_in_our_own_code_shows_the_same_numbers():
    """The same weights through our transformer and through transformers': every map, the words, the limit."""
    ours, theirs = load("minilm-scratch", device="cpu"), load("minilm", device="cpu")
    text = "The shopkeeper gave the customer a discount because she was a regular"
    for mask in (Mask.native(), Mask.causal()):
        here, there = ours.run(text, mask=mask), theirs.run(text, mask=mask)
        assert here.tokens == there.tokens
        assert here.audit().passed
        for layer in range(6):
            torch.testing.assert_close(here.weights(layer), there.weights(layer), rtol=0, atol=1e-5)
    assert ours.card.limit == theirs.card.limit == 512
    assert len(ours.run("word " * 600).tokens) == 512
    assert "our own transformer" in ours.card.notes[0]


def test_a_token_beyond_the_vocabulary_is_refused_with_its_number():
    """A prompt made for another model's vocabulary."""
    prompt = number_words("one two three", vocabulary=40)
    wrong = replace(prompt, tokens=tuple(replace(token, id=token.id + 28) for token in prompt.tokens))
    with pytest.raises(ShapeError, match="Token 30 does not exist: this model knows tokens 0 to 29"):
        untrained(Encoder, SIZES).run_prompt(wrong)


def test_dropout_is_off_however_the_module_came():
    """C7: a module left in training is put to rest; two runs are the same and rows sum to 1."""
    module = build(Encoder, replace(SIZES, dropout=0.5)).train()
    model = ScratchModel(module, lambda text: number_words(text, 30), id="x", name="X", source="", licence="")
    first, second = (model.run(SENTENCE).weights(1) for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    torch.testing.assert_close(first.sum(dim=-1), torch.ones(4, 6))


def test_the_deeper_stack_decides_which_layers_a_mask_may_name():
    """Two layers that read and three that write: layer 2 is there, layer 3 is not; the other way round likewise."""
    for layers, decoder_layers in ((2, 3), (3, 2)):
        model = untrained(EncoderDecoder, replace(SIZES, layers=layers, decoder_layers=decoder_layers))
        model.run(SENTENCE, mask=Mask.bidirectional().only(layers=[2]))
        with pytest.raises(MaskError, match="has no layer 3"):
            model.run(SENTENCE, mask=Mask.bidirectional().only(layers=[3]))


@pytest.mark.parametrize("mask", [Mask.native(), Mask.bidirectional()], ids=lambda mask: mask.spec)
def test_padding_of_a_target_is_seen_by_nobody(mask: Mask):
    """The decoder's real rows are those without padding, whatever the mask."""
    model = untrained(EncoderDecoder, replace(SIZES, positions="rotary"))
    text, target = model.prompt(SENTENCE), model.prompt("Le chat dort")
    plain = model.run_prompt(text, target, mask)
    padded = model.run_prompt(text, target.padded(5), mask)
    for kind in ("decoder", "cross"):
        keys = 3 if kind == "decoder" else 6
        torch.testing.assert_close(
            padded.weights(1, kind=kind)[:, :3, :keys], plain.weights(1, kind=kind), rtol=0, atol=1e-6
        )
    assert padded.weights(1, kind="decoder")[:, :3, 3:].max() == 0


def test_the_card_says_how_many_keys_a_window_spans():
    """A decoder's window of 4 spans 4 keys; an encoder's reaches 3 to either side and spans 7."""
    assert untrained(Decoder, replace(SIZES, window=4)).card.windows == (4, 4)
    assert untrained(Encoder, replace(SIZES, window=4)).card.windows == (7, 7)


def test_dynamic_scaling_with_a_cache_is_the_one_exception_to_equal_writing():
    """Up to the trained length a cache changes nothing; beyond it old keys keep the turns of the length they were read
    at, here as in other programs, so the rows differ from those of one full pass."""
    scaled = replace(SIZES, positions="rotary", rotary_scaling=DynamicNTK(2.0, 8))
    model = untrained(Decoder, scaled, seed=1)
    for parameter in model.module.parameters():
        parameter.data.mul_(10 if parameter.dim() > 1 else 1)
    steps = model.generate(SENTENCE, 6)
    full = model.run_prompt(steps[-1].prompt)
    within = model.run_prompt(steps[2].prompt)
    torch.testing.assert_close(steps[2].weights(1)[:, 0], within.weights(1)[:, -1], rtol=0, atol=1e-5)
    assert (steps[-1].weights(1)[:, 0] - full.weights(1)[:, -1]).abs().max() > 1e-3


def test_signs_outside_any_vocabulary_are_words_like_others():
    """D9: an accent, a question mark and a tick."""
    trace = untrained(Encoder, SIZES).run("naïve? ✓")
    assert [token.text for token in trace.tokens] == ["naïve", "?", "✓"]
