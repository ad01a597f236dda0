"""What our parts are called in Hugging Face checkpoints: for each of our names theirs, family by family.

A name stands for a part with its weight and bias, or for one parameter; `*` is the number of the layer. Of several
names the one that a model has is taken: they differ between versions. Where numbers lie differently, `Laid` says how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Laid:
    """A part whose numbers lie in another order there than here.

    Attributes:
        name: what it is called there.
        turn: lays a tensor of theirs as it lies here.
    """

    name: str
    turn: Callable[[Tensor], Tensor]


Source = str | tuple[str, ...] | Laid
Names = Mapping[str, Source]


def _transposed(name: str) -> Laid:
    """GPT-2's matrices lie (in, out), a linear layer's (out, in); a bias has nothing to transpose."""
    return Laid(name, lambda tensor: tensor.t())


def _third(name: str, number: int) -> Laid:
    """One of the three that lie side by side in one matrix of GPT-2: queries, keys, values."""
    return Laid(name, lambda tensor: tensor.chunk(3, dim=-1)[number].t())


BERT: Names = {
    "tokens": "embeddings.word_embeddings",
    "segments": "embeddings.token_type_embeddings",
    "stack.positions.table": "embeddings.position_embeddings",
    "stack.embedding_norm": "embeddings.LayerNorm",
    "stack.blocks.*.attention.q": "encoder.layer.*.attention.self.query",
    "stack.blocks.*.attention.k": "encoder.layer.*.attention.self.key",
    "stack.blocks.*.attention.v": "encoder.layer.*.attention.self.value",
    "stack.blocks.*.attention.out": "encoder.layer.*.attention.output.dense",
    "stack.blocks.*.attention_norm": "encoder.layer.*.attention.output.LayerNorm",
    "stack.blocks.*.feed_forward.widen": "encoder.layer.*.intermediate.dense",
    "stack.blocks.*.feed_forward.narrow": "encoder.layer.*.output.dense",
    "stack.blocks.*.feed_forward_norm": "encoder.layer.*.output.LayerNorm",
    "pooler": "pooler.dense",
    "head.dense": "cls.predictions.transform.dense",
    "head.norm": "cls.predictions.transform.LayerNorm",
    "head.bias": "cls.predictions.decoder.bias",
    "head.head.own": "cls.predictions.decoder.weight",
}

GPT2: Names = {
    "tokens": "wte",
    "stack.positions.table": "wpe",
    "stack.blocks.*.attention_norm": "h.*.ln_1",
    "stack.blocks.*.attention.q": _third("h.*.attn.c_attn", 0),
    "stack.blocks.*.attention.k": _third("h.*.attn.c_attn", 1),
    "stack.blocks.*.attention.v": _third("h.*.attn.c_attn", 2),
    "stack.blocks.*.attention.out": _transposed("h.*.attn.c_proj"),
    "stack.blocks.*.feed_forward_norm": "h.*.ln_2",
    "stack.blocks.*.feed_forward.widen": _transposed("h.*.mlp.c_fc"),
    "stack.blocks.*.feed_forward.narrow": _transposed("h.*.mlp.c_proj"),
    "stack.final_norm": "ln_f",
    "head.own": "lm_head.weight",
}

LLAMA: Names = {
    "tokens": "embed_tokens",
    "stack.blocks.*.attention_norm": "layers.*.input_layernorm",
    "stack.blocks.*.attention.q": "layers.*.self_attn.q_proj",
    "stack.blocks.*.attention.k": "layers.*.self_attn.k_proj",
    "stack.blocks.*.attention.v": "layers.*.self_attn.v_proj",
    "stack.blocks.*.attention.out": "layers.*.self_attn.o_proj",
    "stack.blocks.*.attention.q_norm": "layers.*.self_attn.q_norm",
    "stack.blocks.*.attention.k_norm": "layers.*.self_attn.k_norm",
    "stack.blocks.*.feed_forward_norm": "layers.*.post_attention_layernorm",
    "stack.blocks.*.feed_forward.gate": "layers.*.mlp.gate_proj",
    "stack.blocks.*.feed_forward.widen": "layers.*.mlp.up_proj",
    "stack.blocks.*.feed_forward.narrow": "layers.*.mlp.down_proj",
    "stack.final_norm": "norm",
    "head.own": "lm_head.weight",
}

VIT: Names = {
    # A convolution whose steps are as wide as itself is a linear layer over the patches.
    "patches.weight": Laid("embeddings.patch_embeddings.projection.weight", lambda tensor: tensor.flatten(1)),
    "patches.bias": "embeddings.patch_embeddings.projection.bias",
    "first": "embeddings.cls_token",
    "stack.positions.table.weight": Laid("embeddings.position_embeddings", lambda tensor: tensor.squeeze(0)),
    "stack.blocks.*.attention_norm": "layers.*.layernorm_before",
    "stack.blocks.*.attention.q": "layers.*.attention.q_proj",
    "stack.blocks.*.attention.k": "layers.*.attention.k_proj",
    "stack.blocks.*.attention.v": "layers.*.attention.v_proj",
    "stack.blocks.*.attention.out": "layers.*.attention.o_proj",
    "stack.blocks.*.feed_forward_norm": "layers.*.layernorm_after",
    "stack.blocks.*.feed_forward.widen": "layers.*.mlp.fc1",
    "stack.blocks.*.feed_forward.narrow": "layers.*.mlp.fc2",
    "stack.final_norm": "layernorm",
    "pooler": "pooler.dense",
    "classify": "classifier",
}

T5: Names = {
    "tokens": "shared",
    # The first layer keeps the table of distances for all of them.
    "encoder.positions.table": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
    "encoder.blocks.*.attention_norm": "encoder.block.*.layer.0.layer_norm",
    "encoder.blocks.*.attention.q": "encoder.block.*.layer.0.SelfAttention.q",
    "encoder.blocks.*.attention.k": "encoder.block.*.layer.0.SelfAttention.k",
    "encoder.blocks.*.attention.v": "encoder.block.*.layer.0.SelfAttention.v",
    "encoder.blocks.*.attention.out": "encoder.block.*.layer.0.SelfAttention.o",
    "encoder.blocks.*.feed_forward_norm": "encoder.block.*.layer.1.layer_norm",
    "encoder.blocks.*.feed_forward.gate": "encoder.block.*.layer.1.DenseReluDense.wi_0",
    "encoder.blocks.*.feed_forward.widen": (
        "encoder.block.*.layer.1.DenseReluDense.wi",
        "encoder.block.*.layer.1.DenseReluDense.wi_1",
    ),
    "encoder.blocks.*.feed_forward.narrow": "encoder.block.*.layer.1.DenseReluDense.wo",
    "encoder.final_norm": "encoder.final_layer_norm",
    "decoder.positions.table": "decoder.block.0.layer.0.SelfAttention.relative_attention_bias",
    "decoder.blocks.*.attention_norm": "decoder.block.*.layer.0.layer_norm",
    "decoder.blocks.*.attention.q": "decoder.block.*.layer.0.SelfAttention.q",
    "decoder.blocks.*.attention.k": "decoder.block.*.layer.0.SelfAttention.k",
    "decoder.blocks.*.attention.v": "decoder.block.*.layer.0.SelfAttention.v",
    "decoder.blocks.*.attention.out": "decoder.block.*.layer.0.SelfAttention.o",
    "decoder.blocks.*.cross_norm": "decoder.block.*.layer.1.layer_norm",
    "decoder.blocks.*.cross.q": "decoder.block.*.layer.1.EncDecAttention.q",
    "decoder.blocks.*.cross.k": "decoder.block.*.layer.1.EncDecAttention.k",
    "decoder.blocks.*.cross.v": "decoder.block.*.layer.1.EncDecAttention.v",
    "decoder.blocks.*.cross.out": "decoder.block.*.layer.1.EncDecAttention.o",
    "decoder.blocks.*.feed_forward_norm": "decoder.block.*.layer.2.layer_norm",
    "decoder.blocks.*.feed_forward.gate": "decoder.block.*.layer.2.DenseReluDense.wi_0",
    "decoder.blocks.*.feed_forward.widen": (
        "decoder.block.*.layer.2.DenseReluDense.wi",
        "decoder.block.*.layer.2.DenseReluDense.wi_1",
    ),
    "decoder.blocks.*.feed_forward.narrow": "decoder.block.*.layer.2.DenseReluDense.wo",
    "decoder.final_norm": "decoder.final_layer_norm",
    "head.own": "lm_head.weight",
}

BART: Names = {
    "tokens": "shared",
    "encoder.positions.table": "encoder.embed_positions",
    "encoder.embedding_norm": "encoder.layernorm_embedding",
    "encoder.blocks.*.attention.q": "encoder.layers.*.self_attn.q_proj",
    "encoder.blocks.*.attention.k": "encoder.layers.*.self_attn.k_proj",
    "encoder.blocks.*.attention.v": "encoder.layers.*.self_attn.v_proj",
    "encoder.blocks.*.attention.out": "encoder.layers.*.self_attn.out_proj",
    "encoder.blocks.*.attention_norm": "encoder.layers.*.self_attn_layer_norm",
    "encoder.blocks.*.feed_forward.widen": "encoder.layers.*.fc1",
    "encoder.blocks.*.feed_forward.narrow": "encoder.layers.*.fc2",
    "encoder.blocks.*.feed_forward_norm": "encoder.layers.*.final_layer_norm",
    "decoder.positions.table": "decoder.embed_positions",
    "decoder.embedding_norm": "decoder.layernorm_embedding",
    "decoder.blocks.*.attention.q": "decoder.layers.*.self_attn.q_proj",
    "decoder.blocks.*.attention.k": "decoder.layers.*.self_attn.k_proj",
    "decoder.blocks.*.attention.v": "decoder.layers.*.self_attn.v_proj",
    "decoder.blocks.*.attention.out": "decoder.layers.*.self_attn.out_proj",
    "decoder.blocks.*.attention_norm": "decoder.layers.*.self_attn_layer_norm",
    "decoder.blocks.*.cross.q": "decoder.layers.*.encoder_attn.q_proj",
    "decoder.blocks.*.cross.k": "decoder.layers.*.encoder_attn.k_proj",
    "decoder.blocks.*.cross.v": "decoder.layers.*.encoder_attn.v_proj",
    "decoder.blocks.*.cross.out": "decoder.layers.*.encoder_attn.out_proj",
    "decoder.blocks.*.cross_norm": "decoder.layers.*.encoder_attn_layer_norm",
    "decoder.blocks.*.feed_forward.widen": "decoder.layers.*.fc1",
    "decoder.blocks.*.feed_forward.narrow": "decoder.layers.*.fc2",
    "decoder.blocks.*.feed_forward_norm": "decoder.layers.*.final_layer_norm",
    "head.own": "lm_head.weight",
}
