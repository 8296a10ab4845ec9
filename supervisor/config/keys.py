"""Which keys there are, where, and which of them a mistyped one was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, get_args

from pydantic.fields import FieldInfo

from supervisor.config.problems import KeyPath
from supervisor.settings import LaneSettings, TopSettings
from supervisor.settings.block import Block

TOP_BLOCKS = ("defaults", "lanes")
MOST_LISTED = 12


def fields_of(block: type[Block]) -> dict[str, FieldInfo]:
    """The keys that may be written in ``block``. A lane's name is its key in `lanes`, never written inside."""
    return {name: field for name, field in block.model_fields.items() if (block, name) != (LaneSettings, "name")}


def block_of(field: FieldInfo) -> type[Block] | None:
    """The block that ``field`` holds; None for a plain value."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Block) else None


def unknown_key_text(path: KeyPath) -> str:
    """What to say of an unknown key at ``path``, with the key that was probably meant."""
    key, parent = str(path[-1]), path[:-1]
    meant = _nearest(key, parent)
    if meant is not None:
        return f'unknown key; did you mean "{meant}"?'
    if parent and parent[0] in TOP_BLOCKS and key in fields_of(TopSettings):
        return "unknown key here; it belongs at the top of the file"
    if not parent and key in fields_of(LaneSettings):
        return "unknown key here; it belongs into a lane or into `defaults`"
    known = sorted(_names_in(parent))
    return "unknown key; " + (f"known here: {', '.join(known)}" if len(known) <= MOST_LISTED else "see docs/config.md")


def meant_word(written: object, words: list[str]) -> str | None:
    """The one of ``words`` that ``written`` was probably meant to be."""
    close = difflib.get_close_matches(written, words, 1, 0.6) if isinstance(written, str) else []
    return close[0] if close else None


def _nearest(key: str, parent: KeyPath) -> str | None:
    """The key of this block or, if another block of the lane or the daemon has just this one, that one's path."""
    near = meant_word(key.lower().replace("-", "_"), _names_in(parent))
    if near is not None:
        return near
    elsewhere = _leaves(LaneSettings if parent and parent[0] in TOP_BLOCKS else TopSettings)
    return next((dotted for dotted in elsewhere if dotted.endswith(f".{key}")), None)


def _names_in(parent: KeyPath) -> list[str]:
    block: type[Block] | None = TopSettings
    rest = list(parent)
    if rest and rest[0] in TOP_BLOCKS:
        block, rest = LaneSettings, rest[2:] if rest[0] == "lanes" else rest[1:]
    for part in rest:
        field = fields_of(block).get(str(part)) if block else None
        block = block_of(field) if field else None
    names = list(fields_of(block)) if block else []
    return names if parent else [*names, *TOP_BLOCKS]


def _leaves(block: type[Block], prefix: str = "") -> Iterator[str]:
    for name, field in fields_of(block).items():
        inner = block_of(field)
        yield prefix + name
        if inner is not None:
            yield from _leaves(inner, f"{prefix}{name}.")


def literal_words(field: FieldInfo) -> list[str]:
    """The words that ``field`` allows; empty if it is no choice."""
    return [word for word in _flattened(field.annotation) if isinstance(word, str)]


def _flattened(kind: Any) -> Iterator[Any]:
    for part in get_args(kind):
        yield part
        yield from _flattened(part)
