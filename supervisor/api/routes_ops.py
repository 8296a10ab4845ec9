"""What operators' tools ask: is it alive, is it ready, its metrics, its version; and the reload of lanes.yaml."""

from __future__ import annotations

import platform

from aiohttp import web

from supervisor.api.access import UNKNOWN_HOST
from supervisor.api.answers import json_answer
from supervisor.api.fleet_view import FleetView
from supervisor.api.openapi import openapi_document
from supervisor.config.problems import ConfigError
from supervisor.metrics import Metrics
from supervisor.shell.front.refusal import RefusedError


def ops_routes(fleet: FleetView) -> list[web.RouteDef]:
    """The routes beside /v1 and the lanes' own; who may use them is not decided here."""
    routes = _OpsRoutes(fleet)
    return [
        web.get("/healthz", routes.healthz),
        web.get("/readyz", routes.readyz),
        web.get("/metrics", routes.metrics),
        web.get("/api/version", routes.version),
        web.get("/api/openapi.json", routes.openapi),
        web.post("/api/reload", routes.reload),
    ]


class _OpsRoutes:
    def __init__(self, fleet: FleetView) -> None:
        self._fleet = fleet
        self._metrics = Metrics(fleet.snapshot)
        self._openapi = openapi_document(fleet.version)

    async def healthz(self, _request: web.Request) -> web.StreamResponse:
        return json_answer({"status": "ok"})

    async def readyz(self, request: web.Request) -> web.StreamResponse:
        """A stranger is not told the lanes' names."""
        is_ready, reason = self._fleet.is_ready()
        status = "ready" if is_ready else "not_ready"
        said = status if request.get(UNKNOWN_HOST) else reason
        return json_answer({"status": status, "reason": said}, 200 if is_ready else 503)

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        page, content_type = self._metrics.page(request.headers.get("Accept", ""))
        return web.Response(body=page, headers={"Content-Type": content_type, "Cache-Control": "no-store"})

    async def version(self, _request: web.Request) -> web.StreamResponse:
        fleet = self._fleet.snapshot()
        return json_answer(
            {
                "name": "freshlane",
                "version": self._fleet.version,
                "python": platform.python_version(),
                "platform": platform.platform(),
                "started_at": fleet.get("started_at"),
                "config_path": fleet.get("config_path"),
            }
        )

    async def openapi(self, _request: web.Request) -> web.StreamResponse:
        return json_answer(self._openapi)

    async def reload(self, _request: web.Request) -> web.StreamResponse:
        try:
            return json_answer(await self._fleet.reload())
        except ConfigError as error:
            problems = [str(problem) for problem in error.problems]
            raise RefusedError(400, "config_error", str(error), problems=problems) from error
