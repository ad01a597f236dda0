"""Reading off one of our own transformers what its card says, and where it has heads."""

from __future__ import annotations

from engine.card import Card
from engine.presets import Transformer
from engine.sites import Kind, Site
from engine.transformer import Decoder, EncoderDecoder

POSITIONS = {"alibi": "ALiBi", "relative": "relative bias"}
FAMILIES = {
    "Encoder": "encoder",
    "Decoder": "decoder",
    "EncoderDecoder": "encoder–decoder",
    "TextClassifier": "classifier",
}


def card_of(module: Transformer, *, id: str, name: str, source: str, licence: str, notes: tuple[str, ...]) -> Card:
    """Make the card of a transformer; the texts are those that its weights do not tell."""
    config, weights, kinds = module.config, next(module.parameters()), _kinds_of(module)
    span = config.window if config.window is None or "decoder" in kinds else 2 * config.window - 1
    return Card(
        id=id,
        name=name,
        family=FAMILIES[type(module).__name__],
        kinds=kinds,
        layers=config.layers,
        heads=config.heads,
        kv_heads=config.G,
        windows=(span,) * config.layers,
        positions=POSITIONS.get(config.positions, config.positions),
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        limit=config.length if config.positions == "learned" else None,
        licence=licence,
        source=source,
        backend="sdpa",
        reason="",
        device=str(weights.device),
        dtype=str(weights.dtype).removeprefix("torch."),
        notes=notes,
    )


def heads_of(module: Transformer) -> dict[Site, int]:
    """Count the query heads at every site."""
    config = module.config
    depths: dict[Kind, int] = dict.fromkeys(_kinds_of(module), config.layers)
    if "cross" in depths and config.decoder_layers is not None:
        depths |= {"decoder": config.decoder_layers, "cross": config.decoder_layers}
    return {Site(kind, layer): config.heads for kind, depth in depths.items() for layer in range(depth)}


def _kinds_of(module: Transformer) -> tuple[Kind, ...]:
    if isinstance(module, EncoderDecoder):
        return ("encoder", "decoder", "cross")
    return ("decoder",) if isinstance(module, Decoder) else ("encoder",)
