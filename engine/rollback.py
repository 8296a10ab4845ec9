"""Take fed tokens out of a KV cache again, exactly or not at all."""

from __future__ import annotations

from typing import Any

from mlx_lm.models.cache import KVCache, QuantizedKVCache

EXACT = (KVCache, QuantizedKVCache)
"""Caches that append and whose `trim` only moves the end. A full sliding window also says it was trimmed, and keeps the
rejected tokens; recurrent state cannot be trimmed at all."""


def can_rewind(cache: list[Any]) -> bool:
    """Whether every layer's cache can be taken back to any earlier length."""
    return all(type(layer) in EXACT for layer in cache)


def why_not(cache: list[Any]) -> str:
    """Which layers stand in the way of `can_rewind`, for people."""
    kinds = sorted({type(layer).__name__ for layer in cache if type(layer) not in EXACT})
    return f"this model's cache cannot be rewound yet ({', '.join(kinds)})"


def rewind(cache: list[Any], fed: int, length: int) -> None:
    """Shorten a cache that holds `fed` tokens to `length`. Raises RuntimeError where a layer does not get there."""
    for layer in cache:
        if fed != length:
            layer.trim(fed - length)
        if type(layer) in EXACT and layer.offset != length:
            raise RuntimeError(f"a {type(layer).__name__} holds {layer.offset} tokens after a rewind to {length}")
