"""Tiny random models whose caches cannot be rewound: sliding windows, and recurrent layers among attention."""

from __future__ import annotations

from functools import cache
from typing import Any

from mlx.nn.layers.base import Module
from mlx_lm.models import gemma3_text, gpt_oss, lfm2, qwen3_next
from tiny_model import VOCABULARY, randomized

WINDOW = 16
SIZES = {"hidden_size": 32, "vocab_size": VOCABULARY, "num_attention_heads": 4, "num_key_value_heads": 2}
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "gemma3_text": (
        gemma3_text,
        {
            "num_hidden_layers": 4,
            "intermediate_size": 64,
            "head_dim": 8,
            "query_pre_attn_scalar": 8,
            "sliding_window": WINDOW,
            "sliding_window_pattern": 2,
        },
    ),
    "gpt_oss": (
        gpt_oss,
        {
            "num_hidden_layers": 2,
            "intermediate_size": 32,
            "head_dim": 8,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "sliding_window": WINDOW,
        },
    ),
    "lfm2": (
        lfm2,
        {
            "num_hidden_layers": 3,
            "max_position_embeddings": 512,
            "norm_eps": 1e-5,
            "conv_bias": False,
            "conv_L_cache": 3,
            "block_dim": 32,
            "block_ff_dim": 64,
            "block_multiple_of": 8,
            "block_ffn_dim_multiplier": 1.0,
            "block_auto_adjust_ff_dim": False,
            "layer_types": ["conv", "full_attention", "conv"],
        },
    ),
    "qwen3_next": (
        qwen3_next,
        {
            "num_hidden_layers": 2,
            "intermediate_size": 64,
            "head_dim": 8,
            "full_attention_interval": 2,
            "linear_num_value_heads": 2,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "linear_conv_kernel_dim": 4,
            "num_experts": 0,
            "num_experts_per_tok": 1,
            "decoder_sparse_step": 1,
            "shared_expert_intermediate_size": 32,
            "mlp_only_layers": [],
            "moe_intermediate_size": 32,
            "rms_norm_eps": 1e-5,
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 0.5,
            "max_position_embeddings": 512,
        },
    ),
}


@cache
def tiny_kind(kind: str) -> Module:
    """Random weights, large enough that the model has opinions."""
    module, config = KINDS[kind]
    model = randomized(module.Model(module.ModelArgs.from_dict({"model_type": kind, **SIZES, **config})), seed=7)
    model.eval()
    return model
