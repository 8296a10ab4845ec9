"""Which versions a lane runs."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path

import pytest

from supervisor.config import load
from supervisor.settings import LaneSettings
from supervisor.shell.lane.fingerprint import fingerprint_parts
from supervisor.shell.lane.versions import what_runs


def lane_of(folder: Path, text: str) -> LaneSettings:
    config = folder / "lanes.yaml"
    config.write_text(f"lanes: {{chat: {{{text}}}}}\n")
    return load(config).settings.lanes["chat"]


def install(environment: Path, package: str, version: str) -> None:
    folder = environment / "lib" / "python3.11" / "site-packages" / f"{package}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """A console script as pip writes them, in an environment of its own."""
    script = tmp_path / "venv" / "bin" / "mlx_lm.server"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!{script.parent}/python3\nimport mlx_lm\n")
    script.chmod(0o755)
    install(tmp_path / "venv", "mlx_lm", "0.31.0")
    install(tmp_path / "venv", "requests", "2.0")
    return script


def test_a_script_of_a_python_environment_runs_the_packages_of_that_environment(tmp_path: Path, server: Path) -> None:
    lane = lane_of(tmp_path, f'command: ["{server}", "--port", "{{port}}"], served_model: qwen')
    assert what_runs(lane) == {"model": "qwen", "versions": {"mlx-lm": "0.31.0"}}


def test_an_update_behind_the_same_script_changes_the_fingerprint_by_name(tmp_path: Path, server: Path) -> None:
    lane = lane_of(tmp_path, f'command: ["{server}", "--port", "{{port}}"]')
    before = fingerprint_parts(lane)
    old = next((tmp_path / "venv").rglob("mlx_lm-*.dist-info"))
    (old / "METADATA").unlink()
    old.rmdir()
    install(tmp_path / "venv", "mlx_lm", "0.32.2")
    after = fingerprint_parts(lane)
    assert {name for name in before | after if before.get(name) != after.get(name)} == {"version of mlx-lm"}


def test_our_own_engine_is_named_by_its_packages(tmp_path: Path) -> None:
    ran = what_runs(lane_of(tmp_path, "model: smollm2-135m"))
    assert ran["versions"]["mlx-lm"] == metadata.version("mlx-lm")


@pytest.mark.parametrize("command", [os.devnull, sys.executable + "-that-is-not-there", "true"])
def test_a_server_that_is_no_python_program_has_no_versions(tmp_path: Path, command: str) -> None:
    lane = lane_of(tmp_path, f'command: ["{command}", "{{port}}"], model: qwen')
    assert what_runs(lane) == {"model": "qwen", "versions": {}}
