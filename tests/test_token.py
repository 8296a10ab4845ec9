"""The admin token: private, kept, and never a reason not to run."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from supervisor.token import ensure_token, read_token, token_path


def test_a_token_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    token = ensure_token(state_dir)
    assert len(token) >= 40
    assert ensure_token(state_dir) == token
    assert read_token(state_dir) == token
    assert stat.S_IMODE(token_path(state_dir).stat().st_mode) == 0o600
    assert stat.S_IMODE(state_dir.stat().st_mode) == 0o700


def test_a_token_that_others_could_read_is_replaced(tmp_path: Path) -> None:
    token = ensure_token(tmp_path)
    token_path(tmp_path).chmod(0o644)
    assert ensure_token(tmp_path) != token
    assert stat.S_IMODE(token_path(tmp_path).stat().st_mode) == 0o600


def test_a_link_in_place_of_the_token_is_replaced_and_its_target_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("x" * 40)
    token_path(tmp_path).symlink_to(target)
    token = ensure_token(tmp_path)
    assert token != "x" * 40
    assert target.read_text() == "x" * 40
    assert read_token(tmp_path) == token


@pytest.mark.parametrize("content", [b"", b"\n", b"short", b"\xff" * 40])
def test_rubbish_is_no_token(tmp_path: Path, content: bytes) -> None:
    token_path(tmp_path).write_bytes(content)
    assert read_token(tmp_path) is None
    assert len(ensure_token(tmp_path)) >= 40


def test_a_token_that_cannot_be_written_still_guards_this_daemon(tmp_path: Path) -> None:
    token_path(tmp_path).mkdir()
    assert len(ensure_token(tmp_path)) >= 40
    assert read_token(tmp_path) is None
