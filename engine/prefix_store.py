"""From files into KV caches and back, in slices short enough to lie between two steps; MLX, on the decode thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx

from engine.cache_states import Mark, return_to
from engine.errors import EngineError
from engine.plain import Sequence
from engine.prefix_cache import Entry, PrefixCache
from engine.prefix_disk import PrefixDisk
from engine.prefix_files import Block
from engine.rollback import can_rewind

WORTH_READING = 32
"""Tokens; so few more are fed as fast as they are read."""

NewCache = Callable[[], list[Any]]


def save(
    prefixes: PrefixCache, folder: Path, fingerprint: str, *, most_bytes: int, seconds: float
) -> Generator[None, None, int]:
    """Replace what `folder` holds; the newest texts first, until bytes or time are spent. Returns tokens saved.

    Raises EngineError when the folder cannot be written.
    """
    ends = time.monotonic() + seconds
    disk = PrefixDisk(folder, fingerprint, most_bytes, evicts=False)
    try:
        disk.open()
        disk.clear()
        while time.monotonic() < ends and (entry := _newest_unsaved(prefixes, disk)):
            for _ in disk.write(entry):
                yield
                if time.monotonic() >= ends or entry not in prefixes:
                    break
            if entry in prefixes and not disk.holds(entry):
                break  # neither bytes nor time are left
    except (OSError, RuntimeError) as error:
        raise EngineError(f"cannot save prompts to {folder}: {error}") from error
    return disk.written_tokens


def load(prefixes: PrefixCache, folder: Path, fingerprint: str, new_cache: NewCache) -> Generator[None, None, int]:
    """Take in what `save` left for this very model, the newest first; returns tokens restored."""
    disk = PrefixDisk(folder, fingerprint, prefixes.budget, evicts=False)
    try:
        disk.open()
    except OSError as error:
        raise EngineError(f"cannot load prompts from {folder}: {error}") from error
    restored: set[Block] = set()
    for leaf in disk.leaves():
        cache = new_cache()
        fed, marks = 0, dict[int, Mark]()
        for fed in _read_back(disk, leaf.chain, cache, 0, leaf.end, marks):  # noqa: B007 - the last of them
            yield
        fed = _settle(cache, fed, marks)
        if fed and not prefixes.keep_behind(Entry(leaf.tokens[:fed], cache, marks)):
            break
        restored |= {block for block in leaf.chain if block.end <= fed}
    return sum(len(block.own) for block in restored)


def restore(disk: PrefixDisk, sequence: Sequence, new_cache: NewCache) -> Iterator[int]:
    """Read more of a sequence's beginning than its cache holds, where there is more; yields tokens after each slice."""
    is_rewindable = can_rewind(sequence.cache)
    length, chain = disk.find(tuple(sequence.tokens[:-1]), can_rewind=is_rewindable)
    if length - sequence.fed < WORTH_READING:
        return
    if is_rewindable:
        for fed in _read_back(disk, chain, sequence.cache, sequence.fed, length, {}):
            before, sequence.fed = sequence.fed, fed
            yield fed - before
        return
    cache, fed, marks = new_cache(), 0, dict[int, Mark]()
    for fed in _read_back(disk, chain, cache, 0, length, marks):  # noqa: B007 - the last of them
        yield 0
    fed = _settle(cache, fed, marks)
    if fed > sequence.fed:
        before, sequence.fed = sequence.fed, fed
        sequence.cache = cache
        sequence.marks |= marks
        yield fed - before


def _newest_unsaved(prefixes: PrefixCache, disk: PrefixDisk) -> Entry | None:
    return next((entry for entry in prefixes.newest_first() if not disk.holds(entry)), None)


def _read_back(
    disk: PrefixDisk, chain: list[Block], cache: list[Any], fed: int, length: int, marks: dict[int, Mark]
) -> Iterator[int]:
    """Append rows of `chain` up to `length` to a cache that holds `fed` tokens; yields how many it then holds.

    A block that is no good ends it.
    """
    for block in chain:
        end = min(block.end, length)
        if end <= fed:
            continue
        content = disk.read(block)
        if content is None:
            return
        for number, (keys, values) in content.rows.items():
            first, last = fed - block.start, end - block.start
            cache[number].update_and_fetch(keys[..., first:last, :], values[..., first:last, :])
        mx.eval([cache[number].state for number in content.rows])
        if content.mark is not None:
            marks[end] = content.mark
        fed = end
        yield fed


def _settle(cache: list[Any], fed: int, marks: dict[int, Mark]) -> int:
    """Bring layers that cannot be rewound to the last mark; returns how many tokens the cache then holds."""
    if can_rewind(cache):
        return fed
    if not marks:
        return 0
    length = max(marks)
    return_to(cache, marks[length], length)
    return length
