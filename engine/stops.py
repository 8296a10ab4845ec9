"""Stop strings in streamed text: what may be shown, and where the text ends. Pure."""

from __future__ import annotations

from collections.abc import Sequence


class StopFinder:
    """Takes text piece by piece and gives back what can no longer be part of a stop string.

    The text ends before the stop string that is whole first, as if one had looked after each character; so it does not
    matter how the text was cut into pieces.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.is_found = False
        self.rest = ""
        """What came after the stop string that was found, in the piece that completed it."""

    def feed(self, piece: str) -> str:
        """The text that may be shown now. After a stop string was found, nothing."""
        if self.is_found:
            return ""
        text = self._held + piece
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.is_found = True
            self._held = ""
            end, start = min(found)
            self.rest = text[end:]
            return text[:start]
        shown = len(text) - self._possible_beginning(text)
        self._held = text[shown:]
        return text[:shown]

    def flush(self) -> str:
        """No more text comes: what was held back. It holds no whole stop string."""
        text, self._held = self._held, ""
        return text

    def _possible_beginning(self, text: str) -> int:
        """Length of the longest end of `text` that a stop string begins with."""
        return max((_overlap(text, stop) for stop in self._stops), default=0)


def _overlap(text: str, stop: str) -> int:
    longest = min(len(stop) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
