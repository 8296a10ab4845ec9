"""The service under a real systemd, booted in a container: from install to uninstall."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import psutil
import pytest
import yaml

from tests.conftest import find_free_port
from tests.fakes import expected_text, fake_command
from tests.scenarios.streaming_clients import Answer, read
from tests.service.container import REPO, USER_ID, Container, overlay_of_root, require_container
from tests.waiting import wait_until

UNIT = "freshlane.service"
FRESHLANE = str(Path(sys.executable).with_name("freshlane"))
SETTLE = str(REPO / "supervisor/shell/service/settle.py")
START_S = 60.0
ODD = "a 'b' \"c\" 50% $HOME \\ é;#"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.xdist_group("one container")]


class Machine:
    """A booted container, lanes.yaml in it, and the port of its daemon."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.manager_of: str | None = None
        """Whose manager has the service; None: the machine's."""
        self.port = find_free_port()
        self.config = container.root / "etc/freshlane/lanes.yaml"
        self.config.parent.mkdir(exist_ok=True)
        self.write_config()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def write_config(self, **top: object) -> None:
        lane = {"command": fake_command(tok_s=200, prefill_tok_s=50_000), "stop_timeout": "5s"}
        document = {
            "listen": f"127.0.0.1:{self.port}",
            "state_dir": "/var/lib/freshlane",
            "fleet": {"shutdown_timeout": "15s"},
            "lanes": {"chat": lane},
            **top,
        }
        written = {key: value for key, value in document.items() if value is not None}
        self.config.write_text(yaml.safe_dump(written))

    def service(self, *words: str, check: bool = True, env: str = "LANG=C.UTF-8") -> str:
        command = ("env", env, FRESHLANE, "service", *words)
        done = self.container.run(*command, check=check, timeout_s=90, user=self.manager_of)
        return done.stdout + done.stderr

    def install(self) -> str:
        return self.service("install", "--system", "-c", "/etc/freshlane/lanes.yaml")

    def show(self, name: str) -> str:
        return self.container.show(UNIT, name, user=self.manager_of)

    def main_pid(self) -> int:
        """The daemon's pid as seen from outside."""
        return self.container.outside_pid(int(self.show("MainPID")))

    def workers(self) -> list[int]:
        return [process.pid for process in self._processes() if _is_worker(process)]

    def _processes(self) -> list[psutil.Process]:
        return psutil.Process(self.container.init_pid).children(recursive=True)

    async def serving(self) -> None:
        await wait_until(lambda: "chat serving" in self.show("StatusText"), START_S, "the lane to serve")

    async def listening(self, within_s: float = START_S) -> None:
        await wait_until(self._answers, within_s, "the daemon to answer")

    async def _answers(self) -> bool:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as session:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"{self.url}/healthz") as answer:
                    return answer.status == 200
        return False

    async def stream(self, tokens: int, began: asyncio.Event) -> Answer:
        """One streamed answer, read to its end."""
        prompt = "a stream in flight"
        answer = Answer("one", expected=expected_text(prompt, tokens))
        messages = [{"role": "user", "content": prompt}]
        body = {"model": "chat", "stream": True, "max_tokens": tokens, "messages": messages}
        content = b""
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session,
            session.post(f"{self.url}/v1/chat/completions", json=body) as response,
        ):
            answer.status = response.status
            async for chunk in response.content.iter_any():
                content += chunk
                began.set()
        read(answer, content)
        return answer


