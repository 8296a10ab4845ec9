"""Health, readiness, metrics, version and reload."""

from __future__ import annotations

import aiohttp

from supervisor.api.routes_ops import ops_routes
from supervisor.config.problems import ConfigError, Problem
from tests.api.small_fleet import SmallFleet
from tests.front import front


async def test_a_daemon_that_answers_is_healthy(small_client: aiohttp.ClientSession) -> None:
    async with small_client.get("/healthz") as answer:
        assert (answer.status, await answer.json()) == (200, {"status": "ok"})


async def test_readiness_is_the_fleets_word_with_its_reason(
    small_client: aiohttp.ClientSession, small_fleet: SmallFleet
) -> None:
    async with small_client.get("/readyz") as answer:
        assert (answer.status, (await answer.json())["status"]) == (200, "ready")
    small_fleet.readiness = (False, "qwen has not served yet")
    async with small_client.get("/readyz") as answer:
        assert answer.status == 503
        assert await answer.json() == {"status": "not_ready", "reason": "qwen has not served yet"}


async def test_a_stranger_is_told_no_lane_by_readiness(small_fleet: SmallFleet) -> None:
    small_fleet.readiness = (False, "qwen has not served yet")
    async with front(more=ops_routes(small_fleet)) as stage:
        for host, reason in (("localhost", "qwen has not served yet"), ("pool-7.balancer.example", "not_ready")):
            async with stage.client.get(stage.url + "/readyz", headers={"Host": host}) as answer:
                assert (answer.status, (await answer.json())["reason"]) == (503, reason)


async def test_metrics_are_what_the_snapshot_says_now(
    small_client: aiohttp.ClientSession, small_fleet: SmallFleet
) -> None:
    async with small_client.get("/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        assert 'freshlane_lane_state{lane="qwen",state="serving"} 1.0' in await answer.text()
    small_fleet.qwen.state = "drained"
    async with small_client.get("/metrics", headers={"Accept": "application/openmetrics-text"}) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        assert 'freshlane_lane_state{lane="qwen",state="drained"} 1.0' in await answer.text()


async def test_the_version_says_what_runs_here(small_client: aiohttp.ClientSession) -> None:
    async with small_client.get("/api/version") as answer:
        document = await answer.json()
    assert (document["name"], document["version"]) == ("freshlane", "0.1.0")
    assert document["config_path"] == "/etc/freshlane/lanes.yaml"


async def test_a_reload_reports_and_a_bad_file_is_refused_with_every_problem(
    small_client: aiohttp.ClientSession, small_fleet: SmallFleet
) -> None:
    async with small_client.post("/api/reload") as answer:
        assert answer.status == 200
        assert await answer.json() == {
            "lanes": {"qwen": "updated", "a/b": "kept"},
            "needs_restart": ["listen"],
            "errors": [],
        }
    small_fleet.reload_error = ConfigError(
        [Problem(("lanes", "qwen", "modle"), "unknown; did you mean model?", 7), Problem(("listen",), "not a text", 1)]
    )
    async with small_client.post("/api/reload") as answer:
        assert answer.status == 400
        error = (await answer.json())["error"]
    assert error["code"] == "config_error"
    assert error["problems"] == ["1: listen: not a text", "7: lanes.qwen.modle: unknown; did you mean model?"]
    assert error["message"] == "\n".join(error["problems"])
