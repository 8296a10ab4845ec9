"""The KV caches of finished requests, kept for the next request that begins the same way.

A cache is checked out for the request that extends it and back in when that ends; it is copied only where two requests
really share a beginning. An entry's key is as long as its KV by construction: the tokens are cut to what was fed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx

from engine.cache_states import Mark, copied, mark_of, nbytes_of, return_to
from engine.drafters import DraftMemory
from engine.radix import Key, RadixTree
from engine.rollback import can_rewind, rewind

TAIL_SHARE = 8
"""What an entry holds beyond a shared beginning may be given up if it is at most one part in so many of that beginning;
beyond, the beginning is copied and the entry stays."""
MOST_MARKS = 4
"""Of one entry: the first, which is where other conversations of the same system prompt begin, and the newest."""


@dataclass(eq=False)
class Entry:
    """A text's KV cache, which holds exactly `tokens`.

    `marks` are positions that a cache which cannot be rewound can be brought back to; `memory` is what a drafter knew.
    """

    tokens: Key
    cache: list[Any]
    marks: dict[int, Mark] = field(default_factory=dict)
    memory: DraftMemory | None = None

    def __post_init__(self) -> None:
        held = sum(layer.nbytes for layer in self.cache) + nbytes_of(list(self.marks.values()))
        self.nbytes = held + (self.memory.nbytes if self.memory else 0)
        self.can_rewind = can_rewind(self.cache)

    @property
    def stops(self) -> Iterator[Key]:
        """The beginnings that it can be brought back to, where not every one is; itself, first."""
        yield self.tokens
        yield from (self.tokens[:length] for length in self.marks if length < len(self.tokens))


@dataclass(frozen=True)
class Beginning:
    """What was found for a prompt: a cache of its own that holds `length` of its tokens, and what belongs to it."""

    length: int = 0
    cache: list[Any] | None = None
    marks: dict[int, Mark] = field(default_factory=dict)
    memory: DraftMemory | None = None


class PrefixCache:
    """Least recently used first out, by bytes."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        self._tree: RadixTree[Entry] = RadixTree()
        self._entries: OrderedDict[Entry, None] = OrderedDict()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, entry: Entry) -> bool:
        return entry in self._entries

    @property
    def budget(self) -> int:
        """Bytes that its entries may take."""
        return self._budget

    def take(self, prompt: list[int], *, is_shared: bool = False) -> Beginning:
        """The longest stored beginning of `prompt`, at most all but its last token, which is fed for its logits.

        `is_shared`: others begin the same way at the same time, so the entry stays.
        """
        wanted = tuple(prompt[:-1])
        length, entry = self._tree.longest(wanted)
        if entry is not None and not entry.can_rewind:
            length, entry = self._tree.deepest(wanted)
        if entry is None or not length:
            return Beginning()
        marks = {at: mark for at, mark in entry.marks.items() if at <= length}
        tail = len(entry.tokens) - length
        if is_shared or tail * TAIL_SHARE > length:
            self._entries.move_to_end(entry)
            memory = entry.memory.copied(length) if entry.memory else None
            mark = marks.get(length) if tail else mark_of(entry.cache)
            return Beginning(length, copied(entry.cache, length, mark), marks, memory)
        self._remove(entry)
        if length in marks:
            return_to(entry.cache, marks[length], length)
        else:
            rewind(entry.cache, len(entry.tokens), length)
        if entry.memory:
            entry.memory.cut(length)
        return Beginning(length, entry.cache, marks, entry.memory)

    def keep(
        self,
        tokens: list[int],
        fed: int,
        cache: list[Any],
        marks: dict[int, Mark] | None = None,
        memory: DraftMemory | None = None,
    ) -> None:
        """Store a finished request's cache, which holds `tokens[:fed]`."""
        key = tuple(tokens[:fed])
        if len(key) != fed or not fed:
            return
        entry = Entry(key, cache, _few(marks or {}), memory)
        if entry.nbytes > self._budget or self._is_held(entry):
            return
        mx.eval([layer.state for layer in cache])  # a row cut out of a batch holds the whole batch until it is computed
        self._add(entry)
        while self.nbytes > self._budget:
            self._remove(next(iter(self._entries)))

    def keep_behind(self, entry: Entry) -> bool:
        """Store what was used before all that is here, if there is room; says whether there was."""
        if entry.nbytes + self.nbytes > self._budget:
            return False
        if not self._is_held(entry):
            self._add(entry)
            self._entries.move_to_end(entry, last=False)
        return True

    def _add(self, entry: Entry) -> None:
        key = entry.tokens
        for length, other in list(self._tree.beginnings(key)):
            if length == len(other.tokens) and (entry.can_rewind or length == len(key)) and other in self._entries:
                self._remove(other)  # all of it is in the new one
        self._entries[entry] = None
        self.nbytes += entry.nbytes
        for stop in entry.stops:
            self._tree.add(stop, entry)

    def newest_first(self) -> Iterator[Entry]:
        """The entries as they are now, the one used last first."""
        yield from list(reversed(self._entries))

    def clear(self) -> None:
        """Let go of all."""
        while self._entries:
            self._remove(next(iter(self._entries)))

    def _is_held(self, entry: Entry) -> bool:
        """Whether a longer one holds all of it; that one then counts as used."""
        length, other = self._tree.longest(entry.tokens)
        if other is None or not other.can_rewind or length < len(entry.tokens) or len(other.tokens) == length:
            return False
        self._entries.move_to_end(other)
        return True

    def _remove(self, entry: Entry) -> None:
        del self._entries[entry]
        self.nbytes -= entry.nbytes
        for stop in entry.stops:
            self._tree.remove(stop, entry)


def note_mark(marks: dict[int, Mark], length: int, cache: list[Any]) -> None:
    """Note the state of a cache that holds `length` tokens, and let go of one in the middle if there are too many."""
    marks[length] = mark_of(cache)
    kept = _few(marks)
    marks.clear()
    marks.update(kept)


def _few(marks: dict[int, Mark]) -> dict[int, Mark]:
    positions = sorted(marks)
    chosen = positions if len(positions) <= MOST_MARKS else [positions[0], *positions[1 - MOST_MARKS :]]
    return {at: marks[at] for at in chosen}
