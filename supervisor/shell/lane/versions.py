"""What a lane runs, as a person would name it: its model, and the versions of the packages that make its speed."""

from __future__ import annotations

import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from supervisor.settings import LaneSettings

OURS = ("freshlane", "mlx", "mlx-lm")
SERVERS = ("mlx", "mlx-lm", "mlx-vlm", "omlx", "dflash-mlx", "freetoken", "vllm", "vllm-mlx", "sglang", "torch")
"""Looked for beside the Python that runs a lane's command."""
SHEBANG_BYTES = 256


def what_runs(lane: LaneSettings) -> dict[str, Any]:
    """{model, versions}. Reads small files: call it off the loop."""
    return {"model": lane.served_model or lane.model, "versions": versions(lane)}


def versions(lane: LaneSettings) -> dict[str, str]:
    """By package; empty where the server is no Python program, or is not here."""
    if lane.is_ours:
        return _found(OURS, sys.path)
    program = shutil.which(lane.command[0]) if lane.command else None
    python = _python_of(Path(program)) if program else None
    return _found(SERVERS, [str(path) for path in _packages_of(python)]) if python else {}


def _python_of(program: Path) -> Path | None:
    """The Python that runs it: itself, or what its first line names."""
    if program.name.startswith("python"):
        return program
    try:
        with program.open("rb") as file:
            first = file.read(SHEBANG_BYTES).splitlines()[0]
    except (OSError, IndexError):
        return None
    named = Path(first.removeprefix(b"#!").decode(errors="replace").split(" ")[0].strip())
    return named if first.startswith(b"#!") and named.name.startswith("python") else None


def _packages_of(python: Path) -> list[Path]:
    """Where its environment keeps packages; a link to the system's Python is not followed."""
    return sorted((python.parent.parent / "lib").glob("python3.*/site-packages"))


def _found(names: tuple[str, ...], path: list[str]) -> dict[str, str]:
    found = {}
    for name in names:
        first = next(iter(metadata.distributions(name=name, path=path)), None)
        if first is not None:
            found[name] = first.version
    return found
