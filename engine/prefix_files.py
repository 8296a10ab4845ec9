"""A run of a text's tokens in a file: what the layers keep for them, and, it may be, the mark at their end.

A file says which model it is of, which tokens, and after which other file. Its name carries a checksum of its content.
A file that is cut off, damaged, of something else, or of another model is no block.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import KVCache

from engine.cache_states import Mark, rows
from engine.radix import Key

SUFFIX = ".safetensors"
LONGEST_HEADER = 1 << 24


@dataclass(eq=False)
class Block:
    """Tokens `start` to `end` of a text; those before are its parent's. `is_marked`: there is a mark at its end."""

    name: str
    file: Path
    parent: Block | None
    own: Key
    is_marked: bool
    nbytes: int
    children: int = 0
    start: int = field(init=False)

    def __post_init__(self) -> None:
        self.start = self.parent.end if self.parent else 0

    @property
    def end(self) -> int:
        return self.start + len(self.own)

    @property
    def tokens(self) -> Key:
        """Of the whole text up to its end."""
        return (self.parent.tokens if self.parent else ()) + self.own

    @property
    def chain(self) -> list[Block]:
        """It, after all that it goes on from."""
        return [*(self.parent.chain if self.parent else ()), self]


@dataclass(frozen=True)
class Content:
    """What a block holds: keys and values of layers, by number, and the mark at its end."""

    rows: dict[int, tuple[mx.array, mx.array]]
    mark: Mark | None


def can_be_stored(cache: list[Any]) -> bool:
    """Whether what can be rewound is of the plain kind, whose rows are keys and values."""
    return not any(hasattr(layer, "bits") for layer in cache)


def name_of(parent: Block | None, own: Key, fingerprint: str) -> str:
    """The same for the same text and model, whoever writes it."""
    before = parent.name if parent else fingerprint
    return hashlib.sha256(f"{before} {own}".encode()).hexdigest()[:32]


def write(folder: Path, parent: Block | None, own: Key, cache: list[Any], mark: Mark | None, fingerprint: str) -> Block:
    """Write the tokens `own` of a cache that holds them after those of `parent`. Raises OSError or RuntimeError."""
    start = parent.end if parent else 0
    arrays = {}
    for number, layer in enumerate(cache):
        if type(layer) is KVCache:
            arrays[f"{number}.keys"], arrays[f"{number}.values"] = map(
                mx.contiguous, rows(layer, start, start + len(own))
            )
    skeleton = None if mark is None else _packed(mark, arrays)
    name = name_of(parent, own, fingerprint)
    metadata = {
        "model": fingerprint,
        "parent": parent.name if parent else "",
        "tokens": json.dumps(own),
        "mark": json.dumps(skeleton),
    }
    unfinished = folder / f".{name}{SUFFIX}"
    try:
        mx.save_safetensors(str(unfinished), arrays or {"nothing": mx.zeros(1)}, metadata)
        unfinished.chmod(0o600)
        content = unfinished.read_bytes()
        file = unfinished.rename(folder / f"{name}-{zlib.crc32(content):08x}{SUFFIX}")
    finally:
        unfinished.unlink(missing_ok=True)
    return Block(name, file, parent, own, mark is not None, len(content))


def read(block: Block) -> Content | None:
    """What the file holds; None if it is not the one that was written."""
    try:
        content = block.file.read_bytes()
        if f"{zlib.crc32(content):08x}" != block.file.stem.rpartition("-")[2]:
            return None
        loaded: Any = mx.load(io.BytesIO(content), format="safetensors", return_metadata=True)
        arrays, metadata = loaded
        if tuple(json.loads(metadata["tokens"])) != block.own:
            return None
        skeleton = json.loads(metadata["mark"])
        mark = None if skeleton is None else tuple(_unpacked(skeleton, arrays))
        layers = sorted({int(name.split(".")[0]) for name in arrays if name.endswith(".keys")})
        held = {number: (arrays[f"{number}.keys"], arrays[f"{number}.values"]) for number in layers}
        mx.eval(arrays)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return None
    return Content(held, mark)


@dataclass(frozen=True)
class Found:
    """A file as its header tells it; whether its parent is there, too, is another matter."""

    file: Path
    name: str
    parent: str
    own: Key
    is_marked: bool
    nbytes: int
    used: float


def look_at(file: Path, fingerprint: str) -> Found | None:
    """Read a header; None for what is no whole block of this model."""
    try:
        status = file.stat()
        with file.open("rb") as opened:
            (length,) = struct.unpack("<Q", opened.read(8))
            header = json.loads(opened.read(min(length, LONGEST_HEADER)))
        metadata = header.pop("__metadata__")
        whole = 8 + length + max(entry["data_offsets"][1] for entry in header.values())
        if metadata["model"] != fingerprint or status.st_size != whole:
            return None
        own = tuple(int(token) for token in json.loads(metadata["tokens"]))
        name, is_marked = file.stem.rpartition("-")[0], metadata["mark"] != "null"
        return Found(file, name, metadata["parent"], own, is_marked, status.st_size, status.st_mtime)
    except (OSError, struct.error, ValueError, KeyError, TypeError, AttributeError):
        return None


def _packed(state: Any, arrays: dict[str, mx.array]) -> Any:
    """JSON that says how `state` is built; its arrays go into `arrays`."""
    if isinstance(state, mx.array):
        name = f"mark.{len(arrays)}"
        arrays[name] = mx.contiguous(state)
        return {"array": name}
    if isinstance(state, tuple | list):
        return [_packed(part, arrays) for part in state]
    return state


def _unpacked(skeleton: Any, arrays: dict[str, mx.array]) -> Any:
    if isinstance(skeleton, dict):
        return arrays[skeleton["array"]]
    if isinstance(skeleton, list):
        return [_unpacked(part, arrays) for part in skeleton]
    return skeleton
