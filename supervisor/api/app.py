"""The whole of HTTP: every route, behind the one check of who may ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from aiohttp import web

from supervisor.api.access import Access, AccessSettings, allow_reading
from supervisor.api.faults import tell_faults
from supervisor.api.fleet_view import FleetView, RunnerView
from supervisor.api.listener import note_head
from supervisor.api.routes_api import api_routes
from supervisor.api.routes_ops import ops_routes
from supervisor.api.routes_v1 import v1_routes
from supervisor.api.session import LONGEST_BODY_BYTES, Sessions, session_routes
from supervisor.shell.front.views import Directory, LaneFront


class FrontSettings(AccessSettings, Protocol):
    """What of the settings the front obeys; read at each request, since a reload may change it."""

    @property
    def max_body(self) -> int:
        """Bytes."""


class Lane(RunnerView, LaneFront, Protocol):
    """A lane as all routes together see it."""


class Fleet(FleetView, Protocol):
    """The fleet as all routes together see it."""

    @property
    def settings(self) -> FrontSettings:
        """Those of now."""

    def find(self, name: str, /) -> Lane | None:
        """The lane of that name or alias."""

    def lanes(self) -> Sequence[Lane]:
        """Every lane, in the order of the configuration."""


def build_app(fleet: Fleet, *, token: str, more: Iterable[web.AbstractRouteDef] = ()) -> web.Application:
    """The application. ``token`` is the commands' on this machine; ``more``: further routes, such as the page's.

    Serve it with ``handler_cancellation=True``: a client that leaves must end its request, also while it waits.
    """
    return assemble(fleet, lambda: fleet.settings, token, [*api_routes(fleet), *ops_routes(fleet), *more])


def assemble(
    directory: Directory, settings: Callable[[], FrontSettings], token: str, more: Iterable[web.AbstractRouteDef]
) -> web.Application:
    """The front, the login and ``more``, behind access and with errors of one shape."""
    sessions = Sessions()
    access = Access(settings, token, sessions)
    app = web.Application(middlewares=[note_head, tell_faults, access.middleware], client_max_size=LONGEST_BODY_BYTES)
    app.on_response_prepare.append(allow_reading)
    app.add_routes([*more, *session_routes(sessions, access.is_admin_key)])
    app.add_routes(v1_routes(directory, lambda: settings().max_body))
    return app
