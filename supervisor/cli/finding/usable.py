"""Leaves out what lanes.yaml could not say: a model's folder may be named as no lane's key can be."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from supervisor.cli.finding.lanes_text import lanes_text
from supervisor.cli.finding.plan import LaneIdea
from supervisor.config import ConfigError
from supervisor.config.load import load_content


def usable(found: Iterable[LaneIdea]) -> list[LaneIdea]:
    """The ideas that pass ``freshlane check``, each on its own."""
    return [idea for idea in found if _passes(idea)]


def _passes(idea: LaneIdea) -> bool:
    try:
        load_content(lanes_text([idea]).encode(), "lanes.yaml", Path("/"), {})
    except (ConfigError, UnicodeEncodeError):
        return False
    return True
