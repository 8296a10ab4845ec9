"""systemd, through ``systemctl``."""

from __future__ import annotations

import os
from pathlib import Path

from supervisor.cli.service.manager import ServiceState, read, write
from supervisor.cli.service.tools import Answer, ServiceManagerError, ask
from supervisor.units.systemd import UNIT

START_S = 900.0
"""A start waits for workers of an earlier daemon to end; systemd's own, extended, deadline comes first."""
UNIT_MODE = 0o644
SHOWN = ("LoadState", "ActiveState", "SubState", "MainPID", "Result", "StatusText")


class Systemd:
    """One user's manager, or the machine's."""

    def __init__(self, *, is_system: bool) -> None:
        self._is_system = is_system
        config_home = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser())
        folder = Path("/etc/systemd/system") if is_system else config_home / "systemd/user"
        self.path = folder / UNIT

    def install(self, content: bytes, timeout_s: float) -> list[str]:
        """See ServiceManager."""
        is_changed = read(self.path) != content
        if is_changed:
            write(self.path, content, UNIT_MODE)
        self._do("daemon-reload")
        self._do("enable", UNIT)
        if not self.state().is_running:
            self._systemctl("reset-failed", UNIT)
            self._do("start", UNIT, within_s=START_S)
        elif is_changed:
            self._do("restart", UNIT, within_s=START_S + timeout_s)
        return self._advice()

    def uninstall(self, timeout_s: float) -> bool:
        """See ServiceManager."""
        if not self.state().is_installed:
            return False
        self._do("disable", "--now", UNIT, within_s=timeout_s + 60)
        self.path.unlink(missing_ok=True)
        self._do("daemon-reload")
        self._systemctl("reset-failed", UNIT)  # else a failed unit stays listed; there may be none
        return True

    def state(self) -> ServiceState:
        """See ServiceManager."""
        answer = self._do("show", "-p", ",".join(SHOWN), UNIT)
        shown = dict(line.split("=", 1) for line in answer.text.splitlines() if "=" in line)
        active, sub = shown.get("ActiveState", "unknown"), shown.get("SubState", "unknown")
        parts = [f"{active} ({sub})"]
        if shown.get("MainPID", "0") != "0":
            parts.append(f"pid {shown['MainPID']}")
        if shown.get("Result", "success") != "success":
            parts.append(f"result: {shown['Result']}")
        if shown.get("StatusText"):
            parts.append(shown["StatusText"])
        is_installed = self.path.exists() or shown.get("LoadState") == "loaded"
        return ServiceState(is_installed, active in ("active", "reloading"), ", ".join(parts))

    def _advice(self) -> list[str]:
        if self._is_system:
            return []
        name = str(os.getuid())
        linger = ask("loginctl", "show-user", name, "-p", "Linger", "--value")
        if linger.code == 0 and linger.text == "yes":
            return []
        return ["it starts when you log in and ends when you log out; to change that: loginctl enable-linger"]

    def _do(self, *words: str, within_s: float = 60.0) -> Answer:
        answer = self._systemctl(*words, within_s=within_s)
        if answer.code != 0:
            raise ServiceManagerError(f"systemctl {' '.join(words)}: {answer.text}\n{self._remedy(answer.text)}")
        return answer

    def _systemctl(self, *words: str, within_s: float = 60.0) -> Answer:
        scope = "--system" if self._is_system else "--user"
        return ask("systemctl", scope, "--no-pager", *words, within_s=within_s)

    def _remedy(self, text: str) -> str:
        if "connect to bus" in text and not self._is_system:
            return "this session has no user manager: log in as this user (su does not do), or use --system"
        if os.geteuid() != 0 and self._is_system:
            return "a system service needs root: sudo freshlane service ..., or use --user"
        return f"see: journalctl {'' if self._is_system else '--user '}-u {UNIT} -n 30"
