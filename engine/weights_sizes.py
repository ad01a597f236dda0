"""The sizes of Hugging Face models in our words, family by family; what our parts cannot do is refused by name."""

from __future__ import annotations

from typing import Any

from engine.config import Activation, Config
from engine.errors import ModelError
from engine.rotary import DynamicNTK, Linear, Llama3, Scaling, YaRN

# The same function goes by several names; those that only come near it are left out.
PLAIN: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
GATES: dict[str, Activation] = {
    "silu": "swiglu",
    "swish": "swiglu",
    "gelu": "geglu",
    "gelu_new": "geglu_tanh",
    "gelu_pytorch_tanh": "geglu_tanh",
}


def bert(config: Any) -> Config:
    """Read BERT's sizes (Devlin et al. 2018, 1810.04805)."""
    _only(config, is_decoder=False, add_cross_attention=False)
    return Config(
        width=config.hidden_size,
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        feed_forward=config.intermediate_size,
        vocabulary=config.vocab_size,
        length=config.max_position_embeddings,
        norm_place="post",
        epsilon=config.layer_norm_eps,
        embedding_norm=True,
        final_norm=False,
        activation=_activation(config, config.hidden_act, PLAIN),
        segments=config.type_vocab_size,
        dropout=config.hidden_dropout_prob,
    )


def gpt2(config: Any) -> Config:
    """Read GPT-2's sizes (Radford et al. 2019)."""
    _only(config, add_cross_attention=False, scale_attn_by_inverse_layer_idx=False)
    return Config(
        width=config.n_embd,
        layers=config.n_layer,
        heads=config.n_head,
        feed_forward=4 * config.n_embd if config.n_inner is None else config.n_inner,
        vocabulary=config.vocab_size,
        length=config.n_positions,
        epsilon=config.layer_norm_epsilon,
        activation=_activation(config, config.activation_function, PLAIN),
        scale=None if config.scale_attn_weights else 1.0,
        dropout=config.resid_pdrop,
    )


def llama(config: Any) -> Config:
    """Read the sizes of Llama (2302.13971), of Mistral with its window, of Qwen 3 with normed queries and keys."""
    bias = getattr(config, "attention_bias", False)
    if bias != getattr(config, "mlp_bias", False):
        raise _refused(config, "constants in some of its linear layers only (attention_bias, mlp_bias)")
    return Config(
        width=config.hidden_size,
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        feed_forward=config.intermediate_size,
        vocabulary=config.vocab_size,
        length=config.max_position_embeddings,
        kv_heads=config.num_key_value_heads,
        head_width=getattr(config, "head_dim", None),
        positions="rotary",
        rotary_base=_rotary(config)["rope_theta"],
        rotary_scaling=_scaling(config),
        norm="rms",
        epsilon=config.rms_norm_eps,
        activation=_activation(config, config.hidden_act, GATES),
        bias=bias,
        qk_norm=config.model_type == "qwen3",
        window=_window(config),
    )


def vit(config: Any) -> Config:
    """Read ViT's sizes (Dosovitskiy et al. 2020, 2010.11929)."""
    _only(config, qkv_bias=True, pooler_act="tanh", pooler_output_size=config.hidden_size)
    image, patch = config.image_size, config.patch_size
    if not isinstance(image, int) or not isinstance(patch, int) or image % patch:
        raise _refused(config, f"images of {image} pixels in patches of {patch}; ours are squares, cut evenly")
    return Config(
        width=config.hidden_size,
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        feed_forward=config.intermediate_size,
        epsilon=config.layer_norm_eps,
        activation=_activation(config, config.hidden_act, PLAIN),
        image=image,
        patch=patch,
        channels=config.num_channels,
        dropout=config.hidden_dropout_prob,
    )


def t5(config: Any) -> Config:
    """Read T5's sizes (Raffel et al. 2019, 1910.10683)."""
    # The first T5 shrinks its last layer on the way into the head, version 1.1 does not.
    shrinks = getattr(config, "scale_decoder_outputs", config.tie_word_embeddings)
    return Config(
        width=config.d_model,
        layers=config.num_layers,
        heads=config.num_heads,
        feed_forward=config.d_ff,
        vocabulary=config.vocab_size,
        head_width=config.d_kv,
        decoder_layers=config.num_decoder_layers,
        positions="relative",
        buckets=config.relative_attention_num_buckets,
        furthest=config.relative_attention_max_distance,
        norm="rms",
        epsilon=config.layer_norm_epsilon,
        activation=_activation(config, config.dense_act_fn, GATES if config.is_gated_act else PLAIN),
        bias=False,
        scale=1.0,
        head_scale=config.d_model**-0.5 if shrinks else 1.0,
        dropout=config.dropout_rate,
    )


