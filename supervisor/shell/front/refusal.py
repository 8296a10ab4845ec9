"""Answers that freshlane gives in a worker's place, in the shape that OpenAI's clients understand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from supervisor.errors import FreshlaneError
from supervisor.jsontext import encode

CUT = "stream_cut"
CROWDED_RETRY_S = 5.0

NO_RETRY: Mapping[str, str] = {"x-should-retry": "false"}
"""OpenAI's own clients obey it."""


class RefusedError(FreshlaneError):
    """A request that gets an error of our own. ``retry_after_s``: when it may be sent again, None: not soon.

    ``more`` stands in the error object beside message, type, code and source.
    """

    def __init__(
        self,
        status: int,
        code: str | None,
        message: str,
        *,
        retry_after_s: float | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s
        self._headers = dict(headers or {})
        self._more = more

    @property
    def headers(self) -> dict[str, str]:
        """What goes beside the body; Retry-After in whole seconds, at least one."""
        if self.retry_after_s is None:
            return dict(self._headers)
        return {**self._headers, "Retry-After": str(max(1, math.ceil(self.retry_after_s)))}

    @property
    def body(self) -> bytes:
        """The error object in OpenAI's shape, marked as ours, as JSON."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        error = {"message": self.message, "type": kind, "param": None, "code": self.code, "source": "freshlane"}
        return encode({"error": {**error, **self._more}}).encode()

    @property
    def event(self) -> bytes:
        """The error object as one whole SSE event."""
        return b"data: " + self.body + b"\n\n"


def is_closed(reason: str, retry_after_s: float | None) -> RefusedError:
    """The lane takes no requests."""
    return RefusedError(503, "lane_closed", f"This lane takes no requests now: {reason}.", retry_after_s=retry_after_s)


def queue_is_full(length: int, retry_after_s: float) -> RefusedError:
    """As many wait as may wait."""
    text = f"{length} requests wait for this lane already (max_queue); try again later."
    return RefusedError(503, "queue_full", text, retry_after_s=retry_after_s)


def is_crowded(waiting: int) -> RefusedError:
    """The lane has not come to what it was asked before."""
    text = f"{waiting} events wait for this lane's attention already; see the daemon's log, and ask again later."
    return RefusedError(503, "lane_crowded", text, retry_after_s=CROWDED_RETRY_S)


def too_much_is_held(limit_bytes: int, retry_after_s: float) -> RefusedError:
    """The bodies of those who wait take as much memory as they may."""
    text = f"Requests that wait hold {limit_bytes / 1e6:.0f} MB already, the most for all lanes (8 x max_body)."
    return RefusedError(503, "too_much_held", text, retry_after_s=retry_after_s)


def hold_timed_out(waited_s: float, reason: str, retry_after_s: float) -> RefusedError:
    """It waited for a worker as long as it may."""
    text = f"No worker was free within {waited_s:.0f} s (hold.timeout): {reason}."
    return RefusedError(503, "hold_timeout", text, retry_after_s=retry_after_s)


def is_poison(request_id: str, generations: tuple[int, ...]) -> RefusedError:
    """It was in flight at the deaths of two workers; a third shall not follow."""
    workers = " and ".join(str(generation) for generation in generations)
    text = f"Request {request_id} was in flight when workers {workers} died; it is poison and will not be sent again."
    return RefusedError(500, "request_poison", text, headers=NO_RETRY)


def worker_lost(request_id: str) -> RefusedError:
    """The worker broke the connection and is not known to be dead."""
    return RefusedError(502, "worker_lost", f"The worker broke off request {request_id} before it answered.")


def broken_off(reason: str) -> RefusedError:
    """The answer ended before it was complete."""
    return RefusedError(502, "stream_broken", f"The answer is not complete: {reason}.")


def was_cut(reason: str) -> RefusedError:
    """Freshlane itself ended the answer."""
    return RefusedError(503, CUT, f"The answer was cut: {reason}.")
