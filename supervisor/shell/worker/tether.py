"""The worker's parent: a small program that ends the worker when the daemon is gone.

It runs on its own, as ``python -I -S tether.py LANE GENERATION`` (the two words are for readers of ``ps``), and must
start fast: standard library only, little of it. PR_SET_PDEATHSIG would do on Linux alone, and there it fires when a
*thread* of the daemon ends; an end-of-file on a socket means the same everywhere: the daemon let go, or died.

Standard input is a socket to the daemon, standard error the worker's output. The daemon sends its order first: a length
of four bytes and a marshalled dictionary. Then it may send lines ``patience SECONDS``. The tether answers in lines:
``started PID``, ``failed ERRNO STEP``, ``exited CODE``, ``signalled NUMBER``. It lives until the socket is closed *and*
every process that descends from it is gone, so what a worker left behind keeps a living ancestor by which it is found.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import signal
import sys
import time
from typing import Any, NoReturn

CONTROL = 0
OUTPUT = 2
POLL_S = 0.1
IDLE_POLL_S = 1.0
PR_SET_CHILD_SUBREAPER = 36

Table = dict[int, tuple[int, int, str]]
"""Of each process that has not ended: its parent, its group, and when it started, in words to compare."""


class DaemonGoneError(Exception):
    """The daemon went before a worker was started."""


def main() -> None:
    """Start the worker, report its end, and outlive the daemon by as long as the worker needs to go."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # what ends the daemon must not end the one who cleans up behind it
    try:
        order = receive_order()
    except DaemonGoneError:
        return
    adopt_orphans()
    wakeup = listen_for_children()
    worker = start(order)
    if worker is None:
        return
    os.chdir("/")
    Tether(worker, order, wakeup).hold()


