"""JSON that every reader can read: one line, and null for what JSON cannot say."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def encode(document: Mapping[str, Any]) -> str:
    """``document`` on one line; NaN and infinities become null, and half a character its escape."""
    text = json.dumps(_finite(document), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace").decode()


def decode(text: str | bytes) -> dict[str, Any] | None:
    """The object in ``text``; None if it is torn, empty, nested beyond reason or not an object."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def decode_list(text: str | bytes) -> list[dict[str, Any]]:
    """The objects in the list in ``text``; none if it is no list."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [one for one in document if isinstance(one, dict)] if isinstance(document, list) else []


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
