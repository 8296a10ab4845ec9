"""The recycle log as a file: one JSON object a line, appended durably, read from its end.

The file is opened by its path for each append, so that whoever deletes or renames it gets a new one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from supervisor.journal.durable import PRIVATE_FOLDER, opened, sync, sync_folder, write_all
from supervisor.jsontext import decode, encode

BLOCK_BYTES = 64 * 1024
LONGEST_LOOK_BACK_BYTES = 32 * 1024 * 1024
"""How far back one query reads; at 2 kB a record that is 16,000 recycles."""


def append_line(path: Path, document: Mapping[str, Any]) -> None:
    """Append one record and force it to the medium; after an OSError the file is as it was before."""
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    with opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND) as descriptor:
        size = os.fstat(descriptor).st_size
        is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        try:
            write_all(descriptor, (b"\n" if is_torn else b"") + encode(document).encode() + b"\n")
            sync(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, size)
            raise
    if size == 0:
        sync_folder(path.parent)


def read_newest(path: Path, limit: int, is_wanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """The last ``limit`` wanted records, newest last; ``<path>.1``, where rotation puts older ones, counts too."""
    found: list[dict[str, Any]] = []
    for part in (path, path.with_name(path.name + ".1")):
        for line in _lines_backwards(part):
            if len(found) == limit:
                break
            record = decode(line)
            if record is not None and is_wanted(record):
                found.append(record)
    return found[::-1]


def _lines_backwards(path: Path) -> Iterator[bytes]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        yield from _split_backwards(file)


def _split_backwards(file: BinaryIO) -> Iterator[bytes]:
    at = file.seek(0, os.SEEK_END)
    oldest = max(at - LONGEST_LOOK_BACK_BYTES, 0)
    rest = b""
    while at > oldest:
        start = max(at - BLOCK_BYTES, oldest)
        file.seek(start)
        first, *whole = (file.read(at - start) + rest).split(b"\n")
        yield from reversed(whole)
        rest, at = first, start
    yield rest
