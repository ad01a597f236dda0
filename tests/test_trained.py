"""The models that come with the app: listed without loading, opened as their cards say, and able to read any text."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import Mask, ModelError, ScratchModel, TextError, load, models
from engine.catalogue import Policy
from engine.scratch import WRITTEN_AT_MOST
from engine.shipped import SHIPPED
from engine.spelling import BEGIN, END, FIRST_WORD, SPECIALS
from engine.tokens import group_words
from engine.trained import FOLDER, write
from tests.shipped_models import MAKES, WORDS, card_for, module_of, opened, write_all

SENTENCE = "The shopkeeper gave the customer a discount because she was a regular."
TEXT = [id for id in MAKES if id != "little-vit"]
THERE = [id for id in SHIPPED if (FOLDER / f"{id}.json").is_file() and SHIPPED[id][1] != "vision"]
ODD = (
    "ꦲꦏ꧀ꦱꦫꦗꦮ" * 200,
    "<b onclick=alert(1)>she</b> &amp; $x_1$",
    "[MASK] [MASK] [PAD] [EOS] [BOS]",
    "a\x00b\ud800c",
    "she " * 700,
    "👩🏽‍🚒 naïve‐café … „so“",
    "שלום she",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one small model of each kind, which the catalogue takes for the app's own."""
    write_all(tmp_path)
    monkeypatch.setattr("engine.shipped.FOLDER", tmp_path)
    return tmp_path


def entry_of(id: str) -> Any:
    return next(entry for entry in models(Policy(cached=False)) if entry.id == id)


@pytest.mark.usefixtures("folder")
def test_our_own_models_are_listed_first_with_what_they_are():
    """In the order in which a reader should meet them; what is not there says so and stays in its place."""
    listed = models(Policy(cached=False))
    assert [entry.id for entry in listed][: len(SHIPPED)] == list(SHIPPED)
    assert [entry.id for entry in listed][len(SHIPPED)] == "minilm"
    entry = entry_of("twin-encoder")
    assert (entry.name, entry.family, entry.style, entry.where) == (
        "Small twin-encoder", "encoder", "BERT-style", "comes with the app",
    )  # fmt: skip
    assert (entry.layers, entry.heads, entry.licence, entry.available) == (2, 4, "Apache-2.0", True)
    styles = {"twin-decoder": "GPT-style", "translator-en-hi": "encoder–decoder", "little-vit": "vision"}
    assert {id: entry_of(id).style for id in styles} == styles
    lost = entry_of("twin-encoder-unguided")
    assert (lost.available, lost.name) == (False, "twin-encoder-unguided")
    assert lost.reason.startswith("its card is missing or broken. Install this app anew, or make it again with: python")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("id", TEXT)
def test_what_the_list_says_is_what_is_loaded(id: str):
    entry, card = entry_of(id), opened(id).card
    told = (entry.id, entry.name, entry.family, entry.style, entry.parameters, entry.layers, entry.heads, entry.licence)
    assert told == (
        card.id, card.name, card.family, card.style, card.parameters, card.layers, card.heads, card.licence,
    )  # fmt: skip


def test_missing_or_broken_weights_are_told_in_the_list_and_when_loaded(folder: Path):
    """Gone, cut off, and of another model: each a sentence, none a traceback."""
    (folder / "classifier.safetensors").unlink()
    (folder / "twin-decoder.safetensors").write_bytes(b"x" * 40)
    (folder / "twin-encoder.safetensors").write_bytes((folder / "translator-en-hi.safetensors").read_bytes())
    for id in ("classifier", "twin-decoder"):
        entry = entry_of(id)
        assert (entry.available, entry.parameters, entry.name) == (False, None, f"Small {id}")
        assert entry.reason.startswith("its weights are missing or broken.")
    for id, what in (("classifier", "missing or broken"), ("twin-decoder", "not those"), ("twin-encoder", "not those")):
        with pytest.raises(ModelError, match=f"The weights of Small {id} are {what}"):
            load(id, device="cpu")
    with pytest.raises(ModelError, match="The card of twin-decoder-unguided is missing or broken"):
        load("twin-decoder-unguided", device="cpu")


@pytest.mark.parametrize("damage", ["{", "[]", "{}", '{"id": 3}', "\xff"])
def test_a_broken_card_is_told_in_the_list_and_when_loaded(folder: Path, damage: str):
    (folder / "classifier.json").write_bytes(damage.encode("latin-1"))
    assert not entry_of("classifier").available
    with pytest.raises(ModelError, match="The card of classifier is missing or broken"):
        load("classifier", device="cpu")


def test_a_card_whose_words_are_not_the_models_is_refused(folder: Path):
    """Every word after the missing one would be read as another."""
    module = module_of("twin-encoder")
    write(module, card_for("twin-encoder", module, words=WORDS[1:]), folder)
    with pytest.raises(ModelError, match="has 273 tokens and its card names 272"):
        load("twin-encoder", device="cpu")


