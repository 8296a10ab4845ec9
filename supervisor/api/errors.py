"""Errors in the shape that OpenAI's clients understand, marked as freshlane's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from supervisor.jsontext import encode

INVALID = "invalid_request_error"
SERVER = "server_error"


def error_response(
    status: int,
    message: str,
    *,
    type: str,  # noqa: A002 - the field's name in the body
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> web.Response:
    """An answer ``{"error": {message, type, code, source}}``; ``more`` stands beside these."""
    error = {"message": message, "type": type, "param": None, "code": code, "source": "freshlane", **more}
    return web.Response(status=status, text=encode({"error": error}), content_type="application/json", headers=headers)
