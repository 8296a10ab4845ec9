"""/api as a client sees it: what is there, what is refused and why, and what a client that leaves leaves behind."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from supervisor.core.account.record import Outcome, RecycleRecord
from supervisor.core.samples import Purpose, Sample
from supervisor.core.terms import Trigger
from tests.api.small_fleet import NOW, SmallFleet
from tests.waiting import wait_until


async def get(client: aiohttp.ClientSession, path: str, status: int = 200) -> dict[str, Any]:
    async with client.get(path) as answer:
        document: dict[str, Any] = await answer.json()
        assert answer.status == status, document
        return document


async def post(client: aiohttp.ClientSession, path: str, status: int, body: bytes = b"") -> dict[str, Any]:
    async with client.post(path, data=body) as answer:
        document: dict[str, Any] = await answer.json()
        assert answer.status == status, document
        return document


async def test_lanes_are_shown_as_their_runners_show_them(
    small_client: aiohttp.ClientSession, small_fleet: SmallFleet
) -> None:
    document = await get(small_client, "/api/lanes")
    assert document["lanes"] == [lane.snapshot() for lane in small_fleet.lanes.values()]
    assert await get(small_client, "/api/lanes/qwen") == small_fleet.qwen.snapshot()
    assert await get(small_client, "/api/lanes/coder") == small_fleet.qwen.snapshot(), "an alias names the lane, too"
    async with small_client.get("/api/lanes") as answer:
        assert answer.headers["Cache-Control"] == "no-store"


async def test_a_lane_with_a_slash_in_its_name_has_a_path(small_client: aiohttp.ClientSession) -> None:
    assert (await get(small_client, "/api/lanes/a%2Fb"))["name"] == "a/b"


async def test_an_unknown_lane_is_named_beside_those_that_are_known(small_client: aiohttp.ClientSession) -> None:
    for path in ("/api/lanes/qwne", "/api/lanes/qwne/logs", "/api/lanes/qwne/baseline"):
        error = (await get(small_client, path, 404))["error"]
        assert error["message"] == "no lane 'qwne'; the lanes are: a/b, qwen"
        assert (error["code"], error["source"]) == ("lane_not_found", "freshlane")
    await post(small_client, "/api/lanes/qwne/probe", 404)


@pytest.mark.parametrize("what", ["probe", "recycle", "drain", "resume", "start", "stop"])
async def test_a_lane_is_asked_with_reason_and_told_that_it_is_under_way(
    small_client: aiohttp.ClientSession, small_fleet: SmallFleet, what: str
) -> None:
    body = json.dumps({"reason": "für mich", "now": True}).encode()
    assert await post(small_client, f"/api/lanes/coder/{what}", 202, body) == {"lane": "qwen", "asked": what}
    await post(small_client, f"/api/lanes/a%2Fb/{what}", 202)
    assert small_fleet.qwen.asked == [(what, "für mich", True)]
    assert small_fleet.lanes["a/b"].asked == [(what, "", False)]


async def test_who_waits_gets_the_outcome(small_client: aiohttp.ClientSession) -> None:
    assert (await post(small_client, "/api/lanes/qwen/drain?wait=true", 200))["state"] == "drained"
    error = (await post(small_client, "/api/lanes/qwen/recycle?wait=1", 504))["error"]
    assert "under way" in error["message"]


async def test_what_the_state_forbids_is_a_conflict_with_the_lanes_own_words(
    small_client: aiohttp.ClientSession,
) -> None:
    await post(small_client, "/api/lanes/qwen/stop", 202)
    error = (await post(small_client, "/api/lanes/qwen/stop", 409))["error"]
    assert error["message"] == "qwen: stop would do nothing; it is stopped"
    assert error["code"] == "refused"


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b"{", "body"),
        (b"[1]", "body"),
        (b"\xff", "body"),
        (b"[" * 50_000, "body"),
        (b" " * 70_000, "body"),
        (b'{"reason": 5}', "reason"),
        (b'{"reason": "' + b"x" * 501 + b'"}', "reason"),
        (b'{"now": "yes"}', "now"),
        (b'{"nwo": true}', "nwo"),
    ],
)
async def test_a_body_that_makes_no_sense_is_refused_by_name_and_asks_nothing(
    small_client: aiohttp.ClientSession, small_fleet: SmallFleet, body: bytes, name: str
) -> None:
    error = (await post(small_client, "/api/lanes/qwen/stop", 400, body))["error"]
    assert (error["param"], error["code"]) == (name, "invalid_parameter")
    assert error["message"].startswith(name)
    assert small_fleet.qwen.asked == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/api/recycles?limit=-1", "limit"),
        ("/api/recycles?limit=many", "limit"),
        ("/api/recycles?limit=10001", "limit"),
        ("/api/recycles?limit=%D9%A3", "limit"),
        ("/api/recycles?limit=" + "9" * 5000, "limit"),
        ("/api/samples?since=yesterday", "since"),
        ("/api/samples?since=nan", "since"),
        ("/api/samples?since=2026-01-05T14:03:00", "since"),
        ("/api/lanes/qwen/logs?tail=x", "tail"),
        ("/api/lanes/qwen/logs?follow=maybe", "follow"),
    ],
)
async def test_a_parameter_that_makes_no_sense_is_refused_by_name(
    small_client: aiohttp.ClientSession, path: str, name: str
) -> None:
    error = (await get(small_client, path, 400))["error"]
    assert (error["param"], error["code"]) == (name, "invalid_parameter")
    assert error["message"].startswith(f"{name}: ")


async def test_recycles_are_the_newest_of_a_lane_also_of_one_that_is_gone(
    small_client: aiohttp.ClientSession, small_fleet: SmallFleet
) -> None:
    for number in range(3):
        for lane in ("qwen", "gone"):
            await small_fleet.journal.append(
                RecycleRecord(id=f"{lane}-{number}", lane=lane, trigger=Trigger.OPERATOR, outcome=Outcome.REPLACED)
            )

    async def ids(query: str) -> list[str]:
        return [record["id"] for record in (await get(small_client, f"/api/recycles{query}"))["recycles"]]

    assert len(await ids("")) == 6
    assert await ids("?lane=coder&limit=2") == ["qwen-1", "qwen-2"]
    assert await ids("?lane=gone&limit=1") == ["gone-2"]
    assert await ids("?limit=0") == []


async def test_samples_are_read_from_a_moment_on(small_client: aiohttp.ClientSession, small_fleet: SmallFleet) -> None:
    for number in range(3):
        sample = Sample(number, NOW + number, 1, 256, Purpose.ROUTINE, decode_tok_s=60.0 + number)
        small_fleet.history.add_sample("qwen", sample)

    async def rates(query: str) -> list[float]:
        return [sample["decode_tok_s"] for sample in (await get(small_client, f"/api/samples{query}"))["samples"]]

    assert await rates("") == [60.0, 61.0, 62.0]
    assert await rates(f"?lane=qwen&since={NOW + 1}") == [61.0, 62.0]
    assert await rates("?since=2027-01-15T09:00:02+01:00") == [62.0], "with its plus sign not escaped"
    assert await rates("?since=2027-01-15T08:00:02Z") == [62.0]
    assert await rates("?lane=nobody") == []


async def test_the_baseline_is_shown_and_reset(small_client: aiohttp.ClientSession) -> None:
    assert (await get(small_client, "/api/lanes/qwen/baseline"))["spawns"] == 5
    async with small_client.delete("/api/lanes/qwen/baseline") as answer:
        assert (answer.status, (await answer.json())["spawns"]) == (200, 0)
    assert (await get(small_client, "/api/lanes/qwen/baseline"))["spawns"] == 0


async def test_the_last_lines_of_the_workers_output_are_text(small_client: aiohttp.ClientSession) -> None:
    async with small_client.get("/api/lanes/qwen/logs?tail=2") as answer:
        assert answer.content_type == "text/plain"
        assert await answer.text() == "line 298\nline 299\n"
    async with small_client.get("/api/lanes/qwen/logs") as answer:
        assert len((await answer.text()).splitlines()) == 200


async def test_output_is_followed_as_it_comes_until_the_client_leaves(
    small_client: aiohttp.ClientSession, small_fleet: SmallFleet
) -> None:
    runner = small_fleet.qwen
    async with small_client.get("/api/lanes/qwen/logs?tail=1&follow=true") as answer:
        assert await asyncio.wait_for(answer.content.readline(), 5) == b"line 299\n"
        for number in range(3):
            runner.spoken.put_nowait(b"news %d\n" % number)
            assert await asyncio.wait_for(answer.content.readline(), 5) == b"news %d\n" % number
        assert runner.followers == 1
    await wait_until(lambda: runner.followers == 0, what="the follower's end")


async def test_a_followed_output_that_ends_ends_the_answer(
    small_client: aiohttp.ClientSession, small_fleet: SmallFleet
) -> None:
    small_fleet.qwen.spoken.put_nowait(b"last words\n")
    small_fleet.qwen.spoken.put_nowait(None)
    async with small_client.get("/api/lanes/qwen/logs?tail=0&follow=1") as answer:
        assert await asyncio.wait_for(answer.text(), 5) == "last words\n"


async def test_what_another_version_did_is_told_with_the_baseline_and_with_what_it_was_worth(
    small_client: aiohttp.ClientSession, small_fleet: SmallFleet
) -> None:
    for fingerprint, version, tok_s in (("before", "0.31.0", 60.0), ("now", "0.32.2", 50.0)):
        ran = {"model": "qwen", "versions": {"mlx-lm": version}}
        spawns = {"256": [[tok_s + spawn] * 8 for spawn in range(4)]}
        await small_fleet.history.save_baseline("qwen", fingerprint, {"spawns": spawns, "ran": ran})
    small_fleet.qwen.fingerprint = "now"
    text = "since mlx-lm 0.32.2 a fresh worker does 16 % less than with mlx-lm 0.31.0 (13 % to 19 %)"
    assert (await get(small_client, "/api/lanes/qwen/baseline"))["version_change"]["text"] == text
    [change] = (await get(small_client, "/api/worth"))["version_changes"]
    assert (change["lane"], change["text"]) == ("qwen", text)
    assert (await get(small_client, "/api/lanes/a%2Fb/baseline"))["version_change"] is None
