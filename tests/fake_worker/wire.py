"""HTTP/1.1 by hand: whole control over framing, resets and silences, which a web framework would tidy away."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

MAX_HEAD = 64 * 1024
Framing = str  # chunked | length | close


class GoneError(Exception):
    """The client has closed its end."""


class Refused(Exception):  # noqa: N818
    """The request is answered with an error of OpenAI's shape."""

    def __init__(self, status: int, message: str, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {
            "error": {
                "message": message,
                "type": "invalid_request_error" if status < 500 and status != 429 else "server_error",
                "param": param,
                "code": code,
            }
        }


class Reader(asyncio.StreamReader):
    """Tells at once when the client goes, also while nobody reads."""

    def __init__(self) -> None:
        super().__init__(limit=MAX_HEAD)
        self.gone = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.gone.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.gone.set()


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """Refused with 400 unless the body is a JSON object."""
        try:
            parsed = json.loads(self.body)
        except ValueError as trouble:
            raise Refused(400, f"The body is not JSON: {trouble}") from trouble
        if not isinstance(parsed, dict):
            raise Refused(400, "The body is not a JSON object")
        return parsed


async def read_request(reader: Reader, writer: asyncio.StreamWriter) -> Request | None:
    """The next request of a connection, or None when there is none any more. ValueError for what is not HTTP."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, target, _version = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        body = await _read_body(reader, headers)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return Request(method, target.partition("?")[0], headers, body)


async def _read_body(reader: Reader, headers: Mapping[str, str]) -> bytes:
    if "chunked" not in headers.get("transfer-encoding", "").lower():
        return await reader.readexactly(int(headers.get("content-length", "0")))
    parts = []
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return b"".join(parts)


class Answer:
    """One answer on a connection, in a framing: chunked, length (the size must be known) or close (as HTTP/1.0)."""

    def __init__(self, reader: Reader, writer: asyncio.StreamWriter, keep_alive: bool) -> None:
        self._reader = reader
        self._writer = writer
        self._chunked = False
        self.keep_alive = keep_alive
        self.extra_headers: dict[str, str] = {}
        self.status = 0

    @property
    def gone(self) -> bool:
        return self._reader.gone.is_set() or self._writer.transport.is_closing()

    async def pause(self, seconds: float) -> None:
        """Sleeps, and ends early when the client goes."""
        if seconds < 0.2:
            await asyncio.sleep(max(0.0, seconds))
            return
        try:
            await asyncio.wait_for(self._reader.gone.wait(), seconds)
        except TimeoutError:
            return

    def begin(self, status: int, content_type: str, framing: Framing = "chunked", length: int | None = None) -> None:
        self.status = status
        self._chunked = framing == "chunked"
        headers = {"content-type": content_type, **self.extra_headers}
        if framing == "chunked":
            headers["transfer-encoding"] = "chunked"
        elif framing == "length":
            headers["content-length"] = str(length)
        if framing == "close" or not self.keep_alive:
            self.keep_alive = False
            headers["connection"] = "close"
        version = "1.0" if framing == "close" else "1.1"
        lines = [f"HTTP/{version} {status} {HTTPStatus(status).phrase}", *(f"{k}: {v}" for k, v in headers.items())]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def send(self, part: bytes) -> None:
        """GoneError when the client has left; waits for a client that reads slowly."""
        if self.gone:
            raise GoneError
        self._writer.write(b"%x\r\n%b\r\n" % (len(part), part) if self._chunked else part)
        try:
            await self._writer.drain()
        except ConnectionError as trouble:
            raise GoneError from trouble

    async def finish(self) -> None:
        if self._chunked:
            self._chunked = False
            await self.send(b"0\r\n\r\n")

    async def whole(
        self, status: int, body: bytes, content_type: str = "application/json", close: bool = False
    ) -> None:
        self.begin(status, content_type, "close" if close else "length", len(body))
        if body:
            await self.send(body)

    async def json(self, status: int, body: Any) -> None:
        await self.whole(status, json.dumps(body).encode())

    def reset(self) -> None:
        """Ends the connection by RST, as a killed process with unread data does."""
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def wait_for_goodbye(self) -> None:
        """Says nothing more until the client gives up."""
        await self._reader.gone.wait()
