"""The admin token: a secret in state_dir that only the daemon's own user can read.

With it the commands on the same machine may use /api without any key in lanes.yaml.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

FILE_NAME = "admin-token"
PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO
SHORTEST = 20
LONGEST_BYTES = 1024


def token_path(state_dir: Path) -> Path:
    """Where the token lies."""
    return state_dir / FILE_NAME


def read_token(state_dir: Path) -> str | None:
    """The token of the daemon that uses ``state_dir``; None if there is none that this user may read."""
    try:
        with token_path(state_dir).open("rb") as file:
            token = file.read(LONGEST_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return token if len(token) >= SHORTEST else None


def ensure_token(state_dir: Path) -> str:
    """The token, made anew if there is none or if others could read it; a kept one outlives daemon restarts.

    Where it cannot be written the daemon runs all the same: the commands then need a key from ``admin_keys``.
    """
    path = token_path(state_dir)
    kept = read_token(state_dir)
    if kept is not None and _is_private(path):
        return kept
    if kept is not None:
        log.warning("admin_token_was_readable", path=str(path), remedy="a new one is made")
    token = secrets.token_urlsafe(32)
    try:
        _write(path, token)
    except OSError as error:
        log.warning(
            "admin_token_unsaved", path=str(path), error=str(error), remedy="give the commands a key of admin_keys"
        )
    return token


def _is_private(path: Path) -> bool:
    try:
        about = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & OPEN_TO_OTHERS


def _write(path: Path, token: str) -> None:
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.new")
    with contextlib.suppress(FileNotFoundError):
        unfinished.unlink()
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        os.write(descriptor, token.encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    unfinished.replace(path)
