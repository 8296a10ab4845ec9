"""Tells others of each recycle: the record as JSON, to a webhook or to a command's standard input."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import structlog

from supervisor.jsontext import encode
from supervisor.settings import OnRecycleSettings
from supervisor.shell.eventbus import EventBus

log = structlog.get_logger(__name__)

TIMEOUT_S = 10.0


class Announcer:
    """Never in a lane's way: it listens to the event bus, and what fails is logged and forgotten."""

    def __init__(self, settings: OnRecycleSettings, events: EventBus) -> None:
        self.settings = settings
        self._events = events

    async def run(self) -> None:
        """Announce every record from now on."""
        with self._events.subscribe() as subscription:
            async for event in subscription:
                if event.kind == "recycle":
                    await self._announce(event.document)

    async def _announce(self, record: Mapping[str, Any]) -> None:
        text = encode(record).encode()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                if self.settings.webhook:
                    await _post(self.settings.webhook, text)
                if self.settings.command:
                    await _pipe(self.settings.command, text)
        except (OSError, TimeoutError, aiohttp.ClientError, ValueError) as error:
            log.warning("recycle_not_announced", error=repr(error), id=record.get("id"))


async def _post(url: str, text: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession() as session, session.post(url, data=text, headers=headers) as response:
        if response.status >= 400:
            log.warning("recycle_not_announced", error=f"{url} answered {response.status}")


async def _pipe(command: tuple[str, ...], text: bytes) -> None:
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE)
    try:
        await process.communicate(text)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
