"""Tells others of each recycle: the record as JSON, to a webhook or to a command's standard input.

Beside the record's own keys there is ``text``, the recycle in a few sentences, which is what Slack, Mattermost and
Discord (at its /slack address) show of such a message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import aiohttp
import structlog

from supervisor.core.account.story import told
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
        text, to = encode({"text": told(record), **record}).encode(), self.settings
        telling = [_telling("webhook", _post(to.webhook, text))] if to.webhook else []
        telling += [_telling(f"command {to.command[0]}", _pipe(to.command, text))] if to.command else []
        await asyncio.gather(*telling)


async def _telling(whom: str, telling: Coroutine[Any, Any, str | None]) -> None:
    """One does not listen: the other is told all the same."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            trouble = await telling
    except TimeoutError:
        trouble = f"no answer within {TIMEOUT_S:.0f} s"
    except (OSError, aiohttp.ClientError, ValueError) as error:
        trouble = repr(error)
    if trouble:
        log.warning("recycle_not_announced", to=whom, error=trouble)


async def _post(url: str, text: bytes) -> str | None:
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession() as session, session.post(url, data=text, headers=headers) as response:
        return f"it answered {response.status}" if response.status >= 400 else None


async def _pipe(command: tuple[str, ...], text: bytes) -> str | None:
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE)
    try:
        await process.communicate(text)
        return f"it ended with {process.returncode}" if process.returncode else None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
