"""What a baseline belongs to."""

from __future__ import annotations

from pathlib import Path

from supervisor.config import load
from supervisor.shell.lane.fingerprint import fingerprint


def test_a_service_and_a_terminal_have_baselines_of_their_own(tmp_path: Path) -> None:
    config = tmp_path / "lanes.yaml"
    config.write_text('lanes: {chat: {command: [server, "{port}"]}}\n')
    lane = load(config).settings.lanes["chat"]
    assert fingerprint(lane) == fingerprint(lane)
    assert len({fingerprint(lane, under) for under in (None, "launchd", "systemd")}) == 3
