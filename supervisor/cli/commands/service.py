"""``freshlane service install``, ``uninstall``, ``status`` and ``print``."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from supervisor.cli.exits import NotReachableError, UsageError
from supervisor.cli.options import ConfigOption
from supervisor.cli.service.gather import Wanted, gather, unknown_variables
from supervisor.cli.service.installed import forget_refusal, refusal_of
from supervisor.cli.service.launchd import Launchd
from supervisor.cli.service.manager import ServiceManager, read
from supervisor.cli.service.systemd import Systemd
from supervisor.cli.service.tools import ServiceManagerError, until
from supervisor.cli.target import require_config
from supervisor.cli.terminal import print_bytes, say, warn
from supervisor.units import ServiceTerms, launchd_plist, systemd_unit

LONGEST_STOP_S = 3600.0
"""To take a service away, whatever lanes.yaml says by now; the manager's own deadline comes first."""
STARTED_S = 10.0
"""Where a manager does not wait until the daemon is up."""


class Kind(StrEnum):
    """Which manager."""

    SYSTEMD = "systemd"
    LAUNCHD = "launchd"


ScopeOption = Annotated[
    bool | None,
    typer.Option(
        "--system/--user",
        show_default=False,
        help="For the machine, from boot; or for this user. Default: --user, as root --system.",
    ),
]
KindOption = Annotated[
    Kind | None,
    typer.Option("--manager", show_default=False, help="Default: launchd on macOS, systemd elsewhere."),
]
RunAsOption = Annotated[
    str | None,
    typer.Option(
        "--run-as",
        metavar="USER",
        show_default=False,
        help="Whom a system service runs as. Default: who called sudo, else root.",
    ),
]
EnvOption = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="NAME", show_default=False, help="Carry this variable too. May be repeated."),
]

service = typer.Typer(
    name="service",
    help="Run the daemon as a service of systemd or launchd.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)


@service.command()
def install(
    *,
    system: ScopeOption = None,
    manager: KindOption = None,
    run_as: RunAsOption = None,
    env: EnvOption = None,
    config: ConfigOption = None,
) -> None:
    """Install and start the service; again after a change of lanes.yaml's timeouts, or to carry other variables."""
    kind, is_system = _kind(manager), _is_system(system)
    path = require_config(config).absolute()
    terms = gather(path, Wanted(is_system, run_as, tuple(env or ())), is_macos=kind is Kind.LAUNCHD)
    _warn_of_unknown_variables(path, terms)
    its = _manager(kind, is_system=is_system)
    if kind is Kind.LAUNCHD:
        _make_log_folder(terms)
    forget_refusal(terms.refusal_file)
    text = _text(kind, terms)
    try:
        advice = its.install(text, terms.timeout_s)
    except ServiceManagerError as error:
        raise ServiceManagerError("\n".join([*_reason(text), str(error)])) from None
    until(lambda: its.state().is_running or bool(_reason(text)), STARTED_S)
    say(f"installed {its.path}", its.state().summary)
    for line in (*_reason(text), *advice):
        warn(line)


@service.command()
def uninstall(*, system: ScopeOption = None, manager: KindOption = None) -> None:
    """Let the daemon drain and stop, and take the service away. State, logs and lanes.yaml stay."""
    its = _manager(_kind(manager), is_system=_is_system(system))
    say(f"removed {its.path}" if its.uninstall(LONGEST_STOP_S) else f"there is no service: {its.path}")


@service.command()
def status(*, system: ScopeOption = None, manager: KindOption = None) -> None:
    """Show how the service manager sees the daemon, and why it would not run.

    Exits with 3 if it does not run.
    """
    its = _manager(_kind(manager), is_system=_is_system(system))
    state = its.state()
    content = read(its.path)
    say(f"{its.path}: {state.summary}" if state.is_installed else f"{its.path}: not installed")
    for line in _reason(content) if content else ():
        warn(line)
    if not state.is_running:
        raise NotReachableError("the service does not run; start it: freshlane service install")


@service.command(name="print")
def print_text(
    *,
    system: ScopeOption = None,
    manager: KindOption = None,
    run_as: RunAsOption = None,
    env: EnvOption = None,
    config: ConfigOption = None,
) -> None:
    """Print the unit or plist that `install` would write."""
    kind = _kind(manager)
    wanted = Wanted(_is_system(system), run_as, tuple(env or ()))
    print_bytes(_text(kind, gather(require_config(config), wanted, is_macos=kind is Kind.LAUNCHD)))


def _reason(content: bytes) -> list[str]:
    """Why the daemon of this unit or plist would not run, if so."""
    found = refusal_of(content)
    return [f"{found.time}: would not run (exit code {found.exit_code}): {found.reason}"] if found else []


def _kind(given: Kind | None) -> Kind:
    return given or (Kind.LAUNCHD if sys.platform == "darwin" else Kind.SYSTEMD)


def _is_system(given: bool | None) -> bool:
    return os.geteuid() == 0 if given is None else given


def _manager(kind: Kind, *, is_system: bool) -> ServiceManager:
    if kind is Kind.SYSTEMD:
        return Systemd(is_system=is_system)
    if os.geteuid() == 0 and not is_system:
        raise UsageError("root has no agents of its own; install as the user, or use --system")
    return Launchd(is_system=is_system, uid=os.getuid(), home=Path.home())


def _text(kind: Kind, terms: ServiceTerms) -> bytes:
    return systemd_unit(terms).encode() if kind is Kind.SYSTEMD else launchd_plist(terms)


def _warn_of_unknown_variables(config: Path, terms: ServiceTerms) -> None:
    for name in unknown_variables(config, terms.environment):
        where = f"write it into {terms.environment_file} (mode 0600), or " if terms.environment_file else ""
        warn(f"lanes.yaml takes {name} from the environment, which the service does not have: {where}use --env {name}")


def _make_log_folder(terms: ServiceTerms) -> None:
    folder = Path(terms.log_folder)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if terms.user and os.geteuid() == 0:
        shutil.chown(folder, terms.user)
