"""/v1: what OpenAI's clients speak. The model's name finds the lane; everything else passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web

from supervisor.api.answers import json_answer
from supervisor.api.incoming import read_call
from supervisor.shell.front.headers import request_id_of
from supervisor.shell.front.proxy import forward
from supervisor.shell.front.refusal import RefusedError
from supervisor.shell.front.views import Call, Directory, LaneFront


def v1_routes(directory: Directory, max_body: Callable[[], int]) -> list[web.RouteDef]:
    """The routes of /v1; ``max_body`` in bytes, asked each time."""
    routes = _V1Routes(directory, max_body)
    return [
        web.get("/v1/models", routes.models),
        web.get("/v1/models/{model:.+}", routes.model),
        web.route("*", "/v1/{path:.*}", routes.pass_on),
    ]


class _V1Routes:
    def __init__(self, directory: Directory, max_body: Callable[[], int]) -> None:
        self._directory = directory
        self._max_body = max_body

    async def models(self, _request: web.Request) -> web.StreamResponse:
        data = [_model(name, lane) for lane in self._directory.lanes() for name in (lane.name, *lane.aliases)]
        return json_answer({"object": "list", "data": data})

    async def model(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["model"]
        return json_answer(_model(name, self._lane(name)))

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        if ".." in request.path.split("/"):
            raise RefusedError(400, "invalid_path", "A path of /v1 does not lead out of it.")
        body = await read_call(request, self._max_body())
        if body.model is None:
            raise RefusedError(400, "model_missing", f"`model` is missing; it names the lane: {self._names()}.")
        lane = self._lane(body.model)
        return await forward(request, lane, Call(request_id_of(request.headers), body, body.model))

    def _lane(self, name: str) -> LaneFront:
        lane = self._directory.find(name)
        if lane is None:
            raise RefusedError(404, "model_not_found", f"No lane is called {name!r}; there are: {self._names()}.")
        return lane

    def _names(self) -> str:
        lanes = self._directory.lanes()
        told = [f"{lane.name} (also {', '.join(lane.aliases)})" if lane.aliases else lane.name for lane in lanes]
        return ", ".join(told) or "none"


def _model(name: str, lane: LaneFront) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "freshlane", "lane": lane.name}
