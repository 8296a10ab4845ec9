"""The engine's HTTP face: OpenAI's routes for clients, health, stats and remedies for the supervisor."""

from __future__ import annotations

import asyncio

from aiohttp import web

from engine.answering import Answering
from engine.errors import NotReadyError
from engine.middlewares import requiring, with_request_id, with_shaped_errors
from engine.openai_answers import error_object, models_object
from engine.service import Service

LARGEST_BODY = 16 << 20
REMEDY_S = 30.0


def make_app(service: Service, token: str | None) -> web.Application:
    """The application; with a `token`, every request must carry it."""
    middlewares = [with_request_id, with_shaped_errors, *([requiring(token)] if token else [])]
    app = web.Application(client_max_size=LARGEST_BODY, middlewares=middlewares)
    answering, control = Answering(service), _Control(service)
    app.router.add_post("/v1/chat/completions", answering.chat)
    app.router.add_post("/v1/completions", answering.completion)
    app.router.add_get("/v1/models", control.models)
    app.router.add_get("/health", control.health)
    app.router.add_get("/stats", control.stats)
    app.router.add_post("/remedies/{name}", control.remedy)
    return app


class _Control:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def models(self, _: web.Request) -> web.Response:
        info = self._service.info
        context_length = info.context_length if info else None
        return web.json_response(models_object(self._service.model, self._service.created, context_length))

    async def health(self, _: web.Request) -> web.Response:
        health = self._service.health()
        return web.json_response(health, status=200 if health["status"] == "ok" else 503)

    async def stats(self, _: web.Request) -> web.Response:
        return web.json_response(self._service.stats())

    async def remedy(self, request: web.Request) -> web.Response:
        if self._service.info is None:
            raise NotReadyError(self._service.doing)
        name = request.match_info["name"]
        try:
            async with asyncio.timeout(REMEDY_S):
                await self._service.thread.remedy(name)
        except TimeoutError:
            body = error_object(f"{name} did not get its turn within {REMEDY_S:g} s", "server_error", code="stalled")
            return web.json_response(body, status=504)
        return web.json_response({"remedy": name, "done": True})
