"""Silenced heads: the same as a model whose head has no say, in our own models and in transformers'.

Dimensions: B batch, H heads, T queries, D head width, C model width.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from engine import (
    Config,
    Decoder,
    Encoder,
    EncoderDecoder,
    InterventionError,
    Mask,
    ScratchModel,
    Silence,
    Site,
    TextClassifier,
    Trace,
    attend,
    build,
    number_words,
    recording,
    untrained,
)
from engine.blocks import Attention
from engine.interventions import without_heads
from engine.recording import KEEP_ALL_ROWS, current
from engine.sites import KINDS
from tests.tiny_models import LONG, SHORT, inputs, stock, tiny

SENTENCE = "The cat sat on the mat"
SIZES = Config(width=32, layers=3, heads=4, kv_heads=2, feed_forward=48, vocabulary=30, length=16, head="tied")
MAKES: dict[str, tuple[Callable[[Config], Any], Config]] = {
    "encoder": (Encoder, SIZES),
    "decoder with a window": (Decoder, replace(SIZES, positions="rotary", window=4)),
    "soft cap": (Decoder, replace(SIZES, softcap=2.0)),
    "post-norm": (Encoder, replace(SIZES, norm_place="post", final_norm=False)),
    "encoder-decoder": (EncoderDecoder, replace(SIZES, decoder_layers=2, positions="relative")),
    "classifier": (TextClassifier, replace(SIZES, head="none", classes=3)),
}


def sharpened(module: Any) -> Any:
    """Make attention far from uniform, so that every head says something of its own."""
    for parameter in module.parameters():
        parameter.data.mul_(12 if parameter.dim() > 1 else 1)
    return module


def model_of(module: Any) -> ScratchModel:
    read = lambda text: number_words(text, 30, 16)  # noqa: E731
    return ScratchModel(module, read, id="x", name="Our model", source="", licence="")


def without(module: Any, site: Site, head: int) -> Any:
    """A copy of one of our models in which the output projection has no weights for one head."""
    changed = deepcopy(module)
    (attention,) = (part for part in changed.modules() if isinstance(part, Attention) and part.site == site)
    width = attention.head_width
    attention.out.weight.data[:, head * width : (head + 1) * width] = 0.0
    return changed


def test_a_head_has_a_name_a_person_would_say_and_a_spec_for_an_address():
    assert (Silence(2, 0).name, Silence(2, 0).spec) == ("layer 2, head 0 silenced", "2.0")
    assert Silence(1, 3, "cross").name == "cross layer 1, head 3 silenced"
    assert Silence(1, 3, "cross").spec == "cross:1.3"
    assert Silence.parse(" cross:1.3\n") == Silence(1, 3, "cross")
    assert len({Silence(1, 3), Silence.parse("1.3"), Silence(1, 3, "cross")}) == 2


@given(st.integers(0, 999_999), st.integers(0, 999_999), st.sampled_from([None, *KINDS]))
def test_a_spec_is_read_back_as_what_it_was(layer: int, head: int, kind: Any):
    one = Silence(layer, head, kind)
    assert Silence.parse(one.spec) == one


@pytest.mark.parametrize(
    "text", ["", "2", "2.", ".0", "2,0", "-1.0", "2.0.1", "sideways:2.0", "cross:", "2.0 1.0", "٢.0", "9" * 5000 + ".0"]
)
def test_what_names_no_head_is_refused_with_how_to_write_one(text: str):
    with pytest.raises(InterventionError, match=r"names no head\. Write layer\.head, such as 2\.0 or cross:2\.0"):
        Silence.parse(text)


@pytest.mark.parametrize(("layer", "head"), [(-1, 0), (0, -1), (True, 0), (0, 1.0), ("2", 0)])
def test_a_layer_or_head_that_is_no_whole_number_is_refused(layer: Any, head: Any):
    with pytest.raises(InterventionError, match="is a whole number from 0 on, not"):
        Silence(layer, head)


def test_without_heads_only_those_are_zeros_and_the_output_itself_is_left_alone():
    """NaN as well: what is not handed on does not count."""
    output = torch.randn(2, 4, 5, 3)
    output[0, 2, 1, 1] = torch.nan
    kept = output.clone()
    quiet = without_heads(output, [2, 0])
    assert not quiet[:, [0, 2]].any()
    assert torch.equal(quiet[:, [1, 3]], kept[:, [1, 3]])
    torch.testing.assert_close(output, kept, rtol=0, atol=0, equal_nan=True)


def test_gradients_flow_through_the_heads_that_are_left():
    """As for training: the silenced head's values get none."""
    q, k, v = (torch.randn(1, 4, 5, 8, requires_grad=True) for _ in range(3))
    with recording(silenced=[Silence(0, 1)]) as recorder:
        attend(Site("encoder", 0), q, k, v).sum().backward()
        weights = recorder.recorded[Site("encoder", 0)].call.weights()
    assert v.grad is not None
    assert v.grad[:, 1].abs().max() == 0
    assert v.grad[:, [0, 2, 3]].abs().min() > 0
    weights[:, 1, 0, 3].log().sum().backward()  # what a silenced head looks at can still be taught
    assert q.grad is not None
    assert q.grad[:, 1, 0].abs().max() > 0


