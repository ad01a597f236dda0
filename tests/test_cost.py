"""What reading and writing costs: closed forms, and PyTorch's own count of what our models really multiply.

`FlopCounterMode` counts products of matrices, a multiplication and an addition for each pair, and nothing else. On the
meta device it sees attention's two products as well, all n² pairs of them whatever the mask.

B batch, L layers, H heads, G key-value heads, T queries, S keys, D head width, C model width, F feed-forward width.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from engine import (
    PRESETS,
    Cache,
    Decoder,
    Encoder,
    EncoderDecoder,
    ShapeError,
    Site,
    TextClassifier,
    VisionTransformer,
    build,
)
from engine.cost import (
    PARTS,
    QUADRATIC,
    Job,
    flash_bytes,
    flops,
    overtaking,
    pairs_by_layer,
    softmax_steps,
    visible_pairs,
)
from engine.masks import Mask
from engine.rules import Causal, Rule, Window
from engine.sizes import Sizes, sizes_of, sizes_of_preset
from tests.passes import PATCHES, loss, read, shrunk, sized, text
from tests.tiny_models import tiny

torch.set_num_threads(1)

DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
GPT2 = sizes_of_preset(PRESETS["gpt2"])
LLAMA3 = sizes_of_preset(PRESETS["llama-3-8b"])


def in_layers(counts: dict[Any, int]) -> int:
    """What the layers alone cost."""
    return sum(count for part, count in counts.items() if part not in ("embedding", "head"))


# Closed forms.


@pytest.mark.parametrize("n", [1, 7, 1024, 100_000])
def test_a_gpt_2_layer_costs_24_n_c_squared_and_4_n_squared_c(n: int):
    """Projections 8nC², scores and mixing 2n²C each, feed-forward 16nC² at four times the width."""
    counts, C = flops(GPT2, Job(n)), 768
    assert counts["projections"] == 12 * 8 * n * C**2
    assert counts["scores"] == counts["mixing"] == 12 * 2 * n**2 * C
    assert counts["feed-forward"] == 12 * 16 * n * C**2
    assert in_layers(counts) == 12 * (24 * n * C**2 + 4 * n**2 * C)
    assert counts["head"] == 2 * n * C * 50_257
    assert counts["embedding"] == 0
    assert tuple(counts) == PARTS


def test_the_quadratic_part_overtakes_at_six_times_the_width():
    """4n²C = 24nC² at n = 6C: 4,608 tokens for GPT-2; a mask that hides half of the pairs doubles it, to one token."""
    for name, C in (("gpt2", 768), ("gpt2-medium", 1024), ("gpt2-xl", 1600), ("bert-base", 768)):
        assert overtaking(sizes_of_preset(PRESETS[name]), Job(1)) == 6 * C
    at, before = (flops(GPT2, Job(n)) for n in (4608, 4607))
    assert at["scores"] + at["mixing"] == at["projections"] + at["feed-forward"]
    assert before["scores"] + before["mixing"] < before["projections"] + before["feed-forward"]
    assert overtaking(GPT2, Job(1, visible_only=True)) == 2 * 4608 - 1


def test_it_overtakes_at_the_same_length_whatever_the_job():
    """Batches and training multiply both sides; with gates and shared keys the length is the sizes' own."""
    for job in (Job(5), Job(99, 7), Job(3, training=True)):
        assert overtaking(GPT2, job) == 4608
    C, F, D, H, G = 4096, 14_336, 128, 32, 8
    assert overtaking(LLAMA3, Job(1)) == -(-(2 * (H + G) * D * C + 3 * C * F) // (2 * H * D))


def test_a_window_everywhere_never_lets_it_overtake():
    """Where only visible pairs are counted; one layer without a window is enough for it to come."""
    mistral, job = sizes_of_preset(PRESETS["mistral-7b"]), Job(1, visible_only=True)
    assert overtaking(mistral, job) is None
    assert overtaking(mistral, Job(1)) == overtaking(mistral.windowed(None), Job(1))
    some = replace(mistral, windows=(None, *mistral.windows[1:]))
    assert (overtaking(some, job) or 0) > (overtaking(mistral.windowed(None), job) or 0)


def test_gpt_2s_layers_cost_2_94_times_as_much_for_twice_4096_tokens():
    """Between 2, the linear parts alone, and 4, the quadratic ones alone."""
    twice, once = (in_layers(flops(GPT2, Job(n))) for n in (8192, 4096))
    assert round(twice / once, 2) == 2.94


@given(n=st.integers(1, 10**6), batch=st.integers(1, 64), training=st.booleans())
def test_doubling_the_text_doubles_or_quadruples_each_part(n: int, batch: int, training: bool):
    """Exactly: scores and mixing by four, everything else by two."""
    once, twice = (flops(LLAMA3, Job(times * n, batch, training=training)) for times in (1, 2))
    for part in PARTS:
        assert twice[part] == (4 if part in QUADRATIC else 2) * once[part]


@given(n=st.integers(1, 5000), batch=st.integers(1, 9))
def test_a_batch_costs_as_much_as_its_texts_and_training_three_times_reading(n: int, batch: int):
    one = flops(GPT2, Job(n))
    assert flops(GPT2, Job(n, batch)) == {part: batch * count for part, count in one.items()}
    assert flops(GPT2, Job(n, training=True)) == {part: 3 * count for part, count in one.items()}


@pytest.mark.parametrize("n", [1, 8, 1000])
def test_only_visible_pairs_are_half_of_all_and_half_the_diagonal(n: int):
    """n(n + 1)/2 instead of n² under a causal mask, for 8 tokens 36; nothing else changes."""
    every, seen = flops(GPT2, Job(n)), flops(GPT2, Job(n, visible_only=True))
    for part in PARTS:
        assert seen[part] * (2 * n if part in QUADRATIC else 1) == every[part] * (n + 1 if part in QUADRATIC else 1)
    bert = sizes_of_preset(PRESETS["bert-base"])
    assert flops(bert, Job(n, visible_only=True)) == flops(bert, Job(n))


def test_a_softmax_takes_five_operations_a_score():
    assert softmax_steps(GPT2, Job(100, 2)) == 5 * 12 * 12 * 100**2 * 2
    assert softmax_steps(GPT2, Job(100, 2, training=True)) == 3 * softmax_steps(GPT2, Job(100, 2))
    assert softmax_steps(GPT2, Job(100, visible_only=True)) == 5 * 12 * 12 * 5050
    assert softmax_steps(GPT2, Job(100, step="write")) == 5 * 12 * 12 * 101


# Against what our models multiply.


def counted(sizes: Sizes, tokens: int, batch: int, training: bool) -> int:
    """PyTorch's count of one pass of our own model."""
    model, ids = build(sizes.make, sizes.config, device="meta"), text(tokens, batch, "meta")
    with FlopCounterMode(display=False) as counter:
        if training:
            loss(model, ids).backward()
        else:
            with torch.no_grad():
                read(model, ids)
    return counter.get_total_flops()


def beside(sizes: Sizes, tokens: int) -> int:
    """What a pass multiplies that is not in the formulas, being next to nothing.

    A pooler and labels, once for each text; the layer before the scores with which BERT guesses hidden words.
    """
    config = sizes.config
    if sizes.make in (Encoder, VisionTransformer, TextClassifier) and (config.classes or config.head != "none"):
        return 2 * config.width * (config.classes if config.classes else config.width * tokens)
    return 2 * config.width**2 if config.pooler else 0


def fewer_layers(name: str) -> Sizes:
    """A known model in its full width, with three layers."""
    return sized(name, replace(PRESETS[name].config, layers=3, dropout=0.0))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(PRESETS))
