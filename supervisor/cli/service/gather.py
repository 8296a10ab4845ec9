"""What a service is to be told of this installation: found out from lanes.yaml, the machine and this environment."""

from __future__ import annotations

import math
import os
import pwd
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from supervisor.cli.exits import UsageError
from supervisor.config import ConfigError, load
from supervisor.core.workers import stop_patience_s
from supervisor.settings import LaneSettings, Settings
from supervisor.shell.service import settle
from supervisor.units import NAME, ServiceTerms

CARRIED = ("PATH", "LANG", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
"""Of this environment. Where the service is another user's, PATH and LANG only: the rest is of this user."""
CARRIED_OF_OWN = ("HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "XDG_STATE_HOME", "XDG_CACHE_HOME")
REFUSAL_FILE = "service-refusal.json"
_READ_FROM_ENVIRONMENT = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asked for on the command line."""

    is_system: bool
    run_as: str | None = None
    names: tuple[str, ...] = ()
    """Of further variables to carry."""


def gather(config: Path, wanted: Wanted, *, is_macos: bool) -> ServiceTerms:
    """Raises UsageError for a lanes.yaml that would not run, an unknown user, or a variable that is not set."""
    account = _account(wanted)
    is_own = account is None or account.pw_uid == os.getuid()
    home = account.pw_dir if account else os.path.expanduser("~")  # noqa: PTH111 - HOME first, as the service has it
    if not is_own:
        _become_at_home(home)
    settings = _settings(config)
    logs = Path("/Library/Logs") if wanted.is_system else Path(home) / "Library/Logs"
    environment_file = Path("/etc") / NAME / "env" if wanted.is_system else Path(home) / ".config" / NAME / "env"
    return ServiceTerms(
        program=_program(),
        settle=(sys.executable, "-I", "-S", str(Path(settle.__file__).absolute())),
        config=str(config.absolute()),
        is_system=wanted.is_system,
        stop_s=stop_s(settings),
        is_local=settings.is_local,
        user=account.pw_name if account and account.pw_uid != 0 else None,
        home=home,
        environment=_environment(wanted, home, is_own=is_own),
        environment_file="" if is_macos else str(environment_file),
        log_folder=str(logs / NAME),
        refusal_file=str(settings.state_dir / REFUSAL_FILE),
    )


def stop_s(settings: Settings) -> int:
    """Seconds from SIGTERM to the end of the slowest lane, if none of it is cut short.

    A patience that grows with the worker's memory is taken for a worker that fills the machine.
    """
    memory_bytes = int(psutil.virtual_memory().total)
    owned = (lane for lane in settings.lanes.values() if not lane.is_attached)
    patience_s = max((_patience_s(lane, memory_bytes) for lane in owned), default=0.0)
    return math.ceil(settings.fleet.shutdown_timeout + patience_s)


def _patience_s(lane: LaneSettings, memory_bytes: int) -> float:
    """To save its prefix cache, and to end."""
    saving_s = lane.prefix.timeout if lane.prefix.handoff else 0.0
    return saving_s + stop_patience_s(lane.stop_timeout, memory_bytes)


def unknown_variables(config: Path, environment: Mapping[str, str]) -> list[str]:
    """Names that lanes.yaml takes from the environment, has no default for, and the service does not get."""
    named = _READ_FROM_ENVIRONMENT.findall(config.read_text(encoding="utf-8"))
    return sorted({name for name in named if name not in environment})


def _settings(config: Path) -> Settings:
    try:
        return load(config).settings
    except ConfigError as error:
        raise UsageError(f"{config} would not run; mend it first\n{error}") from None


def _account(wanted: Wanted) -> pwd.struct_passwd | None:
    """Whom a system service runs as: who is named, who called sudo, or root."""
    if not wanted.is_system:
        if wanted.run_as:
            raise UsageError("--run-as is for --system; a user's service runs as that user")
        return None
    name = wanted.run_as or os.environ.get("SUDO_USER") or "root"
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise UsageError(f"there is no user {name}; make one, or name another with --run-as") from None


def _become_at_home(home: str) -> None:
    """lanes.yaml is read as the service's user will read it: ~ and the default folders are that user's."""
    os.environ["HOME"] = home
    for name in CARRIED_OF_OWN:
        os.environ.pop(name, None)


def _program() -> tuple[str, ...]:
    beside = Path(sys.executable).with_name(NAME)
    return (str(beside),) if os.access(beside, os.X_OK) else (sys.executable, "-P", "-m", "supervisor")


def _environment(wanted: Wanted, home: str, *, is_own: bool) -> dict[str, str]:
    names: Sequence[str] = (*CARRIED, *(CARRIED_OF_OWN if is_own else ()))
    carried = {name: os.environ[name] for name in names if os.environ.get(name)}
    missing = [name for name in wanted.names if name not in os.environ]
    if missing:
        raise UsageError(f"--env {missing[0]}: is not set here; set it, then install")
    at_home = {"HOME": home} if wanted.is_system else {}
    return {**carried, **at_home, **{name: os.environ[name] for name in wanted.names}}
