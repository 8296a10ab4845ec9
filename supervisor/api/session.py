"""A key for a cookie, so that the page can log in without keeping the key."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Callable

from aiohttp import web

from supervisor.shell.front.refusal import RefusedError

COOKIE = "freshlane_session"
LASTS_S = 12 * 3600
MOST_SESSIONS = 256
LONGEST_BODY_BYTES = 4096
BODY_TIMEOUT_S = 10.0


class Sessions:
    """Who is logged in, by the digest of the cookie. In memory: a daemon restart logs everybody out."""

    def __init__(self) -> None:
        self._begun: dict[bytes, tuple[bytes, float]] = {}

    def begin(self, key_digest: bytes) -> str:
        """A new cookie for whoever has shown this key; beyond 256 the oldest is logged out."""
        cookie = secrets.token_urlsafe(32)
        while len(self._begun) >= MOST_SESSIONS:
            del self._begun[next(iter(self._begun))]
        self._begun[_digest(cookie)] = (key_digest, time.monotonic() + LASTS_S)
        return cookie

    def end(self, cookie: str) -> None:
        """Log out."""
        self._begun.pop(_digest(cookie), None)

    def key_digest_of(self, cookie: str) -> bytes | None:
        """The key that this cookie stands for; None if it stands for none any more."""
        key_digest, due = self._begun.get(_digest(cookie), (None, 0.0))
        return key_digest if time.monotonic() < due else None


def session_routes(sessions: Sessions, is_admin_key: Callable[[str], bool]) -> list[web.RouteDef]:
    """POST {key} logs in, DELETE logs out."""

    async def log_in(request: web.Request) -> web.StreamResponse:
        key = await _key_of(request)
        if key is None or not is_admin_key(key):
            raise RefusedError(401, "invalid_api_key", "This is no key of an admin.")
        response = web.json_response({"logged_in": True})
        cookie = sessions.begin(_digest(key))
        response.set_cookie(
            COOKIE, cookie, max_age=LASTS_S, httponly=True, samesite="Strict", secure=request.secure, path="/"
        )
        return response

    async def log_out(request: web.Request) -> web.StreamResponse:
        sessions.end(request.cookies.get(COOKIE, ""))
        response = web.json_response({"logged_in": False})
        response.del_cookie(COOKIE, path="/")
        return response

    return [web.post("/api/session", log_in), web.delete("/api/session", log_out)]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


async def _key_of(request: web.Request) -> str | None:
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            content = await request.read()
    except TimeoutError:
        raise RefusedError(408, "body_timeout", f"The body was not here within {BODY_TIMEOUT_S:.0f} s.") from None
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    key = document.get("key") if isinstance(document, dict) else None
    return key if isinstance(key, str) else None
