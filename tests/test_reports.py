"""Faults that users of such tools keep meeting, each tried here where no other test tries it yet."""

import base64
import gc
import tomllib
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from app import cache
from app.charts import heatmap
from app.components.payload import MAX_CELLS, MAX_THUMBNAIL_BYTES
from engine import Mask, ModelError
from engine.catalogue import load_huggingface
from tests.app_pages import (
    data_of,
    errors,
    figures,
    has_piece,
    on_minilm,
    operator_allows,
    protos,
    ribbon_weights,
    ribbon_words,
    said,
    title_of,
    typed,
)
from tests.conftest import ROOT, Server
from tests.tiny_models import LONG, SHORT, copied, save, save_overflowing, tiny

CAT = "The cat sat on the mat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An operator's folder with tiny checkpoints."""
    root = tmp_path_factory.mktemp("reports")
    for family in ("gpt2", "bloom", "mamba", "mistral", "modernbert", "bart"):
        save(family, root / family)
    save("mistral", root / "wide", sliding_window=4096)
    return root


def cells(figure: dict[str, Any]) -> np.ndarray:
    """The coloured cells of a map, in per cent."""
    (z,) = (part["z"] for part in figure["data"] if part["type"] == "heatmap" and part["z"]["dtype"] == "f4")
    numbers = np.frombuffer(base64.b64decode(z["bdata"]), dtype=np.float32)
    return numbers.reshape([int(side) for side in z["shape"].split(",")])


@pytest.mark.parametrize(("family", "backend"), [("gpt2", "sdpa · "), ("bloom", "eager · ")])
def test_the_page_draws_every_backend_and_names_it(folder: Path, family: str, backend: str):
    """A1, A13: recorded weights are said to be recomputed, since SDPA never builds them; returned ones are not."""
    with operator_allows(folder):
        test = on_minilm(model=str(folder / family), q=CAT)
    assert errors(test) == []
    assert ribbon_weights(test).sum(axis=1) == pytest.approx(1, abs=1e-3)
    assert f"cpu, float32 · {backend}" in said(test)
    assert ("which never builds the matrix you see" in said(test)) == (family == "gpt2")
    assert ("it returned its own weights; there is nothing to audit" in said(test)) == (family == "bloom")


def test_code_that_came_with_a_model_is_said_on_the_page_not_to_have_run(tmp_path: Path):
    """A7: and the model of the known family is shown."""
    path = copied("bert", tmp_path / "bert") / "config.json"
    path.write_text(path.read_text().replace("{", '{"auto_map": {"AutoModel": "modeling_own.Own"},', 1))
    with operator_allows(tmp_path):
        test = on_minilm(model=str(tmp_path / "bert"), q=CAT)
    assert errors(test) == []
    assert "The checkpoint brings code of its own, which is not run; transformers' own class is used." in said(test)


def test_every_requirement_is_pinned_exactly():
    """A12: another version of transformers may build attention in another way."""
    for name in ("requirements.txt", "requirements-models.txt", "requirements-dev.txt"):
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        wanted = [line for line in lines if line.strip() and not line.lstrip().startswith(("#", "--"))]
        assert wanted
        assert [line for line in wanted if "==" not in line] == []


def test_a_model_without_attention_says_so_on_the_page_and_the_next_one_works(folder: Path):
    """A14: a state-space model."""
    with operator_allows(folder):
        test = on_minilm()
        test.selectbox(key="model").set_value(str(folder / "mamba")).run()
        (message,) = errors(test)
        assert message.startswith("This model has no attention that can be shown")
        test.selectbox(key="model").set_value(str(folder / "gpt2")).run()
        assert errors(test) == []


def test_an_empty_window_is_full_attention_and_one_of_0_is_refused(tmp_path: Path):
    """B12: a row is never empty. A family without windows takes no notice of the entry."""
    full = load_huggingface(str(save("mistral", tmp_path / "none", sliding_window=None)), device="cpu")
    seen = full.run(LONG).visible(1, 0)
    assert full.card.windows == (None, None)
    assert torch.equal(seen, torch.ones_like(seen).tril())
    with pytest.raises(ModelError, match="sliding window of 0, through which no token sees anything"):
        load_huggingface(str(save("mistral", tmp_path / "zero", sliding_window=0)), device="cpu")
    assert (
        load_huggingface(str(save("llama", tmp_path / "llama", sliding_window=0)), device="cpu")
        .run(LONG)
        .audit()
        .passed
    )


