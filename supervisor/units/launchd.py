"""The property list of the launchd job."""

from __future__ import annotations

import plistlib
from typing import Any

from supervisor.units.terms import NAME, OPEN_FILES, ServiceTerms

LABEL = f"dev.{NAME}.daemon"
THROTTLE_S = 10


def launchd_plist(terms: ServiceTerms) -> bytes:
    """An agent's plist, or a daemon's for a system service; XML."""
    return plistlib.dumps({**_job(terms), **(_daemon(terms) if terms.is_system else _agent())}, sort_keys=False)


def _job(terms: ServiceTerms) -> dict[str, Any]:
    return {
        "Label": LABEL,
        "ProgramArguments": terms.command("run", "--under", "launchd"),
        "EnvironmentVariables": dict(terms.variables),
        "RunAtLoad": True,
        # The daemon exits 0 when starting it again would not help, and launchd has no list of such codes.
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": THROTTLE_S,
        # Without it launchd throttles CPU and I/O of the job and of all workers: the very slowness we police.
        "ProcessType": "Interactive",
        "LegacyTimers": True,
        # The default is 5 s, after which launchd kills.
        "ExitTimeOut": terms.timeout_s,
        "SoftResourceLimits": {"NumberOfFiles": OPEN_FILES},
        "WorkingDirectory": terms.home or "/",
        "StandardOutPath": f"{terms.log_folder}/{NAME}.log",
        "StandardErrorPath": f"{terms.log_folder}/{NAME}.log",
        "Umask": 0o077,
    }


def _agent() -> dict[str, Any]:
    # Background: so that it can also be loaded over ssh, where nobody sits at the screen.
    return {"LimitLoadToSessionType": ["Aqua", "Background"]}


def _daemon(terms: ServiceTerms) -> dict[str, Any]:
    return {"UserName": terms.user} if terms.user else {}
