"""Recycles under way: a file a lane, durable before its worker is stopped, gone when the record is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import structlog

from supervisor.journal.durable import remove_file, replace_file
from supervisor.jsontext import decode, encode

log = structlog.get_logger(__name__)


class Intents:
    """The folder ``state_dir/recycling``. An intent is a record as far as it is known, without an outcome."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, document: Mapping[str, Any]) -> None:
        replace_file(self._path(document["lane"]), encode(document).encode() + b"\n")

    def drop(self, lane: str, record_id: str) -> None:
        """Remove the lane's intent if it is the one of this record; a later one may have begun already."""
        path = self._path(lane)
        intent = _read(path)
        if intent is not None and intent["id"] == record_id:
            remove_file(path)

    def found(self) -> list[dict[str, Any]]:
        """The intents that an earlier daemon left; what is not one is set aside under another name."""
        intents = []
        for path in sorted(self._folder.glob("*.json")):
            intent = _read(path)
            if intent is None:
                log.warning("intent_unreadable", path=str(path), remedy="kept as .broken; nothing depends on it")
                path.replace(path.with_suffix(".broken"))
            else:
                intents.append(intent)
        return intents

    def _path(self, lane: str) -> Path:
        return self._folder / f"{quote(lane, safe='')}.json"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        intent = decode(path.read_bytes())
    except FileNotFoundError:
        return None
    is_whole = intent is not None and isinstance(intent.get("lane"), str) and isinstance(intent.get("id"), str)
    return intent if is_whole else None
