"""Shapes found by running a model without numbers: they are the model's own, at no cost."""

from dataclasses import replace
from math import prod

import pytest
import torch

from engine import PRESETS, Config, Decoder, Encoder, EncoderDecoder, ShapeError, build, count_parameters
from engine.shapes import Step, cache_numbers, nearest, steps, totals

TINY = Config(width=24, layers=3, heads=6, kv_heads=2, feed_forward=50, vocabulary=40, length=20, head="own")


def named(made: tuple[Step, ...], start: str) -> Step:
    """The first step whose description starts like this."""
    return next(step for step in made if step.what.startswith(start))


def test_every_shape_is_what_the_symbols_say():
    """Each axis has the size of its symbol: 6 heads, 2 key-value heads of width 4, 5 tokens."""
    sizes = {"T": 5, "S": 5, "C": 24, "H": 6, "G": 2, "D": 4, "F": 50, "V": 40}
    made = steps(Decoder, TINY, 5)
    for step in made:
        assert step.shape == tuple(sizes[axis] for axis in step.axes), step
    assert {"queries", "keys", "values"} <= {step.what for step in made}


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_the_parameters_of_all_steps_add_up_to_the_model(name: str):
    """One layer's steps times the layers, the beginning and the end, and nothing else; a tied head costs nothing."""
    known = PRESETS[name]
    made = steps(known.make, known.config, 7)
    layers = {"embedding": 1, "end": 1, "layer": known.config.layers}
    total = sum(step.parameters * layers[step.part] for step in made)
    model = build(known.make, known.config, device="meta")
    if isinstance(model, EncoderDecoder):  # the decoder was listed; the encoder uses the same token embedding
        other = steps(known.make, known.config, 7, reading=True)
        total += sum(step.parameters * layers[step.part] for step in other) - model.tokens.weight.numel()
    assert total == sum(count_parameters(model).values())


def test_norms_stand_where_the_configuration_puts_them():
    """Before the queries in pre-norm, after the sum in post-norm."""
    before = [step.what for step in steps(Encoder, TINY, 5)]
    after = [step.what for step in steps(Encoder, replace(TINY, norm_place="post"), 5)]
    assert before.index("norm") == before.index("queries") - 1
    assert after.index("norm") == after.index("added to what was there") + 1 > after.index("queries")


def test_scores_are_listed_but_never_kept():
    """H × T × S numbers that SDPA does not store."""
    made = steps(Decoder, TINY, 9)
    assert [step.what for step in made if not step.kept] == ["scores q · k / √D", "weights, each row summing to 1"]
    assert prod(named(made, "scores").shape) == 6 * 9 * 9


def test_each_way_of_positions_shows_up_where_it_enters():
    """Added to the input, turned, or added to the scores."""
    told = {
        kind: [step.what for step in steps(Decoder, replace(TINY, positions=kind), 5)]
        for kind in ("learned", "sinusoidal", "rotary", "alibi", "relative", "none")
    }
    assert "positions added" in told["learned"]
    assert "positions added" in told["sinusoidal"]
    assert "queries and keys turned by their positions" in told["rotary"]
    assert "position bias, for every layer's scores" in told["alibi"]
    assert "position bias, for every layer's scores" in told["relative"]
    assert not any("position" in what for what in told["none"])


def test_cross_attention_reads_the_other_text():
    """A decoder beside an encoder has a third part in each layer."""
    made = steps(EncoderDecoder, TINY, 5)
    assert named(made, "keys of the other text").shape == (2, 5, 4)
    assert not any("other text" in step.what for step in steps(EncoderDecoder, TINY, 5, reading=True))


def test_a_model_that_does_not_divide_by_the_root_says_so():
    """T5 multiplies with 1; everybody else divides by the root of the head's width."""
    assert any(step.what == "scores q · k, not divided by √D" for step in steps(Decoder, replace(TINY, scale=1.0), 5))


def test_norms_of_queries_and_keys_count_as_theirs():
    """Two scales of one head's width each."""
    plain, normed = (steps(Decoder, replace(TINY, qk_norm=norm), 5) for norm in (False, True))
    for what in ("queries", "keys"):
        assert named(normed, what).parameters - named(plain, what).parameters == 4


def test_rotary_positions_turn_nothing_across_two_texts():
    """One step of turning for the text itself, none for the other."""
    made = steps(EncoderDecoder, replace(TINY, positions="rotary"), 5)
    assert sum("turned" in step.what for step in made) == 1


def test_an_image_is_read_as_patches():
    """224 pixels in patches of 16 are 14 × 14, and the class token."""
    known = PRESETS["vit-b16"]
    made = steps(known.make, known.config, 1)
    assert named(made, "patches").shape == (196, 768)
    assert named(made, "queries").shape == (12, 197, 64)


def test_a_sentence_beyond_the_table_is_refused_with_both_numbers():
    """21 words do not fit into 20 learned positions."""
    with pytest.raises(ShapeError, match="21 tokens do not fit into 20"):
        steps(Decoder, TINY, 21)


def test_a_cache_keeps_keys_and_values_of_every_layer():
    """2 · L · G · D numbers per token: 64 Ki for Llama 3 8B, which is 1 GiB for 8,192 tokens in bfloat16."""
    assert cache_numbers(Decoder, TINY) == 2 * 3 * 2 * 4
    assert cache_numbers(Decoder, PRESETS["llama-3-8b"].config) * 8192 * 2 == 1_073_741_824
    assert cache_numbers(Encoder, TINY) == 0
    assert cache_numbers(EncoderDecoder, replace(TINY, decoder_layers=5)) == 2 * 5 * 2 * 4


def test_the_nearest_known_model_is_nearest_by_ratio():
    """A model's own count finds it; a thousand parameters are nearest to the smallest."""
    for name, total in totals().items():
        found, count = nearest(total)
        assert (found.name, count) == (name, total)
    assert nearest(1000)[0].name == "course-classifier"
    assert nearest(15_000_000)[0].name == "t5-small"  # a quarter of it; 14 times the classifier, though nearer by far
    assert nearest(10**12)[0].name == "llama-3-8b"
    assert nearest(0)[1] > 0


def test_nothing_is_allocated():
    """The meta device stays the meta device: no tensor with storage is made for 8 billion parameters."""
    model = build(Decoder, PRESETS["llama-3-8b"].config, device="meta")
    assert all(parameter.is_meta for parameter in model.parameters())
    assert torch.get_default_device() == torch.device("cpu")
