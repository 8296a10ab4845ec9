"""Folders that are filled once, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.cache_folder import build_once


def test_a_folder_is_built_once_and_whole(tmp_path: Path) -> None:
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "weights").write_text("all of them")

    for _ in range(2):
        assert (build_once(tmp_path / "model", build) / "weights").read_text() == "all of them"
    assert len(built) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "half").write_text("of it")
        raise ValueError("no network")

    with pytest.raises(ValueError, match="no network"):
        build_once(tmp_path / "model", build)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_but_not_what_is_being_built(tmp_path: Path) -> None:
    old, fresh = tmp_path / ".model-old", tmp_path / ".model-fresh"
    for folder in (old, fresh):
        folder.mkdir()
        (folder / "part").write_text("x")
    for path in (old / "part", old):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    build_once(tmp_path / "model", lambda _: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".model-fresh", "model"]
