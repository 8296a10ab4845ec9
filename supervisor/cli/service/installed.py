"""What an installed service says of itself, whatever lanes.yaml says by now."""

from __future__ import annotations

import contextlib
import plistlib
import re
from dataclasses import dataclass
from pathlib import Path
from xml.parsers.expat import ExpatError

from supervisor import jsontext
from supervisor.units.terms import REFUSAL_VARIABLE

_IN_UNIT = re.compile(rf'^Environment="?{REFUSAL_VARIABLE}=(.+?)"?$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the daemon would not run."""

    time: str
    exit_code: int
    reason: str


def refusal_of(content: bytes) -> Refusal | None:
    """The last refusal of the service with this unit or plist; None once it has run since."""
    path = _refusal_path(content)
    try:
        document = jsontext.decode(Path(path).read_bytes()) if path else None
        return Refusal(str(document["time"]), int(document["exit_code"]), str(document["reason"])) if document else None
    except (OSError, KeyError, TypeError, ValueError):
        return None


def forget_refusal(path: str) -> None:
    """An earlier one says nothing of a service that is about to be started."""
    with contextlib.suppress(OSError):
        Path(path).unlink(missing_ok=True)


def _refusal_path(content: bytes) -> str | None:
    if content.startswith(b"<?xml"):
        try:
            return str(plistlib.loads(content)["EnvironmentVariables"][REFUSAL_VARIABLE])
        except (ExpatError, plistlib.InvalidFileException, KeyError, TypeError, ValueError):
            return None
    found = _IN_UNIT.search(content.decode(errors="replace"))
    return found[1].replace("%%", "%").replace('\\"', '"').replace("\\\\", "\\") if found else None
