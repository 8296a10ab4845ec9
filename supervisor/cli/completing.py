"""What a shell completes: verbs and options come by themselves, lanes from lanes.yaml."""

from __future__ import annotations

import os

from supervisor.cli.target import usual_places

VARIABLE = "_FRESHLANE_COMPLETE"
"""Set by the shell's completion script; its value says what is asked."""


def get_ready() -> None:
    """Let typer answer a shell, if one asks."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]  # noqa: PLC0415 - rarely needed

        completion_init()


def lane_names(incomplete: str) -> list[str]:
    """The lanes that begin so, of the lanes.yaml that lies in a usual place; a broken one has none."""
    import yaml  # noqa: PLC0415 - only a shell that completes pays

    try:
        path = next(place for place in usual_places() if place.is_file())
        names = list(yaml.safe_load(path.read_text(encoding="utf-8"))["lanes"])
    except (StopIteration, OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return []
    return [name for name in names if isinstance(name, str) and name.startswith(incomplete)]
