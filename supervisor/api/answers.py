"""Answers of /api: JSON that is never cached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from supervisor.jsontext import encode

NO_STORE = {"Cache-Control": "no-store"}


def json_answer(document: Mapping[str, Any], status: int = 200) -> web.Response:
    """A JSON document that no cache keeps."""
    return web.Response(status=status, text=encode(document), content_type="application/json", headers=NO_STORE)
