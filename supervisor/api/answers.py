"""Answers of /api: JSON that is never cached, and what went wrong below as a status."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from supervisor.api.errors import INVALID, SERVER, error_response
from supervisor.api.params import BadParameterError
from supervisor.errors import FreshlaneError
from supervisor.jsontext import encode
from supervisor.shell.wishes import NotInTimeError, RefusedError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NO_STORE = {"Cache-Control": "no-store"}


class UnknownLaneError(FreshlaneError):
    """A client's fault: no lane has that name or alias."""

    def __init__(self, name: str, lanes: Mapping[str, object]) -> None:
        known = ", ".join(sorted(lanes)) or "none"
        super().__init__(f"no lane {name!r}; the lanes are: {known}")


def json_answer(document: Mapping[str, Any], status: int = 200) -> web.Response:
    """A JSON document that no cache keeps."""
    return web.Response(status=status, text=encode(document), content_type="application/json", headers=NO_STORE)


def told(handler: Handler) -> Handler:
    """``handler`` with each error that a client can do something about as an answer that says so."""

    @functools.wraps(handler)
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except BadParameterError as error:
            return error_response(400, str(error), type=INVALID, code="invalid_parameter", param=error.name)
        except UnknownLaneError as error:
            return error_response(404, str(error), type=INVALID, code="lane_not_found")
        except RefusedError as error:
            return error_response(409, str(error), type=INVALID, code="refused")
        except NotInTimeError as error:
            return error_response(504, str(error), type=SERVER, code="not_in_time")

    return answer
