"""What may be loaded: folders and the hub, as far as the operator allows, and names that are none."""

import os
from pathlib import Path

import pytest

from engine import ModelError, load
from engine.catalogue import Policy, models
from tests.tiny_models import copied, tiny


def test_folders_that_the_operator_has_not_allowed_stay_shut(tmp_path: Path):
    folder, other = copied("bert", tmp_path / "allowed" / "bert"), copied("bert", tmp_path / "other")
    policy = Policy(folders=(tmp_path / "allowed",))
    assert load(str(folder), device="cpu", policy=policy).card.family == "bert"
    for path in (other, folder / ".." / ".." / "other"):
        with pytest.raises(ModelError, match="has not allowed"):
            load(str(path), device="cpu", policy=policy)
    (tmp_path / "allowed" / "link").symlink_to(other)
    with pytest.raises(ModelError, match="has not allowed"):
        load(str(tmp_path / "allowed" / "link"), device="cpu", policy=policy)
    with pytest.raises(ModelError, match="has not allowed"):
        load(str(folder), device="cpu", policy=Policy(folders=()))


def test_allowed_folders_are_listed(tmp_path: Path):
    copied("bert", tmp_path / "bert")
    copied("t5", tmp_path / "t5")
    (tmp_path / "empty").mkdir()
    listed = {entry.name: entry for entry in models(Policy(folders=(tmp_path,), cached=False))}
    assert (listed["bert"].style, listed["bert"].layers, listed["bert"].heads) == ("BERT-style", 2, 4)
    assert listed["t5"].style == "encoder–decoder"
    assert listed["bert"].parameters == tiny("bert").card.parameters
    assert "empty" not in listed


def test_the_environment_allows_nothing_until_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("ATTENTION_EXPLORER_HUB", raising=False)
    monkeypatch.delenv("ATTENTION_EXPLORER_FOLDERS", raising=False)
    assert Policy.from_environment() == Policy(folders=(), cached=False, downloads=False)
    monkeypatch.setenv("ATTENTION_EXPLORER_FOLDERS", f"{tmp_path}{os.pathsep}{tmp_path / 'more'}")
    monkeypatch.setenv("ATTENTION_EXPLORER_HUB", "cached")
    resolved = tmp_path.resolve()
    assert Policy.from_environment() == Policy((resolved, resolved / "more"), cached=True, downloads=False)
    monkeypatch.setenv("ATTENTION_EXPLORER_HUB", "download")
    assert Policy.from_environment().downloads
    monkeypatch.setenv("ATTENTION_EXPLORER_HUB", "yes")
    with pytest.raises(ModelError, match="ATTENTION_EXPLORER_HUB is 'yes'"):
        Policy.from_environment()


@pytest.mark.parametrize(
    "name",
    ["", "  ", "\0", "a b", "../..//x y", "https://example.org/x", "a/b/c", "x" * 500, "<b>", "~nobody/x", "é" * 300],
)
def test_a_name_that_is_no_models_is_refused_with_a_sentence(name: str):
    with pytest.raises(ModelError, match=r".{12,}\."):
        load(name, device="cpu")


def test_an_unknown_name_is_refused_without_asking_the_hub():
    with pytest.raises(ModelError, match="not on this machine, and downloads are not allowed"):
        load("nobody/never-heard-of-it", device="cpu")
    with pytest.raises(
        ModelError, match=r"There is no model 'nobody/never-heard-of-it' here\. Known: twin-encoder, .*, minilm"
    ):
        load("nobody/never-heard-of-it", device="cpu", policy=Policy(folders=(), cached=False))
    with pytest.raises(ModelError, match="There is no folder '/nowhere/at/all'"):
        load("/nowhere/at/all", device="cpu")
