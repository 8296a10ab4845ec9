"""lanes.yaml, and what it names of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from supervisor.cli.doctor.finding import Finding, bad, doubtful, good
from supervisor.cli.target import usual_places
from supervisor.config import ConfigError, Loaded, load, machine_warnings
from supervisor.core.words import plural

SUBJECT = "lanes.yaml"


def read_configuration(path: Path | None) -> tuple[Loaded | None, list[Finding]]:
    """The file, if it can be used, and what is to be said of it."""
    if path is None:
        looked = ", ".join(map(str, usual_places()))
        return None, [bad(SUBJECT, f"none found; looked for {looked}", "write one: freshlane init")]
    try:
        loaded = load(path)
    except ConfigError as error:
        return None, [
            bad(SUBJECT, str(problem), "mend that line; freshlane check shows it again") for problem in error.problems
        ]
    return loaded, list(_said(path, loaded))


def _said(path: Path, loaded: Loaded) -> Iterator[Finding]:
    yield good(SUBJECT, f"{path}: {plural(len(loaded.settings.lanes), 'lane')}")
    for missing in machine_warnings(loaded.settings):
        text, _, remedy = str(missing).rpartition("; ")
        yield bad(SUBJECT, text, remedy)
    for warning in loaded.warnings:
        text, _, remedy = str(warning).partition("; ")
        yield doubtful(SUBJECT, text, remedy or "see docs/config.md")
