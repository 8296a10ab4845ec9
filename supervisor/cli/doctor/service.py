"""The installed service: its environment is not that of a shell, which is why what works by hand may fail in it."""

from __future__ import annotations

import os
import plistlib
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.parsers.expat import ExpatError

from supervisor.cli.doctor.finding import Finding, bad, doubtful, good
from supervisor.cli.service.gather import unknown_variables
from supervisor.cli.service.installed import refusal_of
from supervisor.settings import Settings
from supervisor.units.launchd import LABEL
from supervisor.units.systemd import UNIT

SUBJECT = "service"


def service_files(home: Path) -> list[Path]:
    """Where a service of this user, or of the machine, would lie."""
    if sys.platform == "darwin":
        return [home / f"Library/LaunchAgents/{LABEL}.plist", Path(f"/Library/LaunchDaemons/{LABEL}.plist")]
    config_home = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return [config_home / "systemd/user" / UNIT, Path("/etc/systemd/system") / UNIT]


def service(files: list[Path], config: Path | None, settings: Settings | None) -> Iterator[Finding]:
    """Whether it is installed, and has what lanes.yaml takes from the environment and PATH."""
    installed = [file for file in files if file.is_file()]
    if not installed:
        yield good(SUBJECT, "not installed (freshlane service install)")
    for file in installed:
        try:
            content = file.read_bytes()
        except OSError as error:
            yield doubtful(SUBJECT, f"{file} cannot be read: {error.strerror}", "look at it as its owner, or with sudo")
            continue
        yield from _installed(file, content, config, settings)


def _installed(file: Path, content: bytes, config: Path | None, settings: Settings | None) -> Iterator[Finding]:
    yield good(SUBJECT, f"installed: {file}")
    refusal = refusal_of(content)
    if refusal is not None:
        yield bad(
            SUBJECT,
            f"it would not run ({refusal.time}): {refusal.reason}",
            "mend that, then: freshlane service install",
        )
    environment = environment_of(content)
    for name in unknown_variables(config, environment) if config is not None else ():
        text = f"lanes.yaml takes {name} from the environment, which the service does not have"
        yield doubtful(SUBJECT, text, f"freshlane service install --env {name}, or its EnvironmentFile")
    for lane in settings.lanes.values() if settings is not None else ():
        program = lane.command[0] if lane.command else ""
        path = lane.env.get("PATH", environment.get("PATH", os.defpath))
        if program and "/" not in program and "{" not in program and shutil.which(program, path=path) is None:
            text = f"{program} of lane {lane.name} is not on the service's PATH"
            yield bad(SUBJECT, text, "write its full path, or run freshlane service install from a shell that finds it")


def environment_of(content: bytes) -> dict[str, str]:
    """The variables that a unit or a plist gives the daemon."""
    if content.startswith(b"<?xml"):
        try:
            found = plistlib.loads(content).get("EnvironmentVariables", {})
        except (ExpatError, plistlib.InvalidFileException, ValueError):
            return {}
        return {str(name): str(value) for name, value in found.items()}
    pairs: dict[str, str] = {}
    for line in content.decode(errors="replace").splitlines():
        key, _, value = line.partition("=")
        if key == "Environment":
            for word in _words(value):
                name, _, text = word.partition("=")
                pairs[name] = text.replace("%%", "%")
    return pairs


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []
