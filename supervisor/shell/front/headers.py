"""Which headers pass between a client and a worker."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping

from multidict import CIMultiDict, CIMultiDictProxy

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# The client's key and the page's cookie are ours. The body arrives here decoded, and its length is counted anew.
_NOT_FOR_WORKERS = frozenset(
    {"authorization", "x-api-key", "cookie", "host", "content-length", "content-encoding", "expect", "x-request-id"}
)
_NOT_FOR_CLIENTS = frozenset({"content-length", "x-request-id"})
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


def request_id_of(headers: Mapping[str, str]) -> str:
    """The client's X-Request-Id if it is a harmless one, else a new one."""
    given = headers.get("X-Request-Id", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def for_worker(
    headers: CIMultiDictProxy[str], own: Mapping[str, str], request_id: str, *, is_plain: bool
) -> CIMultiDict[str]:
    """A client's headers as its worker gets them. ``is_plain``: the answer must come uncompressed."""
    passed = _passing(headers, _NOT_FOR_WORKERS)
    if is_plain:
        passed.popall("Accept-Encoding", None)
    passed["X-Request-Id"] = request_id
    for name, value in own.items():
        passed[name] = value
    return passed


def for_client(headers: CIMultiDictProxy[str], request_id: str) -> CIMultiDict[str]:
    """A worker's headers as the client gets them."""
    passed = _passing(headers, _NOT_FOR_CLIENTS)
    for name in [name for name in passed if name.lower().startswith("access-control-")]:
        passed.popall(name, None)  # which pages may read an answer is decided here
    passed["X-Request-Id"] = request_id
    return passed


def _passing(headers: CIMultiDictProxy[str], dropped: frozenset[str]) -> CIMultiDict[str]:
    named = {name.strip().lower() for value in headers.getall("Connection", ()) for name in value.split(",")}
    dropped = dropped | _HOP_BY_HOP | named
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in dropped)