def test_the_recording_keeps_what_the_kernel_returned():
    """Handed on are zeros; kept is the output before, whose audit is of the kernel."""
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    site = Site("decoder", 1)
    plain = attend(site, q, k, v)
    with recording(silenced=[Silence(1, 3), Silence(0, 2)]) as recorder:
        output = attend(site, q, k, v)
    assert torch.equal(recorder.recorded[site].output, plain)
    assert not output[:, 3].any()
    assert torch.equal(output[:, :3], plain[:, :3])


def test_beyond_2048_queries_the_sampled_rows_are_the_kernels_too():
    q = torch.randn(1, 2, KEEP_ALL_ROWS + 1, 2)
    site = Site("encoder", 0)
    with recording(silenced=[Silence(0, 1)]) as recorder:
        output = attend(site, q, q[:, :, :3], q[:, :, :3])
    assert recorder.recorded[site].output.shape[2] == 64
    assert bool(recorder.recorded[site].output[:, 1].any())
    assert not output[:, 1].any()


def test_a_head_of_one_kind_leaves_the_same_layer_of_another_alone():
    q = torch.randn(1, 2, 4, 2)
    with recording(silenced=[Silence(0, 1, "cross")]):
        cross, own = (attend(Site(kind, 0), q, q, q) for kind in ("cross", "decoder"))
    assert not cross[:, 1].any()
    assert bool(own[:, 1].any())


def test_a_recording_refuses_a_head_that_a_call_has_not():
    q = torch.randn(1, 2, 4, 2)
    with recording(silenced=[Silence(0, 2)]), pytest.raises(InterventionError, match="Head 2 does not exist"):
        attend(Site("encoder", 0), q, q, q)


@pytest.mark.parametrize("name", MAKES)
def test_a_silenced_head_is_one_without_weights_in_the_output_projection(name: str):
    """Every head of every layer of every kind: the same maps everywhere and the same answer, to the last digit."""
    make, config = MAKES[name]
    module = sharpened(build(make, config))
    model = model_of(module)
    target = "A cat" if name == "encoder-decoder" else None
    sites = model.run(SENTENCE, target).sites
    for site in sites:
        for head in range(4):
            one = Silence(site.layer, head, site.kind if len(sites) > 3 else None)
            expected = model_of(without(module, site, head))
            ours, theirs = model.run(SENTENCE, target, interventions=[one]), expected.run(SENTENCE, target)
            for place in sites:
                ours_there, theirs_there = (run.weights(place.layer, kind=place.kind) for run in (ours, theirs))
                assert torch.equal(ours_there, theirs_there), (one, place)
            answers = model.predict(SENTENCE, target, interventions=[one]), expected.predict(SENTENCE, target)
            assert torch.equal(answers[0].probabilities, answers[1].probabilities), one
            assert not torch.equal(answers[0].probabilities, model.predict(SENTENCE, target).probabilities), one