def bart(config: Any) -> Config:
    """Read BART's sizes (Lewis et al. 2019, 1910.13461)."""
    _only(config, scale_embedding=False)
    for size in ("attention_heads", "ffn_dim"):
        if getattr(config, f"encoder_{size}") != getattr(config, f"decoder_{size}"):
            raise _refused(config, f"another {size} in the encoder than in the decoder")
    return Config(
        width=config.d_model,
        layers=config.encoder_layers,
        heads=config.encoder_attention_heads,
        feed_forward=config.encoder_ffn_dim,
        vocabulary=config.vocab_size,
        length=config.max_position_embeddings,
        decoder_layers=config.decoder_layers,
        reserved=2,
        norm_place="post",
        embedding_norm=True,
        final_norm=False,
        activation=_activation(config, config.activation_function, PLAIN),
        dropout=config.dropout,
    )


def _only(config: Any, **wanted: object) -> None:
    """Refuse options that are set to anything but what our parts do."""
    for option, value in wanted.items():
        if getattr(config, option, value) != value:
            raise _refused(config, f"{option} set to {getattr(config, option)!r}; it has to be {value!r}")


def _activation(config: Any, name: str, known: dict[str, Activation]) -> Activation:
    if name not in known:
        place = "gate of its feed-forward layers" if known is GATES else "feed-forward layers"
        raise _refused(config, f"{name!r} in the {place}; there is {', '.join(known)}")
    return known[name]


def _window(config: Any) -> int | None:
    """Say how many keys a query sees, where all layers have the same window; None where they have none."""
    # A family without windows may carry the entries all the same, and takes no notice of them.
    own = {name: getattr(config, name) for name in ("layer_types", "sliding_window") if hasattr(type(config), name)}
    kinds = set(own.get("layer_types") or ["sliding_attention"])
    if len(kinds) > 1 or kinds - {"full_attention", "sliding_attention"}:
        raise _refused(config, f"layers that see differently: {', '.join(sorted(kinds))}")
    return None if kinds == {"full_attention"} else own.get("sliding_window")


def _rotary(config: Any) -> dict[str, Any]:
    rope: dict[str, Any] = config.rope_parameters
    if any(isinstance(entry, dict) for entry in rope.values()):
        raise _refused(config, "another rotary base in some of its layers than in others")
    if rope.get("partial_rotary_factor", 1.0) != 1.0:
        raise _refused(config, f"rotary positions in a part of each head only ({rope['partial_rotary_factor']})")
    return rope


def _scaling(config: Any) -> Scaling:
    """Read how rotary positions are stretched for texts longer than those in training, see engine/rotary.py."""
    rope, longest = _rotary(config), config.max_position_embeddings
    trained = rope.get("original_max_position_embeddings") or longest
    kind = rope.get("rope_type", "default")
    if kind == "default":
        return Scaling()
    if kind == "linear":
        return Linear(rope["factor"])
    if kind == "dynamic":
        return DynamicNTK(rope["factor"], longest)
    if kind == "llama3":
        return Llama3(rope["factor"], trained, rope["low_freq_factor"], rope["high_freq_factor"])
    if kind == "yarn":
        return YaRN(
            factor=rope.get("factor") or longest / trained,
            trained=trained,
            fast=rope.get("beta_fast") or 32.0,
            slow=rope.get("beta_slow") or 1.0,
            truncate=rope.get("truncate", True),
            attention=rope.get("attention_factor"),
            magnitude=rope.get("mscale"),
            magnitude_all=rope.get("mscale_all_dim"),
        )
    raise _refused(config, f"rotary positions scaled in the manner {kind!r}")


def _refused(config: Any, what: str) -> ModelError:
    return ModelError(f"The parts here cannot build this {config.model_type} model: it has {what}.")
