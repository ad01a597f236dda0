"""What a model costs, from a terminal: a table for people, JSON for programs, one line on what was wrong."""

import json
from typing import Any

import pytest

from engine import PRESETS
from engine.__main__ import main
from engine.cost import PARTS, Job, flops, kv_cache_bytes, overtaking, parameter_bytes, score_bytes, score_bytes_at_once
from engine.cost import softmax_steps as softmax
from engine.sizes import sizes_of, sizes_of_preset
from tests.tiny_models import checkpoint, tiny


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What `cost` prints when it succeeds; nothing goes to standard error."""
    assert main(["cost", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The same with --json, read."""
    return json.loads(told(capsys, *arguments, "--json"))


def test_a_table_lists_every_part_and_what_it_takes(capsys: pytest.CaptureFixture[str]):
    """Llama 3 8B and 8,192 tokens: its cache is exactly 1 GiB, and the parts add up to the total."""
    text = told(capsys, "llama-3-8b", "--tokens", "8192", "--dtype", "bfloat16")
    head, *lines = text.splitlines()
    assert head == "Llama 3 8B, reading 8,192 tokens × 1, bfloat16"
    table = {line.rsplit("  ", 1)[-1]: line.split() for line in lines}
    for part in PARTS:
        assert table[part][1] == "FLOP"
    numbers = {part: int(table[part][0].replace(",", "")) for part in PARTS}
    assert numbers == flops(sizes_of_preset(PRESETS["llama-3-8b"]), Job(8192))
    total = int(table["in all, counting all pairs"][0].replace(",", ""))
    assert total == sum(numbers.values())
    assert sum(float(table[part][2].strip("<%")) for part in PARTS) == pytest.approx(100, abs=0.3)
    assert table["embedding"][:3] == ["0", "FLOP", "0.0%"]
    assert "             1,073,741,824 B  (1.000 GiB)  cache of keys and values" in text
    assert "(128.000 GiB)  weights of every layer, if they are kept" in text
    assert "(4.000 GiB)  weights of one layer" in text
    assert lines[-1] == "scores and mixing cost as much as the rest of the layers from 26,624 tokens on"


def test_json_holds_what_the_engine_counts(capsys: pytest.CaptureFixture[str]):
    """Every number of it, for a batch in training."""
    answer = as_json(capsys, "gpt2", "--tokens", "300", "--batch", "4", "--training", "--dtype", "float16")
    sizes, job = sizes_of_preset(PRESETS["gpt2"]), Job(300, 4, training=True)
    assert answer == {
        "model": "gpt2",
        "tokens": 300,
        "batch": 4,
        "step": "read",
        "training": True,
        "counted": "all pairs",
        "dtype": "float16",
        "flops": flops(sizes, job),
        "flops_total": sum(flops(sizes, job).values()),
        "softmax_operations": softmax(sizes, job),
        "score_bytes": score_bytes(sizes, job, "float16"),
        "score_bytes_one_layer": score_bytes_at_once(sizes, job, "float16"),
        "kv_cache_bytes": kv_cache_bytes(sizes, job, "float16"),
        "parameter_bytes": parameter_bytes(sizes, "float16"),
        "parameters": 124_439_808,
        "attention_overtakes_at": 4608,
        "notes": [],
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--write",), "GPT-2, one more token after 1,024 tokens × 1, float32"),
        (("--training", "--batch", "8"), "GPT-2, training on 1,024 tokens × 8, float32"),
        (("--kv-heads", "1"), "GPT-2, multi-query, reading 1,024 tokens × 1, float32"),
    ],
)
def test_the_first_line_says_what_is_counted(capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str):
    assert told(capsys, "gpt2", *options).splitlines()[0] == said


def test_writing_counts_one_token(capsys: pytest.CaptureFixture[str]):
    answer = as_json(capsys, "gpt2", "--write", "--tokens", "99")
    assert answer["step"] == "write"
    assert answer["flops"] == flops(sizes_of_preset(PRESETS["gpt2"]), Job(99, step="write"))


def test_only_visible_pairs_can_be_counted(capsys: pytest.CaptureFixture[str]):
    """It says which; and where windows keep attention from ever overtaking, JSON has null and the text has never."""
    answer = as_json(capsys, "mistral-7b", "--visible-only", "--tokens", "9000")
    assert answer["counted"] == "pairs that the mask shows"
    job = Job(9000, visible_only=True)
    assert answer["flops"] == flops(sizes_of_preset(PRESETS["mistral-7b"]), job)
    assert answer["attention_overtakes_at"] is None
    text = told(capsys, "mistral-7b", "--visible-only")
    assert "in all, counting pairs that the mask shows" in text
    assert text.splitlines()[-1] == "scores and mixing never cost as much as the rest of the layers"


def test_other_key_value_heads_can_be_tried(capsys: pytest.CaptureFixture[str]):
    """Llama 3 8B with as many as heads: four times the cache, and more parameters."""
    shared, own = (as_json(capsys, "llama-3-8b", *options) for options in ((), ("--kv-heads", "32")))
    assert own["kv_cache_bytes"] == 4 * shared["kv_cache_bytes"]
    sizes = sizes_of_preset(PRESETS["llama-3-8b"]).sharing(32)
    assert (own["parameters"], own["flops"]) == (sizes.parameters, flops(sizes, Job(1024)))


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_known_model_has_a_cost(capsys: pytest.CaptureFixture[str], name: str):
    answer = as_json(capsys, name, "--tokens", "197")
    sizes = sizes_of_preset(PRESETS[name])
    assert answer["parameters"] == sizes.parameters
    assert answer["attention_overtakes_at"] == overtaking(sizes, Job(1))


def test_so_has_whatever_can_be_loaded(capsys: pytest.CaptureFixture[str]):
    """By its id or folder, with its own sizes; where parts differ, a last line says so."""
    assert as_json(capsys, "minilm")["parameters"] == 22_713_216
    folder = str(checkpoint("albert"))
    answer = as_json(capsys, folder, "--tokens", "50")
    sizes = sizes_of(tiny("albert"))
    assert answer["flops"] == flops(sizes, Job(50))
    assert answer["notes"] == [sizes.note]
    assert told(capsys, folder).splitlines()[-1] == sizes.note


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing-like-it",), "The configuration of 'nothing-like-it' cannot be opened"),
        (("bert-base", "--write"), "BERT-base reads texts and does not write them, so there is no next token."),
        (("gpt2", "--tokens", "0"), "A job needs a text and a token at least, not 1 and 0."),
        (("gpt2", "--tokens", "-1"), "A job needs a text and a token at least, not 1 and -1."),
        (("gpt2", "--batch", "0"), "A job needs a text and a token at least, not 0 and 1024."),
        (("gpt2", "--tokens", "many"), "Argument --tokens: invalid int value: 'many'."),
        (("gpt2", "--write", "--training"), "Training reads whole texts; it does not write them token by token."),
        (("llama-3-8b", "--kv-heads", "5"), "32 heads cannot share 5 key-value heads evenly: give a divisor."),
        (("llama-3-8b", "--kv-heads", "0"), "kv_heads is 0; it must be a whole number of at least 1."),
        (("gpt2", "--dtype", "int4"), "Argument --dtype: invalid choice: 'int4'"),
        ((), "The following arguments are required: model."),
    ],
)
def test_what_is_wrong_is_said_in_one_line(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str):
    """On standard error, with 2 as the answer to the shell; as text or as JSON."""
    for more in ((), ("--json",)):
        assert main(["cost", *arguments, *more]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(said)
        assert err.count("\n") == 1
