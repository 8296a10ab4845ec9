"""What a baseline belongs to."""

from __future__ import annotations

from pathlib import Path

from supervisor.config import load
from supervisor.settings import LaneSettings
from supervisor.shell.lane.fingerprint import fingerprint_of, fingerprint_parts


def lane_of(folder: Path, keys: str = "") -> LaneSettings:
    config = folder / "lanes.yaml"
    config.write_text(f'lanes: {{chat: {{command: [server, "{{port}}"]{keys}}}}}\n')
    return load(config).settings.lanes["chat"]


def test_a_service_and_a_terminal_have_baselines_of_their_own(tmp_path: Path) -> None:
    lane = lane_of(tmp_path)
    prints = {fingerprint_of(fingerprint_parts(lane, under)) for under in (None, "launchd", "systemd", None)}
    assert len(prints) == 3


def test_what_changed_is_told_by_its_name(tmp_path: Path) -> None:
    watched = tmp_path / "settings.json"
    watched.write_text("{}")
    before = fingerprint_parts(lane_of(tmp_path, f", watch_files: [{watched}]"))
    watched.write_text('{"mtp": true}')
    after = fingerprint_parts(lane_of(tmp_path, f", watch_files: [{watched}], env: {{A: b}}"))
    assert {name for name in before.keys() | after if before.get(name) != after.get(name)} == {
        "env",
        f"the file {watched}",
    }
    assert fingerprint_of(before) != fingerprint_of(after)
