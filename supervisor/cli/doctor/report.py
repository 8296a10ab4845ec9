"""One file for an issue: what the doctor found, what runs, and the newest recycles; nothing that tells whose it is."""

from __future__ import annotations

import contextlib
import getpass
import platform
import socket
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from supervisor.cli.commands.version import own_version
from supervisor.cli.doctor.anonymous import Anonymous
from supervisor.cli.doctor.finding import Finding
from supervisor.cli.doctor.machine import Machine
from supervisor.jsontext import decode
from supervisor.settings import Settings

NEWEST = 50
NOTE = (
    "Written by `freshlane doctor --report`. User, host, home, addresses, keys, headers, environments and reasons that "
    "people gave are left out. Names of lanes and models are not: read it before you post it."
)


def report(findings: Iterable[Finding], now: Machine, settings: Settings | None) -> dict[str, Any]:
    """The document, anonymised."""
    secrets = (*settings.keys_of_clients(), *settings.keys_of_admins()) if settings else ()
    document = {
        "freshlane": own_version(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": asdict(now),
        "findings": [asdict(finding) for finding in findings],
        "settings": settings.model_dump(mode="json", exclude_defaults=True) if settings else None,
        "recycles": newest_records(settings.state_dir / "recycle.jsonl") if settings else [],
    }
    return {"note": NOTE, **Anonymous(_own(), secrets).document(document)}


def newest_records(path: Path) -> list[Mapping[str, Any]]:
    """The last records of a recycle log; none where it cannot be read."""
    try:
        with path.open("rb") as file:
            lines = deque(file, maxlen=NEWEST)
    except OSError:
        return []
    return [record for line in lines if (record := decode(line)) is not None]


def _own() -> dict[str, str]:
    host = socket.gethostname()
    own = {str(Path.home()): "~", host: "<host>", host.partition(".")[0]: "<host>"}
    with contextlib.suppress(KeyError, OSError):  # a user without a name
        own[getpass.getuser()] = "<user>"
    return own
