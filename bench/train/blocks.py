"""DFlash's forward pass for training: many blocks of a sequence at once, each seeing only what lies before it."""

from __future__ import annotations

import mlx.core as mx

from engine.drafters.dflash_model import Attention, DFlashModel


def rope_tables(head: int, base: float, length: int) -> tuple[mx.array, mx.array]:
    """Cosines and sines [length, head / 2]."""
    angles = mx.arange(length)[:, None] * (base ** (-mx.arange(0, head, 2) / head))[None]
    return mx.cos(angles), mx.sin(angles)


def turned(x: mx.array, tables: tuple[mx.array, mx.array], positions: mx.array) -> mx.array:
    """Rotary positions on x [B, n, heads, head] at positions [B, n]."""
    cos, sin = (table[positions][:, :, None].astype(x.dtype) for table in tables)
    low, high = mx.split(x, 2, axis=-1)
    return mx.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1)


def denoised(
    model: DFlashModel, states: mx.array, embeddings: mx.array, anchors: mx.array, tables: tuple[mx.array, mx.array]
) -> mx.array:
    """Hidden states [B, A, block, width] of blocks whose embeddings [B, A, block, width] begin at anchors [B, A].

    `states` [B, S, taps x width] are the target's; a block sees those before its anchor.
    """
    batch, length, _ = states.shape
    _, count, block, width = embeddings.shape
    features = model.hidden_norm(model.fc(states))
    places = mx.broadcast_to(mx.arange(length)[None], (batch, length))
    own = (anchors[:, :, None] + mx.arange(block)).reshape(batch, -1)
    is_before = (places[:, None] < anchors[:, :, None])[:, :, None]
    bias = mx.where(is_before, 0.0, -1e9).astype(states.dtype)
    bias = mx.broadcast_to(bias, (batch, count, block, length)).reshape(batch, 1, 1, count * block, length)
    x = embeddings.reshape(batch, -1, width)
    for layer in model.layers:
        y = layer.input_layernorm(x)
        x = x + _attended(
            layer.self_attn, y, features=features, places=places, own=own, bias=bias, block=block, tables=tables
        )
        x = x + layer.mlp(layer.post_attention_layernorm(x))
    return model.norm(x).reshape(batch, count, block, width)


def _attended(
    attention: Attention,
    x: mx.array,
    *,
    features: mx.array,
    places: mx.array,
    own: mx.array,
    bias: mx.array,
    block: int,
    tables: tuple[mx.array, mx.array],
) -> mx.array:
    heads, groups, head = attention.kv_heads, attention.heads // attention.kv_heads, attention.head_dim
    batch, rows, _ = x.shape

    def split(y: mx.array, many: int) -> mx.array:
        return y.reshape(batch, -1, many, head)

    def keyed(y: mx.array, positions: mx.array) -> tuple[mx.array, mx.array]:
        keys = turned(attention.k_norm(split(attention.k_proj(y), heads)), tables, positions)
        return keys.transpose(0, 2, 1, 3), split(attention.v_proj(y), heads).transpose(0, 2, 1, 3)

    queries = turned(attention.q_norm(split(attention.q_proj(x), heads * groups)), tables, own)
    queries = queries.reshape(batch, rows, heads, groups, head).transpose(0, 2, 3, 1, 4) * attention.scale
    far_keys, far_values = keyed(features, places)
    near_keys, near_values = keyed(x, own)
    far = queries @ far_keys[:, :, None].swapaxes(-1, -2) + bias
    blocked = queries.reshape(batch, heads, groups, rows // block, block, head)
    near_keys = near_keys.reshape(batch, heads, 1, rows // block, block, head)
    near_values = near_values.reshape(batch, heads, 1, rows // block, block, head)
    near = (blocked @ near_keys.swapaxes(-1, -2)).reshape(batch, heads, groups, rows, block)
    weights = mx.softmax(mx.concatenate([far, near], axis=-1), axis=-1, precise=True)
    seen, mine = weights[..., :-block], weights[..., -block:]
    result = seen @ far_values[:, :, None]
    mine = mine.reshape(batch, heads, groups, rows // block, block, block) @ near_values
    result = result + mine.reshape(result.shape)
    return attention.o_proj(result.transpose(0, 3, 1, 2, 4).reshape(batch, rows, -1))
