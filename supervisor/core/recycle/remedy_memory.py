"""Which remedies brought nothing on a lane, and until when they rest. It outlives workers and the daemon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIRST_REST_S = 6 * 3600.0
LONGEST_REST_S = 7 * 86400.0
"""A remedy that brought nothing rests so long on its lane: doubled each time, up to a week."""


class RemedyMemory:
    """One lane's."""

    def __init__(self) -> None:
        self._in_vain: dict[str, int] = {}
        self._rest_until: dict[str, float] = {}

    def may_try(self, name: str, at: float) -> bool:
        """Whether it is not resting."""
        return at >= self._rest_until.get(name, at)

    def helped(self, name: str) -> None:
        """It cured a worker."""
        self._in_vain.pop(name, None)
        self._rest_until.pop(name, None)

    def brought_nothing(self, name: str, at: float) -> None:
        """It did not cure one."""
        times = self._in_vain.get(name, 0)
        self._in_vain[name] = times + 1
        self._rest_until[name] = at + min(FIRST_REST_S * 2.0**times, LONGEST_REST_S)

    def to_json(self, at: float) -> dict[str, Any]:
        """State that outlives the daemon, in seconds relative to ``at``."""
        return {name: [times, max(self._rest_until[name] - at, 0.0)] for name, times in self._in_vain.items()}

    @classmethod
    def from_json(cls, document: Any, at: float, gone_s: float) -> RemedyMemory:
        """``gone_s``: seconds since the state was written. What cannot be read is left out."""
        memory = cls()
        for name, entry in document.items() if isinstance(document, Mapping) else ():
            match entry:
                case [int(times), int(left_s) | float(left_s)]:
                    memory._in_vain[name] = times
                    memory._rest_until[name] = at + max(left_s - gone_s, 0.0)
        return memory