def test_gradients_are_those_of_a_model_without_the_head():
    """Training under an intervention: the same for every parameter but the projection's own slice, which gets none."""
    module = sharpened(build(Decoder, SIZES))
    site, head = Site("decoder", 1), 2
    other = without(module, site, head)
    ids = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])
    with recording(silenced=[Silence(1, head)]):
        module.logits(module(ids)).logsumexp(-1).sum().backward()
    other.logits(other(ids)).logsumexp(-1).sum().backward()
    for (path, ours), (_, theirs) in zip(module.named_parameters(), other.named_parameters(), strict=True):
        ours_grad, theirs_grad = ours.grad, theirs.grad
        assert ours_grad is not None
        assert theirs_grad is not None
        if path == "stack.blocks.1.attention.out.weight":
            assert not ours_grad[:, 16:24].any()
            ours_grad, theirs_grad = (torch.cat([grad[:, :16], grad[:, 24:]], 1) for grad in (ours_grad, theirs_grad))
        torch.testing.assert_close(ours_grad, theirs_grad, rtol=1e-4, atol=1e-5)


def zeroed(name: str, layer: int, head: int) -> Any:
    """Transformers' own copy of a tiny model, its output projection without weights for one head."""
    module: Any = deepcopy(stock(name, "sdpa"))
    width = 8
    cut = slice(head * width, (head + 1) * width)
    if name == "gpt2":  # its projections are stored the other way round
        module.transformer.h[layer].attn.c_proj.weight.data[cut] = 0.0
    elif name == "bert":
        module.bert.encoder.layer[layer].attention.output.dense.weight.data[:, cut] = 0.0
    else:
        module.model.layers[layer].self_attn.o_proj.weight.data[:, cut] = 0.0
    return module


@pytest.mark.parametrize("name", ["gpt2", "bert", "llama"])
def test_a_silenced_head_of_transformers_is_one_without_weights_in_its_projection(name: str):
    """Compared with transformers' own run of the changed weights; Llama's heads share keys and values."""
    model = tiny(name)
    prompt = model.prompt(LONG)
    native = model._forward([prompt], [], Mask.native())[0].to_tuple()[0]
    for layer in range(2):
        for head in range(model.card.heads):
            ours, recorded, _ = model._forward([prompt], [], Mask.native(), [Silence(layer, head)])
            with torch.inference_mode():
                theirs = zeroed(name, layer, head)(**inputs(model, [prompt])).to_tuple()[0]
            output = ours.to_tuple()[0]
            torch.testing.assert_close(output, theirs, rtol=0, atol=1e-4)
            assert not torch.allclose(output, native, rtol=0, atol=1e-3)
            assert len(recorded) == 2


@pytest.mark.parametrize("name", ["t5", "bart"])
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_every_kind_of_an_encoder_decoder_can_be_silenced_by_itself(name: str, kind: Any):
    """All earlier sites keep their bits; what comes after changes."""
    model = tiny(name)
    plain = model.run(LONG, target=SHORT)
    silenced = model.run(LONG, target=SHORT, interventions=[Silence(0, 1, kind)])
    order = [site for layer in range(2) for site in (Site("decoder", layer), Site("cross", layer))]
    order = [*(Site("encoder", layer) for layer in range(2)), *order]
    place = order.index(Site(kind, 0))
    for number, site in enumerate(order):
        ours, theirs = (run.weights(site.layer, kind=site.kind) for run in (silenced, plain))
        independent = number <= place or (kind == "encoder" and site == Site("decoder", 0))
        assert torch.equal(ours, theirs) == independent, site
    assert silenced.audit().passed


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_what_a_silenced_head_looked_at_is_shown_as_ever_and_audited(name: str):
    """Its layer is as it was, weights and outputs; the next feels it."""
    model = tiny(name)
    plain, silenced = model.run(LONG), model.run(LONG, interventions=[Silence(0, 1)])
    assert torch.equal(plain.weights(0), silenced.weights(0))
    assert torch.equal(plain.parts(0, 1)["output"], silenced.parts(0, 1)["output"])
    assert not torch.equal(plain.weights(1), silenced.weights(1))
    assert silenced.audit().passed


