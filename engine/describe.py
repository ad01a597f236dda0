"""Reading off a transformers model what its card says: how many tokens fit, and how it knows word order."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Tokenizers that know no limit say a number beyond this.
NO_LIMIT = 1_000_000

TABLES = ("position_embeddings", "wpe", "embed_positions", "position_embedding")


def limit_of(module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Work out how many tokens a model can read at once; None where neither it nor its tokenizer says."""
    config = module.config.get_text_config()
    known = []
    positions = getattr(config, "max_position_embeddings", None) or getattr(config, "max_seq_len", None)
    if positions and positions > 0:
        known.append(positions - _reserved_positions(module))
    if tokenizer.model_max_length and tokenizer.model_max_length < NO_LIMIT:
        known.append(tokenizer.model_max_length)
    return min(known) if known else None


def vocabulary_of(module: PreTrainedModel) -> int:
    """Count the token ids that a model has an embedding for."""
    return int(cast(Tensor, module.get_input_embeddings().weight).shape[0])


def positions_of(module: PreTrainedModel) -> str:
    """Name how a model knows word order: learned, sinusoidal, rotary, ALiBi, relative, or none that is seen."""
    config = module.config.get_text_config()
    if config.model_type == "bloom" or getattr(config, "alibi", False) or config.model_type == "mpt":
        return "ALiBi"
    for name, part in module.named_modules():
        if "Rotary" in type(part).__name__:
            return "rotary"
        if "relative_attention_bias" in name:
            return "relative bias"
        if "Sinusoidal" in type(part).__name__:
            return "sinusoidal"
    if getattr(config, "relative_attention", False) or config.model_type == "xlnet":
        return "relative"
    tables = any(
        name.split(".")[-1] in TABLES for name, part in module.named_modules() if isinstance(part, nn.Embedding)
    )
    return "learned" if tables else "none seen"


def _reserved_positions(module: PreTrainedModel) -> int:
    """Count positions kept for padding: RoBERTa's table begins to count behind the padding id."""
    for name, part in module.named_modules():
        if name.endswith("position_embeddings") and isinstance(part, nn.Embedding) and part.padding_idx is not None:
            return part.padding_idx + 1
    return 0


def learned_table(module: PreTrainedModel) -> Tensor | None:
    """Read off the vectors that a model has learned for its positions.

    Args:
        module: any transformers model.

    Returns:
        A float32 copy on the CPU, (positions, width), without rows kept for padding; None where positions are not
        learned.
    """
    if positions_of(module) != "learned":
        return None
    for name, part in module.named_modules():
        if isinstance(part, nn.Embedding) and name.split(".")[-1] in TABLES:
            first = getattr(part, "offset", 0) or _reserved_positions(module)  # BART and OPT skip two rows
            return part.weight.detach()[first:].float().cpu().clone()
    return None
