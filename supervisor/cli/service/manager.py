"""What every service manager is asked for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from supervisor.cli.service.tools import ServiceManagerError


@dataclass(frozen=True, slots=True)
class ServiceState:
    """How the manager sees the service."""

    is_installed: bool
    is_running: bool
    summary: str
    """One line: what state it is in, and with which pid."""


class ServiceManager(Protocol):
    """One manager, for one user or for the machine."""

    path: Path
    """Where its text lies."""

    def install(self, content: bytes, timeout_s: float) -> list[str]:
        """Put the service there and start it, or start it anew if its text has changed; what a person should know.

        A running one gets ``timeout_s`` to end. Raises ServiceManagerError.
        """

    def uninstall(self, timeout_s: float) -> bool:
        """Stop it within ``timeout_s`` and take it away; False if there was none. Raises ServiceManagerError."""

    def state(self) -> ServiceState:
        """As it is now."""


def read(path: Path) -> bytes | None:
    """What is installed; None if nothing is."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def write(path: Path, content: bytes, mode: int) -> None:
    """Put it there whole. Raises ServiceManagerError where this user may not."""
    try:
        _write(path, content, mode)
    except PermissionError:
        remedy = "a system service needs root (sudo freshlane service ...); or use --user"
        raise ServiceManagerError(f"{path} cannot be written by this user\n{remedy}") from None


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)  # whatever the umask says: a service manager must be able to read it
        file.write(content)
    unfinished.replace(path)
