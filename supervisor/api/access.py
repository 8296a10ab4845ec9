"""Who may do what: keys, the Host that was asked for, and the Origin of a page that asks.

/v1 takes the clients' keys, /api the admins', /metrics either; the page, /healthz and /readyz take none. Where no key
is set, all of it is open, but never to a foreign page: a browser tells its Origin, and a rebound name shows in Host.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

from supervisor.api.session import COOKIE, Sessions
from supervisor.shell.front.refusal import RefusedError

ANY_ORIGIN = "*"
ORIGIN_UNKNOWN = "This Origin may not ask; add it to allowed_origins for /v1."
KEY_NEEDED = "A key is needed here: `Authorization: Bearer KEY` or `x-api-key: KEY`."

_CORS_HEADERS = "Authorization, Content-Type, X-Api-Key, X-Request-Id"
_CORS_MAX_AGE_S = "600"
_ALLOWED_ORIGIN = web.RequestKey("allowed_origin", str)

PROBES = frozenset({"/healthz", "/readyz"})
"""A load balancer asks these under any name; they say nothing but yes or no to one that is not known."""

UNKNOWN_HOST = web.RequestKey("unknown_host", bool)
"""Set on a probe that was asked for under a name that is not ours."""


class AccessSettings(Protocol):
    """The settings that decide who may do what."""

    @property
    def allowed_hosts(self) -> tuple[str, ...]: ...

    @property
    def allowed_origins(self) -> tuple[str, ...]: ...

    def keys_of_clients(self) -> tuple[str, ...]: ...

    def keys_of_admins(self) -> tuple[str, ...]: ...


class Door(StrEnum):
    """What a path asks for."""

    PUBLIC = "public"
    CLIENT = "client"
    ADMIN = "admin"
    EITHER = "either"


def digest_of(key: str) -> bytes:
    """What is kept and compared in a key's place."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


@dataclass(frozen=True, slots=True)
class Keyring:
    """The digests of the keys that open a door; empty: it stands open."""

    digests: frozenset[bytes]

    @classmethod
    def of(cls, keys: Iterable[str]) -> Keyring:
        return cls(frozenset(digest_of(key) for key in keys))

    def has(self, digest: bytes) -> bool:
        """Whether it is one of them; takes as long for a near miss as for a far one."""
        found = False
        for known in self.digests:
            found |= hmac.compare_digest(known, digest)
        return found


class Access:
    """Decides each request.

    ``settings`` is asked each time, since a reload may change it; ``token`` opens all to the commands on this machine.
    """

    def __init__(self, settings: Callable[[], AccessSettings], token: str, sessions: Sessions) -> None:
        self._settings = settings
        self._token = digest_of(token)
        self._sessions = sessions
        self._read_from: AccessSettings | None = None
        self._clients = self._admins = Keyring(frozenset())
        self._names = _names_of_this_machine()

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let pass. Raises RefusedError."""
        settings = self._settings()
        door = door_of(request)
        if not self._is_known_host(request.headers.getall("Host", []), settings.allowed_hosts):
            if request.path not in PROBES:
                raise RefusedError(403, "host_not_allowed", "This Host is not served here; add it to allowed_hosts.")
            request[UNKNOWN_HOST] = True
        origin = request.headers.get("Origin")
        if origin is not None and not _is_same(origin, request.headers.get("Host", "")):
            if door is not Door.CLIENT or not {origin, ANY_ORIGIN}.intersection(settings.allowed_origins):
                raise RefusedError(403, "origin_not_allowed", ORIGIN_UNKNOWN)
            request[_ALLOWED_ORIGIN] = origin
        if request.method == "OPTIONS" and _ALLOWED_ORIGIN in request:
            return _preflight()
        if not self._opens(door, request):
            raise RefusedError(401, "invalid_api_key", KEY_NEEDED, headers={"WWW-Authenticate": "Bearer"})
        return await handler(request)

    def is_admin_key(self, key: str) -> bool:
        """Whether the page may log in with it."""
        self._read_keys()
        digest = digest_of(key)
        return hmac.compare_digest(self._token, digest) | self._admins.has(digest)

    def _read_keys(self) -> None:
        settings = self._settings()
        if settings is not self._read_from:
            self._clients = Keyring.of(settings.keys_of_clients())
            self._admins = Keyring.of(settings.keys_of_admins())
            self._read_from = settings

    def _opens(self, door: Door, request: web.Request) -> bool:
        self._read_keys()
        if door is Door.PUBLIC:
            return True
        keyring = self._clients if door is Door.CLIENT else self._admins
        if not keyring.digests:
            return True
        return self._shows_key(door, request) or self._shows_session(door, request)

    def _shows_key(self, door: Door, request: web.Request) -> bool:
        key = _key_in(request.headers)
        if key is None:
            return False
        digest = digest_of(key)
        is_admin = hmac.compare_digest(self._token, digest) | self._admins.has(digest)
        return is_admin | (self._clients.has(digest) and door is not Door.ADMIN)

    def _shows_session(self, door: Door, request: web.Request) -> bool:
        if door is Door.CLIENT:
            return False
        digest = self._sessions.key_digest_of(request.cookies.get(COOKIE, ""))
        return digest is not None and (hmac.compare_digest(self._token, digest) | self._admins.has(digest))

    def _is_known_host(self, hosts: list[str], allowed: tuple[str, ...]) -> bool:
        if not hosts:
            return True  # HTTP/1.0 without Host: no browser speaks so
        name = _host_name(hosts[0])
        if len(hosts) > 1 or name is None:
            return False
        return _is_ip(name) or name.endswith(".local") or name in self._names or name in map(str.lower, allowed)


def door_of(request: web.Request) -> Door:
    """What the route that was found asks for."""
    resource = request.match_info.route.resource
    path = resource.canonical if resource else request.path
    if path.startswith("/v1"):
        return Door.CLIENT
    if path == "/api/session":
        return Door.PUBLIC
    if path.startswith("/api"):
        return Door.ADMIN
    return Door.EITHER if path == "/metrics" else Door.PUBLIC


async def allow_reading(request: web.Request, response: web.StreamResponse) -> None:
    """Tell a browser that the page whose Origin was let in may read the answer."""
    origin = request.get(_ALLOWED_ORIGIN)
    if origin is not None:
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = "X-Request-Id, Retry-After"
        response.headers.add("Vary", "Origin")


def _key_in(headers: Mapping[str, str]) -> str | None:
    scheme, _, key = headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip()
    return headers.get("x-api-key")


def _names_of_this_machine() -> frozenset[str]:
    name = socket.gethostname().lower()
    return frozenset({"localhost", name, name.partition(".")[0]} - {""})


def _host_name(host: str) -> str | None:
    """The name in ``name:port``, in small letters; None if it is none."""
    if "@" in host:
        return None
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return None
    return name.rstrip(".") if name else None


def _is_ip(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_same(origin: str, host: str) -> bool:
    """Whether the page that asks was served from here."""
    try:
        return bool(host) and urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False


def _preflight() -> web.Response:
    return web.Response(
        status=204,
        headers={
            "Access-Control-Allow-Methods": "GET, POST",
            "Access-Control-Allow-Headers": _CORS_HEADERS,
            "Access-Control-Max-Age": _CORS_MAX_AGE_S,
        },
    )
