"""A daemon that will not run, as each service manager has to see it: real processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import find_free_port


def run(config: Path, under: str, note: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "supervisor", "run", "--under", under, "-c", str(config)],
        env={**os.environ, "FRESHLANE_REFUSAL_FILE": str(note)},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(("under", "code"), [("launchd", 0), ("systemd", 2)])
def test_a_bad_lanes_yaml_ends_it_for_good_and_the_reason_is_kept(under: str, code: int, tmp_path: Path) -> None:
    config, note = tmp_path / "lanes.yaml", tmp_path / "new" / "note.json"
    config.write_text("lanes: {chat: {modle: x}}\n")
    ended = run(config, under, note)
    assert ended.returncode == code
    kept = json.loads(note.read_text())
    assert kept["exit_code"] == 2
    assert "modle" in kept["reason"]
    assert "modle" in ended.stderr


@pytest.mark.parametrize("under", ["launchd", "systemd"])
def test_a_taken_port_ends_it_for_good_and_the_reason_is_kept(under: str, tmp_path: Path) -> None:
    config, note, port = tmp_path / "lanes.yaml", tmp_path / "note.json", find_free_port()
    lanes = "lanes: {chat: {model: smol, start: on_demand}}"
    config.write_text(f"listen: 127.0.0.1:{port}\nstate_dir: {tmp_path}/state\n{lanes}\n")
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        ended = run(config, under, note)
    assert ended.returncode == (0 if under == "launchd" else 69)
    assert json.loads(note.read_text())["exit_code"] == 69
    assert f"127.0.0.1:{port} is taken" in json.loads(note.read_text())["reason"]


def test_a_lanes_yaml_that_has_gone_is_a_bad_one(tmp_path: Path) -> None:
    ended = run(tmp_path / "gone.yaml", "launchd", tmp_path / "note.json")
    assert ended.returncode == 0
    assert "gone.yaml" in json.loads((tmp_path / "note.json").read_text())["reason"]
