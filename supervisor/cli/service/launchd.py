"""launchd, through ``launchctl``."""

from __future__ import annotations

import re
from pathlib import Path

from supervisor.cli.service.manager import ServiceState, read, write
from supervisor.cli.service.tools import Answer, ServiceManagerError, ask, pause, until
from supervisor.units.launchd import LABEL

PLIST_MODE = 0o600
"""launchd reads it as root, and it may hold what lanes.yaml takes from the environment."""
BUSY = frozenset({5, 37, 125})
"""What ``bootstrap`` says while an earlier load of the job is still being taken down: I/O error, already in progress,
domain does not support it."""
IS_GOING = frozenset({0, 3, 36, 113})
"""What ``bootout`` says when the job goes, is going or has gone."""
PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
GONE_S = 30.0
_FIELD = re.compile(r"^\t(state|pid|last exit code) = (.+)$", re.MULTILINE)


class Launchd:
    """``domains`` in the order in which they are tried: gui/501 for who sits at the screen, user/501 over ssh."""

    def __init__(self, *, is_system: bool, uid: int, home: Path, pauses_s: tuple[float, ...] = PAUSES_S) -> None:
        self._domains = ("system",) if is_system else (f"gui/{uid}", f"user/{uid}")
        folder = Path("/Library/LaunchDaemons") if is_system else home / "Library/LaunchAgents"
        self.path = folder / f"{LABEL}.plist"
        self._pauses_s = pauses_s

    def install(self, content: bytes, timeout_s: float) -> list[str]:
        """See ServiceManager."""
        if read(self.path) == content and self.state().is_running:
            return []
        self._unload(timeout_s)
        write(self.path, content, PLIST_MODE)
        domain = self._domain()
        ask("launchctl", "enable", f"{domain}/{LABEL}")  # one that was disabled once is refused with error 5
        self._bootstrap(domain)
        return []

    def uninstall(self, timeout_s: float) -> bool:
        """See ServiceManager."""
        if not self.state().is_installed:
            return False
        self._unload(timeout_s)
        self.path.unlink(missing_ok=True)
        return True

    def state(self) -> ServiceState:
        """See ServiceManager."""
        for domain in self._domains:
            shown = self._print(domain)
            if shown is not None:
                parts = [shown.get("state", "loaded"), domain]
                parts += [f"{name} {shown[name]}" for name in ("pid", "last exit code") if name in shown]
                return ServiceState(is_installed=True, is_running="pid" in shown, summary=", ".join(parts))
        is_installed = self.path.exists()
        return ServiceState(is_installed, is_running=False, summary="not loaded" if is_installed else "not installed")

    def _unload(self, timeout_s: float) -> None:
        """Let the daemon drain and end first: ``bootout`` gives up waiting by itself, and then launchd kills."""
        for domain in self._domains:
            shown = self._print(domain)
            if shown is None:
                continue
            if "pid" in shown:
                ask("launchctl", "kill", "SIGTERM", f"{domain}/{LABEL}")
                until(lambda domain=domain: "pid" not in (self._print(domain) or {}), timeout_s)  # type: ignore[misc]
            answer = ask("launchctl", "bootout", f"{domain}/{LABEL}", within_s=timeout_s + GONE_S)
            is_gone = until(lambda domain=domain: self._print(domain) is None, GONE_S)  # type: ignore[misc]
            if not is_gone or answer.code not in IS_GOING:
                raise _refused("bootout", answer, f"try: launchctl bootout {domain}/{LABEL}")

    def _domain(self) -> str:
        """The first that there is: without somebody at the screen there is no gui domain."""
        found = (domain for domain in self._domains if ask("launchctl", "print", domain).code == 0)
        return next(found, self._domains[-1])

    def _bootstrap(self, domain: str) -> None:
        for pause_s in (*self._pauses_s, None):
            answer = ask("launchctl", "bootstrap", domain, str(self.path))
            if answer.code == 0:
                return
            if answer.code not in BUSY or pause_s is None:
                break
            pause(pause_s)
        needs_root = domain == "system" and answer.code in (1, 5)
        remedy = "a system service needs root: sudo freshlane service install --system" if needs_root else ""
        raise _refused("bootstrap", answer, remedy or f"see: launchctl print {domain}; plutil -lint {self.path}")

    def _print(self, domain: str) -> dict[str, str] | None:
        """What launchd says of the job in this domain; None if it is not loaded there."""
        answer = ask("launchctl", "print", f"{domain}/{LABEL}")
        return dict(_FIELD.findall(answer.text)) if answer.code == 0 else None


def _refused(what: str, answer: Answer, remedy: str) -> ServiceManagerError:
    return ServiceManagerError(f"launchctl {what} ended with {answer.code}: {answer.text}\n{remedy}")