def same(first: Trace, second: Trace) -> bool:
    return all(torch.equal(first.weights(site.layer, kind=site.kind), second.weights(site.layer, kind=site.kind))
               and torch.equal(held.output, second.sites[site].output)  # type: ignore[union-attr]
               for site, held in first.sites.items())  # fmt: skip


@pytest.mark.parametrize("model", [tiny("gpt2"), untrained(Encoder, SIZES)], ids=["gpt2", "ours"])
def test_without_interventions_every_bit_is_as_before(model: Any):
    """Before and after a run that had some, too: nothing is left behind."""
    before = model.run(SHORT)
    silenced = model.run(SHORT, interventions=[Silence(0, 0), Silence(1, 3)])
    assert not same(before, silenced)
    assert same(before, model.run(SHORT, interventions=()))
    assert before.interventions == ()
    assert current() is None


def test_a_layer_whose_heads_are_all_silent_hands_on_its_constant_alone():
    """x + b: the projection of zeros is its bias, which no token can change."""
    module: Any = build(Encoder, replace(SIZES, layers=1))
    block = module.stack.blocks[0]
    block.attention.out.bias.data.normal_()
    given: list[Tensor] = []
    block.feed_forward_norm.register_forward_hook(lambda _, args, output: given.append(args[0]))
    block.attention_norm.register_forward_hook(lambda _, args, output: given.append(args[0]))
    model_of(module).run(SENTENCE, interventions=[Silence(0, head) for head in range(4)])
    torch.testing.assert_close(given[1] - given[0], block.attention.out.bias.expand(1, 6, 32), rtol=0, atol=1e-6)


@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_and_masks_hold_beside_a_silenced_head(side: Any):
    """A padded text under a foreign mask, one head silent: the real rows are those of the text alone."""
    model = model_of(sharpened(build(Encoder, SIZES)))
    prompt, silenced = model.prompt(SENTENCE), [Silence(0, 2), Silence(1, 1)]
    alone = model.run_prompt(prompt, None, Mask.causal(), silenced)
    padded = model.run_prompt(prompt.padded(9, side=side), None, Mask.causal(), silenced)
    real = slice(0, 6) if side == "right" else slice(3, 9)
    for layer in range(3):
        torch.testing.assert_close(padded.weights(layer)[:, real, real], alone.weights(layer), rtol=0, atol=1e-5)
    assert not torch.equal(alone.weights(2), model.run(SENTENCE, mask=Mask.causal()).weights(2))


def test_a_trace_says_what_was_silenced_once_each():
    model = untrained(Encoder, SIZES)
    trace = model.run(SENTENCE, interventions=[Silence(2, 0), Silence(1, 1), Silence(2, 0)])
    assert trace.interventions == (Silence(2, 0), Silence(1, 1))
    assert "as trained, layer 2, head 0 silenced, layer 1, head 1 silenced, sdpa" in repr(trace)
    again = tiny("bert").run(SHORT, interventions=[Silence(1, 0), Silence(1, 0)])
    assert again.interventions == (Silence(1, 0),)
    assert "silenced" not in repr(model.run(SENTENCE))


