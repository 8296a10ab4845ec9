"""The systemd unit, for a user's own manager or for the machine's."""

from __future__ import annotations

from collections.abc import Sequence

from supervisor.units.terms import NAME, OPEN_FILES, ServiceTerms

UNIT = f"{NAME}.service"
WATCHDOG_S = 30
RESTART_S = 5
START_S = 90

HARDENING = (
    ("UMask", "0077", "records, logs and tokens are the daemon's user's alone"),
    ("LimitCORE", "0", "a core file of a worker would fill the disk and hold prompts"),
)
"""Directive, value and why: what leaves JIT compilers, model caches and GPUs working. docs/service.md has the rest."""
HARDENING_OF_SYSTEM = (
    ("ProtectSystem", "full", "/usr, /boot and /etc are read-only; models, caches and state may lie anywhere else"),
    ("ProtectControlGroups", "yes", "nobody here has to change control groups"),
)
"""These need a mount namespace, which a user's own manager may not make."""


def systemd_unit(terms: ServiceTerms) -> str:
    """The text of the unit file."""
    sections = {"Unit": _unit(terms), "Service": _service(terms), "Install": _install(terms)}
    return "\n\n".join(f"[{name}]\n" + "\n".join(lines) for name, lines in sections.items()) + "\n"


def _unit(terms: ServiceTerms) -> list[str]:
    lines = [
        "# Written by `freshlane service install`; make changes in a drop-in: systemctl edit freshlane",
        "Description=freshlane: keeps local LLM servers at the speed of a fresh process",
    ]
    if terms.is_system and not terms.is_local:
        lines += ["Wants=network-online.target", "After=network-online.target"]
    elif terms.is_system:
        lines += ["After=network.target"]
    return [*lines, "# Never give up: RestartSec keeps the pace.", "StartLimitIntervalSec=0"]


def _service(terms: ServiceTerms) -> list[str]:
    run = command_line(terms.command("run", "--under", "systemd"))
    return [
        "Type=notify",
        "NotifyAccess=main",
        f"ExecStart={run}",
        f"ExecReload={command_line(terms.command('reload'))}",
        *_identity(terms),
        "",
        "# Starting and draining ask for more time themselves (EXTEND_TIMEOUT_USEC).",
        f"TimeoutStartSec={START_S}",
        "# fleet.shutdown_timeout, the longest patience with a worker, and a margin.",
        f"TimeoutStopSec={terms.timeout_s}",
        "",
        "# On stop only the daemon gets SIGTERM: it lets requests finish, then ends its workers. When it is gone, by a",
        "# crash, kill -9 or the watchdog, mixed would send SIGKILL to the workers at once; so no SIGKILL. Each worker",
        "# has a tether that ends it by its own stop signal and patience, and ExecStopPost waits for those. It also",
        "# kills a daemon that did not end within TimeoutStopSec.",
        "KillMode=mixed",
        "SendSIGKILL=no",
        f"ExecStopPost={command_line(terms.settle)}",
        "",
        "Restart=on-failure",
        f"RestartSec={RESTART_S}",
        "# 2: lanes.yaml is wrong; 69: a stranger has the port. Starting again would change neither.",
        "RestartPreventExitStatus=2 69",
        f"WatchdogSec={WATCHDOG_S}",
        "# A worker that the kernel kills for memory is the daemon's to replace, and no reason to stop the rest.",
        "OOMPolicy=continue",
        "",
        f"LimitNOFILE={OPEN_FILES}",
        "# For workers that lock their model in memory, and for pinned GPU memory.",
        "LimitMEMLOCK=infinity",
        *_hardening(terms),
        "",
        f"SyslogIdentifier={NAME}",
    ]


def _identity(terms: ServiceTerms) -> list[str]:
    lines = [f"User={terms.user}"] if terms.is_system and terms.user else []
    lines += [f"Environment={quoted(f'{name}={value}')}" for name, value in sorted(terms.variables.items())]
    if terms.environment_file:
        lines += ["# Secrets that lanes.yaml names (${env:NAME}) go here; mode 0600."]
        lines += [f"EnvironmentFile=-{quoted_path(terms.environment_file)}"]
    return lines


def _hardening(terms: ServiceTerms) -> list[str]:
    lines = []
    for directive, value, why in HARDENING + (HARDENING_OF_SYSTEM if terms.is_system else ()):
        lines += [f"# {why[0].upper()}{why[1:]}.", f"{directive}={value}"]
    return lines


def _install(terms: ServiceTerms) -> list[str]:
    return [f"WantedBy={'multi-user.target' if terms.is_system else 'default.target'}"]


def command_line(words: Sequence[str]) -> str:
    """Words for Exec…=: each one quoted where needed, and nothing in them expanded."""
    return " ".join(quoted(word).replace("$", "$$") for word in words)


def quoted(word: str) -> str:
    """One word that systemd reads back as it was."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%")
    is_plain = escaped == word.replace("%", "%%") and not any(character in word for character in " \t';#")
    return escaped if word and is_plain else f'"{escaped}"'


def quoted_path(path: str) -> str:
    """A path where systemd takes the whole rest of the line."""
    return path.replace("%", "%%")