def test_the_formulas_are_what_pytorch_counts(name: str, training: bool):
    """To the last operation, reading and training, in full width; what sits on top beside a head is added here.

    Training, PyTorch counts the products of the way back as they are carried out: two for each one, but one for the
    patches of an image, since no gradient goes back to its pixels.
    """
    sizes = fewer_layers(name)
    for tokens, batch in ((197, 1), (197, 3)) if name == "vit-b16" else ((64, 1), (17, 3)):
        on_top = beside(sizes, tokens) * batch * (3 if training else 1)
        predicted = sum(flops(sizes, Job(tokens, batch, training=training)).values())
        assert predicted + on_top == counted(sizes, tokens, batch, training)


ODD: dict[str, tuple[str, dict[str, Any]]] = {
    "grouped keys, a gate, heads of another width": ("gpt2", {"kv_heads": 3, "activation": "geglu", "head_width": 10}),
    "one key head": ("llama-3-8b", {"kv_heads": 1, "bias": True}),
    "a width of 47 and one head": ("gpt2", {"width": 47, "heads": 1, "head_width": None, "feed_forward": 5}),
    "a window, all of whose pairs are computed": ("mistral-7b", {"window": 4}),
    "positions that are added to the scores": ("gpt2", {"positions": "alibi"}),
    "a head of its own": ("t5-small", {"head": "own", "decoder_layers": 2}),
    "more in the decoder than in the encoder": ("bart-base", {"layers": 1, "decoder_layers": 5}),
    "words guessed back": ("bert-base", {"head": "tied", "pooler": False}),
    "labels for an image": ("vit-b16", {"classes": 7, "pooler": False, "patch": 16}),
    "labels for a text": ("course-classifier", {"classes": 9}),
    "nothing on top": ("gpt2", {"head": "none"}),
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("what", list(ODD))
def test_odd_sizes_are_counted_as_well(what: str, training: bool):
    name, changes = ODD[what]
    sizes = shrunk(name, **changes)
    tokens = PATCHES if name == "vit-b16" else 13
    predicted = sum(flops(sizes, Job(tokens, 2, training=training)).values())
    on_top = beside(sizes, tokens) * 2 * (3 if training else 1)
    assert predicted + on_top == counted(sizes, tokens, 2, training)
    assert on_top < 0.03 * predicted


@pytest.mark.parametrize("name", ["gpt2", "llama-3-8b", "mistral-7b"])
@pytest.mark.parametrize("length", [1, 50])
def test_writing_one_token_is_what_pytorch_counts(name: str, length: int):
    """One query, and a key for every token before it and for itself."""
    sizes = fewer_layers(name)
    config, model = sizes.config, build(sizes.make, sizes.config, device="meta")
    assert isinstance(model, Decoder)
    old = torch.zeros(2, config.G, length, config.D, device="meta")
    cache = Cache({Site("decoder", layer): (old, old) for layer in range(3)})
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.logits(model(text(1, 2, "meta"), cache=cache))
    counts = flops(sizes, Job(length, 2, "write"))
    assert sum(counts.values()) == counter.get_total_flops()
    assert counts["scores"] == 2 * 3 * 2 * config.heads * config.D * (length + 1)


def test_writing_beside_an_encoder_keeps_what_our_model_computes_again():
    """The formula has the text's keys and values in the cache; ours projects them anew, 2 · 2·G·D·C · n a layer."""
    sizes, length = shrunk("bart-base", 2, decoder_layers=3), 20
    config, model = sizes.config, build(sizes.make, sizes.config, device="meta")
    assert isinstance(model, EncoderDecoder)
    old, memory = torch.zeros(1, 6, length, 8, device="meta"), torch.zeros(1, length, 48, device="meta")
    cache = Cache({Site("decoder", layer): (old, old) for layer in range(3)})
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.logits(model.decode(text(1, 1, "meta"), memory, cache=cache))
    again = 3 * 2 * 2 * config.G * config.D * config.width * length
    assert sum(flops(sizes, Job(length, step="write")).values()) + again == counter.get_total_flops()


# Pairs.


def seen(rules: list[Rule], queries: int, keys: int) -> int:
    """Count what real masks show; the queries are the last of the keys."""
    key = torch.arange(keys)[None]
    query = torch.arange(keys - queries, keys)[:, None]
    shown = torch.ones(queries, keys, dtype=torch.bool)
    for rule in rules:
        shown &= rule.visible(query, key)
    return int(shown.sum())


@given(keys=st.integers(1, 60), data=st.data(), causal=st.booleans(), window=st.none() | st.integers(1, 70))
def test_visible_pairs_are_those_of_the_masks(keys: int, data: st.DataObject, causal: bool, window: int | None):
    queries = data.draw(st.integers(1, keys))
    rules: list[Rule] = [Causal()] * causal + ([] if window is None else [Window(window)])
    assert visible_pairs(queries, keys, causal=causal, window=window) == seen(rules, queries, keys)


@given(n=st.integers(1, 60), window=st.integers(1, 70), causal=st.booleans())
def test_visible_pairs_of_a_square_are_what_a_mask_resolves_to(n: int, window: int, causal: bool):
    """The masks that models are run with."""
    mask = Mask.causal() & Mask.window(window) if causal else Mask.window(window)
    site = Site("decoder", 0)
    shown = mask.visible(site, native=torch.ones(n, n, dtype=torch.bool), padding=None)
    assert visible_pairs(n, n, causal=causal, window=window) == int(torch.as_tensor(shown).expand(1, 1, n, n).sum())


def test_layers_with_windows_and_without_are_counted_apart():
    """Two layers of three see four tokens back; the third sees everything."""
    sizes, n = sizes_of(tiny("gemma2")), 9
    assert sizes.windows == (4, None, 4)
    pairs = 2 * seen([Causal(), Window(4)], n, n) + seen([Causal()], n, n)
    counts = flops(sizes, Job(n, visible_only=True))
    assert counts["scores"] == counts["mixing"] == 2 * 4 * 8 * pairs
    assert softmax_steps(sizes, Job(n, visible_only=True)) == 5 * 4 * pairs
    assert flops(sizes, Job(n))["scores"] == 2 * 4 * 8 * 3 * n * n
    written = 2 * seen([Causal(), Window(4)], 1, n + 1) + seen([Causal()], 1, n + 1)
    assert flops(sizes, Job(n, step="write", visible_only=True))["scores"] == 2 * 4 * 8 * written


def test_pairs_by_layer_are_those_that_are_counted():
    """Their sum times 2 · H · D is what the scores cost: of both stacks and across, read and written."""
    for name in ("gpt2", "mistral-7b", "t5-small", "bert-base"):
        sizes = sized(name, replace(PRESETS[name].config, window=50))
        for job in (Job(99), Job(99, visible_only=True), *([Job(99, step="write")] if sizes.writes else [])):
            pairs = sum(layers * each for layers, each in pairs_by_layer(sizes, job))
            assert flops(sizes, job)["scores"] == 2 * sizes.config.heads * sizes.config.D * pairs
    assert pairs_by_layer(sizes_of_preset(PRESETS["t5-small"]), Job(9, step="write")) == ((6, 10), (6, 9))


# Refusals.


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tokens": 0}, "A job needs a text and a token at least, not 1 and 0."),
        ({"tokens": 5, "batch": 0}, "A job needs a text and a token at least, not 0 and 5."),
        (
            {"tokens": 5, "step": "write", "training": True},
            "Training reads whole texts; it does not write them token",
        ),
    ],
)
def test_a_job_that_cannot_be_is_refused(changes: dict[str, Any], said: str):
    with pytest.raises(ShapeError) as refusal:
        Job(**changes)
    assert str(refusal.value).startswith(said)


@pytest.mark.parametrize("name", ["bert-base", "vit-b16", "course-classifier"])
def test_what_does_not_write_writes_nothing(name: str):
    sizes, job = sizes_of_preset(PRESETS[name]), Job(5, step="write")
    for measure in (flops, softmax_steps, flash_bytes, overtaking):
        with pytest.raises(ShapeError, match="reads texts and does not write them, so there is no next token"):
            measure(sizes, job)