@pytest.mark.usefixtures("folder")
def test_a_card_says_what_was_taught_and_what_was_not():
    card = opened("twin-encoder").card
    assert card.trained is not None
    assert card.notes == ("These heads were taught where to look.", "No language.")
    assert (card.trained.data, card.trained.objective) == ("Some data.", "Some objective.")
    assert card.trained.heads == {"pronoun": (1, 2)}
    assert card.source == f"trained by `python -m engine.training`, seed 7, sha256 {card.trained.sha256[:12]}…"
    assert (card.limit, card.backend, card.device, card.dtype) == (512, "sdpa", "cpu", "float32")
    assert isinstance(hash(card), int)


def test_a_model_that_was_taught_nothing_has_no_note_of_it(folder: Path):
    module = module_of("twin-encoder")
    write(module, card_for("twin-encoder", module, taught=""), folder)
    assert opened("twin-encoder").card.notes == ("No language.",)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_precision_is_honoured_and_an_unknown_one_refused(dtype: str):
    model = load("twin-encoder", device="cpu", dtype=dtype)
    assert model.card.dtype == dtype
    assert model.run(SENTENCE).audit().passed
    for id in ("twin-encoder", "little-vit"):
        with pytest.raises(ModelError, match="The precision 'int4' is not known; say one of float32"):
            load(id, device="cpu", dtype="int4")
        with pytest.raises(ModelError, match="There is no device 'abacus' here"):
            load(id, device="abacus")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("id", TEXT)
def test_a_text_is_read_by_the_models_own_words(id: str):
    """One token a word, in any case; closed by [EOS] unless the model is to write on."""
    prompt = opened(id).prompt("The CUSTOMER was generous.")
    ends = [] if id == "twin-decoder" else ["[EOS]"]
    assert [token.text for token in prompt.tokens] == ["[BOS]", "the", "customer", "was", *"generous", ".", *ends]
    assert [group.text for group in group_words(prompt.tokens)] == [
        "[BOS]", "The", "CUSTOMER", "was", "generous", ".", *ends,
    ]  # fmt: skip
    assert [token.unmet for token in prompt.tokens].count(True) == len("generous")
    assert prompt.notices == ("This model has never met “generous”: spelled letter by letter.",)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("id", TEXT)
def test_a_learned_table_sets_the_limit(id: str, folder: Path):
    module = module_of(id, positions="learned", length=20)
    write(module, card_for(id, module), folder)
    model = opened(id)
    assert model.card.limit == 20
    trace = model.run("she " * 40)
    assert len(trace.tokens) == 20
    assert trace.target is None or len(trace.target) == 20  # this one never comes to its end by itself


def survives(model: ScratchModel, text: str) -> None:
    trace = model.run(text)
    assert 2 <= len(trace.tokens) <= 512
    assert trace.audit().passed
    for kind in trace.kinds:
        weights = trace.weights(0, kind=kind)
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), rtol=0, atol=1e-5)
    assert model.predict(text).probabilities.isfinite().all()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("id", TEXT)
@pytest.mark.parametrize("text", ODD)
def test_any_text_is_read(id: str, text: str):
    """2,000 characters of a script that no word is in, markup, typed special tokens, what is no text at all."""
    survives(opened(id), text)


@pytest.mark.parametrize("id", TEXT)
def test_what_is_typed_is_text_and_only_mask_is_more(folder: Path, id: str):
    """A typed [EOS] ends nothing: it is spelled."""
    prompt = opened(id).prompt("she [MASK] [EOS]")
    assert [token.text for token in prompt.tokens][:4] == ["[BOS]", "she", "[MASK]", "["]
    assert not prompt.tokens[2].special
    assert prompt.ids.count(END) == (0 if id == "twin-decoder" else 1)
    with pytest.raises(TextError, match="Type a sentence first"):
        opened(id).run(" \n")
    with pytest.raises(TextError, match="not 3"):
        opened(id).run(3)  # type: ignore[arg-type]


def test_long_texts_are_cut_to_512_tokens_and_say_where(folder: Path):
    prompt = opened("twin-encoder").prompt("ꦲ" * 2000)
    assert (len(prompt), prompt.total, prompt.ids[-1]) == (512, 6002, END)
    assert "512" in prompt.notices[-1]


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_no_text_at_all_surprises_a_model(folder: Path, text: str):
    """Whatever is typed is read, or refused in a sentence."""
    model = opened("twin-encoder")
    try:
        trace = model.run(text)
    except TextError as error:
        assert str(error).startswith("Type a sentence first")  # noqa: PT017
    else:
        assert trace.audit().passed


def greedily(module: Any, ids: list[int], most: int) -> list[int]:
    """What a translator writes, by full passes without a cache, to [EOS] and without it."""
    written = [BEGIN]
    with torch.no_grad():
        while len(written) <= most:
            vectors = module(torch.tensor([ids]), torch.tensor([written]))
            new = int(module.logits(vectors)[0, -1].argmax())
            if new == END:
                break
            written.append(new)
    return written


