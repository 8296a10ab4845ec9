"""The judge on the numbers of three public reports reaches what their threads reached."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from supervisor.cli.commands.replay import SHIPPED, replay_file
from supervisor.cli.exits import UsageError
from supervisor.core.samples import Status
from supervisor.core.speed.replay import Recorded, losses, replay, slow_from_the_start


def shown(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    replay_file(name, as_json=True)
    return dict(json.loads(capsys.readouterr().out))


def test_a_decay_over_ten_hours_is_found_on_the_way_down_and_the_new_process_is_well(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = shown("omlx-3723", capsys)
    (convicted,) = [said for said in document["said"] if said["status"] == "degraded"]
    assert convicted["worker"] == 1
    assert 2 < convicted["age_s"] / 3600 < 6
    assert 0.5 < convicted["ratio"] < 0.8
    assert document["lost"][0]["tokens"] > 300_000
    assert document["said"][-1]["worker"] == 2
    assert document["said"][-1]["status"] == "healthy"


def test_a_fall_to_a_pinned_gear_is_found_within_a_quarter_of_an_hour(capsys: pytest.CaptureFixture[str]) -> None:
    document = shown("freetoken", capsys)
    (convicted,) = [said for said in document["said"] if said["status"] == "degraded"]
    assert 15 < convicted["age_s"] / 60 < 45
    assert convicted["ratio"] < 0.3
    assert document["context"] is None


def test_slow_at_a_long_context_from_the_first_run_on_is_not_age(capsys: pytest.CaptureFixture[str]) -> None:
    document = shown("dflash-32", capsys)
    assert not document["lost"]
    assert document["context"]["large"] == 8392
    replay_file("dflash-32")
    assert "the context, not age" in capsys.readouterr().out


def test_the_same_numbers_without_decay_recycle_nothing() -> None:
    runs = [Recorded(at * 100.0, 60.0 + at % 7, 256, 1) for at in range(1000)]
    said = replay(runs, 300.0)
    assert [one.verdict.status for one in said] == [Status.HEALTHY]
    assert not list(losses(runs, said))
    assert slow_from_the_start(runs) is None


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED.iterdir()))
def test_every_record_that_ships_says_what_is_reported_and_what_is_assumed(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    replay_file(name)
    assert len(capsys.readouterr().out.splitlines()) > 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no runs"),
        ("{", "not a JSON object"),
        ('{"tok_s": 1}', "wants at"),
        ('{"at": 0, "tok_s": -1}', "wants at"),
        ('{"at": 5, "tok_s": 1}\n{"at": 4, "tok_s": 1}', ":2: wants at"),
    ],
)
def test_a_record_that_cannot_be_read_is_named_by_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "record.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        replay_file(str(path))


def test_a_name_that_does_not_ship_is_answered_with_those_that_do() -> None:
    with pytest.raises(UsageError, match="dflash-32, freetoken, omlx-3723"):
        replay_file("nothing")
