"""The engine's HTTP face: OpenAI's routes for clients, health, stats and remedies for the supervisor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from engine.answering import Answering
from engine.errors import NotReadyError, StalledError
from engine.fields import Fields, parse_object
from engine.middlewares import requiring, with_request_id, with_shaped_errors
from engine.openai_answers import models_object
from engine.service import Service

LARGEST_BODY = 16 << 20
REMEDY_S = 30.0
PREFIX_S = 10.0


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
    app.router.add_post("/prefix/save", control.save_prefixes)
    app.router.add_post("/prefix/load", control.load_prefixes)
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
        self._check(request)
        name = request.match_info["name"]
        async with _turn_within(REMEDY_S, name):
            await self._service.thread.remedy(name)
        return web.json_response({"remedy": name, "done": True})

    async def save_prefixes(self, request: web.Request) -> web.Response:
        self._check(request)
        fields = parse_object(await request.read())
        folder = _folder(fields)
        most_bytes = fields.integer("max_bytes", 0, 1 << 50) or (1 << 50)
        seconds = fields.number("timeout_s", PREFIX_S, 0.1, 600.0)
        async with _turn_within(seconds + REMEDY_S, "saving"):
            tokens = await self._service.thread.save_prefixes(folder, most_bytes, seconds)
        return web.json_response({"saved_tokens": tokens, "folder": str(folder)})

    async def load_prefixes(self, request: web.Request) -> web.Response:
        self._check(request)
        folder = _folder(parse_object(await request.read()))
        async with _turn_within(PREFIX_S + REMEDY_S, "loading"):
            tokens = await self._service.thread.load_prefixes(folder)
        return web.json_response({"restored_tokens": tokens, "folder": str(folder)})

    def _check(self, request: web.Request) -> None:
        if "Origin" in request.headers:
            raise web.HTTPForbidden(text="no web page may ask for this")
        if self._service.info is None:
            raise NotReadyError(self._service.doing)


def _folder(fields: Fields) -> Path:
    folder = Path(fields.text("folder") or "")
    if not folder.is_absolute():
        fields.fail("folder", "must be an absolute path")
    return folder


@asynccontextmanager
async def _turn_within(seconds: float, what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise StalledError(what, seconds) from error