class Tether:
    """From the worker's start to the end of all that descends from it."""

    def __init__(self, worker: int, order: dict[str, Any], wakeup: int) -> None:
        self.worker = worker
        self.stop_signal: int = order["stop_signal"]
        self.patience_s: float = order["stop_timeout_s"]
        self.may_kill: bool = order["may_kill"]
        self.wakeup = wakeup
        self.is_running = True
        self.seen: dict[int, str] = {}

    def hold(self) -> None:
        """Wait for the daemon to let go, then end the family."""
        os.set_blocking(CONTROL, False)
        while not self.daemon_let_go():
            wait_for([CONTROL, self.wakeup], None)
            self.reap()
        self.end()

    def daemon_let_go(self) -> bool:
        """Read what the daemon says; True at the end of it."""
        try:
            words = os.read(CONTROL, 4096)
        except BlockingIOError:
            return False
        except OSError:
            return True
        for line in words.splitlines():
            key, _, value = line.partition(b" ")
            if key == b"patience":
                self.patience_s = float(value)
        return not words

    def reap(self) -> None:
        """Take the exit status of every child that ended, the worker's or one adopted from it."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.wakeup, 4096)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.worker:
                    self.is_running = False
                    code = os.waitstatus_to_exitcode(status)
                    tell(f"exited {code}" if code >= 0 else f"signalled {-code}")

    def end(self) -> None:
        """The stop signal to the group now; SIGKILL to whoever is left when patience ends, if that is allowed."""
        due = time.monotonic() + self.patience_s
        self.family()
        if self.is_running:
            signal_group(self.worker, self.stop_signal)
        told_the_rest = False
        while True:
            family = self.family()
            self.reap()
            if not family and not self.is_running:
                return
            if self.may_kill and time.monotonic() >= due:
                signal_group(self.worker, signal.SIGKILL)
                signal_each(family, signal.SIGKILL)
            elif not self.is_running and not told_the_rest:
                signal_each(family, signal.SIGTERM)
                told_the_rest = True
            wait_for([self.wakeup], POLL_S if time.monotonic() < due else IDLE_POLL_S)

    def family(self) -> set[int]:
        """Every living process that descends from here."""
        self.seen = kin(process_table(), os.getpid(), self.worker, self.seen)
        return set(self.seen)


def kin(table: Table, root: int, group: int, seen: dict[int, str]) -> dict[int, str]:
    """Pid and start time of all that descends from ``root``, or is in ``group``, or was ``seen`` to be either.

    A process whose parent ended belongs to init on macOS, and only having been seen before gives it away.
    """
    found = {pid for pid, (_, its_group, _) in table.items() if its_group == group}
    found |= {pid for pid, started in seen.items() if pid in table and table[pid][2] == started}
    heirs = {root, *found}
    while heirs:
        heirs = {pid for pid, (parent, _, _) in table.items() if parent in heirs and pid not in found}
        found |= heirs
    return {pid: table[pid][2] for pid in found - {root}}


def receive_order() -> dict[str, Any]:
    """What to start and how to stop it, in full: a daemon that dies while it speaks has ordered nothing."""
    size = int.from_bytes(read_exactly(4), "big")
    order: dict[str, Any] = marshal.loads(read_exactly(size))  # noqa: S302 - from our own parent, the same interpreter
    return order


def read_exactly(size: int) -> bytes:
    """``size`` bytes from the daemon."""
    content = b""
    while len(content) < size:
        piece = os.read(CONTROL, size - len(content))
        if not piece:
            raise DaemonGoneError
        content += piece
    return content


def tell(line: str) -> None:
    """Say one line to the daemon, if it is still there."""
    with contextlib.suppress(OSError):
        os.write(CONTROL, line.encode() + b"\n")


def listen_for_children() -> int:
    """A descriptor that becomes readable when a child ends."""
    wakeup, alarm = os.pipe()
    os.set_blocking(wakeup, False)
    os.set_blocking(alarm, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
    return wakeup


def wait_for(descriptors: list[int], timeout_s: float | None) -> None:
    """Until one of them can be read."""
    select.select(descriptors, [], [], timeout_s)


def start(order: dict[str, Any]) -> int | None:
    """Fork and become the worker; its pid, once it runs the new program. None, and the reason told, if it cannot."""
    trouble_read, trouble_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        become_worker(order, trouble_write)
    os.close(trouble_write)
    trouble = b""
    while piece := os.read(trouble_read, 4096):
        trouble += piece
    os.close(trouble_read)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, OUTPUT)  # else the output would have no end while this process lives
    os.close(null)
    tell(trouble.decode() if trouble else f"started {pid}")
    return None if trouble else pid


def become_worker(order: dict[str, Any], trouble: int) -> NoReturn:
    """In the child: a session and group of its own, signals as a fresh process has them, nothing open but output."""
    step = "prepare"
    try:
        os.setsid()
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(OUTPUT, 1)
        step = "cwd"
        if order["cwd"] is not None:
            os.chdir(order["cwd"])
        step = "exec"
        os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - the whole point, and no shell
    except (OSError, ValueError) as error:
        os.write(trouble, f"failed {getattr(error, 'errno', 0)} {step}".encode())
    finally:
        os._exit(127)


def adopt_orphans() -> None:
    """On Linux: a grandchild that loses its parent becomes this process's child instead of init's."""
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes  # noqa: PLC0415 - not everywhere, and slow to import

            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def process_table() -> Table:
    """Parent, group and start time of every process that has not ended."""
    return table_of_linux() if sys.platform == "linux" else table_of_ps()


def table_of_linux() -> Table:
    """Read /proc: there may be no ``ps`` in a container."""
    table = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would double the start time
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
            # The program's name, in brackets, may hold anything; the fields begin behind the last bracket.
            state, parent, group, *rest = file.read().rpartition(b")")[2].split()
            if state not in (b"Z", b"X"):
                table[int(name)] = (int(parent), int(group), rest[16].decode())
    return table


def table_of_ps() -> Table:
    """Ask ``ps``, as macOS has no /proc."""
    import subprocess  # noqa: PLC0415 - slow to import, needed only at the end

    with subprocess.Popen(["/bin/ps", "-axo", "pid=,ppid=,pgid=,stat=,lstart="], stdout=subprocess.PIPE) as ps:
        lines = ps.communicate()[0].decode(errors="replace").splitlines()
    table = {}
    for line in lines:
        pid, parent, group, state, started = line.split(None, 4)
        if not state.startswith("Z") and int(pid) != ps.pid:
            table[int(pid)] = (int(parent), int(group), started)
    return table


def signal_group(group: int, number: int) -> None:
    """Send a signal to all of a group; nobody there is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def signal_each(pids: set[int], number: int) -> None:
    """Send a signal to each; who is gone is fine."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


if __name__ == "__main__":
    main()