BOTH = untrained(EncoderDecoder, replace(SIZES, layers=2, decoder_layers=3))
WRONG: tuple[tuple[Any, Any, str], ...] = (
    (tiny("bert"), [Silence(2, 0)], r"has no layer 2: layers count from 0 to 1\."),
    (tiny("bert"), [Silence(0, 0), Silence(1, 4)], r"has no head 4 in layer 1: heads count from 0 to 3\."),
    (tiny("bert"), [Silence(0, 0, "cross")], r"has no cross attention; it has encoder\."),
    (tiny("t5"), [Silence(0, 0)], r"kinds encoder, decoder, cross: say which, such as cross:0\.0\."),
    (untrained(Decoder, SIZES), [Silence(3, 0)], r"Untrained has no layer 3: layers count from 0 to 2\."),
    (untrained(Decoder, SIZES), [Silence(0, 4)], r"Untrained has no head 4 in layer 0"),
    (untrained(Decoder, SIZES), [Silence(0, 0, "encoder")], r"no encoder attention; it has decoder\."),
    (BOTH, [Silence(1, 0)], r"say which, such as cross:1\.0"),
    (BOTH, [Silence(2, 0, "encoder")], r"has no layer 2: layers count from 0 to 1\."),
    (BOTH, [Silence(3, 0, "cross")], r"has no layer 3: layers count from 0 to 2\."),
    (tiny("gpt2"), ["2.0"], r"An intervention is a Silence, such as Silence\(2, 0\), not '2\.0'\."),
    (untrained(Encoder, SIZES), Silence(0, 0), r"write \(Silence\(2, 0\),\) for a single one"),
)


@pytest.mark.parametrize(("model", "silenced", "sentence"), WRONG)
def test_a_head_that_is_not_there_is_refused_in_a_sentence(model: Any, silenced: Any, sentence: str):
    with pytest.raises(InterventionError, match=sentence):
        model.run(SENTENCE, interventions=silenced)


def test_the_deeper_stack_has_a_last_layer_that_can_be_silenced():
    """Two layers that read, three that write."""
    trace = BOTH.run(
        SENTENCE, interventions=[Silence(2, 0, "cross"), Silence(2, 1, "decoder"), Silence(1, 0, "encoder")]
    )
    assert len(trace.interventions) == 3


def test_a_model_that_is_run_eagerly_says_why_no_head_can_be_silenced():
    """Its attention is not ours; without interventions it runs as ever."""
    model = tiny("bloom")
    with pytest.raises(InterventionError, match=f"No head of .* can be silenced: {model.card.reason}"):
        model.run(SHORT, interventions=[Silence(0, 0)])
    assert model.run(SHORT, interventions=()).backend == "eager"


def test_a_head_is_refused_before_anything_is_written(monkeypatch: pytest.MonkeyPatch):
    """Writing a target takes a while; what is wrong is said first."""
    model = tiny("bart")
    monkeypatch.setattr(model, "_generate", lambda *_: pytest.fail("it wrote"))
    with pytest.raises(InterventionError, match="has no layer 9"):
        model.run(SHORT, interventions=[Silence(9, 0, "cross")])


def test_an_answer_of_transformers_changes_with_a_silenced_head():
    model = tiny("gpt2")
    assert model.predict(LONG) != model.predict(LONG, interventions=[Silence(1, 2)])
    assert model.predict(LONG) == model.predict(LONG, interventions=())


def fingerprint(model: Any, silenced: Sequence[Silence]) -> Tensor:
    trace = model.run(LONG, interventions=silenced)
    return torch.stack([trace.weights(layer) for layer in range(2)])


@pytest.mark.parametrize("model", [tiny("bert"), untrained(Encoder, replace(SIZES, layers=2))], ids=["bert", "ours"])
def test_threads_with_different_interventions_never_meet(model: Any):
    """Eight threads, each silencing another head or none, get what one thread gets."""
    jobs: list[tuple[Silence, ...]] = [(), *((Silence(0, head),) for head in range(4)), (Silence(0, 0), Silence(0, 1))]
    expected = {job: fingerprint(model, job) for job in jobs}
    assert len({tensor.numpy().tobytes() for tensor in expected.values()}) == len(jobs)
    start = threading.Barrier(8)

    def worker(number: int) -> bool:
        start.wait(timeout=30)
        mine = [jobs[(number + call) % len(jobs)] for call in range(30)]
        return all(torch.equal(fingerprint(model, job), expected[job]) for job in mine)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(worker, range(8)))