def _is_worker(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return "FRESHLANE_GENERATION" in process.environ()
    return False


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    require_container()
    with overlay_of_root() as place:
        yield place


@pytest.fixture
async def machine(root: Path, tmp_path: Path) -> AsyncIterator[Machine]:
    container = Container(root, tmp_path / "boot.log")
    try:
        await container.boot()
        yield Machine(container)
    finally:
        container.end()


@pytest.fixture
async def installed(machine: Machine) -> Machine:
    machine.install()
    await machine.serving()
    return machine


async def test_install_comes_back_when_the_daemon_listens_and_tells_systemd_how_its_lanes_are(machine: Machine) -> None:
    said = machine.install()
    assert "active (running)" in said
    await machine.listening(within_s=2.0)
    await machine.serving()
    assert machine.show("StatusText") == "1 lane: chat serving"
    assert machine.show("UnitFileState") == "enabled"
    assert machine.show("WatchdogUSec") == "30s"
    assert machine.container.run("systemd-analyze", "verify", f"/etc/systemd/system/{UNIT}").stderr.strip() == ""
    assert "chat serving" in machine.service("status", "--system")
    workers = machine.workers()
    assert len(workers) == 1
    assert "NOTIFY_SOCKET" not in psutil.Process(workers[0]).environ()
    # A machine whose root may not raise limits gives what it has.
    allowed = psutil.Process(machine.container.init_pid).rlimit(psutil.RLIMIT_NOFILE)[1]
    assert psutil.Process(machine.main_pid()).rlimit(psutil.RLIMIT_NOFILE)[0] in (65_536, min(65_536, allowed))


async def test_installing_again_restarts_the_daemon_only_if_the_unit_has_changed(installed: Machine) -> None:
    pid = installed.main_pid()
    installed.install()
    assert installed.main_pid() == pid
    installed.service("install", "--system", "--env", "MORE", "-c", "/etc/freshlane/lanes.yaml", env="MORE=x")
    assert installed.main_pid() != pid
    await installed.serving()
    assert len(installed.workers()) == 1


async def test_reload_is_told_to_systemd_and_a_bad_file_changes_nothing(installed: Machine) -> None:
    pid = installed.main_pid()
    installed.write_config(lanes={"other": {"command": fake_command(), "start": "on_demand"}})
    installed.container.run("systemctl", "reload", UNIT)
    await wait_until(lambda: installed.show("StatusText") == "1 lane: other unloaded", START_S, "the new lane")
    assert installed.show("ActiveState") == "active"
    installed.config.write_text("lanes: {chat: {modle: x}}\n")
    assert installed.container.run("systemctl", "reload", UNIT, check=False).returncode != 0
    assert installed.show("ActiveState") == "active"
    assert installed.show("StatusText") == "1 lane: other unloaded"
    assert installed.main_pid() == pid


async def test_a_daemon_that_stands_still_is_restarted_by_the_watchdog(installed: Machine) -> None:
    drop_in = installed.container.root / f"etc/systemd/system/{UNIT}.d/fast.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nWatchdogSec=2\nRestartSec=0\n")
    installed.container.run("systemctl", "daemon-reload")
    installed.container.run("systemctl", "restart", UNIT)
    await installed.serving()
    before = installed.main_pid()
    workers = installed.workers()
    os.kill(before, signal.SIGSTOP)
    await wait_until(lambda: installed.show("NRestarts") == "1", START_S, "systemd to start it again")
    assert "watchdog" in installed.container.journal(UNIT).lower()
    await installed.serving()
    assert installed.main_pid() != before
    assert not any(map(psutil.pid_exists, workers))
    drop_in.unlink()


async def test_after_kill_9_the_worker_gets_its_time_to_end_before_a_new_daemon_serves(machine: Machine) -> None:
    command = fake_command(tok_s=200, sigterm="slow", term_seconds=3)
    machine.write_config(lanes={"chat": {"command": command, "stop_timeout": "20s"}})
    machine.install()
    await machine.serving()
    [worker] = machine.workers()
    os.kill(machine.main_pid(), signal.SIGKILL)
    await wait_until(lambda: machine.show("SubState") == "stop-post", START_S, "systemd to wait for the worker")
    assert psutil.pid_exists(worker)
    assert machine.show("MainPID") == "0"
    await wait_until(lambda: machine.show("NRestarts") == "1", START_S, "systemd to start it again")
    assert not psutil.pid_exists(worker)
    await machine.serving()
    assert len(machine.workers()) == 1


async def test_a_stop_lets_the_stream_in_flight_end_and_leaves_nobody(installed: Machine) -> None:
    began = asyncio.Event()
    streaming = asyncio.ensure_future(installed.stream(800, began))
    await asyncio.wait_for(began.wait(), 20)
    await asyncio.to_thread(installed.container.run, "systemctl", "stop", UNIT)
    answer = await streaming
    assert answer.is_whole, answer
    assert (installed.show("ActiveState"), installed.show("Result")) == ("inactive", "success")
    assert installed.workers() == []
    assert installed.container.pids_of(UNIT) == []


