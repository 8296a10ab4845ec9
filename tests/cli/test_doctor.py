"""`freshlane doctor`: each finding says what to do, and the report does not say whose machine it is."""

from __future__ import annotations

import json
import plistlib
import resource
import socket
from pathlib import Path

import pytest

from supervisor.cli.doctor.anonymous import Anonymous
from supervisor.cli.doctor.limits import judge
from supervisor.cli.doctor.machine import Machine, machine
from supervisor.cli.doctor.service import environment_of, service
from supervisor.cli.service.installed import refusal_of
from supervisor.config.load import load_content
from supervisor.settings import Settings
from tests.cli.conftest import Run
from tests.conftest import find_free_port


def settings_of(text: str) -> Settings:
    return load_content(text.encode(), "lanes.yaml", Path("/"), {}).settings


def write(folder: Path, port: int, more: str = "") -> None:
    text = (
        f"listen: 127.0.0.1:{port}\nstate_dir: {folder / 'state'}\nlanes:\n  smollm2:\n    model: smollm2-135m\n{more}"
    )
    (folder / "lanes.yaml").write_text(text)


async def test_on_a_sound_machine_nothing_is_bad(freshlane: Run, tmp_path: Path) -> None:
    write(tmp_path, port := find_free_port())
    ended = await freshlane("doctor")
    assert ended.code == 0, ended
    assert f"127.0.0.1:{port} is free; no daemon runs" in ended.out
    assert "lanes.yaml: 1 lane" in ended.out


async def test_without_a_file_it_says_how_to_write_one(freshlane: Run) -> None:
    ended = await freshlane("doctor")
    assert ended.code == 1
    assert "write one: freshlane init" in ended.out


async def test_every_ill_has_a_remedy(freshlane: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        more = "  big:\n    command: [no-such-program, --port, '{port}']\n  mine:\n    model: org/not-here\n"
        write(tmp_path, port, more)
        ended = await freshlane("doctor", "--json")
    found = {(one["level"], one["subject"]): one for one in json.loads(ended.out)["findings"]}
    assert ended.code == 1
    assert "stop it, or set `listen`" in found["bad", "port"]["remedy"]
    assert 'program "no-such-program" is not on PATH' in found["bad", "lanes.yaml"]["text"]
    assert "hf download org/not-here" in found["warn", "lane mine"]["remedy"]
    assert all(one["remedy"] for one in found.values() if one["level"] != "good")


async def test_each_error_of_the_file_is_a_finding(freshlane: Run, tmp_path: Path) -> None:
    write(tmp_path, 7499, "    modle: x\n    canary: {every: 5}\n")
    ended = await freshlane("doctor", "--json")
    assert [one["level"] for one in json.loads(ended.out)["findings"]][:2] == ["bad", "bad"]


async def test_the_report_is_one_file_that_names_nobody(freshlane: Run, tmp_path: Path) -> None:
    more = (
        "    headers: {X-Mine: hush-hush}\n"
        "  other:\n    command: [python3, -m, x, --api-key, sk-very-secret, '{port}']\n    env: {A_TOKEN: hush-hush}\n"
    )
    write(tmp_path, find_free_port(), more)
    (tmp_path / "state").mkdir(mode=0o700)
    record = {"id": "1", "lane": "smollm2", "trigger": "operator", "reason": "Ann said so", "outcome": "replaced"}
    (tmp_path / "state/recycle.jsonl").write_text(json.dumps(record) + "\n" + '{"torn')
    ended = await freshlane("doctor", "--report", "report.json")
    assert ended.code == 0, ended
    text = (tmp_path / "report.json").read_text()
    for own in (str(tmp_path), "hush-hush", "sk-very-secret", "Ann", socket.gethostname()):
        assert own not in text, own
    assert [one["outcome"] for one in json.loads(text)["recycles"]] == ["replaced"]
    again = await freshlane("doctor", "--report", "report.json")
    assert again.code == 2
    assert (tmp_path / "report.json").read_text() == text


def test_what_names_a_person_or_a_machine_is_taken_out_of_running_text() -> None:
    told = Anonymous({"/Users/ann": "~", "anns-mac": "<host>", "ann": "<user>"}, ["s3cret"]).text(
        "/Users/ann/x /home/bob/y anns-mac ann annual https://u:p@gpu.lan:8000/v1 http://127.0.0.1:8000 10.0.0.7 "
        "127.0.0.1 a.b@c.org Bearer abcdefgh s3cret --hf-token=xyz"
    )
    assert told == (
        "~/x ~/y <host> <user> annual https://<host>:8000/v1 http://127.0.0.1:8000 <address> "
        "127.0.0.1 <mail> Bearer *** *** --hf-token=***"
    )


@pytest.mark.parametrize(
    ("soft", "level"), [(256, "warn"), (128, "bad"), (1024, "good"), (resource.RLIM_INFINITY, "good")]
)
def test_few_open_files_are_told_of(soft: int, level: str) -> None:
    finding = judge(soft, resource.RLIM_INFINITY)
    assert finding.level == level
    assert (level == "good") == (not finding.remedy)


HALE = Machine(32 * 10**9, 20 * 10**9, 0, 0.1, is_on_battery=False, is_low_power=False, thermal_pressure="nominal")
ILL = Machine(32 * 10**9, 10**9, 9 * 10**9, 2.0, is_on_battery=True, is_low_power=True, thermal_pressure="heavy")


def test_memory_power_and_heat_are_judged() -> None:
    lanes = settings_of("lanes: {a: {model: org/m, memory: {limit: 20GB}}, b: {model: org/n, memory: {limit: 20GB}}}")
    assert {one.level for one in machine(HALE, None)} == {"good"}
    assert [one.subject for one in machine(ILL, lanes) if one.level == "warn"] == [
        "memory",
        "memory",
        "power",
        "heat",
        "processors",
    ]


UNIT = """[Service]
Environment="PATH=/usr/bin:/bin"
Environment=HF_HOME=/models
"""


def test_the_service_is_held_against_what_lanes_need(tmp_path: Path) -> None:
    unit, config = tmp_path / "freshlane.service", tmp_path / "lanes.yaml"
    unit.write_text(UNIT)
    config.write_text('api_keys: ["${env:KEY}"]\n')
    settings = settings_of("lanes: {a: {command: [no-such-server, --port, '{port}']}}")
    assert environment_of(UNIT.encode()) == {"PATH": "/usr/bin:/bin", "HF_HOME": "/models"}
    told = [(one.level, one.text) for one in service([unit], config, settings)]
    assert told == [
        ("good", f"installed: {unit}"),
        ("warn", "lanes.yaml takes KEY from the environment, which the service does not have"),
        ("bad", "no-such-server of lane a is not on the service's PATH"),
    ]
    assert [one.level for one in service([tmp_path / "none"], config, settings)] == ["good"]


def test_a_plists_variables_are_read_too() -> None:
    plist = plistlib.dumps({"Label": "freshlane", "EnvironmentVariables": {"PATH": "/usr/bin"}})
    assert environment_of(plist) == {"PATH": "/usr/bin"}
    assert environment_of(b"<?xml torn") == {}
    assert refusal_of(b"<?xml torn") is None
