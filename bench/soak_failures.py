"""Answers of the soak that are not whole: which of them a death explains, and which are lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

FOUND_WITHIN_S = 30.0
"""A stream may fail this long after its worker was stopped or killed."""

Deaths = Callable[[str, float, float], int]
"""How many workers of a lane were killed or stopped between two moments."""


@dataclass(frozen=True)
class Failure:
    """An answer that is not whole; times are monotonic seconds."""

    lane: str
    request_id: str
    began: float
    ended: float
    status: int
    error: str
    text_is_right: bool
    """What came before the error is how the whole answer begins."""

    @property
    def has_error_event(self) -> bool:
        """The stream had begun, and an error event told its client that it failed."""
        return self.status == 200 and "freshlane" in self.error and self.text_is_right

    @property
    def is_poison(self) -> bool:
        """Refused because its workers died twice."""
        return "request_poison" in self.error


def failures(all_of_them: list[Failure], deaths: Deaths) -> dict[str, Any]:
    """How many a death explains, and how the client was told; the others are lost."""
    lost = lost_ones(all_of_them, deaths)
    explained = [one for one in all_of_them if one not in lost]
    return {
        "streams_ended_by_an_error_event": sum(not one.is_poison for one in explained),
        "refused_after_two_deaths": sum(one.is_poison for one in explained),
        "lost": len(lost),
        "of_these": [str(one) for one in lost[:10]],
    }


def lost_ones(all_of_them: list[Failure], deaths: Deaths) -> list[Failure]:
    """Those that no death explains, or whose client was not told as it should be."""
    return [one for one in all_of_them if not is_allowed(one, deaths)]


def is_allowed(failure: Failure, deaths: Deaths) -> bool:
    """Only a stream that had begun on a killed or hung worker may fail, with an error event; or a poison request."""
    count = deaths(failure.lane, failure.began - FOUND_WITHIN_S, failure.ended + 1.0)
    if failure.is_poison:
        return count >= 2
    return failure.has_error_event and count >= 1
