"""The daemon's log: its two shapes, its secrets, and that nobody waits for it."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import warnings
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import structlog

from supervisor.logs import Logs, configure, configure_logs
from supervisor.logs.lines import LINES_WAITING
from supervisor.settings import LogSettings


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = True
    structlog.reset_defaults()


@contextlib.contextmanager
def logs_to(stream: io.StringIO, **options: Any) -> Iterator[Logs]:
    logs = configure_logs(stream=stream, **options)
    try:
        yield logs
    finally:
        logs.close()


def documents(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_away_from_a_terminal_every_line_is_one_json_object() -> None:
    stream = io.StringIO()
    with logs_to(stream):
        structlog.get_logger("supervisor.x").warning("lane_state", lane="qwen", text="two\nlines", path=Path("/x"))
        logging.getLogger("some.library").error("it %s", "broke")
    own, foreign = documents(stream)
    assert (own["event"], own["level"], own["lane"], own["logger"]) == ("lane_state", "warning", "qwen", "supervisor.x")
    assert (own["text"], own["path"]) == ("two\nlines", "/x")
    assert datetime.fromisoformat(own["timestamp"]).tzinfo is not None
    assert (foreign["event"], foreign["level"], foreign["logger"]) == ("it broke", "error", "some.library")


def test_on_a_console_a_line_is_for_people() -> None:
    stream = io.StringIO()
    with logs_to(stream, log_format="console"):
        structlog.get_logger("x").info("lane_state", lane="qwen")
    assert "lane=qwen" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_secrets_do_not_get_into_the_log() -> None:
    stream = io.StringIO()
    with logs_to(stream, secrets=["sk-known-1"]) as logs:
        logs.hide(["sk-later-2"])
        log = structlog.get_logger("x")
        log.info("a", headers={"Authorization": "Bearer abcdefgh", "X-Api-Key": "k"}, api_keys=["one", "two"])
        log.info("b with sk-known-1", argv=["--key", "sk-later-2"], generated_tokens=7)
        try:
            int("Bearer sk-unknown-3")
        except ValueError:
            log.exception("c")
        logging.getLogger("lib").warning("sent Authorization: Bearer sk-unknown-4")
    text = stream.getvalue()
    for secret in ("abcdefgh", '"k"', "one", "two", "sk-known-1", "sk-later-2", "sk-unknown"):
        assert secret not in text
    assert documents(stream)[1]["generated_tokens"] == 7
    assert "ValueError" in text


def test_a_level_can_be_changed_while_running() -> None:
    stream = io.StringIO()
    with logs_to(stream, level="warning") as logs:
        structlog.get_logger("x").info("unheard")
        logs.set_level("debug")
        structlog.get_logger("x").debug("heard")
    assert [document["event"] for document in documents(stream)] == ["heard"]


def test_python_warnings_are_lines_too() -> None:
    stream = io.StringIO()
    with logs_to(stream), warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("old thing", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(capture=False)
    assert "old thing" in documents(stream)[0]["event"]


def test_a_file_is_private_json_rotated_by_size(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "freshlane.log"
    logs = configure_logs("console", path=path, max_bytes=2000, keep=2)
    for number in range(60):
        structlog.get_logger("x").info("line", number=number)
    logs.close()
    files = sorted(file.name for file in path.parent.iterdir())
    assert files == ["freshlane.log", "freshlane.log.1", "freshlane.log.2"]
    assert json.loads(path.read_text().splitlines()[-1])["number"] == 59
    for file in path.parent.iterdir():
        assert file.stat().st_size <= 2000
        assert file.stat().st_mode & 0o777 == 0o600


def test_the_settings_of_the_file_are_obeyed(tmp_path: Path) -> None:
    logs = configure(LogSettings.model_validate({"level": "warning", "max_size": "1kB"}), path=tmp_path / "log")
    for number in range(30):
        structlog.get_logger("x").info("unheard", number=number)
        structlog.get_logger("x").warning("heard", number=number)
    logs.close()
    assert "unheard" not in (tmp_path / "log").read_text()
    assert (tmp_path / "log.1").exists()


def test_a_reader_that_is_stuck_costs_lines_but_no_time() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        logs = configure_logs("json", stream=stream)
        log = structlog.get_logger("x")
        for _ in range(LINES_WAITING + 2000):
            log.info("line", ballast="x" * 100)
        assert logs.dropped > 0
        logs.close(timeout_s=0.05)
        os.close(reading)
        logs.close()
        with contextlib.suppress(BrokenPipeError):
            stream.close()


def test_under_journald_a_line_says_how_bad_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "journal").open("w+") as stream:
        about = os.fstat(stream.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{about.st_dev}:{about.st_ino}")
        logs = configure_logs(stream=stream)
        structlog.get_logger("x").error("bad")
        structlog.get_logger("x").info("good")
        logs.close()
        stream.seek(0)
        bad, good = stream.read().splitlines()
    assert bad.startswith("<3>{")
    assert json.loads(good.removeprefix("<6>"))["event"] == "good"
