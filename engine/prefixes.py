"""The beginnings of texts that this engine keeps, in memory and on disk; MLX, on the decode thread."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

from engine import prefix_store
from engine.cache_states import Mark
from engine.drafters import DraftMemory
from engine.plain import Sequence
from engine.prefix_cache import Beginning, Entry, PrefixCache
from engine.prefix_disk import PrefixDisk
from engine.prefix_store import NewCache

FULL_SHARE = 0.75
"""Of the memory: what is beyond it, counted from the newest entry, is soon to leave. It is written while idle."""
LOCK = "lock"
log = logging.getLogger("engine")


class Prefixes:
    """Memory first; what leaves it is written to `folder` while nobody waits, and read back for a prompt that needs it.

    The folder belongs to one process at a time. Another one goes without until it is free.
    """

    def __init__(
        self, ram_bytes: int, new_cache: NewCache, fingerprint: str, folder: Path | None = None, disk_bytes: int = 0
    ) -> None:
        self.memory = PrefixCache(ram_bytes)
        self._new_cache = new_cache
        self._fingerprint = fingerprint
        self._folder = folder if disk_bytes else None
        self._disk_bytes = disk_bytes
        self._disk: PrefixDisk | None = None
        self._lock: int | None = None
        self._spilling: Iterator[int] | None = None
        self._tried: WeakSet[Entry] = WeakSet()
        self._open_disk()

    def take(self, prompt: list[int], *, is_shared: bool = False) -> Beginning:
        """See PrefixCache.take."""
        return self.memory.take(prompt, is_shared=is_shared)

    def keep(
        self,
        tokens: list[int],
        fed: int,
        cache: list[Any],
        marks: dict[int, Mark] | None = None,
        memory: DraftMemory | None = None,
    ) -> None:
        """See PrefixCache.keep."""
        self.memory.keep(tokens, fed, cache, marks, memory)

    def restore(self, sequence: Sequence) -> Iterator[int]:
        """Read from disk what it has of a sequence's beginning and memory has not; yields tokens after each slice."""
        return prefix_store.restore(self._disk, sequence, self._new_cache) if self._disk else iter(())

    def spill(self) -> bool:
        """Write one slice of what is soon to leave memory; False when there is nothing to write."""
        self._open_disk()
        disk = self._disk
        if disk is None:
            return False
        try:
            if self._spilling is None:
                entry = self._next_to_spill()
                if entry is None:
                    return False
                self._tried.add(entry)
                self._spilling = self._written(disk, entry)
            if next(self._spilling, None) is None:
                self._spilling = None
        except (OSError, RuntimeError) as error:
            log.warning("cannot write prompts to %s, going on without: %s", self._folder, error)
            self._disk = self._folder = self._spilling = None
        return True

    def save(self, folder: Path, most_bytes: int, seconds: float) -> Generator[None, None, int]:
        """See engine.prefix_store.save."""
        return prefix_store.save(self.memory, folder, self._fingerprint, most_bytes=most_bytes, seconds=seconds)

    def load(self, folder: Path) -> Generator[None, None, int]:
        """See engine.prefix_store.load."""
        return prefix_store.load(self.memory, folder, self._fingerprint, self._new_cache)

    def clear(self) -> None:
        """Let go of all, on disk too."""
        self._spilling = None
        self.memory.clear()
        if self._disk:
            self._disk.clear()

    def close(self) -> None:
        """Leave the folder to another process."""
        if self._lock is not None:
            os.close(self._lock)
        self._disk = self._lock = None
        self._folder = None

    def stats(self) -> dict[str, int]:
        """Entries and bytes in memory, blocks and bytes on disk."""
        disk = self._disk
        return {
            "entries": len(self.memory),
            "bytes": self.memory.nbytes,
            "disk_blocks": len(disk) if disk else 0,
            "disk_bytes": disk.nbytes if disk else 0,
        }

    def _written(self, disk: PrefixDisk, entry: Entry) -> Iterator[int]:
        """Write an entry, unless it is taken out meanwhile: then it changes."""
        for tokens in disk.write(entry):
            yield tokens
            if entry not in self.memory:
                return

    def _next_to_spill(self) -> Entry | None:
        """The newest of those that are soon to leave."""
        held = 0
        for entry in self.memory.newest_first():
            held += entry.nbytes
            if held > FULL_SHARE * self.memory.budget and entry not in self._tried:
                return entry
        return None

    def _open_disk(self) -> None:
        if self._disk or self._folder is None:
            return
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                return
            disk = PrefixDisk(self._folder, self._fingerprint, self._disk_bytes)
            disk.open()
        except OSError as error:
            log.warning("cannot keep prompts in %s, going on without: %s", self._folder, error)
            self._folder = None
            return
        self._lock, self._disk = lock, disk
