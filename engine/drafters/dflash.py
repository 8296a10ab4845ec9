"""Guess a whole block in one pass of a small network that reads the target's hidden states (DFlash)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import mlx.core as mx
from mlx_lm.models.cache import KVCache

from engine.cache_states import copied
from engine.drafters import Draft, DraftMemory
from engine.drafters.dflash_model import DFlashModel, KeysValues
from engine.rollback import rewind
from engine.taps import Taps

CHUNK = 2048
"""Context positions taken in by one call while the drafter is behind."""
KEPT_WITHOUT_WINDOW = 8192
"""States of so many positions are kept while nothing is drafted."""


@dataclass(frozen=True)
class TargetEnds:
    """The target's first and last part, which the drafter borrows."""

    embed: Any
    head: Any
    dtype: mx.Dtype

    @classmethod
    def of(cls, model: Any, shortlist: mx.array | None) -> TargetEnds:
        """`shortlist`: token ids [n]; the head then gives logits of these alone, in this order."""
        embed = model.model.embed_tokens
        head = model.lm_head if "lm_head" in model else embed.as_linear
        dtype = embed(mx.array([0])).dtype
        if shortlist is not None:
            rows = _rows(model.lm_head if "lm_head" in model else embed, shortlist)
            mx.eval(rows)
            return cls(embed, lambda hidden: hidden @ rows.T, dtype)
        return cls(embed, head, dtype)


@dataclass
class DFlashMemory:
    """Keys and values of positions `runs` (start, end), and the target's states `pieces` of some that follow.

    All positions before `taken` have been looked at; those that are in no run were not kept.
    """

    cache: list[Any]
    runs: list[tuple[int, int]]
    taken: int
    pieces: list[tuple[int, mx.array]]

    @property
    def nbytes(self) -> int:
        return int(sum(layer.nbytes for layer in self.cache) + sum(states.nbytes for _, states in self.pieces))

    def cut(self, length: int) -> None:
        before = self._rows
        self._forget_after(length)
        rewind(self.cache, before, self._rows)

    def copied(self, length: int) -> DFlashMemory:
        same = DFlashMemory([], list(self.runs), self.taken, list(self.pieces))
        same._forget_after(length)
        if same._rows:
            same.cache = copied(self.cache, same._rows, None)
        else:
            same.cache = [KVCache() for _ in self.cache]  # type: ignore[no-untyped-call]
        return same

    @property
    def _rows(self) -> int:
        return sum(end - start for start, end in self.runs)

    def _forget_after(self, length: int) -> None:
        self.runs = [(start, min(end, length)) for start, end in self.runs if start < length]
        self.pieces = [(start, states[: length - start]) for start, states in self.pieces if start < length]
        self.taken = min(self.taken, length)


class DFlashDrafter:
    """Keeps the keys and values of committed positions; those of a block are never kept."""

    method = "dflash"

    def __init__(
        self, target: Any, network: DFlashModel, *, shortlist: mx.array | None = None, window: int = 0, sink: int = 0
    ) -> None:
        """`window`: the draft sees so many of the newest positions, and `sink` at the beginning; 0: all there are."""
        args = network.args
        self.longest = args.block_size - 1
        self.taps = Taps(target, list(args.target_layer_ids), most=window or KEPT_WITHOUT_WINDOW, sink=sink)
        self._network = network
        self._ends = TargetEnds.of(target, shortlist)
        self._shortlist = cast("list[int]", shortlist.tolist()) if shortlist is not None else None
        self._dtype = network.fc.weight.dtype
        self._mask_tokens = [args.mask_token_id] * (args.block_size - 1)
        self._window, self._sink = window, sink
        self._last = 0
        self._length = 0
        self._taken = 0
        self._runs: list[tuple[int, int]] = []
        self._cache: list[Any] = []
        self._is_recalled = False

    def recall(self, memory: DraftMemory | None) -> None:
        self._is_recalled = True
        if isinstance(memory, DFlashMemory):
            self._cache, self._runs, self._taken = memory.cache, memory.runs, memory.taken
            self.taps.clear(memory.pieces)
        else:
            self._forget()
            self.taps.clear()

    def memory(self, length: int) -> DFlashMemory | None:
        held = DFlashMemory(self._cache, self._runs, self._taken, self.taps.joined())
        self._forget()
        self.taps.clear()
        held.cut(length)
        return held if held.nbytes else None

    def begin(self, tokens: list[int]) -> None:
        if not self._is_recalled:
            self._forget()
        self._is_recalled = False
        self._length = 0
        self.extend(tokens)

    def _forget(self) -> None:
        self._taken, self._runs = 0, []
        self._cache = [KVCache() for _ in self._network.layers]  # type: ignore[no-untyped-call]

    def extend(self, tokens: list[int]) -> None:
        self._length += len(tokens)
        self._last = tokens[-1] if tokens else self._last

    def propose(self, limit: int) -> Draft:
        """At most `limit` tokens; none while it is still taking in a long context."""
        if limit <= 0 or not self._length or not self._take_in_context():
            return Draft()
        hidden = self._denoised()[0, 1 : min(limit, self.longest) + 1]
        rows: list[int] = mx.argmax(self._ends.head(hidden.astype(self._ends.dtype)), axis=-1).tolist()  # type: ignore[assignment]
        tokens = rows if self._shortlist is None else [self._shortlist[row] for row in rows]
        return Draft(tuple(tokens), self.method)

    def _take_in_context(self) -> bool:
        """Turn new states into keys and values; False if there is more. The last token has no state of its own yet."""
        end = self._length - 1
        budget = CHUNK
        for position, states in self.taps.pieces(self._taken, end):
            if not budget:
                return False
            used = states[:budget]
            budget -= used.shape[0]
            self._taken = position + used.shape[0]
            self._runs.append((position, self._taken))
            for cache, (keys, values) in zip(
                self._cache, self._network.context(used[None].astype(self._dtype), position), strict=True
            ):
                cache.update_and_fetch(keys, values)
        if self._cache and budget < CHUNK:
            mx.async_eval([cache.state for cache in self._cache])  # type: ignore[no-untyped-call]
        is_done = budget > 0 or self._taken >= end
        self._taken = end if is_done else self._taken
        self.taps.release(self._taken)
        return is_done

    def _denoised(self) -> mx.array:
        block = self._ends.embed(mx.array([[self._last, *self._mask_tokens]])).astype(self._dtype)
        contexts = [self._visible(cache) for cache in self._cache]
        return self._network(block, contexts, self._length - 1)

    def _visible(self, cache: Any) -> KeysValues | None:
        """What the block may see of a layer's context."""
        if not cache.offset:
            return None
        keys, values, length = cache.state[0], cache.state[1], cache.offset
        keys, values = keys[..., :length, :], values[..., :length, :]
        if not self._window or length <= self._window + self._sink:
            return keys, values
        return _ends_of(keys, self._sink, self._window), _ends_of(values, self._sink, self._window)


def _ends_of(rows: mx.array, sink: int, window: int) -> mx.array:
    return mx.concatenate([rows[..., :sink, :], rows[..., -window:, :]], axis=2) if sink else rows[..., -window:, :]


def _rows(layer: Any, ids: mx.array) -> mx.array:
    """Rows of an embedding's or a head's weight, dequantized where it is quantized."""
    if "scales" not in layer:
        picked: mx.array = layer.weight[ids]
        return picked
    biases = layer.get("biases")
    return mx.dequantize(
        layer.weight[ids],
        layer.scales[ids],
        None if biases is None else biases[ids],
        group_size=layer.group_size,
        bits=layer.bits,
        mode=getattr(layer, "mode", "affine"),
    )
