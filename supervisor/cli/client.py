"""The daemon's HTTP API as a command sees it: every call has a deadline, every failure an exit code and a remedy."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import aiohttp

from supervisor.cli.exits import CommandError, NotReachableError, TryLaterError, UsageError
from supervisor.cli.sse import Event, parse_events
from supervisor.cli.target import Target

CONNECT_S = 5.0
ANSWER_S = 30.0
WAIT_S = 3600.0
"""How long ``--wait`` waits: a drain, a start and a verification, each at its longest default, and some more."""
SILENCE_S = 90.0
"""A followed stream that says nothing for so long is asked for anew: the other end may be gone without a word."""
LINE_BYTES = 4 * 1024 * 1024


class Daemon:
    """One conversation with a daemon; use as ``async with``."""

    def __init__(self, target: Target) -> None:
        self.target = target
        headers = {"User-Agent": "freshlane-cli"}
        if target.key:
            headers["Authorization"] = f"Bearer {target.key}"
        self._session = aiohttp.ClientSession(headers=headers, read_bufsize=LINE_BYTES)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def get(self, path: str, **query: str | int | float | None) -> dict[str, Any]:
        """The JSON document at ``path``.

        Raises:
            NotReachableError: no daemon answers.
            CommandError: it refused; the text is the daemon's own.
        """
        return await self._ask("GET", path, query)

    async def delete(self, path: str) -> dict[str, Any]:
        """Delete what is at ``path``; raises as ``get``."""
        return await self._ask("DELETE", path, {})

    async def post(self, path: str, body: dict[str, Any] | None = None, *, wait: bool = False) -> dict[str, Any]:
        """Ask for something; with ``wait`` come back when its outcome is known. Raises as ``get``."""
        query: dict[str, str | int | float | None] = {"wait": "true"} if wait else {}
        return await self._ask("POST", path, query, body or {}, WAIT_S if wait else ANSWER_S)

    async def events(self, path: str = "/api/events", **query: str | int | None) -> AsyncIterator[Event]:
        """Server-sent events as they come; ends when the daemon ends the stream or has been silent for long.

        Raises:
            NotReachableError: no daemon answers, or the connection broke.
        """
        async with self._answer("GET", path, query, None, following=True) as answer:
            async for event in parse_events(answer.content):
                yield event

    async def parts(self, path: str, *, following: bool, **query: str | int | None) -> AsyncIterator[bytes]:
        """A text answer as it comes. ``following``: for as long as it goes on, be it silent; raises as ``events``."""
        silence_s = None if following else ANSWER_S
        async with self._answer("GET", path, query, None, following=True, silence_s=silence_s) as answer:
            async for part in answer.content.iter_any():
                yield part

    async def _ask(
        self,
        method: str,
        path: str,
        query: dict[str, str | int | float | None],
        body: dict[str, Any] | None = None,
        timeout_s: float = ANSWER_S,
    ) -> dict[str, Any]:
        async with self._answer(method, path, query, body, timeout_s=timeout_s) as answer:
            return self._document(await answer.read())

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        query: dict[str, Any],
        body: dict[str, Any] | None,
        *,
        timeout_s: float = ANSWER_S,
        following: bool = False,
        silence_s: float | None = SILENCE_S,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        timeout = aiohttp.ClientTimeout(
            total=None if following else timeout_s, sock_connect=CONNECT_S, sock_read=silence_s if following else None
        )
        url = self.target.url + path
        params = {name: str(value) for name, value in query.items() if value is not None}
        is_answered = False
        try:
            async with self._session.request(method, url, params=params, json=body, timeout=timeout) as answer:
                if answer.status >= 400:
                    raise self._refusal(answer.status, await answer.read())
                is_answered = True
                yield answer
        except aiohttp.ClientConnectorError as error:
            raise self._not_reachable(_why(error)) from error
        except aiohttp.ConnectionTimeoutError as error:
            raise self._not_reachable(f"no connection within {CONNECT_S:.0f} s") from error
        except TimeoutError as error:
            if following and is_answered:
                return
            raise self._too_slow(timeout_s) from error
        except aiohttp.InvalidURL as error:
            raise UsageError(f"{self.target.url} is not a URL; see --url and FRESHLANE_URL") from error
        except aiohttp.ClientError as error:
            raise self._not_reachable(f"the connection broke ({error or type(error).__name__})") from error

    def _document(self, text: bytes) -> dict[str, Any]:
        try:
            document = json.loads(text)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise CommandError(
                f"what answers at {self.target.url} is not freshlane (no JSON object)\n"
                "name the daemon with --url or FRESHLANE_URL"
            )
        return document

    def _refusal(self, status: int, text: bytes) -> CommandError:
        said = error_text(text) or f"what listens at {self.target.url} answered {status}; is it freshlane?"
        if status == 401:
            where = self.target.where_the_key_was_sought
            return CommandError(
                f"{said}\nlooked for a key in {where}; set FRESHLANE_API_KEY, or run this as the daemon's own user"
            )
        if status in (400, 404, 422):
            return UsageError(said)
        return TryLaterError(said) if status in (503, 504) else CommandError(said)

    def _not_reachable(self, why: str) -> NotReachableError:
        return NotReachableError(
            f"no freshlane daemon at {self.target.url}: {why}\n"
            "start it with `freshlane run`, or name another with --url or FRESHLANE_URL"
        )

    def _too_slow(self, timeout_s: float) -> CommandError:
        if timeout_s == WAIT_S:
            return TryLaterError(f"not done after {WAIT_S / 60:.0f} minutes; it goes on: see `freshlane status`")
        return self._not_reachable(f"no answer within {timeout_s:.0f} s")


def error_text(text: bytes) -> str | None:
    """The message of an error body ``{"error": {"message": ...}}``; None if it is something else."""
    try:
        error = json.loads(text)["error"]
        if error.get("problems"):
            return "\n".join(["lanes.yaml has errors; nothing was changed", *map(str, error["problems"])])
        return str(error["message"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _why(error: aiohttp.ClientConnectorError) -> str:
    if isinstance(error.os_error, ConnectionRefusedError):
        return "connection refused"
    return str(error.os_error.strerror or error.os_error or error)
