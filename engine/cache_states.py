"""What a model's KV cache holds: copied, noted at one position and brought back to it, cut into runs of tokens.

Layers whose cache can be rewound keep a row for each token. The others (sliding windows, recurrent state) only know the
position they are at, so their state there has to be noted, a *mark*, to come back to it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten, tree_map

from engine.rollback import EXACT

Mark = tuple[Any, ...]
"""The state of each layer at one position; None for a layer that can be rewound to it."""


def mark_of(cache: list[Any]) -> Mark:
    """The state of the layers as they are now. Arrays are shared until the cache is written to."""
    return tuple(None if type(layer) in EXACT else _handles(layer.state) for layer in cache)


def return_to(cache: list[Any], mark: Mark, length: int) -> None:
    """Bring a cache that is beyond it back to `mark`, made at `length`. Raises RuntimeError where that fails."""
    for layer, state in zip(cache, mark, strict=True):
        if state is None:
            layer.trim(layer.offset - length)
        else:
            layer.state = _handles(state)
        if getattr(layer, "offset", length) != length:
            raise RuntimeError(f"a {type(layer).__name__} holds {layer.offset} tokens where {length} were noted")


def copied(cache: list[Any], length: int, mark: Mark | None) -> list[Any]:
    """A cache of its own that holds the first `length` tokens; `mark` is that of `length`, for layers that need one."""
    states = mark or (None,) * len(cache)
    copies = [
        type(layer).from_state(_handles(state)) if state is not None else _cut(layer, 0, length)
        for layer, state in zip(cache, states, strict=True)
    ]
    mx.eval([layer.state for layer in copies])
    return copies


def rows(layer: Any, start: int, end: int) -> list[mx.array]:
    """What a layer that can be rewound keeps for tokens `start` to `end`."""
    return [array[..., start:end, :] for array in _arrays([layer.keys, layer.values])]


def nbytes_of(states: Any) -> int:
    """Bytes of all arrays in a tree of states."""
    return sum(array.nbytes for array in _arrays(states))


def _arrays(states: Any) -> list[mx.array]:
    leaves: Any = tree_flatten(states)
    return [leaf for _, leaf in leaves if isinstance(leaf, mx.array)]


def _cut(layer: Any, start: int, end: int) -> Any:
    state = list(layer.state)
    state[0], state[1] = (_mapped(part, lambda array: mx.contiguous(array[..., start:end, :])) for part in state[:2])
    state[2] = end - start
    return type(layer).from_state(tuple(state))


def _handles(state: Any) -> Any:
    """The same arrays under handles of their own: writing through one leaves the other as it was."""
    return _mapped(state, copy.copy)


def _mapped(state: Any, change: Callable[[mx.array], mx.array]) -> Any:
    return tree_map(lambda leaf: change(leaf) if isinstance(leaf, mx.array) else leaf, state)
