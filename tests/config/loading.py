"""Loads a text as lanes.yaml, or returns its problems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from supervisor.config import ConfigError, Loaded, Problem
from supervisor.config.load import load_content

FOLDER = Path("/srv/freshlane")


def loaded(text: str, environment: Mapping[str, str] | None = None, folder: Path = FOLDER) -> Loaded:
    """The loaded text; raises ConfigError."""
    return load_content(dedent(text).encode(), "lanes.yaml", folder, environment or {})


def problems(text: str | bytes, environment: Mapping[str, str] | None = None, folder: Path = FOLDER) -> list[Problem]:
    """All problems of the text; empty if there are none."""
    content = text if isinstance(text, bytes) else dedent(text).encode()
    try:
        load_content(content, "lanes.yaml", folder, environment or {})
    except ConfigError as error:
        return error.problems
    return []
