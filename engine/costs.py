"""What a plain step and a cycle of each width cost, by context: calibrated while idle, corrected by real work. Pure."""

from __future__ import annotations

from collections import deque
from statistics import median

SAMPLES = 15
"""Kept for each cell; a median of so many shrugs off a stall and still follows a change within a second."""
FRESH_SAMPLES = 15


def bucket_of(context: int) -> int:
    """The context bucket of a step: the smallest of 256, 512, 1024, ... that holds `context` tokens."""
    return max(256, 1 << max(0, context - 1).bit_length())


class _Cell:
    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=SAMPLES)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self._samples.append(seconds)
        self.seconds = median(self._samples)

    def __len__(self) -> int:
        return len(self._samples)


class Costs:
    """Seconds of a step (0 drafted tokens) or a cycle that verifies `k` drafted tokens, at a context.

    What it takes to draft them is apart; for drafts that are free it is 0.
    """

    def __init__(self) -> None:
        self._cells: dict[int, dict[int, _Cell]] = {}
        self._fresh: dict[int, float] = {}
        self._drafting: dict[int, _Cell] = {}

    @property
    def widths(self) -> list[int]:
        """The draft lengths that have been measured; widths between them have cliffs nobody has seen."""
        return sorted(k for k in self._cells if k > 0)

    def observe(self, k: int, context: int, seconds: float) -> None:
        """One step or cycle took `seconds`."""
        bucket = bucket_of(context)
        cell = self._cells.setdefault(k, {}).setdefault(bucket, _Cell())
        cell.add(seconds)
        if k == 0 and bucket not in self._fresh and len(cell) >= FRESH_SAMPLES:
            self._fresh[bucket] = cell.seconds

    def observe_drafting(self, k: int, seconds: float) -> None:
        """The paid drafter guessed `k` tokens in `seconds`."""
        self._drafting.setdefault(k, _Cell()).add(seconds)

    def drafting(self, k: int) -> float | None:
        """Seconds in which the paid drafter guesses `k` tokens; None where that has not been measured."""
        cell = self._drafting.get(k)
        return cell.seconds if cell else None

    def plain(self, context: int) -> float | None:
        """Seconds of a plain step, from the nearest context measured; None before any."""
        cell = self._nearest(0, bucket_of(context))
        return cell[1] if cell else None

    def cycle(self, k: int, context: int) -> float | None:
        """Seconds of a cycle. From another context it is carried over in the proportion in which plain steps grew."""
        nearest, plain = self._nearest(k, bucket_of(context)), self.plain(context)
        if nearest is None or plain is None:
            return None
        bucket, seconds = nearest
        plain_there = self.plain(bucket)
        return seconds * plain / plain_there if plain_there else None

    def ageing(self, context: int) -> float | None:
        """A plain step's time now over its time when this process was fresh, at the same context; None if unknown."""
        bucket = bucket_of(context)
        cell = self._cells.get(0, {}).get(bucket)
        return cell.seconds / self._fresh[bucket] if cell and bucket in self._fresh else None

    def table(self) -> dict[str, dict[str, float]]:
        """Milliseconds by draft length and context bucket, for /stats."""
        return {
            str(k): {str(bucket): round(cell.seconds * 1000, 2) for bucket, cell in sorted(cells.items())}
            for k, cells in sorted(self._cells.items())
        }

    def drafting_table(self) -> dict[str, float]:
        """Milliseconds of the paid drafter by draft length, for /stats."""
        return {str(k): round(cell.seconds * 1000, 2) for k, cell in sorted(self._drafting.items())}

    def _nearest(self, k: int, bucket: int) -> tuple[int, float] | None:
        cells = self._cells.get(k)
        if not cells:
            return None
        if bucket in cells:
            return bucket, cells[bucket].seconds
        near = min(cells, key=lambda other: abs(other.bit_length() - bucket.bit_length()))
        return near, cells[near].seconds
