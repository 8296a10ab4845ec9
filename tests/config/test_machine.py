"""What a lane names that is not on this machine."""

from __future__ import annotations

from pathlib import Path

from supervisor.config import machine_warnings
from tests.config.loading import loaded


def warnings(body: str, folder: Path) -> list[str]:
    settings = loaded(f"lanes: {{good: {{model: m}}, a: {{{body}}}}}", folder=folder).settings
    found = machine_warnings(settings)
    assert all(problem.lane == "a" for problem in found)
    return [problem.key for problem in found]


def test_a_missing_program_folder_or_model_is_named_with_its_lane(tmp_path: Path) -> None:
    body = 'command: [no-such-program, "{port}"], cwd: nowhere, model: ./no-model'
    assert warnings(body, tmp_path) == ["lanes.a.command", "lanes.a.cwd", "lanes.a.model"]
    assert warnings("attach: http://h, restart_command: [no-such-program]", tmp_path) == ["lanes.a.restart_command"]
    assert warnings("model: m, speculation: {method: draft, draft: nowhere}", tmp_path) == ["lanes.a.speculation.draft"]


def test_what_is_there_is_not_named(tmp_path: Path) -> None:
    program = tmp_path / "serve"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert warnings('command: [sh, "{port}"], cwd: "."', tmp_path) == []
    assert warnings(f'command: [{program}, "{{port}}"]', tmp_path) == []
    assert warnings(f'command: [serve, "{{port}}"], env: {{PATH: {tmp_path}}}', tmp_path) == []


def test_a_file_that_may_not_be_run_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "serve").write_text("")
    assert warnings(f'command: [{tmp_path}/serve, "{{port}}"]', tmp_path) == ["lanes.a.command"]
