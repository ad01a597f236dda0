"""The engine from a terminal: text for people, JSON for programs, and one plain line on what was wrong."""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine import HuggingFaceModel, Mask
from engine.__main__ import main
from engine.catalogue import Entry
from tests.conftest import ROOT
from tests.tiny_models import checkpoint, copied, save_overflowing, tiny

SENTENCE = "The shopkeeper gave the customer a discount because she was a regular"
SHE, CUSTOMER = 10, 6


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that succeeds prints; nothing goes to standard error."""
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What a command prints with --json, read as strictly as the standard asks."""

    def refuse(name: str) -> None:
        pytest.fail(f"{name} is not JSON")

    return json.loads(answered(capsys, *arguments, "--json"), parse_constant=refuse)


def in_a_shell(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash in the repository, with $PYTHON as Python."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    settings = {**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run([bash, "-c", command], cwd=ROOT, env=settings, capture_output=True, timeout=120, check=False)


def test_a_row_is_printed_key_by_key_with_what_ran_and_how_it_was_checked(capsys: pytest.CaptureFixture[str]):
    """29 % for customer, as measured; the audit closes the last line."""
    first, *lines, facts = answered(capsys, "attend", SENTENCE, "--layer", "5", "--head", "8", "--word", "she").split(
        "\n"
    )[:-1]
    assert first == "MiniLM, layer 5, head 8, as trained: she attends to"
    assert [line.split()[1] for line in lines] == ["[CLS]", *SENTENCE.split(), "[SEP]"]
    assert "   29.35%  customer" in lines
    assert facts.startswith("15 tokens, cpu, float32, sdpa, audit ")
    assert facts.endswith(", all rows")


def test_masked_keys_are_called_masked_and_not_zero(capsys: pytest.CaptureFixture[str]):
    """Under a causal mask "she" sees nothing after itself."""
    *_, was, a, regular, end, _ = answered(capsys, "attend", SENTENCE, "--mask", "causal", "--word", "she").splitlines()
    assert [line.split() for line in (was, a, regular, end)] == [
        ["masked", "was"],
        ["masked", "a"],
        ["masked", "regular"],
        ["masked", "[SEP]"],
    ]


def test_json_holds_the_tokens_the_row_the_audit_and_the_backend(
    capsys: pytest.CaptureFixture[str], minilm: HuggingFaceModel
):
    """The row is the engine's own, and says what is masked."""
    answer = as_json(
        capsys, "attend", SENTENCE, "--tokens", "--layer", "5", "--head", "8", "--mask", "causal", "--word", "she"
    )
    trace = minilm.run(SENTENCE, mask=Mask.causal())
    assert answer["tokens"] == [token.text for token in trace.tokens]
    assert [key["position"] for key in answer["row"]] == list(range(15))
    assert [key["weight"] for key in answer["row"]] == pytest.approx(trace.weights(5, 8)[SHE].tolist(), abs=1e-7)
    assert [key["masked"] for key in answer["row"]] == [place > SHE for place in range(15)]
    assert answer["row"][CUSTOMER]["weight"] == pytest.approx(0.362750, abs=1e-5)
    assert answer["audit"]["passed"]
    assert (answer["model"], answer["mask"], answer["backend"], answer["notices"]) == ("minilm", "causal", "sdpa", [])


def test_words_are_shown_unless_tokens_are_asked_for(capsys: pytest.CaptureFixture[str]):
    """The two pieces of shopkeeper are one key, their weights summed."""
    words = as_json(capsys, "attend", SENTENCE, "--word", "SHE")
    tokens = as_json(capsys, "attend", SENTENCE, "--word", "she", "--tokens")
    assert (len(words["row"]), len(tokens["row"])) == (14, 15)
    assert words["row"][2]["text"] == "shopkeeper"
    assert words["row"][2]["weight"] == pytest.approx(sum(key["weight"] for key in tokens["row"][2:4]), abs=1e-6)


def test_the_first_word_attends_where_none_is_named(capsys: pytest.CaptureFixture[str]):
    assert as_json(capsys, "attend", "The cat sat")["word"] == "The"


def test_an_encoder_decoder_says_which_of_its_attentions_it_shows(capsys: pytest.CaptureFixture[str]):
    """Cross unless another is asked for: rows are the target's, columns the source's."""
    asked = ("attend", "The house is wonderful.", "--model", str(checkpoint("t5")), "--target", "a cat")
    cross, decoder = (as_json(capsys, *asked, *more, "--word", "cat") for more in ((), ("--kind", "decoder")))
    assert (cross["kind"], decoder["kind"]) == ("cross", "decoder")
    assert "wonderful" in [key["text"] for key in cross["row"]]
    assert "wonderful" not in [key["text"] for key in decoder["row"]]


def test_a_model_run_eagerly_says_why_it_has_no_audit(capsys: pytest.CaptureFixture[str]):
    asked = ("attend", "The cat sat", "--model", str(checkpoint("bloom")))
    answer = as_json(capsys, *asked)
    assert (answer["backend"], answer["audit"]["passed"], answer["audit"]["relative"]) == ("eager", False, None)
    assert f"eager, no audit: {tiny('bloom').card.reason}" in answered(capsys, *asked)


def test_numbers_that_are_not_finite_are_null_in_json(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """In float16 this model overflows; in text it says so."""
    save_overflowing(tmp_path)
    asked = ("attend", "The cat sat", "--model", str(tmp_path), "--dtype", "float16", "--layer", "1", "--word", "sat")
    answer = as_json(capsys, *asked)
    assert None in [key["weight"] for key in answer["row"]]
    assert answer["audit"]["reason"] == "its own output is not finite in float16, so try float32"
    assert "not finite  " in answered(capsys, *asked)


def test_models_are_listed_with_what_they_are_and_where(capsys: pytest.CaptureFixture[str]):
    (first, *others) = as_json(capsys, "models")
    assert first.keys() == Entry.__dataclass_fields__.keys()
    assert (first["id"], first["family"], first["where"]) == ("twin-encoder", "encoder", "comes with the app")
    minilm = next(entry for entry in others if entry["id"] == "minilm")
    assert (minilm["family"], minilm["where"], minilm["parameters"]) == ("bert", "packaged", 22_713_216)
    (line,) = (line for line in answered(capsys, "models").splitlines() if line.startswith("minilm "))
    assert "22.7 M parameters" in line


WRONG: tuple[tuple[tuple[str, ...], str], ...] = (
    ((), "The following arguments are required: COMMAND"),
    (("attend",), "The following arguments are required: sentence"),
    (("explain",), "invalid choice: 'explain'"),
    (("attend", "The cat", "more\nof it"), "Unrecognized arguments: more of it"),
    (("attend", ""), "Type a sentence first"),
    (("attend", " \t\n"), "Type a sentence first"),
    (("attend", "The cat", "--model", "nope"), "'nope' cannot be opened: it is not on this machine"),
    (("attend", "The cat", "--model", ""), "'' is no model's name. Known here: twin-encoder, twin-decoder,"),
    (("attend", "The cat", "--model", "./nowhere"), "There is no folder './nowhere'."),
    (("attend", "The cat", "--model", "a\udcffb"), "is no model's name"),
    (("attend", "The cat", "--layer", "6"), "Layer 6 does not exist: layers count from 0 to 5."),
    (("attend", "The cat", "--layer", "-1"), "Layer -1 does not exist"),
    (("attend", "The cat", "--layer", "two"), "--layer: invalid int value: 'two'"),
    (("attend", "The cat", "--head", "12"), "Head 12 does not exist: heads count from 0 to 11."),
    (("attend", "The cat", "--head", "-1"), "Head -1 does not exist"),
    (("attend", "The cat", "--word", "dog"), "'dog' is not in the sentence. It has: [CLS], The, cat, [SEP]."),
    (("attend", "The cat", "--word", "\ud800"), "is not in the sentence"),
    (("attend", "The cat", "--mask", "foo"), "There is no mask 'foo'. Say native,"),
    (("attend", "The cat", "--mask", "window:0"), "A window must be a whole number of at least 1, not 0."),
    (("attend", "The cat", "--mask", "document:2,3"), "The document lengths 2, 3 add up to 5, not to the 4 tokens."),
    (("attend", "The cat", "--target", "a mat"), "MiniLM has no second text to read"),
    (("attend", "The cat", "--kind", "cross"), "of the kinds encoder; say one, not 'cross'"),
    (("attend", "The cat", "--device", "abacus"), "There is no device 'abacus' here"),
    (("attend", "The cat", "--dtype", "int4"), "The precision 'int4' is not known"),
)


@pytest.mark.parametrize(("arguments", "sentence"), WRONG, ids=lambda value: None if isinstance(value, str) else "")
def test_what_is_wrong_is_one_plain_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
):
    """Nothing on standard output, so that a program that reads it gets no half answer."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err


def test_a_sentence_with_half_a_surrogate_pair_is_read_and_says_so(capsys: pytest.CaptureFixture[str]):
    """What a terminal hands over for bytes that are no text."""
    answer = as_json(capsys, "attend", "a\udcff cat", "--word", "cat")
    assert answer["notices"] == ["A character that cannot be read (U+DCFF) became “\ufffd”."]


def test_random_weights_are_announced_before_the_row(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """And only there: transformers' own report stays out of the way."""
    from safetensors.torch import load_file, save_file

    path = copied("bert", tmp_path / "bert") / "model.safetensors"
    kept = {name: tensor for name, tensor in load_file(path).items() if ".layer.1." not in name}
    save_file(kept, path, metadata={"format": "pt"})
    asked = ("attend", "The cat sat", "--model", str(path.parent))
    assert answered(capsys, *asked).startswith("These weights are random,")
    assert as_json(capsys, *asked)["notices"][-1].startswith("These weights are random,")


def test_from_a_real_terminal_it_answers_refuses_and_survives_who_stops_reading():
    """Exit codes as a shell sees them; bytes that are no text; a pipe whose other end is closed."""
    done = in_a_shell(
        '"$PYTHON" -m engine attend "The cat sat" | true; echo "${PIPESTATUS[0]}"; '
        """"$PYTHON" -m engine attend $'a \\xff cat' --word nobody; echo "$?" """
    )
    assert done.stdout.split() == [b"0", b"2"]
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("'nobody' is not in the sentence.")


def test_json_keeps_its_letters_where_the_terminal_has_none_for_them(monkeypatch: pytest.MonkeyPatch):
    """In plain ASCII they are escaped, and text shows a question mark."""
    printed = []
    for more in (["--json"], []):
        terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", terminal)
        assert main(["attend", "café", *more]) == 0
        printed.append(terminal.buffer.getvalue().decode("ascii"))
    assert json.loads(printed[0])["word"] == "café"
    assert "caf? attends" in printed[1]


def test_a_model_in_the_hubs_cache_is_listed_and_opened_without_a_network(tmp_path: Path):
    """As a download leaves it: a snapshot under its revision, and a reference to that."""
    repository, revision = tmp_path / "models--somebody--tiny", "0123456789abcdef0123456789abcdef01234567"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(revision)
    copied("llama", repository / "snapshots" / revision)
    done = in_a_shell(
        '"$PYTHON" -m engine models --json && "$PYTHON" -m engine attend "The cat" --model somebody/tiny --json',
        HF_HUB_CACHE=str(tmp_path),
        HF_HUB_OFFLINE="1",
    )
    listed, end = json.JSONDecoder().raw_decode(done.stdout.decode())
    row = json.loads(done.stdout.decode()[end:])
    (entry,) = (entry for entry in listed if entry["id"] == "somebody/tiny")
    assert (entry["where"], entry["family"], entry["available"]) == ("hub cache", "llama", True)
    assert (row["model"], row["backend"], row["audit"]["passed"]) == ("somebody/tiny", "sdpa", True)


def test_a_known_model_is_counted_by_part(capsys: pytest.CaptureFixture[str]):
    """Llama 3 8B has the published number, and its parts add up to it."""
    first, *parts, last = answered(capsys, "count", "llama-3-8b").splitlines()
    assert first == "Llama 3 8B: 8,030,261,248 parameters, including a head of its own"
    assert sum(int(line.split()[0].replace(",", "")) for line in parts) == 8_030_261_248
    assert parts[-1].split()[1:] == ["<0.1%", "norms"]
    assert last.startswith("32 layers, width 4,096, 32 heads sharing 8 key-value heads; sizes from ")


def test_a_count_as_json_has_the_total_and_the_parts(capsys: pytest.CaptureFixture[str]):
    """For programs: the same numbers under the same names."""
    counted = as_json(capsys, "count", "gpt2")
    assert counted["parameters"] == sum(counted["parts"].values()) == 124_439_808
    assert counted["parts"]["token embedding"] == 50_257 * 768
    assert counted["includes"] == "the head, tied to the embedding"


def test_without_a_name_every_known_model_is_counted(capsys: pytest.CaptureFixture[str]):
    """One line each, and the same list as JSON."""
    lines = answered(capsys, "count").splitlines()
    listed = {entry["model"]: entry["parameters"] for entry in as_json(capsys, "count")}
    assert {line.split()[1]: int(line.split()[0].replace(",", "")) for line in lines} == listed
    assert listed["course-classifier"] == 1_069_570
    assert len(listed) == 13


def test_an_unknown_preset_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]):
    """One line that lists the names."""
    assert main(["count", "gpt-5"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("There is no preset 'gpt-5'. There is: bert-base, ")
    assert err.count("\n") == 1
