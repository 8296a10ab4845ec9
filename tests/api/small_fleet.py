"""A fleet in memory that keeps the promises of FleetView: real history, journal and event bus, but no workers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from supervisor.api.faults import tell_faults
from supervisor.api.fleet_view import FleetView, RunnerView
from supervisor.api.routes_api import api_routes
from supervisor.api.routes_ops import ops_routes
from supervisor.history import History
from supervisor.journal import Journal
from supervisor.shell.eventbus import EventBus
from supervisor.shell.lane.wishes import MeaninglessWishError, NotInTimeError, What

NOW = 1_800_000_000.0
VERDICT = {"status": "healthy", "ratio": 1.02, "interval": [0.98, 1.06], "confidence": 0.99, "reason": "as fresh"}


class SmallRunner:
    """A lane that goes where it is asked to go, at once."""

    def __init__(self, name: str, aliases: tuple[str, ...] = ()) -> None:
        self.name = name
        self.aliases = aliases
        self.state = "serving"
        self.reason = "warm"
        self.asked: list[tuple[What, str, bool]] = []
        self.lines = [f"line {number}" for number in range(300)]
        self.spoken: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.followers = 0
        self.fingerprint = "now"
        self.spawns = 5

    def snapshot(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "model": f"{self.name}-model",
            "aliases": list(self.aliases),
            "state": self.state,
            "since": "2026-01-05T14:03:00.000+01:00",
            "reason": self.reason,
            "next_action": "",
            "worker": {"pid": 17, "port": 4711, "generation": 1, "uptime_s": 60.0, "memory_bytes": 10**9},
            "candidate": None,
            "retiring": [],
            "inflight": 0,
            "queued": 0,
            "baseline": {"decode_tok_s": 66.5, "by_prompt_tokens": {"256": 66.5}, "spawns": self.spawns, "runs": 9},
            "last_probe": None,
            "verdict": VERDICT,
            "totals": {"requests": 3, "failed": 0, "canaries": {"clean": 9}},
        }

    async def ask(self, what: What, reason: str = "", *, now: bool = False, wait: bool = False) -> dict[str, Any]:
        if self.state == "stopped" and what in ("stop", "drain", "probe"):
            raise MeaninglessWishError(f"{self.name}: {what} would do nothing; it is stopped")
        if what == "recycle" and wait and not now:
            raise NotInTimeError(f"{self.name}: recycle is under way; see `freshlane status`")
        self.asked.append((what, reason, now))
        self.state = {"stop": "stopped", "drain": "drained"}.get(what, "serving")
        return {"lane": self.name, "asked": what, **({"state": self.state} if wait else {})}

    async def output_tail(self, lines: int) -> str:
        return "".join(f"{line}\n" for line in self.lines[len(self.lines) - lines :])

    async def follow_output(self) -> AsyncIterator[bytes]:
        self.followers += 1
        try:
            while (part := await self.spoken.get()) is not None:
                yield part
        finally:
            self.followers -= 1

    def baseline(self) -> dict[str, Any]:
        return {
            "lane": self.name,
            "fingerprint": self.fingerprint,
            "decode_tok_s": 66.5 if self.spawns else None,
            "spawns": self.spawns,
            "runs": 9,
        }

    async def reset_baseline(self) -> dict[str, Any]:
        self.spawns = 0
        return self.baseline()


class SmallFleet:
    """Lanes ``qwen`` (alias ``coder``) and ``a/b``."""

    def __init__(self, state_dir: Path) -> None:
        self.version = "0.1.0"
        self.qwen = SmallRunner("qwen", ("coder",))
        self.lanes = {"qwen": self.qwen, "a/b": SmallRunner("a/b")}
        self.history = History(state_dir / "history.sqlite", keep_s=1e9, wall=lambda: NOW)
        self.journal = Journal(state_dir)
        self.events = EventBus(room=16)
        self.readiness = (True, "ready")
        self.reload_error: Exception | None = None

    @property
    def runners(self) -> Mapping[str, RunnerView]:
        return self.lanes

    def find(self, name: str) -> RunnerView | None:
        return next((lane for lane in self.lanes.values() if name in (lane.name, *lane.aliases)), None)

    def snapshot(self) -> dict[str, Any]:
        return {
            "lanes": [lane.snapshot() for lane in self.lanes.values()],
            "version": self.version,
            "started_at": "2026-01-05T14:03:00.000+01:00",
            "config_path": "/etc/freshlane/lanes.yaml",
            "journal_trouble": self.journal.trouble,
            "history_trouble": self.history.trouble,
            "loop_lag_ms": 0.4,
        }

    def is_ready(self) -> tuple[bool, str]:
        return self.readiness

    async def reload(self) -> dict[str, Any]:
        if self.reload_error:
            raise self.reload_error
        return {"lanes": {"qwen": "updated", "a/b": "kept"}, "needs_restart": ["listen"], "errors": []}


@contextlib.asynccontextmanager
async def served(fleet: SmallFleet) -> AsyncIterator[aiohttp.ClientSession]:
    """The routes on a real port, and a client of it."""
    view: FleetView = fleet
    app = web.Application(middlewares=[tell_faults])
    app.add_routes([*api_routes(view), *ops_routes(view)])
    await fleet.history.open()
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        timeout = aiohttp.ClientTimeout(total=20)
        host, port = runner.addresses[0][:2]
        async with aiohttp.ClientSession(f"http://{host}:{port}", timeout=timeout) as client:
            yield client
    finally:
        fleet.events.close()
        await runner.cleanup()
        await fleet.history.close()
        await fleet.journal.close()
