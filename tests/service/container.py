"""A container with systemd as its first process, over a throw-away copy of this machine's own files.

The root is an overlay: what happens inside stays in memory and goes with the container. The network is this machine's,
so a daemon inside is asked from outside as any other. Needs root; nothing is asked of the machine's own systemd.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_until

REPO = Path(__file__).resolve().parents[2]
BOOT_S = 60.0
ASK_S = 60.0
USER_ID = 4711


class Container:
    """One machine inside this one. Made by `booted`."""

    def __init__(self, root: Path, log: Path) -> None:
        self.root = root
        self.log = log
        self._nspawn: subprocess.Popen[bytes] | None = None
        self.init_pid = 0

    async def boot(self) -> None:
        """Start systemd and wait until it is up."""
        self._start()
        await wait_until(self._is_up, BOOT_S, f"systemd to boot; see {self.log}")

    def _start(self) -> None:
        boot = ["systemd-nspawn", "--quiet", "-D", str(self.root), "--boot", "--register=no"]
        if not Path("/run/systemd/system").is_dir():
            boot.append("--keep-unit")  # nobody here who could give it a scope of its own
        with self.log.open("wb") as log:
            self._nspawn = subprocess.Popen(
                [*boot, *_binds(), "--", "--unit=basic.target"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _is_up(self) -> bool:
        assert self._nspawn
        if self._nspawn.poll() is not None:
            raise AssertionError(f"systemd-nspawn ended: {self.log.read_text(errors='replace')[-2000:]}")
        children = psutil.Process(self._nspawn.pid).children()
        self.init_pid = children[0].pid if children else 0
        return bool(self.init_pid) and self.run("systemctl", "is-active", "basic.target", check=False).returncode == 0

    def run(
        self, *command: str, check: bool = True, timeout_s: float = ASK_S, user: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside, with a clean environment, as root or as ``user``, whose own manager must run."""
        if user:
            here = (f"HOME=/home/{user}", f"XDG_RUNTIME_DIR=/run/user/{USER_ID}")
            command = ("runuser", "-u", user, "--", "env", *here, *command)
        enter = ["nsenter", "-t", str(self.init_pid), "-m", "-u", "-i", "-p", "-r", "-w"]
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
        done = subprocess.run(
            [*enter, *command], check=False, capture_output=True, text=True, timeout=timeout_s, env=env
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def add_user(self, name: str) -> None:
        """A user that can reach this interpreter, with a manager of its own."""
        if self.run("id", name, check=False).returncode != 0:
            self.run("useradd", "--create-home", "--uid", str(USER_ID), name)
        for folder in {*Path(sys.base_prefix).parents, *REPO.parents}:
            self.run("chmod", "o+x", str(folder))
        self.run("systemctl", "start", f"user@{USER_ID}.service")

    def show(self, unit: str, name: str, user: str | None = None) -> str:
        """A property of a unit, of the machine's or of a user's manager."""
        scope = "--user" if user else "--system"
        return self.run("systemctl", scope, "show", "-p", name, "--value", unit, user=user).stdout.strip()

    def journal(self, unit: str) -> str:
        """What a unit has written."""
        return self.run("journalctl", "--no-pager", "-o", "short-precise", "-u", unit).stdout

    def pids_of(self, unit: str) -> list[int]:
        """Pids, as seen from outside, of all processes in the unit's control group."""
        mark = f"/{unit}\n"
        found = []
        for process in psutil.Process(self.init_pid).children(recursive=True):
            with contextlib.suppress(OSError):
                if mark in Path(f"/proc/{process.pid}/cgroup").read_text():
                    found.append(process.pid)
        return found

    def outside_pid(self, inside: int) -> int:
        """The pid that a process inside has out here."""
        for process in psutil.Process(self.init_pid).children(recursive=True):
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{process.pid}/status").read_text()
                numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()
                if int(numbers[-1]) == inside:
                    return process.pid
        raise AssertionError(f"no process inside has pid {inside}")

    def end(self) -> None:
        """End everything inside."""
        if not self._nspawn:
            return
        with contextlib.suppress(psutil.Error):
            os.kill(self.init_pid, signal.SIGKILL)  # its namespace goes with it, and all that is in there
        try:
            self._nspawn.wait(15)
        except subprocess.TimeoutExpired:
            self._nspawn.kill()
            self._nspawn.wait(15)


def _binds() -> list[str]:
    """What an overlay of / does not show: other file systems, and what lies where the container mounts its own."""
    root = Path("/").stat().st_dev
    needed = {REPO, Path(sys.prefix), Path(sys.base_prefix)}
    hidden = [path for path in needed if path.stat().st_dev != root or path.parts[1] in ("tmp", "run")]
    return [f"--bind-ro={path}" for path in sorted(hidden)]


def _ask(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=ASK_S)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)}: {done.stderr.strip()}; these tests need a root that may mount")


@contextmanager
def overlay_of_root() -> Iterator[Path]:
    """All of / to write to, and nothing of it kept."""
    place = Path(tempfile.mkdtemp(prefix="freshlane-container-"))
    try:
        _ask("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(place))
        for name in ("upper", "work", "root"):
            (place / name).mkdir(mode=0o755)
        layers = f"lowerdir=/,upperdir={place}/upper,workdir={place}/work"
        _ask("mount", "-t", "overlay", "overlay", "-o", layers, str(place / "root"))
        yield place / "root"
    finally:
        for mounted in (place / "root", place):
            if mounted.is_mount():
                _ask("umount", "--lazy", str(mounted))
        with contextlib.suppress(OSError):
            place.rmdir()


def require_container() -> None:
    """Skip only where a developer is not root; a machine that is meant to run this must be able to."""
    if os.geteuid() != 0:
        pytest.skip("booting systemd in a container needs root")
    if shutil.which("systemd-nspawn") is None:
        pytest.fail("systemd-nspawn is not installed: apt-get install systemd-container dbus (.ci/run does)")
