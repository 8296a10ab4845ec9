"""`freshlane probe --url` against a real fake worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.conftest import FakeWorkerFactory


async def test_any_server_is_measured_without_config_or_daemon(freshlane: Run, fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker(tok_s=400)
    ended = await freshlane("probe", "--url", f"{worker.url}/v1", "--model", "fake", "--json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert told["decode_tok_s"] == pytest.approx(400, rel=0.08)
    assert told["interval"][0] <= told["decode_tok_s"] <= told["interval"][1]
    assert len(told["samples"]) == 8
    assert 0 < told["uptime_s"] < 60
    assert told["voids"] == {}


async def test_after_a_restart_it_tells_what_that_brought(
    freshlane: Run, fake_worker: FakeWorkerFactory, tmp_path: Path
) -> None:
    kept = str(tmp_path / "before.json")
    asked = ("--model", "fake", "--compare", kept)
    slow, fresh = await fake_worker(tok_s=250), await fake_worker(tok_s=750)
    first = await freshlane("probe", "--url", slow.url, *asked)
    assert first.code == 0, first.err
    assert "restart the server" in first.out
    second = await freshlane("probe", "--url", fresh.url, *asked, "--json")
    told = json.loads(second.out)
    assert told["ratio"] == pytest.approx(3, rel=0.1)
    assert told["ratio_interval"][0] > 2.5
    in_words = await freshlane("probe", "--url", slow.url, *asked)
    assert "% of the rate kept in" in in_words.out


async def test_a_server_that_gives_no_rate_is_said_why(freshlane: Run, fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker(mode="500")
    ended = await freshlane("probe", "--url", worker.url, "--model", "fake")
    assert ended.code == 1
    assert "gave no rate: HTTP 500" in ended.err


async def test_a_file_that_is_no_kept_probe_is_refused(freshlane: Run, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("shopping")
    ended = await freshlane("probe", "--url", "http://127.0.0.1:1", "--model", "m", "--compare", str(file))
    assert ended.code == 2
    assert "name another file" in ended.err
