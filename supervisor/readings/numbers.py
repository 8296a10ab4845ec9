"""Numbers out of what servers write, and never an error for what is none."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_PAIR = re.compile(r"([A-Za-z_][\w/]*)=([^\s,\[\]()]+)")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LONGEST_LINE = 4096


def plain(line: str) -> str:
    """The line without colours, and not longer than any that is meant."""
    return _ANSI.sub("", line[:LONGEST_LINE])


def pairs(text: str) -> dict[str, str]:
    """Its ``key=value`` words, wherever they stand."""
    return dict(_PAIR.findall(text))


def number(said: object) -> float | None:
    """A finite number, or the one that a text begins with (``16180.7ms`` is 16180.7)."""
    if isinstance(said, str):
        found = _NUMBER.match(said.strip())
        said = float(found.group()) if found else None
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    try:
        value = float(said)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def count(said: object) -> int | None:
    """The same, whole and not negative."""
    value = number(said)
    return None if value is None or value < 0 else int(value)


def positive(said: object) -> float | None:
    """The same, above zero: a rate of nothing tells nothing."""
    value = number(said)
    return value if value is not None and value > 0 else None


def ratio(said: object) -> float | None:
    """``109/117`` as a number."""
    part, _, whole = said.partition("/") if isinstance(said, str) else ("", "", "")
    return share(number(part), number(whole))


def share(part: float | None, whole: float | None) -> float | None:
    """``part`` of ``whole``; None unless both are told and there is a whole."""
    return None if part is None or whole is None or whole <= 0 else part / whole


def document(body: bytes) -> Mapping[str, Any] | None:
    """A JSON object; None if it is something else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def inner(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object at ``key``; empty if there is none."""
    value = found.get(key)
    return value if isinstance(value, dict) else {}
