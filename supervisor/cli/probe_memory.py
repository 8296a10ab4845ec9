"""What the last probe of each server found, kept on this machine until the next one."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import platformdirs

from supervisor.cli.terminal import warn
from supervisor.jsontext import decode, encode

FOLDER = "probes"


def recall(url: str, model: str) -> dict[str, Any] | None:
    """The last probe of this model at this server; None if there was none, or nothing readable is left of it."""
    try:
        document = decode(_file(url, model).read_bytes())
    except OSError:
        return None
    return document if document and document.get("samples") else None


def remember(document: dict[str, Any]) -> None:
    """Keep a probe in place of the last one. What cannot be written is warned of: the probe itself is done."""
    file = _file(document["url"], document["model"])
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(encode(document) + "\n")
    except OSError as trouble:
        warn(f"{file} cannot be written ({trouble.strerror}); the next probe will not know of this one")


def _file(url: str, model: str) -> Path:
    name = hashlib.sha256(f"{url}\n{model}".encode()).hexdigest()[:16]
    return platformdirs.user_state_path("freshlane") / FOLDER / f"{name}.json"
