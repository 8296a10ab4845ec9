"""How old rows are, told without the wall clock, which may be set: by the time that daemons have run since.

At a mark the newest row of each table is written down, with the running time so far. Whatever is no newer than that row
is at least as old as the mark. Rows of a table are numbered upwards, and its newest is never dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MARKS = 90
"""Over the time for which rows are kept: a row goes late by one part in so many at most."""


@dataclass(frozen=True, slots=True)
class Mark:
    """``newest``: the number of each table's newest row when daemons had run for ``lived_s``."""

    lived_s: float
    newest: Mapping[str, int]


class Age:
    """Of one history file, over all daemons that wrote to it."""

    def __init__(self, lived_s: float = 0.0, marks: Iterable[Mark] = ()) -> None:
        self.lived_s = lived_s
        self._marks = list(marks)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Age:
        """As kept by ``to_json``; an empty document is that of a new file."""
        marks = (Mark(float(lived_s), newest) for lived_s, newest in document.get("marks", ()))
        return cls(float(document.get("lived_s", 0.0)), marks)

    def to_json(self) -> dict[str, Any]:
        return {"lived_s": self.lived_s, "marks": [[mark.lived_s, dict(mark.newest)] for mark in self._marks]}

    def look(self, ran_s: float, newest: Mapping[str, int], keep_s: float) -> None:
        """A daemon has run for so long since the last look; marks that nothing depends on any more go."""
        self.lived_s += ran_s
        if not self._marks or self.lived_s - self._marks[-1].lived_s >= keep_s / MARKS:
            self._marks.append(Mark(self.lived_s, dict(newest)))
        old = [mark for mark in self._marks if self.lived_s - mark.lived_s >= keep_s]
        self._marks = self._marks[max(len(old) - 1, 0) :]

    def last_old(self, table: str, keep_s: float) -> int:
        """The newest row of ``table`` that is older than ``keep_s``; 0 if none is."""
        old = (mark.newest.get(table, 0) for mark in self._marks if self.lived_s - mark.lived_s >= keep_s)
        return max(old, default=0)
