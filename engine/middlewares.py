"""What every request passes: its id, the worker's key, and errors in OpenAI's shape."""

from __future__ import annotations

import hmac
import logging
import re
import uuid

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from engine.errors import (
    DecodeError,
    DrainingError,
    EngineError,
    EngineStoppedError,
    FieldError,
    ModelMissingError,
    NotReadyError,
    OverloadedError,
    PromptTooLongError,
    RequestError,
    StalledError,
    UnknownRemedyError,
)
from engine.openai_answers import error_object

REQUEST_ID = web.RequestKey("request_id", str)
ID_HEADER = "X-Request-Id"
ID_SHAPE = re.compile(r"[\x21-\x7e]{1,128}")
RETRY_AFTER_S = "1"
log = logging.getLogger("engine")

STATUSES: dict[type[EngineError], tuple[int, str, str | None]] = {
    ModelMissingError: (404, "invalid_request_error", "model_not_found"),
    UnknownRemedyError: (404, "invalid_request_error", "unknown_remedy"),
    PromptTooLongError: (400, "invalid_request_error", "context_length_exceeded"),
    RequestError: (400, "invalid_request_error", None),
    NotReadyError: (503, "server_error", "loading"),
    DrainingError: (503, "server_error", "draining"),
    OverloadedError: (503, "server_error", "overloaded"),
    EngineStoppedError: (503, "server_error", "stopped"),
    StalledError: (504, "server_error", "stalled"),
    DecodeError: (500, "server_error", "decode_failed"),
    EngineError: (500, "server_error", None),
}


def error_body(error: EngineError) -> tuple[int, dict[str, object]]:
    """The HTTP status and the body that tell a client about `error`."""
    status, kind, code = next(STATUSES[known] for known in type(error).__mro__ if known in STATUSES)
    field = error.field if isinstance(error, FieldError) else None
    return status, error_object(str(error), kind, param=field, code=code)


@web.middleware
async def with_request_id(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Echo the client's X-Request-Id, or make one."""
    given = request.headers.get(ID_HEADER, "")
    request[REQUEST_ID] = given if ID_SHAPE.fullmatch(given) else uuid.uuid4().hex
    response = await handler(request)
    if not response.prepared:
        response.headers[ID_HEADER] = request[REQUEST_ID]
    return response


@web.middleware
async def with_shaped_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every error as OpenAI would."""
    try:
        return await handler(request)
    except EngineError as error:
        status, body = error_body(error)
        headers = {"Retry-After": RETRY_AFTER_S} if status == 503 else {}
        return web.json_response(body, status=status, headers=headers)
    except web.HTTPException as error:
        body = error_object(error.text or error.reason, "invalid_request_error")
        headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
        return web.json_response(body, status=error.status, headers=headers)
    except ConnectionError:
        raise  # nobody is there to be told
    except Exception:
        log.exception("request %s met a fault", request[REQUEST_ID])
        return web.json_response(error_object("the engine met a fault; see its log", "server_error"), status=500)


def requiring(token: str) -> Middleware:
    """Refuse every request that does not carry this generation's token."""

    @web.middleware
    async def with_token(request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        if not hmac.compare_digest(given, f"Bearer {token}".encode()):
            body = error_object("a Bearer token is missing or wrong", "invalid_request_error", code="invalid_api_key")
            return web.json_response(body, status=401, headers={"WWW-Authenticate": "Bearer"})
        return await handler(request)

    return with_token
