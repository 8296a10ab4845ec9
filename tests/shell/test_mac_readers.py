"""What macOS tells, read from values and outputs that were written down: nothing here runs on a Mac."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from supervisor.core.states import LaneState
from supervisor.shell.machine import darwin
from supervisor.shell.machine.awake import Awake, Work, needs_awake
from supervisor.shell.machine.panics import recent_gpu_panic
from supervisor.shell.machine.strain import Readers, Strain, low_power
from tests.shell.workers import children_called
from tests.waiting import wait_until

GB = 10**9


class Library:
    """Stands in for libproc and libSystem: fills in what a call was seen to fill in."""

    def __init__(self, **fills: Any) -> None:
        self._fills = fills

    def __getattr__(self, name: str) -> Any:
        if name not in self._fills:
            raise AttributeError(name)
        return self._fills[name]


def into(pointer: Any) -> Any:
    """What a ``byref`` points to."""
    return pointer._obj


def test_the_footprint_is_the_tenth_word_of_the_usage_and_the_start_the_eleventh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def proc_pid_rusage(pid: Any, flavor: Any, buffer: Any) -> int:
        if pid.value != 4711:
            return -1
        uuid, counters = [1, 2], [10, 20, 30, 40, 50, 6 * GB, 7 * GB]  # ..., wired, resident
        for place, word in enumerate([*uuid, *counters, 9 * GB, 123_456_789, 0]):
            into(buffer)[place] = word
        return 0

    monkeypatch.setattr(darwin, "_libproc", lambda: Library(proc_pid_rusage=proc_pid_rusage))
    assert darwin.usage_of(4711) == darwin.Usage(9 * GB, 123_456_789)
    assert darwin.usage_of(1) is None


@pytest.mark.parametrize(
    ("level", "word"),
    [(0, "nominal"), (1, "moderate"), (2, "heavy"), (3, "trapping"), (4, "sleeping"), (9, "sleeping")],
)
def test_heat_is_read_from_the_notification_of_its_level(
    level: int, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def notify_register_check(name: bytes, token: Any) -> int:
        assert name == b"com.apple.system.thermalpressurelevel"
        into(token).value = 7
        return 0

    def notify_get_state(token: Any, state: Any) -> int:
        assert token.value == 7
        into(state).value = level
        return 0

    library = Library(notify_register_check=notify_register_check, notify_get_state=notify_get_state)
    monkeypatch.setattr(darwin, "_system", lambda: library)
    darwin._thermal_token.cache_clear()
    assert darwin.thermal_pressure() == word
    darwin._thermal_token.cache_clear()


@pytest.mark.parametrize(("level", "word"), [(1, "normal"), (2, "warning"), (4, "critical"), (77, None)])
def test_memory_pressure_is_read_from_the_kernel(level: int, word: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def sysctlbyname(name: bytes, value: Any, size: Any, new: None, new_size: Any) -> int:
        assert name == b"kern.memorystatus_vm_pressure_level"
        assert into(size).value == ctypes.sizeof(ctypes.c_int32)
        into(value).value = level
        return 0

    monkeypatch.setattr(darwin, "_system", lambda: Library(sysctlbyname=sysctlbyname))
    assert darwin.memory_pressure() == word


def test_compressed_memory_is_read_from_the_kernel_in_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    def sysctlbyname(name: bytes, value: Any, size: Any, new: None, new_size: Any) -> int:
        assert (name, into(size).value) == (b"vm.compressor_bytes_used", 8)
        into(value).value = 9 * GB
        return 0

    monkeypatch.setattr(darwin, "_system", lambda: Library(sysctlbyname=sysctlbyname))
    assert darwin.compressed_bytes() == 9 * GB


PMSET = """System-wide power settings:
Currently in use:
 standby              1
 Sleep On Power Button 1
 hibernatefile        /var/vm/sleepimage
 powernap             1
 networkoversleep     0
 disksleep            10
 sleep                1 (sleep prevented by caffeinate)
 hibernatemode        3
 ttyskeepawake        1
 displaysleep         10
 tcpkeepalive         1
 {line}
 womp                 1