async def test_a_daemon_that_does_not_end_in_its_time_is_killed_and_its_workers_get_theirs(machine: Machine) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
    worker = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); parent = os.getppid()\n"
        "while os.getppid() == parent: time.sleep(0.05)\n"
        "time.sleep(1); open('/root/worker-ended', 'w').close()"
    )
    both = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {worker!r}]); {deaf}"
    how = ("KillMode=mixed", "SendSIGKILL=no", "TimeoutStopSec=4", f"ExecStopPost={sys.executable} -I -S {SETTLE}")
    machine.container.run(
        "systemd-run", "--unit=deaf", *(f"--property={line}" for line in how), sys.executable, "-c", both
    )
    await wait_until(lambda: len(machine.container.pids_of("deaf.service")) == 2, 10.0, "both to run")
    machine.container.run("systemctl", "stop", "deaf.service", check=False)
    assert machine.container.pids_of("deaf.service") == []
    assert (machine.container.root / "root/worker-ended").exists()


async def test_a_taken_port_is_said_once_and_not_tried_again(machine: Machine) -> None:
    stranger = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", machine.port)
    async with stranger:
        said = machine.service("install", "--system", "-c", "/etc/freshlane/lanes.yaml", check=False)
        assert "is taken by" in said
        assert "journalctl" in said
        errors = machine.container.run("journalctl", "-u", UNIT, "-p", "err", "-t", "freshlane", "-o", "cat").stdout
        assert "is taken by" in errors
        assert (machine.show("ActiveState"), machine.show("ExecMainStatus")) == ("failed", "69")
        assert machine.show("NRestarts") == "0"
        assert "is taken by" in machine.service("status", "--system", check=False)


async def test_uninstall_leaves_no_process_and_no_unit(installed: Machine) -> None:
    installed.service("uninstall", "--system")
    assert installed.show("LoadState") == "not-found"
    assert installed.workers() == []
    assert not (installed.container.root / f"etc/systemd/system/{UNIT}").exists()
    assert "not installed" in installed.service("status", "--system", check=False)
    assert "there is no service" in installed.service("uninstall", "--system")


async def test_a_system_service_runs_as_the_user_it_is_given_and_keeps_its_state_at_that_users_home(
    machine: Machine,
) -> None:
    machine.container.add_user("ann")
    machine.write_config(state_dir=None)
    odd = machine.config.with_name('odd lanes 100% "$HOME".yaml')
    machine.config.rename(odd)
    inside = f"/etc/freshlane/{odd.name}"
    machine.service("install", "--system", "--run-as", "ann", "--env", "ODD", "-c", inside, env=f"ODD={ODD}")
    await machine.serving()
    assert psutil.Process(machine.main_pid()).environ()["ODD"] == ODD
    assert psutil.Process(machine.main_pid()).uids().effective == USER_ID
    assert (machine.container.root / "home/ann/.local/state/freshlane/workers.json").exists()
    machine.container.run("systemctl", "reload", UNIT)
    os.kill(machine.main_pid(), signal.SIGKILL)
    await wait_until(lambda: machine.show("NRestarts") == "1", START_S, "systemd to start it again")
    machine.service("uninstall", "--system")
    assert machine.workers() == []


async def test_a_user_installs_reloads_and_removes_a_service_of_their_own(machine: Machine) -> None:
    machine.container.add_user("ann")
    machine.manager_of = "ann"
    machine.write_config(state_dir="~/state")
    said = machine.service("install", "--user", "-c", "/etc/freshlane/lanes.yaml")
    assert "loginctl enable-linger" in said
    await machine.serving()
    unit = machine.container.root / f"home/ann/.config/systemd/user/{UNIT}"
    assert machine.container.run("systemd-analyze", "--user", "verify", str(unit), user="ann").stderr.strip() == ""
    machine.container.run("systemctl", "--user", "reload", UNIT, user="ann")
    os.kill(machine.main_pid(), signal.SIGKILL)
    await wait_until(lambda: machine.show("NRestarts") == "1", START_S, "systemd to start it again")
    assert len(machine.workers()) <= 1
    machine.service("uninstall", "--user")
    assert machine.workers() == []
    assert not unit.exists()
