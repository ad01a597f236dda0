"""The other way to see attention: models that cannot be recorded return their own weights, at their own cost."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from engine.backend import Step
from engine.describe import vocabulary_of
from engine.errors import CaptureError, ModelError
from engine.probe import without_cache
from engine.sites import Kind, Site


def returned_attention(outputs: Any, is_encoder_decoder: bool, kind: Kind) -> dict[Site, Tensor]:
    """Sort the attention that a model returned by site.

    Args:
        outputs: what transformers returned with `output_attentions=True`.
        is_encoder_decoder: whether there are three kinds or one.
        kind: the kind where there is one.

    Returns:
        Weights (B, H, T, S) for every site.

    Raises:
        ModelError: there are none, a layer's are missing, or they have another number of dimensions.
    """
    names: dict[str, Kind] = {"attentions": kind}
    if is_encoder_decoder:
        names = {"encoder_attentions": "encoder", "decoder_attentions": "decoder", "cross_attentions": "cross"}
    found = {
        Site(site_kind, layer): weights
        for name, site_kind in names.items()
        for layer, weights in enumerate(getattr(outputs, name, None) or ())
    }
    if not found:
        raise ModelError(
            "This model has no attention that can be shown: it mixes its tokens in some other way, or keeps its "
            "weights to itself."
        )
    for site, weights in found.items():
        if not isinstance(weights, Tensor) or weights.dim() != 4:
            raise ModelError(f"The model returned no attention weights at {site}, so there is nothing to show.")
    return found


def check_returned(found: Mapping[Site, Tensor], expected: Collection[Site], source: int, target: int) -> None:
    """Make sure that what a model returned is a weight for every query and key at the sites expected.

    Args:
        found: weights at every site, (B, H, T, S).
        expected: the sites that there were when the model was loaded.
        source: how many tokens the model reads.
        target: how many its decoder reads, where it has an encoder too.

    Raises:
        CaptureError: a site is missing or new, or weights have another layout, such as bands or blocks of keys.
    """
    if found.keys() != set(expected):
        raise CaptureError(
            f"The model returned attention in {len(found)} places, but in {len(expected)} when it was loaded."
        )
    shapes: dict[Kind, tuple[int, int]] = {"encoder": (source, source), "decoder": (target, target)}
    for site, weights in found.items():
        shape, wanted = tuple(weights.shape[-2:]), shapes.get(site.kind, (target, source))
        if shape != wanted:
            raise CaptureError(
                f"The model returned weights of {shape[0]} × {shape[1]} at {site}, where {wanted[0]} queries and "
                f"{wanted[1]} keys were expected; such a layout cannot be shown."
            )


def returned_steps(module: PreTrainedModel) -> tuple[Step, ...]:
    """Run a few tokens through an eager model, to learn its sites and heads from the weights it returns.

    Raises:
        ModelError: it returns no attention, or not one weight for each query and key.
    """
    ids = torch.arange(2, 8, device=module.device)[None] % vocabulary_of(module)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    is_encoder_decoder = bool(module.config.is_encoder_decoder)
    if is_encoder_decoder:
        inputs["decoder_input_ids"] = ids[:, :4]
    try:
        with torch.inference_mode():
            outputs = module(**inputs, **without_cache(module), output_attentions=True)
    except Exception as error:  # models without attention refuse the question in ways of their own
        raise ModelError(f"{type(module).__name__} returns no attention ({error}).") from error
    found = returned_attention(outputs, is_encoder_decoder, "encoder")
    source = ids.shape[1]
    try:
        check_returned(found, found.keys(), source, inputs.get("decoder_input_ids", ids).shape[1])
    except CaptureError as error:
        raise ModelError(str(error)) from error
    causal = not is_encoder_decoder and not any(bool(weights.triu(1).any()) for weights in found.values())
    return tuple(
        Step(0, Site("decoder", site.layer) if causal else site, weights.shape[1], weights.shape[1], None)
        for site, weights in found.items()
    )