@pytest.mark.parametrize(
    ("name", "words", "window"),
    [("wide", 6, "4096"), ("mistral", 4, "4"), ("mistral", 5, "4"), ("modernbert", 1, "5"), ("modernbert", 2, "5")],
)
def test_a_window_is_said_to_be_reached_exactly_where_it_hides_something(
    folder: Path, name: str, words: int, window: str
):
    """B13: of ModernBERT's five keys, two lie on either side, so four tokens already reach beyond it."""
    asked = {"model": str(folder / name), "q": " ".join(["at"] * words), "view": "tokens", "special": "1"}
    with operator_allows(folder):
        test = on_minilm(**asked, layer="1", head="0")
        trace = cache.trace(asked["model"], asked["q"], Mask.native())
    causal = torch.ones(len(trace.tokens), len(trace.tokens)).tril() > 0
    hides = bool((~trace.visible(1, 0) & (causal if name != "modernbert" else True)).any())
    title = title_of(figures(test)[0])
    assert f"(local, window {window}" in title
    assert ("not reached at this length" in title) == (not hides)


def test_words_that_a_model_wrote_are_marked_on_the_page(folder: Path):
    """B16: the start token was given, all after it were written."""
    with operator_allows(folder):
        chips = data_of(on_minilm(model=str(folder / "bart"), q=CAT, special="1"), "ribbon")["queries"]
    assert len(chips) > 1
    assert [chip.get("generated", False) for chip in chips] == [False] + [True] * (len(chips) - 1)


def test_half_precision_that_overflows_is_named_by_layer_and_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """C11: in float16 the second layer's numbers are not finite; the first layer can still be seen."""
    save_overflowing(tmp_path / "hot")
    monkeypatch.setenv("ATTENTION_EXPLORER_DTYPE", "float16")
    with operator_allows(tmp_path):
        test = on_minilm(model=str(tmp_path / "hot"), q=CAT, layer="1", head="2")
        (message,) = errors(test)
        assert message.startswith("Layer 1, head 2 holds numbers that are not finite, so it cannot be shown.")
        assert "float32 may work" in message
        first = on_minilm(model=str(tmp_path / "hot"), q=CAT, layer="0", head="2")
    assert errors(first) == []
    assert "not finite in float16, so try float32" in said(first)


def test_what_rounding_may_do_is_said_and_holds_between_alone_and_in_a_batch(tmp_path: Path):
    """C14: bfloat16 keeps three digits at most."""
    model = load_huggingface(str(save("gpt2", tmp_path / "gpt2")), device="cpu", dtype="bfloat16")
    alone, batched = model.run(SHORT), model.run_batch([SHORT, LONG])[0]
    tolerance = batched.audit().tolerance
    assert all(float((alone.weights(n) - batched.weights(n)).abs().max()) <= tolerance for n in range(2))
    assert "In float32, up to 1e-05 is rounding; a sentence alone and the same one in a batch" in said(on_minilm())


def test_a_byte_level_word_reads_plainly_and_shows_its_pieces_on_hover(folder: Path):
    """D1: ids and raw pieces belong to the hover, signs for spaces and bytes nowhere else."""
    with operator_allows(folder):
        chips = data_of(on_minilm(model=str(folder / "gpt2"), q="Seán met Zoë at the café"), "ribbon")["queries"]
    assert [chip["text"] for chip in chips] == ["Seán", "met", "Zoë", "at", "the", "café"]
    tokenizer = tiny("gpt2").tokenizer
    pieces = tokenizer.tokenize(" café")
    assert chips[5]["hover"] == " ".join(f"{piece} ({tokenizer.convert_tokens_to_ids(piece)})" for piece in pieces)


def test_the_order_of_right_to_left_words_is_explained():
    """D5: only where there are some."""
    note = "Words written from right to left keep their order on a map: the first read is leftmost and on top."
    test = typed(on_minilm(), "שלום עולם טוב abc")
    assert note in said(test)
    assert ribbon_words(test)[0] == "שלום"
    assert note not in said(typed(test, CAT))


@pytest.mark.parametrize("name", ["bert", "roberta", "mpnet", "gpt2", "opt", "llama", "bart"])
def test_a_text_beyond_the_positions_is_cut_to_the_last_of_them(tmp_path: Path, name: str):
    """D11: RoBERTa's and MPNet's tables begin behind the padding id, so their first positions are no token's."""
    sizes: dict[str, Any] = {"n_positions" if name == "gpt2" else "max_position_embeddings": 130}
    model = load_huggingface(str(save(name, tmp_path / name, **sizes)), device="cpu")
    target = "a" if "cross" in model.card.kinds else None
    trace = model.run("at " * 300, target=target)
    assert (len(trace.tokens), trace.prompt.cut) == (model.card.limit, True)
    assert 128 <= len(trace.tokens) <= 130
    assert not model.run("hi", target=target).prompt.cut


@pytest.mark.parametrize("tokens", [512, 1000])
def test_a_long_input_draws_one_map_and_stays_within_the_message(tmp_path: Path, tokens: int):
    """E1, E4, E7: 12 layers of 12 heads; what is sent grows with one map, not with 144."""
    save("gpt2", tmp_path / "deep", n_layer=12, n_head=12, n_embd=48, n_positions=1024)
    with operator_allows(tmp_path):
        test = on_minilm(model=str(tmp_path / "deep"), q=" ".join("a" * tokens), view="tokens")
    assert errors(test) == []
    assert f"{tokens} of 1,024 tokens" in said(test)
    assert (has_piece(test, "map"), len(figures(test))) == (True, 0)
    assert data_of(test, "grid")["shape"][:2] == [12, 12]
    sent = sum(proto.ByteSize() for proto in protos(test, "bidi_component"))
    assert sent < 4.5 * tokens**2 + 1_000_000


