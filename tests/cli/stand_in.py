"""A small real server on a real port that answers as the daemon does, from recorded documents.

``python -m tests.cli.stand_in PORT`` serves it for a look by hand.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from aiohttp import web

from tests.cli.documents import LANES, RECYCLES, SAMPLE, SAMPLES

TOKEN = "0123456789abcdef0123456789abcdef"


class StandIn:
    """Keeps what it was asked, and serves what is in its documents."""

    def __init__(self, *, needs_key: bool = False) -> None:
        self.needs_key = needs_key
        self.lanes = dict(LANES)
        self.recycles = list(RECYCLES)
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        self.answers: dict[str, tuple[int, Any]] = {}
        """Answers by path, in place of the usual ones."""
        self.outcome = asyncio.Event()
        """Whoever waits for an outcome gets it when this is set; it is, unless a test says otherwise."""
        self.outcome.set()
        self.followers: list[asyncio.Queue[str]] = []
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        app = web.Application(middlewares=[self._middleware])
        app.router.add_get("/api/lanes", self._lanes)
        app.router.add_get("/api/version", self._version)
        app.router.add_get("/api/recycles", self._recycles)
        app.router.add_get("/api/samples", self._samples)
        app.router.add_get("/api/worth", self._worth)
        app.router.add_get("/api/events", self._events)
        app.router.add_post("/api/reload", self._reload)
        app.router.add_get("/api/lanes/{lane}", self._lane)
        app.router.add_get("/api/lanes/{lane}/logs", self._logs)
        app.router.add_get("/api/lanes/{lane}/baseline", self._baseline)
        app.router.add_delete("/api/lanes/{lane}/baseline", self._baseline)
        app.router.add_post("/api/lanes/{lane}/{verb}", self._ask)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        for follower in self.followers:
            follower.put_nowait("")
        if self._runner is not None:
            await self._runner.cleanup()

    def tell(self, kind: str) -> None:
        """Send an event to everyone who follows."""
        for follower in self.followers:
            follower.put_nowait(f"event: {kind}\ndata: {{}}\n\n")

    @web.middleware
    async def _middleware(self, request: web.Request, handler: Any) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.asked.append((request.method, request.path, dict(request.query), body))
        if self.needs_key and request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return _error(401, "missing or wrong key")
        if request.path in self.answers:
            status, document = self.answers[request.path]
            if isinstance(document, str):
                return web.Response(status=status, text=document)
            return web.json_response(document, status=status)
        lane = request.match_info.get("lane")
        if lane is not None and lane not in self.lanes:
            return _error(404, f"no lane named {lane}; there are: {', '.join(self.lanes)}")
        response: web.StreamResponse = await handler(request)
        return response

    async def _lanes(self, _: web.Request) -> web.Response:
        return web.json_response({"lanes": list(self.lanes.values())})

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": "0.1.0"})

    async def _lane(self, request: web.Request) -> web.Response:
        return web.json_response(self.lanes[request.match_info["lane"]])

    async def _recycles(self, request: web.Request) -> web.Response:
        lane, limit = request.query.get("lane"), int(request.query.get("limit", "100"))
        wanted = [record for record in self.recycles if lane in (None, record["lane"])]
        return web.json_response({"recycles": wanted[-limit:]})

    async def _samples(self, _: web.Request) -> web.Response:
        return web.json_response({"samples": SAMPLES})

    async def _worth(self, _: web.Request) -> web.Response:
        return web.json_response({"recycles": 3, "downtime_s": 212.0, "held": 5, "failed": 0, "gain": 0.41})

    async def _reload(self, _: web.Request) -> web.Response:
        lanes = {"smollm2": "kept", "qwen": "recycled", "coder": "updated"}
        return web.json_response({"lanes": lanes, "needs_restart": ["listen"], "errors": []})

    async def _logs(self, request: web.Request) -> web.Response:
        lines = [f"line {number} of {request.match_info['lane']}" for number in range(1, 4)]
        return web.Response(text="".join(f"{line}\n" for line in lines[-int(request.query["tail"]) :]))

    async def _baseline(self, request: web.Request) -> web.Response:
        return web.json_response(self.lanes[request.match_info["lane"]]["baseline"] or {})

    async def _ask(self, request: web.Request) -> web.Response:
        lane, verb = request.match_info["lane"], request.match_info["verb"]
        asked: dict[str, Any] = {"lane": lane, "asked": verb}
        if request.query.get("wait") != "true":
            return web.json_response(asked, status=202)
        await self.outcome.wait()
        if verb == "recycle":
            return web.json_response({**asked, "recycle": self.recycles[-1]})
        if verb == "probe":
            return web.json_response({**asked, "sample": SAMPLE})
        return web.json_response({**asked, "state": self.lanes[lane]["state"], "reason": self.lanes[lane]["reason"]})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        queue: asyncio.Queue[str] = asyncio.Queue(100)
        self.followers.append(queue)
        await response.write(b": hello\n\n")
        while event := await queue.get():
            await response.write(event.encode())
        return response


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "source": "freshlane"}}, status=status)


async def _serve(port: int) -> None:
    stand_in = StandIn()
    await stand_in.start(port)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
