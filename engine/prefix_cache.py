"""The KV caches of finished requests, kept for the next request that begins the same way.

A cache is checked out of the store for the request that extends it and back in when that ends; it is copied only where
two requests really share a beginning. An entry's key is as long as its KV by construction: the store cuts the tokens to
what was fed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import KVCache

from engine.rollback import can_rewind, rewind

Key = tuple[int, ...]


class PrefixCache:
    """Least recently used first out, by bytes."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        self._entries: OrderedDict[Key, list[Any]] = OrderedDict()

    @property
    def nbytes(self) -> int:
        return sum(_nbytes(cache) for cache in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def take(self, prompt: list[int]) -> tuple[list[Any] | None, int]:
        """The cache of the longest stored beginning of `prompt`, and its length; (None, 0) if there is none.

        At most len(prompt) - 1 tokens: the last one is always fed again, for its logits.
        """
        best: Key = ()
        shared = 0
        for key, cache in self._entries.items():
            length = min(_common(key, prompt), len(prompt) - 1)
            if length > shared and (length == len(key) or can_rewind(cache)):
                best, shared = key, length
        if not shared:
            return None, 0
        if shared < len(best) // 2:
            self._entries.move_to_end(best)
            return _copy(self._entries[best], shared), shared
        cache = self._entries.pop(best)
        rewind(cache, len(best), shared)
        return cache, shared

    def keep(self, tokens: list[int], fed: int, cache: list[Any]) -> None:
        """Store a finished request's cache, which holds `tokens[:fed]`."""
        key = tuple(tokens[:fed])
        if len(key) != fed or not fed or _nbytes(cache) > self._budget:
            return
        self._entries[key] = cache
        self._entries.move_to_end(key)
        while self.nbytes > self._budget:
            self._entries.popitem(last=False)

    def newest_first(self) -> Iterator[tuple[Key, list[Any]]]:
        """The entries and their tokens, the one used last first."""
        yield from reversed(self._entries.items())

    def clear(self) -> None:
        self._entries.clear()


def _common(key: Key, prompt: list[int]) -> int:
    """Length of the common beginning, by bisection: slices compare at C speed."""
    low, high = 0, min(len(key), len(prompt))
    while low < high:
        middle = (low + high + 1) // 2
        if list(key[low:middle]) == prompt[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _copy(cache: list[Any], length: int) -> list[Any]:
    copies = []
    for layer in cache:
        keys, values, _ = layer.state
        state = mx.contiguous(keys[..., :length, :]), mx.contiguous(values[..., :length, :]), length
        copies.append(KVCache.from_state(state))  # type: ignore[no-untyped-call]
    mx.eval([copy.state for copy in copies])
    return copies


def _nbytes(cache: list[Any]) -> int:
    return sum(layer.nbytes for layer in cache)
