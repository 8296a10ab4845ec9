"""Beginnings of texts in a folder: one budget, the least recently used first out; MLX, on the decode thread."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from engine import prefix_files
from engine.cache_states import mark_of
from engine.prefix_cache import Entry
from engine.prefix_files import SUFFIX, Block, Content, Found
from engine.radix import Key, RadixTree

MOST_TOKENS = 4096
"""Of a block, and fewer where they take more than MOST_BYTES: a stream waits while one is read or written."""
MOST_BYTES = 32 << 20


class PrefixDisk:
    """Blocks of texts. What is written once is not written again for another text that begins so.

    With `evicts`, room is made for what is written; otherwise nothing more is written when the budget is spent.
    """

    def __init__(self, folder: Path, fingerprint: str, budget_bytes: int, *, evicts: bool = True) -> None:
        self._folder = folder
        self._fingerprint = fingerprint
        self._budget = budget_bytes
        self._evicts = evicts
        self._tree: RadixTree[Block] = RadixTree()
        self._blocks: OrderedDict[Block, None] = OrderedDict()
        self.nbytes = 0
        self.written_tokens = 0

    def __len__(self) -> int:
        return len(self._blocks)

    def open(self) -> None:
        """Make the folder, take in what an earlier process left there, and delete what is no good. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for unfinished in self._folder.glob(f".*{SUFFIX}"):
            unfinished.unlink(missing_ok=True)
        files = list(self._folder.glob(f"*{SUFFIX}"))
        found = [block for file in files if (block := prefix_files.look_at(file, self._fingerprint))]
        after: dict[str, list[Found]] = {}
        for one in sorted(found, key=lambda one: one.used):
            after.setdefault(one.parent, []).append(one)
        self._take_in(None, after)
        good = {one.file for one in self._blocks}
        for file in files:
            if file not in good:
                file.unlink(missing_ok=True)
        when = {one.file: one.used for one in found}
        for known in sorted(self._blocks, key=lambda one: when[one.file]):
            self._blocks.move_to_end(known)
        self._make_room(0)

    def _take_in(self, parent: Block | None, after: dict[str, list[Found]]) -> None:
        waiting = [parent]
        while waiting:
            parent = waiting.pop()
            for one in after.pop(parent.name if parent else "", []):
                if one.name == prefix_files.name_of(parent, one.own, self._fingerprint):
                    block = Block(one.name, one.file, parent, one.own, one.is_marked, one.nbytes)
                    self._add(block)
                    waiting.append(block)

    def clear(self) -> None:
        """Delete all."""
        for block in list(self._blocks):
            self._forget(block)

    def find(self, tokens: Key, *, can_rewind: bool) -> tuple[int, list[Block]]:
        """The longest beginning of `tokens` that can be read back, and the blocks that hold it."""
        if can_rewind:
            length, block = self._tree.longest(tokens)
            chain = [one for one in block.chain if one.start < length] if block else []
            return length, chain
        marked = [(length, block) for length, block in self._tree.beginnings(tokens) if block.is_marked]
        if not marked:
            return 0, []
        length, block = marked[-1]
        return length, block.chain

    def leaves(self) -> list[Block]:
        """The last block of each text, in the order in which they were used or written."""
        return [block for block in self._blocks if not block.children]

    def read(self, block: Block) -> Content | None:
        """What a block holds; None if it is damaged: then it is deleted with all that goes on from it."""
        content = prefix_files.read(block) if block in self._blocks else None
        if content is None:
            self._forget_all_from(block)
            return None
        self._touch(block)
        return content

    def write(self, entry: Entry) -> Iterator[int]:
        """Write what is not there yet of an entry, one block at a time; yields the tokens of each.

        Between two, the entry may change: then the rest must not be asked for. Raises OSError or RuntimeError.
        """
        if not prefix_files.can_be_stored(entry.cache):
            return
        _, block = self._tree.deepest(entry.tokens)
        while (at := block.end if block else 0) < len(entry.tokens):
            end = self._end_of_block(entry, at)
            own = entry.tokens[at:end]
            mark = None
            if not entry.can_rewind:
                mark = mark_of(entry.cache) if end == len(entry.tokens) else entry.marks.get(end)
            if not self._make_room(entry.nbytes * len(own) // len(entry.tokens), keeping=block):
                return
            block = prefix_files.write(self._folder, block, own, entry.cache, mark, self._fingerprint)
            self._add(block)
            self.written_tokens += len(own)
            yield len(own)

    def holds(self, entry: Entry) -> bool:
        """Whether all of it is here."""
        if entry.can_rewind:
            return self._tree.longest(entry.tokens)[0] == len(entry.tokens)
        length, block = self._tree.deepest(entry.tokens)
        return length == len(entry.tokens) and block is not None and block.is_marked

    def _end_of_block(self, entry: Entry, start: int) -> int:
        each: int = max(1, entry.nbytes // len(entry.tokens))
        end = min(start + min(MOST_TOKENS, max(1, MOST_BYTES // each)), len(entry.tokens))
        return min([end, *(at for at in entry.marks if start < at < end)])

    def _make_room(self, nbytes: int, keeping: Block | None = None) -> bool:
        """Whether so much more may be written."""
        kept = set(keeping.chain) if keeping else set()
        while self.nbytes + nbytes > self._budget and self._evicts:
            oldest = next((block for block in self._blocks if not block.children and block not in kept), None)
            if oldest is None:
                break
            self._forget(oldest)
        return self.nbytes + nbytes <= self._budget

    def _touch(self, block: Block) -> None:
        """Used: it, and what it goes on from, go last."""
        for one in reversed(block.chain):
            self._blocks.move_to_end(one)
        with contextlib.suppress(OSError):
            os.utime(block.file)

    def _add(self, block: Block) -> None:
        self._blocks[block] = None
        self._tree.add(block.tokens, block)
        self.nbytes += block.nbytes
        if block.parent:
            block.parent.children += 1

    def _forget(self, block: Block) -> None:
        del self._blocks[block]
        self._tree.remove(block.tokens, block)
        self.nbytes -= block.nbytes
        if block.parent:
            block.parent.children -= 1
        with contextlib.suppress(OSError):
            block.file.unlink(missing_ok=True)

    def _forget_all_from(self, block: Block) -> None:
        for one in [other for other in self._blocks if block in other.chain]:
            self._forget(one)
