"""What is learned of how a lane's workers age, and the age at which the worker of now is to be replaced for it.

The age is reckoned once in each life. One life in eight has none, so that it is still seen what becomes of old workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from supervisor.core.speed.age_curve import AgeCurve
from supervisor.core.words import long_length, plural

STARTING_SHARE = 0.02
"""Of lane time that starting workers beside the old one may take, where replacing one costs no service."""


class Ageing:
    """One lane's. Ages and costs are seconds, ``every_s`` the time between probes."""

    def __init__(self, every_s: float) -> None:
        self._curve = AgeCurve(every_s)
        self._last_age_s: float | None = None
        """Of the worker of now, at its last run."""
        self._best_age_s: float | None = None
        self._is_reckoned = False

    # ---- taking lives in ----

    def measured(self, age_s: float, ratio: float) -> None:
        """A run of the worker at this age, and its speed over a fresh one's."""
        self._curve.measured(age_s, ratio)
        self._last_age_s = age_s

    def life_ended(self, *, is_slow: bool) -> None:
        """Another worker is measured from now on; ``is_slow``: the last one had been found slow."""
        if self._last_age_s is not None:
            self._curve.life_ended(self._last_age_s, is_slow=is_slow)
        self._last_age_s, self._is_reckoned = None, False

    # ---- what they say ----

    def best_age_s(self, cost_s: float, least_s: float) -> float | None:
        """At which the worker of now is best replaced, and not before ``least_s``; None if it is not, for its age."""
        if not self._is_reckoned:
            self._is_reckoned = True
            best = self._curve.best_age_s(cost_s, least_s)
            self._best_age_s = None if self._curve.is_left_alone else best
        return self._best_age_s

    @property
    def words(self) -> str:
        """Why it is replaced at that age."""
        best = long_length(self._best_age_s)
        return (
            f"at the age of {best}, at which replacing it has paid best in {plural(self._curve.lives, 'life', 'lives')}"
        )

    def summary(self) -> dict[str, Any]:
        """For people: lives that were seen, and the best age (s), if there is one."""
        return {
            "lives": self._curve.lives,
            "best_age_s": self._best_age_s,
            "is_left_alone": self._curve.is_left_alone,
        }

    # ---- outliving the daemon ----

    def to_json(self) -> dict[str, Any]:
        """All but the life of now."""
        return self._curve.to_json()

    @classmethod
    def from_json(cls, document: object, every_s: float) -> Ageing:
        """What ``to_json`` gave; anything that cannot be read is left out."""
        ageing = cls(every_s)
        if isinstance(document, Mapping):
            ageing._curve = AgeCurve.from_json(document, every_s)
        return ageing
