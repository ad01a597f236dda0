"""The weights of Hugging Face checkpoints in our own models: the same numbers in, the same numbers out.

That a few hundred lines are the real thing is proven by giving them the real weights. `rebuilt` makes our model of
theirs and moves every number over; what fits nowhere, on either side, is an error and not a guess.

Dimensions: C model width.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from engine import weights_names as names
from engine import weights_sizes as sizes
from engine.config import Config
from engine.errors import ModelError, ShapeError
from engine.transformer import Decoder, Encoder, EncoderDecoder, VisionTransformer
from engine.weights_names import Laid, Names

Rebuilt = Encoder | Decoder | EncoderDecoder | VisionTransformer


@dataclass(frozen=True)
class Family:
    """What is the same for all models of one family.

    Attributes:
        make: which of our classes it is.
        sizes: reads its configuration.
        names: what our parts are called there.
        zeros: tensors of theirs that our parts have no place for, and need none as long as they are zero.
        unread: tensors that they keep without ever reading them, unless tied to one that is read.
    """

    make: type[Rebuilt]
    sizes: Callable[[Any], Config]
    names: Names
    zeros: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


FAMILIES: dict[str, Family] = {
    "bert": Family(Encoder, sizes.bert, names.BERT, unread=("cls.predictions.bias",)),
    "gpt2": Family(Decoder, sizes.gpt2, names.GPT2),
    "llama": Family(Decoder, sizes.llama, names.LLAMA),
    "mistral": Family(Decoder, sizes.llama, names.LLAMA),
    "qwen3": Family(Decoder, sizes.llama, names.LLAMA),
    "vit": Family(VisionTransformer, sizes.vit, names.VIT),
    "t5": Family(EncoderDecoder, sizes.t5, names.T5),
    "bart": Family(EncoderDecoder, sizes.bart, names.BART, zeros=("final_logits_bias",)),
}


def config_from(config: PreTrainedConfig) -> tuple[type[Rebuilt], Config]:
    """Say which of our classes a Hugging Face model is, and its sizes, without what sits on top of the layers.

    Args:
        config: of one of the FAMILIES.

    Returns:
        The class and the configuration it takes, with neither head nor pooler nor labels: whether there are any
        depends on the model, not on its configuration.

    Raises:
        ModelError: our parts cannot do what the configuration asks for; it names what.
    """
    family = _family_of(config)
    try:
        return family.make, family.sizes(config)
    except ShapeError as error:
        raise ModelError(f"The parts here cannot build this {config.model_type} model: {error}") from error
    except KeyError as error:
        raise ModelError(f"The configuration of this {config.model_type} model lacks the entry {error}.") from error


@torch.no_grad()
def rebuilt(module: PreTrainedModel) -> Rebuilt:
    """Build our own model with the weights of a Hugging Face model.

    Args:
        module: of one of the FAMILIES, its weights all of one precision.

    Returns:
        Our model with copies of its weights, on the same device, in the same precision, with dropout off.

    Raises:
        ModelError: our parts cannot do what the model does, or a weight of theirs or ours is left over.
    """
    family, theirs = _family_of(module.config), _weights_of(module)
    make, config = rebuilt_config(module)
    with torch.device("meta"):
        model = make(config)
    model.load_state_dict(_moved(model.state_dict(), theirs, family), assign=True)
    return model.eval()


def rebuilt_config(module: PreTrainedModel) -> tuple[type[Rebuilt], Config]:
    """Say which of our classes a model is, and its sizes, with what sits on top of its layers.

    Raises:
        ModelError: our parts cannot do what the model does.
    """
    make, config = config_from(module.config)
    return make, replace(config, **_on_top(_family_of(module.config).names, _weights_of(module)))


def _family_of(config: PreTrainedConfig) -> Family:
    if config.model_type not in FAMILIES:
        raise ModelError(
            f"The parts here cannot build the family {config.model_type!r}; they can build {', '.join(FAMILIES)}."
        )
    return FAMILIES[config.model_type]


def _weights_of(module: PreTrainedModel) -> dict[str, Tensor]:
    """Name all weights as the bare model does, without the prefix they have under a head; tied ones have two names."""
    prefix = f"{module.base_model_prefix}."
    weights = {name.removeprefix(prefix): tensor for name, tensor in module.state_dict(keep_vars=True).items()}
    precisions = {tensor.dtype for tensor in weights.values()}
    if len(precisions) > 1 or not all(precision.is_floating_point for precision in precisions):
        found = ", ".join(sorted(str(precision).removeprefix("torch.") for precision in precisions))
        raise ModelError(f"The weights come in {found}: load the model in one precision, such as float32.")
    if any(tensor.is_meta for tensor in weights.values()):
        raise ModelError("The model has shapes but no weights; load it on a device other than meta.")
    return weights


def _on_top(names: Names, theirs: Mapping[str, Tensor]) -> dict[str, Any]:
    """Find out what sits on top of the layers: a pooler, labels, a head with a matrix of its own or a tied one."""
    found: dict[str, Any] = {"pooler": f"{names.get('pooler')}.weight" in theirs}
    labels = theirs.get(f"{names.get('classify')}.weight")
    if labels is not None:
        found["classes"] = len(labels)
    head = theirs.get(str(names.get("head.own") or names.get("head.head.own")))
    if head is not None:
        found["head"] = "tied" if head is theirs[f"{names['tokens']}.weight"] else "own"
    return found


def _moved(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor], family: Family) -> dict[str, Tensor]:
    """Fill each of our parameters from theirs, and see to it that every number of theirs was taken once."""
    filled: dict[str, Tensor] = {}
    taken: Counter[int] = Counter()  # tied weights have two names but one identity
    for name, empty in ours.items():
        source, tensor = _source_of(name, theirs, family.names)
        if tensor.shape != empty.shape:
            raise ModelError(f"{source} has the shape {tuple(tensor.shape)}, but {name} is {tuple(empty.shape)} here.")
        taken[id(theirs[source])] += tensor.numel()
        filled[name] = tensor.clone(memory_format=torch.contiguous_format)
    for name, tensor in theirs.items():
        if name in family.zeros:
            _check_zero(name, tensor)
        elif taken[id(tensor)] != tensor.numel() and name not in family.unread:
            raise ModelError(
                f"Of the {tensor.numel():,} numbers of {name} {taken[id(tensor)]:,} find a place in the parts here."
            )
    return filled


def _source_of(name: str, theirs: Mapping[str, Tensor], names: Names) -> tuple[str, Tensor]:
    """Find the weight of theirs that belongs to a parameter of ours, laid as ours is."""
    number = next((step for step in name.split(".") if step.isdigit()), "")
    pattern = name.replace(f".{number}.", ".*.")
    part, _, kind = pattern.rpartition(".")
    source, ending = (names[pattern], "") if pattern in names else (names.get(part, ()), f".{kind}")
    known = (source.name,) if isinstance(source, Laid) else (source,) if isinstance(source, str) else source
    for one in known:
        found = one.replace("*", number) + ending
        if found in theirs:
            return found, source.turn(theirs[found]) if isinstance(source, Laid) else theirs[found]
    raise ModelError(f"The model has no weight for {name} (looked for: {', '.join(known) or 'nothing'}).")


def _check_zero(name: str, tensor: Tensor) -> None:
    if bool(tensor.any()):
        raise ModelError(f"{name} is not zero, and the parts here have no place for it.")
