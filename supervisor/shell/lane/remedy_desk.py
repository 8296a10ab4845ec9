"""Asks a worker for a mild remedy: over the worker protocol, or in the words of a known server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import structlog

from supervisor.core.lane.commands import ApplyRemedy
from supervisor.core.lane.events import RemedyAnswer, RemedyApplied
from supervisor.jsontext import decode_list
from supervisor.presets import PRESETS, NativeRemedy
from supervisor.settings import LaneSettings
from supervisor.shell.front.upstream import Upstream
from supervisor.shell.machine.clock import Clock
from supervisor.shell.tasks import Tasks

log = structlog.get_logger(__name__)

NOT_OFFERED = frozenset({404, 405, 501})
MOST_BYTES = 262_144


class RefusedError(Exception):
    """The worker answered, and not with success."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"{status} {said}".strip())
        self.status = status


class RemedyDesk:
    """One lane's. ``applied`` takes the answer, which comes always and in time."""

    def __init__(
        self, settings: LaneSettings, clock: Clock, tasks: Tasks, applied: Callable[[RemedyApplied], None]
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._tasks = tasks
        self._applied = applied

    def apply(self, command: ApplyRemedy, upstream: Upstream) -> None:
        """Ask for it."""
        self._tasks.start(self._apply(command, upstream), f"ask for {command.name}")

    async def _apply(self, command: ApplyRemedy, upstream: Upstream) -> None:
        began = self._clock.now()
        answer, detail = RemedyAnswer.DONE, ""
        try:
            async with asyncio.timeout(command.within_s):
                await self._ask(command.name.value, upstream)
        except RefusedError as error:
            answer = RemedyAnswer.ABSENT if error.status in NOT_OFFERED else RemedyAnswer.FAILED
            detail = str(error)
        except TimeoutError:
            answer, detail = RemedyAnswer.FAILED, f"not done within {command.within_s:.0f} s"
        except (aiohttp.ClientError, OSError) as error:
            answer, detail = RemedyAnswer.FAILED, repr(error)
        now = self._clock.now()
        about = {"lane": self.settings.name, "generation": command.generation, "remedy": command.name.value}
        log.info("remedy_asked_for", **about, answer=answer.value, detail=detail, took_s=round(now - began, 3))
        self._applied(RemedyApplied(now, command.generation, command.name, answer, now - began, detail))

    async def _ask(self, name: str, upstream: Upstream) -> None:
        if self.settings.preset is None:
            await _post(upstream, f"/remedies/{name}", None)
            return
        native = PRESETS[self.settings.preset].remedies.get(name)
        if native is None:
            raise RefusedError(404, f"{self.settings.preset} has no {name}")
        for path in await _paths(native, upstream):
            await _post(upstream, path, native.body)


async def _paths(native: NativeRemedy, upstream: Upstream) -> list[str]:
    """Where to post to: one path, or one for each thing that the worker lists."""
    if native.of_each is None:
        return [native.path]
    async with upstream.session.get(upstream.url + native.of_each, headers=upstream.headers) as answer:
        body = await answer.content.read(MOST_BYTES)
        if answer.status != 200:
            raise RefusedError(answer.status, body[:200].decode(errors="replace"))
    return [native.path.format(id=one["id"]) for one in decode_list(body) if isinstance(one.get("id"), int)]


async def _post(upstream: Upstream, path: str, body: Any) -> None:
    async with upstream.session.post(upstream.url + path, json=body, headers=upstream.headers) as answer:
        said = await answer.content.read(MOST_BYTES)
        if answer.status != 200:
            raise RefusedError(answer.status, said[:200].decode(errors="replace"))
