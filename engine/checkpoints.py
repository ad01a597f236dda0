"""Opening checkpoints: from a folder or the hub's cache, without running anything that came with them.

Weights are read from safetensors alone. A .bin file is a pickle, which can run code when opened, so none is opened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from engine.errors import ModelError

log = logging.getLogger(__name__)

# Loading takes a second; transformers' bars would only clutter the terminal and the server's log.
transformers.utils.logging.disable_progress_bar()

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
JUDGING = ("ForSequenceClassification", "ForTokenClassification", "ForMultipleChoice")
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


@dataclass(frozen=True)
class Checkpoint:
    """An opened checkpoint.

    Attributes:
        module: the model, in evaluation mode.
        tokenizer: its tokenizer.
        missing: parameters that the checkpoint lacks.
        unexpected: tensors in the checkpoint that fit nowhere.
        rebuild: opens the same weights again under another attention implementation.
        notes: sentences a reader should know.
    """

    module: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    rebuild: Callable[[str], PreTrainedModel]
    notes: tuple[str, ...]


def open_checkpoint(source: str | Path, *, device: str, dtype: str, download: bool) -> Checkpoint:
    """Open a model and its tokenizer.

    Args:
        source: a folder, or a hub id.
        device: where the model shall run, such as "cpu".
        dtype: "float32", "bfloat16" or "float16".
        download: whether the hub may be asked; otherwise only this machine's disk is.

    Raises:
        ModelError: the checkpoint is missing, broken, mismatched, of no known family, or reads something but text.
    """
    if dtype not in DTYPES:
        raise ModelError(f"The precision {dtype!r} is not known; say one of {', '.join(DTYPES)}.")
    if Path(source).is_dir():
        _check_folder(Path(source))
    where: dict[str, Any] = {"local_files_only": not download, "trust_remote_code": False}
    config = _opening(source, "configuration", lambda: AutoConfig.from_pretrained(source, **where))
    _check_plain(source, config)
    _check_window(source, config)
    _settle(config)
    builder, *others = _builders(config)

    # Said outright, since a configuration may ask for an implementation that is fetched from the hub and run.
    def build(implementation: str = "eager") -> tuple[PreTrainedModel, dict[str, Any]]:
        return builder.from_pretrained(
            source,
            config=config,
            dtype=DTYPES[dtype],
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are refused below, in plainer words
            attn_implementation=implementation,
            **where,
        )

    module, info = _opening(source, "weights", build)
    if others and info["missing_keys"]:
        builder = others[0]
        module, info = _opening(source, "weights", build)
    _check_fit(source, module, info)
    tokenizer = _opening(source, "tokenizer", lambda: AutoTokenizer.from_pretrained(source, **where))
    _check_tokenizer(source, tokenizer)
    return Checkpoint(
        module=module.eval().to(device),
        tokenizer=tokenizer,
        missing=tuple(sorted(info["missing_keys"])),
        unexpected=tuple(sorted(info["unexpected_keys"])),
        rebuild=lambda implementation: build(implementation)[0].eval().to(device),
        notes=_notes(config, module),
    )


def _check_folder(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise ModelError(f"The folder {folder} holds no config.json, so it is no Hugging Face checkpoint.")
    if any(folder.glob("*.safetensors")):
        return
    quantised = sorted(path.name for path in folder.glob("*.gguf"))
    if quantised:
        raise ModelError(
            f"The folder {folder} has its weights only as {quantised[0]}, and only safetensors are read here. "
            "Load it with transformers once and save it again."
        )
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLES)
    if pickles:
        raise ModelError(
            f"The folder {folder} has its weights only as {pickles[0]}, a pickle, which can run code when opened. "
            "Convert it to safetensors."
        )
    raise ModelError(f"The folder {folder} holds no weights (*.safetensors).")


def _check_plain(source: str | Path, config: Any) -> None:
    quantised = getattr(config, "quantization_config", None)
    if quantised:
        method = quantised.get("quant_method") if isinstance(quantised, dict) else None
        raise ModelError(
            f"The weights of {str(source)!r} are quantised ({method or 'in a way of their own'}), and attention is "
            "read from plain weights only. Load the checkpoint that they were made from."
        )


def _check_window(source: str | Path, config: Any) -> None:
    text = config.get_text_config()
    window = getattr(text, "sliding_window", None)
    # A family without windows may carry the entry all the same, and takes no notice of it.
    if hasattr(type(text), "sliding_window") and isinstance(window, int) and window < 1:
        raise ModelError(
            f"The configuration of {str(source)!r} has a sliding window of {window}, through which no token sees "
            "anything; leave the entry empty (null) for full attention."
        )


def _settle(config: Any) -> None:
    """Undo what a checkpoint may have been saved with and what would change the form of every output."""
    for part in (config, config.get_text_config()):
        part.return_dict = True
        part.output_attentions = part.output_hidden_states = False


def _builders(config: Any) -> tuple[Any, ...]:
    """Choose the classes to try: the one that the checkpoint was made with, as it stands in transformers.

    Heads that judge a whole text are better left out: they add no attention, and want their text in ways of their
    own. The bare model comes first there, and the class itself where the bare model has more than the checkpoint.
    """
    for name in config.architectures or ():
        builder = getattr(transformers, name, None)
        is_model = isinstance(builder, type) and issubclass(builder, PreTrainedModel)
        if is_model and isinstance(config, getattr(builder, "config_class", None) or ()):
            return (AutoModel, builder) if name.endswith(JUDGING) else (builder,)
    return (AutoModel,)


def _notes(config: Any, module: PreTrainedModel) -> tuple[str, ...]:
    notes = []
    if getattr(config, "auto_map", None):
        notes.append("The checkpoint brings code of its own, which is not run; transformers' own class is used.")
    names = config.architectures or ()
    if names and names[0].endswith(JUDGING) and type(module).__name__ not in names:
        notes.append(f"It was opened without the head of {names[0]}, which has no attention of its own.")
    return tuple(notes)


def _opening(source: str | Path, what: str, opener: Callable[[], Any]) -> Any:
    try:
        return opener()
    except Exception as error:  # files of unknown make pass through many parsers, each with errors of its own
        log.info("opening the %s of %s failed", what, source, exc_info=error)
        raise ModelError(f"The {what} of {str(source)!r} cannot be opened: {_cause(error)}") from error


def _cause(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "trust_remote_code" in text or "execute the configuration file" in text:
        return "it needs code that comes with the checkpoint, and such code is never run here."
    if "local_files_only" in text or "offline" in text.lower() or "couldn't connect" in text.lower():
        return "it is not on this machine, and downloads are not allowed."
    if isinstance(error, KeyError):
        return f"it lacks the entry {text}."
    sentence = text.split(". ")[0][:300] or type(error).__name__
    return sentence if sentence.endswith(".") else sentence + "."


def _check_fit(source: str | Path, module: PreTrainedModel, info: dict[str, Any]) -> None:
    if getattr(module, "main_input_name", "input_ids") != "input_ids":
        raise ModelError(f"{str(source)!r} reads {module.main_input_name}, and only models that read text work here.")
    if info.get("mismatched_keys"):
        name, *shapes = sorted(info["mismatched_keys"])[0]
        shown = " instead of ".join(str(tuple(shape)) for shape in shapes)
        raise ModelError(
            f"The weights of {str(source)!r} have other shapes than its configuration says: {name} is {shown}."
        )
    total = len(module.state_dict())
    missing, unexpected = info["missing_keys"], sorted(info["unexpected_keys"])
    if unexpected and len(missing) >= total * 0.9:
        raise ModelError(
            f"The weights of {str(source)!r} do not belong to its configuration: {len(missing)} of {total} tensors "
            f"are missing, while it brings others such as {unexpected[0]!r} (expected: {sorted(missing)[0]!r})."
        )


def _check_tokenizer(source: str | Path, tokenizer: PreTrainedTokenizerBase) -> None:
    """Notice a tokenizer that transformers made up from nothing: it knows special tokens and maybe a space."""
    if len(set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens)) <= 1:
        raise ModelError(f"{str(source)!r} comes without a tokenizer, so no text can be given to it.")