def test_a_translator_writes_what_repeated_full_passes_would_write(folder: Path):
    """Until [EOS], or 48 tokens after [BOS]; this one does both, and of one text it makes nothing at all."""
    module = module_of("translator-en-hi", seed=3)
    write(module, card_for("translator-en-hi", module), folder)
    model, lengths = opened("translator-en-hi"), set()
    for text in (SENTENCE, "She gave a discount.", "the", "was a regular because she gave"):
        trace = model.run(text)
        assert trace.target is not None
        assert list(trace.target.ids) == greedily(module, list(trace.prompt.ids), WRITTEN_AT_MOST)
        assert trace.weights(0, kind="cross").shape == (4, len(trace.target), len(trace.prompt))
        assert trace.audit().passed
        lengths.add(len(trace.target))
    assert {1, 49} < lengths


def test_written_tokens_are_named_by_the_vocabulary_and_stand_alone(folder: Path):
    """As in every model that writes: made by it, of no typed word; the start token is a special one."""
    trace = opened("translator-en-hi").run(SENTENCE)
    start, *written = trace.queries("cross")
    assert (start.text, start.special, start.generated) == ("[BOS]", True, False)
    assert written
    for token in written:
        assert token.generated
        assert (token.word, token.start) == (None, None)
        assert token.text == (WORDS[token.id - FIRST_WORD] if token.id >= FIRST_WORD else token.text)
    assert len(group_words(trace.queries("cross"))) == len(trace.queries("cross"))


def test_a_typed_target_is_read_by_the_same_words_and_left_open(folder: Path):
    model = opened("translator-en-hi")
    trace = model.run(SENTENCE, target="ग्राहक को छूट")
    assert trace.target is not None
    assert [token.text for token in trace.target.tokens][:3] == ["[BOS]", "ग्राहक", "को"]
    assert trace.target.ids[-1] != END
    assert trace.target.notices == ("This model has never met “छूट”: spelled byte by byte.",)
    with pytest.raises(TextError, match="Type a sentence first"):
        model.run(SENTENCE, target=" ")


def test_a_mask_on_a_translator_leaves_what_it_writes_alone(folder: Path):
    """A mask of a text's own length could not hold for a text that grows: as in every model, it is for reading."""
    model = opened("translator-en-hi")
    plain, masked = model.run(SENTENCE), model.run(SENTENCE, mask=Mask.window(1))
    assert plain.target == masked.target
    assert not torch.equal(plain.weights(0, kind="encoder"), masked.weights(0, kind="encoder"))


def test_a_trained_decoder_writes_words_until_its_end(folder: Path):
    """Named by the vocabulary, though the words are not in the text; [EOS] is where it stops, and is not read."""
    ended = set()
    for seed in (0, 11, 15, 17):
        module: Any = module_of("twin-decoder", seed=seed)
        write(module, card_for("twin-decoder", module), folder)
        model = opened("twin-decoder")
        steps = model.generate(SENTENCE, 12)
        ids = torch.tensor([model.prompt(SENTENCE).ids])
        expected = module.generate(ids, 12)[0, ids.shape[1] :].tolist()
        stop = expected.index(END) if END in expected else 11
        assert [token.id for token in steps[-1].prompt.tokens if token.generated] == expected[:stop]
        assert len(steps) == stop + 1
        ended.add(len(steps) < 12)
        for token in steps[-1].prompt.tokens[ids.shape[1] :]:
            assert "⟨id" not in token.text
            assert token.text == model.vocabulary.text(token.id)  # type: ignore[union-attr]
    assert ended == {True, False}


def test_a_special_token_that_a_model_writes_is_a_special_one(folder: Path):
    """[PAD] or [BOS] in the middle of a text is no word."""
    module: Any = module_of("twin-decoder")
    with torch.no_grad():
        module.stack.final_norm.weight.zero_()
        module.head.own[0] *= 1000
        module.stack.final_norm.bias.copy_(module.head.own[0])
    write(module, card_for("twin-decoder", module), folder)
    (*_, last) = opened("twin-decoder").generate(SENTENCE, 3)
    written = last.prompt.tokens[-2:]
    assert [(token.text, token.special, token.generated) for token in written] == [(SPECIALS[0], True, True)] * 2


@pytest.mark.parametrize("id", THERE)
def test_a_model_that_comes_with_the_app_is_what_its_card_says(id: str):
    """The real files: the list, the card, the hash, the words, the head that was taught."""
    entry, model = entry_of(id), opened(id)
    assert (entry.available, entry.parameters) == (True, model.card.parameters)
    told = model.card.trained
    assert told is not None
    assert told.id == id
    assert model.card.style == entry.style
    for layer, head in told.heads.values():
        assert layer < max(model.card.layers, told.config.decoder_layers or 0)
        assert head < model.card.heads
    for text in (SENTENCE, *ODD):
        survives(model, text)