"""


@pytest.mark.parametrize(
    ("line", "is_low"),
    [
        ("lowpowermode         1", True),
        ("lowpowermode         0", False),
        ("powermode            1", True),
        ("powermode            2", False),
        ("lessbright           1", None),
    ],
)
def test_low_power_is_read_from_pmset(line: str, is_low: bool | None) -> None:
    assert low_power(lambda: PMSET.format(line=line)) is is_low


def test_a_machine_that_is_hot_short_of_memory_or_saving_power_is_strained() -> None:
    calm = Readers(lambda: "nominal", lambda: "normal", lambda: False)
    assert Strain(calm).words() is None
    assert "hot (heavy)" in (Strain(replace(calm, heat=lambda: "heavy")).words() or "")
    assert "memory is short" in (Strain(replace(calm, memory=lambda: "critical")).words() or "")
    saving = Strain(replace(calm, power=lambda: True))
    assert saving.words() is None
    saving.refresh()
    assert saving.words() == "low power mode is on"
    assert Strain(Readers()).words() is None


HEADER = '{"bug_type":"210","timestamp":"2026-01-03 09:12:44.00 +0100","os_version":"macOS 26.2","incident_id":"X"}\n'
GPU = (
    HEADER + '{"panicString" : "panic(cpu 4 caller 0xfffffe0031): \\"completeMemory() prepare count underflow\\" '
    '@IOGPUMemory.cpp:550\\nDebugger message: panic"}\n'
)
OTHER = HEADER + '{"panicString" : "panic(cpu 0 caller 0xfffffe0031): watchdog timeout: no checkins from watchdogd"}\n'


def report(folder: Path, name: str, content: str, wall: float) -> Path:
    path = folder / name
    path.write_text(content)
    os.utime(path, (wall, wall))
    return path


def test_the_newest_recent_panic_of_the_gpu_is_found_among_others(tmp_path: Path) -> None:
    now = 2_000_000.0
    report(tmp_path, "panic-full-old.panic", GPU, now - 90_000)
    report(tmp_path, "panic-full-watchdog.panic", OTHER, now - 10)
    assert recent_gpu_panic(now, tmp_path) is None
    report(tmp_path, "panic-full-a.panic", GPU, now - 7_200)
    newest = report(tmp_path, "panic-full-b.panic", GPU, now - 3_600)
    report(tmp_path, "Kernel.crash", GPU, now)
    found = recent_gpu_panic(now, tmp_path)
    assert found
    assert (found.path, found.mark) == (newest, "IOGPUMemory")
    assert recent_gpu_panic(now, tmp_path / "nowhere") is None


def work(
    power: Literal["busy", "always", "never"] = "busy", state: LaneState = LaneState.SERVING, requests: int = 0
) -> Work:
    return Work(power, state, requests)


@pytest.mark.parametrize(
    ("lane", "is_needed"),
    [
        (work(), False),
        (work(requests=1), True),
        (work(state=LaneState.STARTING), True),
        (work(state=LaneState.DRAINING), True),
        (work(power="always", state=LaneState.UNLOADED), True),
        (work(power="never", state=LaneState.STARTING, requests=3), False),
    ],
)
def test_a_lane_with_work_wants_the_machine_awake(lane: Work, is_needed: bool) -> None:
    assert needs_awake([work(), lane]) is is_needed


CAFFEINATE = """#!{python}
import pathlib, signal, sys
pathlib.Path({calls!r}).open("a").write(" ".join(sys.argv[1:]) + "\\n")
signal.pause()
"""


async def test_caffeinate_runs_exactly_while_it_is_needed_and_is_tied_to_this_process(tmp_path: Path) -> None:
    program, calls = tmp_path / "caffeinate", tmp_path / "calls"
    program.write_text(CAFFEINATE.format(python=sys.executable, calls=str(calls)))
    program.chmod(0o755)
    awake = Awake((str(program), "-i"))
    await awake.keep(False)
    assert not awake.is_kept
    await awake.keep(True)
    await awake.keep(True)
    await wait_until(lambda: calls.read_text().endswith("\n"), 10.0, "caffeinate to run")
    assert awake.is_kept
    await awake.keep(False)
    assert not awake.is_kept
    assert calls.read_text() == f"-i -w {os.getpid()}\n"
    assert children_called(str(program)) == []


async def test_where_caffeinate_cannot_be_run_nothing_is_held_and_nothing_fails(tmp_path: Path) -> None:
    awake = Awake((str(tmp_path / "missing"),))
    await awake.keep(True)
    assert not awake.is_kept
    await awake.close()
