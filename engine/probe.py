"""Probing: before a model is trusted, a few tokens show that its attention can be recorded faithfully.

A model is run as transformers would run it and again through `attend`, padded and not. Only when both agree, and
the attention calls are exactly the expected sites, is it recorded. Class flags do not decide this: T5 and BART say
that they lack support and work, while BLOOM takes the unknown backend without complaint and forgets to be causal.

Dimensions: B batch, T tokens.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from engine.backend import BACKEND, Scout, Seen, Step, guided
from engine.sites import Kind, Site

log = logging.getLogger(__name__)

SOURCE, TARGET = 6, 4
AGREEMENT = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 5e-2, torch.bfloat16: 1e-1}


@dataclass(frozen=True)
class Probed:
    """What the probe found: the plan of a model's sites, or the reason why there is none."""

    plan: tuple[Step, ...]
    reason: str = ""


def probe(module: PreTrainedModel) -> Probed:
    """Find out whether a model's attention can be recorded, and where it happens.

    The model is left running through `attend` where it can be, and in an undefined state where not.

    Args:
        module: any text model of transformers, in evaluation mode.

    Returns:
        The sites in the order of their calls, or the reason why the model must be run eagerly.
    """
    cases = _cases(module)
    with torch.inference_mode():
        stock = _stock_outputs(module, cases)
        if stock is None:
            return Probed((), "neither of transformers' own ways to run it works here")
        if not all(_finite(case, output) for case, output in zip(cases, stock, strict=True)):
            precision = str(stock[0].dtype).removeprefix("torch.")
            return Probed((), f"its own output is not finite in {precision}, so try float32")
        module.set_attn_implementation(BACKEND)
        scout = Scout()
        try:
            with guided(scout):
                ours = [_main_output(module, case) for case in cases]
        except Exception as error:  # whatever a model of unknown make does with an unknown backend
            log.info("recording failed on %s", type(module).__name__, exc_info=error)
            return Probed((), f"it fails when its attention is recorded ({type(error).__name__})")
    if not scout.seen:
        return Probed((), "transformers builds this family's attention without the hook that recording needs")
    one_pass = scout.seen[: len(scout.seen) // len(cases)]
    plan = _plan(one_pass, module.config.is_encoder_decoder)
    expected = _expected_calls(module)
    if len(scout.seen) % len(cases) or (expected is not None and len(plan) != expected):
        return Probed((), f"attention ran in {len(plan)} places where {expected} were expected")
    if not all(_agree(case, *pair) for case, pair in zip(cases, zip(stock, ours, strict=True), strict=True)):
        return Probed((), "its output changes when its attention is recorded")
    return Probed(plan)


def _cases(module: PreTrainedModel) -> list[dict[str, Tensor]]:
    """Make a plain, a right-padded and a left-padded input of a few ordinary tokens."""
    config = module.config.get_text_config()
    named = [getattr(config, f"{name}_token_id", None) for name in ("pad", "eos", "bos")]
    special = set(named) if named[0] else {0}
    ordinary = [number for number in range(min(config.vocab_size, 64)) if number not in special] or [0]
    ids = torch.tensor([(ordinary * SOURCE)[i * 7 % len(ordinary)] for i in range(2 * SOURCE)]).view(2, SOURCE)
    masks = [torch.ones(2, SOURCE, dtype=torch.long) for _ in range(3)]
    masks[1][1, -2:] = 0
    masks[2][1, :2] = 0
    cases = []
    for mask in masks:
        case = {"input_ids": ids, "attention_mask": mask}
        if module.config.is_encoder_decoder:
            case["decoder_input_ids"] = ids[:, :TARGET]
        cases.append({name: tensor.to(module.device) for name, tensor in case.items()})
    return cases


def _stock_outputs(module: PreTrainedModel, cases: list[dict[str, Tensor]]) -> list[Tensor] | None:
    for implementation in ("sdpa", "eager"):
        try:
            module.set_attn_implementation(implementation)
            return [_main_output(module, case) for case in cases]
        except Exception as error:  # models refuse what they lack in many ways; the next one is tried
            log.info("%s does not run as %s", type(module).__name__, implementation, exc_info=error)
    return None


def _main_output(module: nn.Module, case: dict[str, Tensor]) -> Tensor:
    outputs: Any = module(**case, **without_cache(module))
    return next(value for value in outputs.to_tuple() if isinstance(value, Tensor))


def without_cache(module: nn.Module) -> dict[str, Any]:
    """Arguments that make a forward pass return a plain output and keep no cache, where the model has one."""
    has_cache = getattr(getattr(module, "config", None), "use_cache", None) is not None
    return {"return_dict": True, **({"use_cache": False} if has_cache else {})}


def _plan(seen: list[Seen], is_encoder_decoder: bool) -> tuple[Step, ...]:
    """Name each call's site: its kind by its shape or its causality, its layer by its turn."""
    count: dict[Kind, int] = {}
    steps = []
    for call in seen:
        heads, kv_heads, queries, keys = call.shape
        kind: Kind
        if is_encoder_decoder:
            kind = "encoder" if queries == SOURCE else "decoder" if keys == TARGET else "cross"
        else:
            kind = "decoder" if call.causal else "encoder"
        layer = count.get(kind, 0)
        count[kind] = layer + 1
        # A model that reads both ways counts its window on one side: n keys back and n - 1 of them ahead again.
        window = 2 * call.window - 1 if call.window and kind == "encoder" else call.window
        steps.append(Step(call.module, Site(kind, layer), heads, kv_heads, window))
    return tuple(steps)


def _expected_calls(module: PreTrainedModel) -> int | None:
    config = module.config.get_text_config()
    if not module.config.is_encoder_decoder:
        # The decoder of an encoder-decoder, used alone, keeps a configuration that counts its layers apart.
        alone = getattr(config, "decoder_layers", None) if getattr(config, "is_decoder", False) else None
        return alone or getattr(config, "num_hidden_layers", None)
    encoder = getattr(config, "encoder_layers", None) or getattr(config, "num_layers", None)
    decoder = getattr(config, "decoder_layers", None) or getattr(config, "num_decoder_layers", None)
    return encoder + 2 * decoder if encoder and decoder else None


def _agree(case: dict[str, Tensor], stock: Tensor, ours: Tensor) -> bool:
    """Compare two outputs where the tokens are real; what a padded query yields means nothing."""
    if stock.shape != ours.shape:
        return False
    stock, ours = _where_real(case, stock), _where_real(case, ours)
    difference = (stock.double() - ours.double()).abs().max()
    return bool(difference <= AGREEMENT[stock.dtype] * max(1.0, float(stock.abs().max())))


def _finite(case: dict[str, Tensor], output: Tensor) -> bool:
    return bool(_where_real(case, output).isfinite().all())


def _where_real(case: dict[str, Tensor], output: Tensor) -> Tensor:
    """Keep what a model says of real tokens, where its output goes by the tokens that it read."""
    if "decoder_input_ids" in case or output.shape[:2] != case["attention_mask"].shape:
        return output
    return output[case["attention_mask"].bool()]
