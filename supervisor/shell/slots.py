"""Places that only so many lanes may hold at a time: for starting, and for recycling."""

from __future__ import annotations

from collections.abc import Callable


class Slots:
    """First come, first served; asking twice and giving back what one has not got mean nothing."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._holders: set[str] = set()
        self._waiting: dict[str, Callable[[], None]] = {}

    @property
    def holders(self) -> tuple[str, ...]:
        """Who has a place now."""
        return tuple(sorted(self._holders))

    def take(self, who: str) -> bool:
        """Take a place now, if one is free and nobody waits for it."""
        if who not in self._holders and (len(self._holders) >= self.size or self._waiting):
            return False
        self._holders.add(who)
        return True

    def ask(self, who: str, granted: Callable[[], None]) -> None:
        """Call ``granted`` once ``who`` has a place: now, or when its turn comes."""
        if who in self._holders:
            granted()
            return
        self._waiting[who] = granted
        self._hand_out()

    def give_back(self, who: str) -> None:
        """Leave the place, or the queue for it."""
        self._waiting.pop(who, None)
        self._holders.discard(who)
        self._hand_out()

    def resize(self, size: int) -> None:
        """A reload changed how many there are; nobody loses a place."""
        self.size = size
        self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting and len(self._holders) < self.size:
            who = next(iter(self._waiting))
            granted = self._waiting.pop(who)
            self._holders.add(who)
            granted()
