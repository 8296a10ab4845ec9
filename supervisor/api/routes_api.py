"""/api: look at lanes, ask them for something, read what was measured and recycled."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from supervisor.api.answers import json_answer
from supervisor.api.events import answer_events
from supervisor.api.fleet_view import FleetView, RunnerView
from supervisor.api.params import ask_of, flag, moment, whole_number
from supervisor.api.streams import stream
from supervisor.api.worth import counted, worth
from supervisor.core.speed.version_change import KeptBaseline, version_change
from supervisor.shell.front.refusal import RefusedError
from supervisor.shell.lane.wishes import WHATS, What

USUAL_RECYCLES = 100
MOST_RECYCLES = 10_000
USUAL_LINES = 200
MOST_LINES = 100_000


def api_routes(fleet: FleetView) -> list[web.RouteDef]:
    """The routes of /api that are about lanes; who may use them is not decided here."""
    routes = _ApiRoutes(fleet)
    lane = "/api/lanes/{lane}"
    return [
        web.get("/api/lanes", routes.lanes),
        web.get(lane, routes.lane),
        *(web.post(f"{lane}/{what}", functools.partial(routes.ask, what)) for what in WHATS),
        web.get(f"{lane}/logs", routes.logs, allow_head=False),
        web.get(f"{lane}/baseline", routes.baseline),
        web.delete(f"{lane}/baseline", routes.reset_baseline),
        web.get("/api/recycles", routes.recycles),
        web.get("/api/samples", routes.samples),
        web.get("/api/worth", routes.worth),
        web.get("/api/events", routes.events, allow_head=False),
    ]


class _ApiRoutes:
    def __init__(self, fleet: FleetView) -> None:
        self._fleet = fleet

    async def lanes(self, _request: web.Request) -> web.StreamResponse:
        return json_answer(self._fleet.snapshot())

    async def lane(self, request: web.Request) -> web.StreamResponse:
        return json_answer(self._runner(request).snapshot())

    async def ask(self, what: What, request: web.Request) -> web.StreamResponse:
        runner = self._runner(request)
        is_waited_for = flag(request, "wait")
        asked = await ask_of(request)
        outcome = await runner.ask(what, asked.reason, now=asked.now, wait=is_waited_for)
        return json_answer(outcome, 200 if is_waited_for else 202)

    async def logs(self, request: web.Request) -> web.StreamResponse:
        runner = self._runner(request)
        tail = whole_number(request, "tail", USUAL_LINES, most=MOST_LINES)
        is_followed = flag(request, "follow")
        past = await runner.output_tail(tail)
        if is_followed:
            return await stream(request, "text/plain", _output(past, runner))
        return web.Response(text=past, headers={"Cache-Control": "no-store"})

    async def baseline(self, request: web.Request) -> web.StreamResponse:
        runner = self._runner(request)
        return json_answer({**runner.baseline(), "version_change": await self._change(runner)})

    async def reset_baseline(self, request: web.Request) -> web.StreamResponse:
        return json_answer(await self._runner(request).reset_baseline())

    async def recycles(self, request: web.Request) -> web.StreamResponse:
        limit = whole_number(request, "limit", USUAL_RECYCLES, most=MOST_RECYCLES)
        return json_answer({"recycles": await self._fleet.journal.records(self._asked_lane(request), limit)})

    async def samples(self, request: web.Request) -> web.StreamResponse:
        since = moment(request, "since")
        return json_answer({"samples": await self._fleet.history.samples(self._asked_lane(request), since)})

    async def worth(self, request: web.Request) -> web.StreamResponse:
        since = moment(request, "since")
        records = counted(await self._fleet.journal.records(None, MOST_RECYCLES), since)
        lanes = sorted({str(record.get("lane")) for record in records})
        samples = {lane: await self._fleet.history.samples(lane, since) for lane in lanes}
        changes = {name: await self._change(runner) for name, runner in self._fleet.runners.items()}
        told = [{"lane": name, **change} for name, change in changes.items() if change is not None]
        return json_answer({"since": since, **worth(records, samples), "version_changes": told})

    async def events(self, request: web.Request) -> web.StreamResponse:
        return await answer_events(request, self._fleet.events)

    async def _change(self, runner: RunnerView) -> dict[str, Any] | None:
        """What the newest change of version or model did to a lane's fresh workers, if anything tells."""
        kept = [KeptBaseline(**row) for row in await self._fleet.history.baselines(runner.name)]
        change = version_change(kept, str(runner.baseline().get("fingerprint")))
        return change.to_json() if change is not None else None

    def _runner(self, request: web.Request) -> RunnerView:
        name = request.match_info["lane"]
        runner = self._fleet.find(name)
        if runner is None:
            known = ", ".join(sorted(self._fleet.runners)) or "none"
            raise RefusedError(404, "lane_not_found", f"no lane {name!r}; the lanes are: {known}")
        return runner

    def _asked_lane(self, request: web.Request) -> str | None:
        """The lane whose past is asked for; one that is gone from lanes.yaml has a past, too."""
        name = request.query.get("lane")
        runner = self._fleet.find(name) if name else None
        return runner.name if runner else name or None


async def _output(past: str, runner: RunnerView) -> AsyncIterator[bytes]:
    yield past.encode()
    async for part in runner.follow_output():
        yield part
