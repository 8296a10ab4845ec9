"""Whatever goes wrong on the way to an answer, told in OpenAI's shape."""

from __future__ import annotations

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from supervisor.shell.front.headers import request_id_of
from supervisor.shell.front.refusal import RefusedError

log = structlog.get_logger(__name__)


@web.middleware
async def tell_faults(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer errors as JSON; an unforeseen one is logged and told without its inside."""
    try:
        return await handler(request)
    except RefusedError as refusal:
        return _answer(request, refusal)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        headers = {name: value for name, value in error.headers.items() if name == "Allow"}
        text = f"{error.reason}: {request.method} {request.path}"
        return _answer(request, RefusedError(error.status, None, text, headers=headers))
    except (web.RequestPayloadError, HttpProcessingError):
        return _answer(request, RefusedError(400, "invalid_body", "The body cannot be decoded, or is not complete."))
    except ConnectionError:
        raise  # the client has left
    except Exception:
        log.exception("request_failed", path=request.path)
        return _answer(request, RefusedError(500, None, "freshlane met an error of its own; its log says more."))


def _answer(request: web.Request, refusal: RefusedError) -> web.Response:
    headers = {**refusal.headers, "X-Request-Id": request_id_of(request.headers)}
    return web.Response(status=refusal.status, body=refusal.body, content_type="application/json", headers=headers)
