"""A worker process: how it starts, what it inherits, how its end is seen, and how its family is ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from supervisor.shell.worker import family
from supervisor.shell.worker.process import ExitStatus, SpawnFailedError, WorkerProcess
from tests.shell.workers import PARENT_OF_A_SETSID_CHILD, SLEEPER, STUBBORN, children_called, python, spec_of
from tests.waiting import wait_until

Spawn = Callable[..., Awaitable[WorkerProcess]]


@pytest.fixture
async def spawn(tmp_path: Path) -> AsyncIterator[Spawn]:
    """`worker = await spawn(*argv, **changes of the spec)`; whatever lives at the end is killed."""
    started: list[WorkerProcess] = []

    async def start(*argv: str, **changes: Any) -> WorkerProcess:
        worker = await WorkerProcess.spawn(spec_of(tmp_path, *argv, **changes))
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.kill()
        await worker.close()


def is_alive(pid: int) -> bool:
    return family.create_time(pid) is not None


async def printed(worker: WorkerProcess, text: str) -> str:
    """The output, once it holds `text`."""
    await wait_until(lambda: text in worker.output.tail(100), what=f"{text!r} in the output")
    return worker.output.tail(100)


async def exit_of(worker: WorkerProcess) -> ExitStatus:
    return await asyncio.wait_for(asyncio.shield(worker.exit), 10)


async def test_an_exit_code_is_reported(spawn: Spawn) -> None:
    worker = await spawn(*python("raise SystemExit(7)"))
    assert await exit_of(worker) == ExitStatus(7, None)


async def test_a_death_by_signal_is_reported_by_its_name(spawn: Spawn) -> None:
    worker = await spawn(*python("import os; os.kill(os.getpid(), 11)"))
    assert await exit_of(worker) == ExitStatus(None, "SIGSEGV")


async def test_the_stop_signal_reaches_the_whole_group(spawn: Spawn) -> None:
    code = "import subprocess, sys; c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
    worker = await spawn(*python(code + "print('child', c.pid, flush=True); c.wait()"), stop_signal=signal.SIGINT)
    child = int((await printed(worker, "child")).split()[-1])
    worker.send_stop()
    await exit_of(worker)
    await wait_until(lambda: not is_alive(child), what="the child's end")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_worker_starts_with_default_signals_even_if_ours_are_ignored(spawn: Spawn) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as under nohup
    try:
        worker = await spawn("/bin/cat", "/proc/self/status")
    finally:
        signal.signal(signal.SIGINT, before)
    status = dict(line.split(":\t") for line in (await printed(worker, "nonvoluntary")).splitlines() if ":\t" in line)
    internal = 0b11 << 31  # signals 32 and 33 are the C library's own; no program can set them
    assert int(status["SigIgn"], 16) & ~internal == 0
    assert int(status["SigBlk"], 16) & ~internal == 0


async def test_a_worker_has_its_own_session_its_generation_and_no_open_files(spawn: Spawn) -> None:
    code = "import os; print(os.getsid(0), os.getpgid(0), os.environ['FRESHLANE_GENERATION'], os.listdir('/dev/fd'))"
    with socket.socket() as leak:
        leak.set_inheritable(True)
        worker = await spawn(*python(code))
        assert await exit_of(worker) == ExitStatus(0, None)
    text = await printed(worker, "]")
    assert text.split("[")[0].split() == [str(worker.pid), str(worker.pid), "3"]
    assert set(text[text.index("[") :].strip()[1:-1].replace("'", "").split(", ")) <= {"0", "1", "2", "3"}


async def test_the_environment_is_the_given_one_and_the_folder_too(spawn: Spawn, tmp_path: Path) -> None:
    code = "import os; print(os.getcwd(), 'HOME' in os.environ, os.environ['WORD'])"
    worker = await spawn(*python(code), env={"WORD": "größer \udcff"}, cwd=tmp_path)
    await exit_of(worker)
    assert (await printed(worker, str(tmp_path))).startswith(f"{tmp_path} False ")


async def test_a_missing_executable_is_named_with_the_path_that_was_searched(spawn: Spawn) -> None:
    with pytest.raises(SpawnFailedError, match=r"lane small: cannot start no-such-server: No such file.*PATH=/usr/bin"):
        await spawn("no-such-server", env={"PATH": "/usr/bin"})


async def test_a_file_that_is_not_executable_is_named(spawn: Spawn, tmp_path: Path) -> None:
    (tmp_path / "server").write_text("hello")
    with pytest.raises(SpawnFailedError, match="Permission denied"):
        await spawn(str(tmp_path / "server"))


async def test_a_missing_folder_is_named(spawn: Spawn, tmp_path: Path) -> None:
    with pytest.raises(SpawnFailedError, match=r"its folder .*/nowhere: No such file or directory"):
        await spawn(*python("pass"), cwd=tmp_path / "nowhere")


async def test_a_command_with_a_null_character_is_refused(spawn: Spawn) -> None:
    with pytest.raises(SpawnFailedError, match="contains a character that none may have"):
        await spawn(*python("pass"), "a\0b")


async def test_a_large_environment_and_command_arrive_whole(spawn: Spawn) -> None:
    env = {f"N{i}": "x" * 1000 for i in range(400)}
    worker = await spawn(
        *python("import os, sys; print(sum(n[0] == 'N' for n in os.environ), len(sys.argv[1]))", "y" * 100_000), env=env
    )
    await exit_of(worker)
    assert (await printed(worker, "100000")).split() == ["400", "100000"]


async def test_a_worker_that_ignores_the_signal_dies_of_kill(spawn: Spawn) -> None:
    worker = await spawn(*python(STUBBORN))
    await printed(worker, "up")
    worker.send_stop()
    worker.kill()
    assert await exit_of(worker) == ExitStatus(None, "SIGKILL")


async def test_kill_reaches_a_grandchild_in_a_session_of_its_own(spawn: Spawn) -> None:
    worker = await spawn(*python(PARENT_OF_A_SETSID_CHILD))
    child = int((await printed(worker, "child")).split()[-1])
    assert worker.family() == {worker.pid, child}
    worker.kill()
    await exit_of(worker)
    await wait_until(lambda: not is_alive(child), what="the grandchild's end")


async def test_leftovers_in_a_session_of_their_own_are_found_and_ended(spawn: Spawn) -> None:
    worker = await spawn(*python(PARENT_OF_A_SETSID_CHILD))
    child = int((await printed(worker, "child")).split()[-1])
    os.kill(worker.pid, signal.SIGKILL)
    await exit_of(worker)
    assert worker.family() == {child}
    assert await worker.reap_leftovers() == set()
    assert not is_alive(child)


async def test_leftovers_that_may_not_be_killed_are_told(spawn: Spawn) -> None:
    child_code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child_code!r}]); time.sleep(600)"
    worker = await spawn(*python(code), may_kill=False)
    await printed(worker, "deaf")
    (child,) = worker.family() - {worker.pid}
    os.kill(worker.pid, signal.SIGKILL)
    await exit_of(worker)
    assert await worker.reap_leftovers(term_s=0.2) == {child}


async def test_closing_stops_a_running_worker(spawn: Spawn) -> None:
    worker = await spawn(*python(SLEEPER))
    await worker.close()
    assert worker.exit.result() == ExitStatus(None, "SIGTERM")
    assert not is_alive(worker.pid)


async def test_the_patience_of_the_tether_can_be_changed_as_the_worker_grows(spawn: Spawn) -> None:
    worker = await spawn(*python(STUBBORN), stop_timeout_s=600.0)
    await printed(worker, "up")
    worker.set_patience(0.1)
    await worker.close()
    assert worker.exit.result() == ExitStatus(None, "SIGKILL")


async def test_a_lost_tether_does_not_leave_a_worker(spawn: Spawn) -> None:
    worker = await spawn(*python(SLEEPER))
    os.kill(worker._leash.pid, signal.SIGKILL)
    assert await exit_of(worker) == ExitStatus(None, None)
    assert not is_alive(worker.pid)


async def test_a_spawn_cancelled_at_any_moment_leaves_no_worker(tmp_path: Path) -> None:
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    note = tmp_path / "pid"
    for step in range(12):
        note.unlink(missing_ok=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(step * 0.004):
                worker = await WorkerProcess.spawn(spec_of(tmp_path, *python(code, str(note))))
                await worker.close()
        await wait_until(lambda: not children_called("tether.py"), what="the tether's end")
        assert not (note.exists() and note.read_text() and is_alive(int(note.read_text())))


async def test_memory_processor_time_and_port_are_those_of_the_family(spawn: Spawn, free_port: int) -> None:
    child = (
        "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); x = b'x' * 50_000_000\n"
        "while time.process_time() < 0.3: pass\n"
        "print('up', flush=True); time.sleep(600)"
    )
    code = f"import subprocess, sys; subprocess.call([sys.executable, '-c', {child!r}, sys.argv[1]])"
    worker = await spawn(*python(code, str(free_port)))
    await printed(worker, "up")
    await wait_until(lambda: worker.listens_on(free_port), what="its listener")
    assert not worker.listens_on(free_port + 1)
    assert worker.family() > {worker.pid}
    assert 50_000_000 < worker.memory_bytes() < 150_000_000
    assert 0.3 <= worker.cpu_seconds() < 5
