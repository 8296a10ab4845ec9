"""The texts that service managers read."""

from __future__ import annotations

import plistlib
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.cli.service.gather import Wanted, gather, stop_s, unknown_variables
from supervisor.cli.service.installed import refusal_of
from supervisor.config import load
from supervisor.jsontext import encode
from supervisor.units import ServiceTerms, launchd_plist, systemd_unit
from supervisor.units.systemd import command_line, quoted
from tests.service.examples import LAUNCHD, LAUNCHD_SYSTEM, SYSTEMD, SYSTEMD_USER, examples
from tests.system_tools import system_tool

LANES = """
fleet: {{shutdown_timeout: 20s}}
lanes:
  chat: {{command: [server, "{{port}}"], stop_timeout: 45s}}
  far: {{attach: "http://127.0.0.1:1", headers: {{Authorization: "${{env:{name}}}"}}}}
"""


def keys(unit: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in unit.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("path", examples(), ids=lambda path: str(path.relative_to(path.parents[2])))
def test_the_examples_are_what_the_generator_writes(path: Path) -> None:
    assert path.read_bytes() == examples()[path], "python -m tests.service.examples writes them anew"


def test_a_unit_says_when_to_restart_how_to_stop_and_that_it_will_tell() -> None:
    unit = keys(systemd_unit(SYSTEMD))
    assert unit["Type"] == ["notify"]
    assert unit["NotifyAccess"] == ["main"]
    assert unit["KillMode"] == ["mixed"]
    assert unit["SendSIGKILL"] == ["no"]
    assert unit["Restart"] == ["on-failure"]
    assert unit["RestartPreventExitStatus"] == ["2 69"]
    assert unit["TimeoutStopSec"] == ["152"]
    assert unit["ExecReload"] == ["/opt/freshlane/bin/freshlane reload -c /etc/freshlane/lanes.yaml"]
    assert all(line.startswith("/") for key in ("ExecStart", "ExecReload", "ExecStopPost") for line in unit[key])


def test_nothing_in_a_unit_breaks_jit_compilers_gpus_or_what_is_cached() -> None:
    harmful = {
        *("MemoryDenyWriteExecute", "PrivateDevices", "DevicePolicy", "ProtectHome", "PrivateTmp", "DynamicUser"),
        *("SystemCallFilter", "NoNewPrivileges", "ProtectKernelModules", "RestrictAddressFamilies", "PrivateNetwork"),
    }
    for terms in (SYSTEMD, SYSTEMD_USER):
        assert not harmful & set(keys(systemd_unit(terms)))


def test_a_users_unit_asks_for_nothing_that_a_users_manager_cannot_do() -> None:
    unit = keys(systemd_unit(SYSTEMD_USER))
    assert not {"User", "ProtectSystem", "After"} & set(unit)
    assert unit["WantedBy"] == ["default.target"]


def test_who_listens_beyond_the_machine_waits_for_the_network() -> None:
    assert keys(systemd_unit(replace(SYSTEMD, is_local=False)))["After"] == ["network-online.target"]


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("/plain/path", "/plain/path"),
        ("with space", '"with space"'),
        ('a "b" \\', '"a \\"b\\" \\\\"'),
        ("100%", "100%%"),
        ("it's", '"it\'s"'),
        ("", '""'),
    ],
)
def test_words_are_quoted_for_systemd(word: str, written: str) -> None:
    assert quoted(word) == written


def test_no_variable_is_expanded_in_a_command_line() -> None:
    assert command_line(["run", "$HOME/x"]) == "run $$HOME/x"


def test_a_plist_reads_back_as_a_job_that_is_not_throttled_and_gets_time_to_end() -> None:
    job = plistlib.loads(launchd_plist(LAUNCHD))
    assert job["ProcessType"] == "Interactive"
    assert job["LegacyTimers"] is True
    assert job["KeepAlive"] == {"SuccessfulExit": False}
    assert job["ProgramArguments"][1:4] == ["run", "--under", "launchd"]
    assert job["ExitTimeOut"] == 152
    assert job["SoftResourceLimits"] == {"NumberOfFiles": 65_536}
    assert job["LimitLoadToSessionType"] == ["Aqua", "Background"]
    assert "UserName" not in job
    system = plistlib.loads(launchd_plist(LAUNCHD_SYSTEM))
    assert system["UserName"] == "ann"
    assert "LimitLoadToSessionType" not in system


@pytest.mark.parametrize("terms", [LAUNCHD, LAUNCHD_SYSTEM], ids=["agent", "daemon"])
def test_another_reader_of_plists_reads_the_same(terms: ServiceTerms, tmp_path: Path) -> None:
    written, binary = tmp_path / "job.plist", tmp_path / "job.bplist"
    written.write_bytes(launchd_plist(terms))
    plistutil = system_tool("plistutil", package="libplist-utils")
    subprocess.run([plistutil, "-i", str(written), "-o", str(binary), "-f", "bin"], check=True, timeout=10)
    assert plistlib.loads(binary.read_bytes()) == plistlib.loads(written.read_bytes())


def lanes_file(folder: Path, name: str = "FAR_KEY") -> Path:
    path = folder / "lanes.yaml"
    path.write_text(LANES.format(name=name))
    return path


def test_the_time_to_stop_is_the_drain_a_save_and_the_longest_patience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAR_KEY", "Bearer x")
    assert stop_s(load(lanes_file(tmp_path)).settings) == 75  # with 10 s to save a prefix cache


def test_paths_are_absolute_and_only_named_variables_are_carried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAR_KEY", "Bearer x")
    monkeypatch.setenv("HF_HOME", "/models")
    monkeypatch.chdir(lanes_file(tmp_path).parent)
    terms = gather(Path("lanes.yaml"), Wanted(is_system=False), is_macos=False)
    assert terms.config == str(tmp_path / "lanes.yaml")
    assert all(word.startswith("/") for word in (terms.program[0], terms.settle[0], terms.settle[-1]))
    assert terms.environment["HF_HOME"] == "/models"
    assert "FAR_KEY" not in terms.environment
    assert unknown_variables(tmp_path / "lanes.yaml", terms.environment) == ["FAR_KEY"]
    carrying = gather(Path("lanes.yaml"), Wanted(is_system=False, names=("FAR_KEY",)), is_macos=False)
    assert carrying.environment["FAR_KEY"] == "Bearer x"


@pytest.mark.parametrize("kind", ["unit", "plist"])
def test_the_reason_of_a_refusal_is_found_through_what_is_installed(kind: str, tmp_path: Path) -> None:
    note = tmp_path / 'state 100% "odd"' / "refusal.json"
    note.parent.mkdir()
    terms = replace(SYSTEMD if kind == "unit" else LAUNCHD, refusal_file=str(note))
    content = systemd_unit(terms).encode() if kind == "unit" else launchd_plist(terms)
    assert refusal_of(content) is None
    note.write_text(encode({"time": "2026-01-01T00:00:00+00:00", "exit_code": 69, "reason": "the port is taken"}))
    refusal = refusal_of(content)
    assert refusal
    assert (refusal.exit_code, refusal.reason) == (69, "the port is taken")
