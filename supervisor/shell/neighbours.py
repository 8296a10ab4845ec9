"""Lanes that share the machine's memory: who is idle and on demand makes room for who needs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Neighbour:
    """``spare_s``: for how long the lane could have done without its worker; None while it cannot."""

    spare_s: Callable[[], float | None]
    make_room: Callable[[str], None]


class Neighbours:
    """All lanes of a daemon, by name."""

    def __init__(self) -> None:
        self._lanes: dict[str, Neighbour] = {}

    def join(self, lane: str, neighbour: Neighbour) -> None:
        """A lane is there."""
        self._lanes[lane] = neighbour

    def leave(self, lane: str) -> None:
        """A lane is gone."""
        self._lanes.pop(lane, None)

    def ask_for_room(self, by: str) -> None:
        """Ask the lane that could longest have done without its worker, if there is one, to unload it."""
        spare = {
            name: seconds
            for name, lane in self._lanes.items()
            if name != by and (seconds := lane.spare_s()) is not None
        }
        if spare:
            self._lanes[max(spare, key=spare.__getitem__)].make_room(by)