def test_the_settings_that_ship_fit_what_the_pages_send_and_do():
    """E7, F1: the largest ribbon, map and grid fit into a message; torch is not searched for changed files."""
    settings = tomllib.loads((ROOT / "app" / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert settings["server"]["maxMessageSize"] * 1e6 > 2 * 2 * MAX_CELLS + MAX_THUMBNAIL_BYTES
    assert settings["server"]["fileWatcherType"] == "none"
    assert settings["runner"]["postScriptGC"] is False


def test_a_dark_page_keeps_the_scale():
    """E10: the same weight stands at the same place of the bar."""
    light, dark = (heatmap(np.array([[0.3, 0.7]]), ["a"], ["b", "c"], dark=dark) for dark in (False, True))
    assert [(part.zmin, part.zmax) for part in light.data[:1]] == [(part.zmin, part.zmax) for part in dark.data[:1]]
    assert light.data[0].colorscale != dark.data[0].colorscale


@pytest.mark.browser
def test_a_picture_that_cannot_be_drawn_says_so_and_the_rest_stays(page: Page, app_server: Server):
    """E16: the script that draws the map never arrives."""
    page.route("**/*lotly*", lambda route: route.abort())
    page.goto(app_server.url)
    expect(page.get_by_test_id("ribbon")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("Failed to fetch dynamically imported module").first).to_be_visible(timeout=30_000)
    expect(page.get_by_test_id("grid")).to_be_visible()


def test_a_model_that_was_dropped_leaves_memory(tmp_path: Path):
    """F6: three others drive out the first."""
    for name in "abcd":
        save("bert", tmp_path / name)
    with operator_allows(tmp_path):
        first = weakref.ref(cache.model(str(tmp_path / "a")))
        cache.trace(str(tmp_path / "a"), CAT, Mask.native())
        for name in "bcd":
            cache.model(str(tmp_path / name))
        gc.collect()
        assert first() is None


def test_what_is_kept_is_found_by_ids_and_text():
    """F11: no tensor and no model is ever hashed or compared."""
    on_minilm(mask="causal")

    def parts(key: object) -> list[object]:
        return [part for item in key for part in parts(item)] if isinstance(key, tuple) else [key]

    found = {type(part) for key in cache._store()._held for part in parts(key)}
    assert found <= {str, int, bool, Mask, type(None)}


def test_both_pages_show_the_same_numbers():
    """G5: the lesson's softmax without a hidden key is the map of Explore."""
    explore = cells(figures(on_minilm(view="tokens", special="1"))[0])
    lesson = next(figure for figure in figures(on_minilm("masks", lesson="bidirectional")) if "3 ·" in title_of(figure))
    assert cells(lesson) == pytest.approx(explore, abs=1e-4)


def test_attention_that_rests_on_the_first_word_is_explained_without_touching_a_number(folder: Path):
    """G8: where no special token is the sink, rescaling would change nothing, so the colours are offered instead."""
    asked = {"model": str(folder / "gpt2"), "q": CAT, "layer": "1", "head": "3"}
    with operator_allows(folder):
        even, small = on_minilm(**asked), on_minilm(**asked, colour="log")
    assert "rests on the first token, The; one common explanation: a head that finds nothing relevant" in said(even)
    assert "“Bring out small weights” under More colours the rest and leaves every number as it is." in said(even)
    assert "“Left out” under More" not in said(even)
    assert np.array_equal(ribbon_weights(even), ribbon_weights(small))
    assert "“Left out” under More takes those out" in said(on_minilm(layer="2", head="6"))


def test_a_map_of_cross_attention_carries_a_caution(folder: Path):
    """G10: also where the source ends in a full stop and a special token."""
    with operator_allows(folder):
        test = on_minilm(model=str(folder / "bart"), q="The <s> cat.", target="a cat", kind="cross")
    assert title_of(figures(test)[0]).startswith("cross, layer ")
    assert "A high weight says where a head reads from, not why the model decides." in said(test)


def test_padding_is_greyed_and_explained():
    """G12: two padding tokens; their columns are hidden from all, their rows are nobody's."""
    test = on_minilm("masks", pads="2")
    figure = next(figure for figure in figures(test) if title_of(figure) == "Padding")
    assert np.isnan(cells(figure)[-2:]).all()
    assert np.isnan(cells(figure)[:, -2:]).all()
    assert "nobody may look at it" in said(test)
    assert "are computed too, but nobody reads them: greyed." in said(test)
