"""`freshlane probe --url` against a real fake worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.stand_in import StandIn
from tests.conftest import FakeWorkerFactory, find_free_port

SLOW, FRESH = 150, 450
"""Tokens/s of a server before and after its restart; at more, a busy machine would be what is measured."""


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
    slow, fresh = await fake_worker(tok_s=SLOW), await fake_worker(tok_s=FRESH)
    first = await freshlane("probe", "--url", slow.url, *asked)
    assert first.code == 0, first.err
    assert "restart the server" in first.out
    second = await freshlane("probe", "--url", fresh.url, *asked, "--json")
    assert second.code == 0, second.err
    told = json.loads(second.out)
    assert told["ratio"] == pytest.approx(FRESH / SLOW, rel=0.25)
    low, high = told["ratio_interval"]
    assert 1 < low <= told["ratio"] <= high
    in_words = await freshlane("probe", "--url", slow.url, *asked)
    assert "% of the rate kept in" in in_words.out


async def test_without_a_file_the_last_probe_of_that_server_is_remembered(
    freshlane: Run, fake_worker: FakeWorkerFactory
) -> None:
    worker = await fake_worker(tok_s=400)
    first = await freshlane("probe", "--url", worker.url)
    assert first.code == 0, first.err
    assert "restart the server, run this again" in first.out
    again = await freshlane("probe", "--url", f"{worker.url}/v1")
    assert "% of the rate last (" in again.out, again.out
    told = json.loads((await freshlane("probe", "--url", worker.url, "--json")).out)
    assert told["ratio"] == pytest.approx(1, rel=0.1)
    assert "before" not in told["before"]


async def test_a_server_that_was_restarted_since_is_told_so(freshlane: Run, fake_worker: FakeWorkerFactory) -> None:
    port = find_free_port()
    slow = await fake_worker(tok_s=SLOW, port=port)
    assert (await freshlane("probe", "--url", slow.url)).code == 0
    await slow.end()
    fresh = await fake_worker(tok_s=FRESH, port=port)
    ended = await freshlane("probe", "--url", fresh.url)
    assert "% of the rate before its restart (" in ended.out, ended.out + ended.err


async def test_a_server_of_several_models_is_asked_for_by_name(freshlane: Run, stand_in: StandIn) -> None:
    stand_in.answers["/v1/models"] = 200, {"data": [{"id": "small"}, {"id": "large"}]}
    ended = await freshlane("probe", "--url", stand_in.url)
    assert (ended.code, ended.err) == (
        2,
        f"which model of {stand_in.url}? It has small, large; name one with --model\n",
    )


async def test_the_address_of_the_daemon_is_not_taken_for_a_server(freshlane: Run, stand_in: StandIn) -> None:
    ended = await freshlane("probe", url=stand_in.url)
    assert ended.code == 2
    assert ended.err.startswith("probe what?")


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
