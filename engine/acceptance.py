"""How many drafted tokens the model accepts, per kind of draft and position, from cycles and from shadows. Pure.

A draft is observed only up to its first rejection: what lies behind that says nothing (it is censored). Old
observations fade, because content changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

DECAY = 0.97
PRIOR = 0.3
"""What a first position is taken to accept before anything is known; a later one starts from the one before it."""
PRIOR_WEIGHT = 2.0
CARRIED = 0.25
"""Share of an observation's weight that it keeps for the next sequence."""
CAUTION = 1.0
"""Standard deviations that the lower bound lies under the estimate."""


@dataclass
class _Position:
    tries: float = 0.0
    hits: float = 0.0

    def observe(self, *, hit: bool) -> None:
        self.tries = self.tries * DECAY + 1
        self.hits = self.hits * DECAY + hit


class Acceptance:
    """Acceptance of each position, given that those before it were accepted."""

    def __init__(self, positions: int) -> None:
        self._positions = positions
        self._kinds: dict[str, list[_Position]] = {}

    def observe(self, kind: str, drafted: int, accepted: int) -> None:
        """Of `drafted` tokens the first `accepted` were right, and the one after them, if any, was wrong."""
        table = self._kinds.setdefault(kind, [_Position() for _ in range(self._positions)])
        for index in range(min(drafted, accepted + 1, self._positions)):
            table[index].observe(hit=index < accepted)

    def observe_one(self, kind: str, index: int, *, hit: bool) -> None:
        """A drafted token whose predecessors were right was right, or not."""
        table = self._kinds.setdefault(kind, [_Position() for _ in range(self._positions)])
        if index < self._positions:
            table[index].observe(hit=hit)

    def fade(self) -> None:
        """New content begins: what was learned stays the best guess, with less weight against what comes."""
        for table in self._kinds.values():
            for position in table:
                position.tries, position.hits = position.tries * CARRIED, position.hits * CARRIED

    def expected(self, kind: str, drafted: int, *, caution: float = 0.0) -> list[float]:
        """Tokens that a cycle gives, for each draft length 0 to `drafted`; with CAUTION, their lower bounds."""
        tokens, reached, prior = [1.0], 1.0, PRIOR
        table = self._kinds.get(kind, [])
        for index in range(drafted):
            position = table[index] if index < len(table) else _Position()
            weight = position.tries + PRIOR_WEIGHT
            rate = (position.hits + PRIOR_WEIGHT * prior) / weight
            doubt = caution * (rate * (1 - rate) / (weight + 1)) ** 0.5
            reached *= max(0.0, rate - doubt)
            tokens.append(tokens[-1] + reached)
            prior = rate
        return tokens


class Shadows:
    """Drafts that nobody verified, scored by the tokens that plain decoding then gave."""

    def __init__(self, acceptance: Acceptance) -> None:
        self._acceptance = acceptance
        self._open: deque[tuple[str, tuple[int, ...], int]] = deque()

    def start(self, kind: str, tokens: tuple[int, ...]) -> None:
        """`tokens` were proposed for what comes next."""
        if tokens:
            self._open.append((kind, tokens, 0))

    def arrive(self, tokens: Sequence[int]) -> None:
        """These tokens came next."""
        for token in tokens:
            for _ in range(len(self._open)):
                kind, drafted, matched = self._open.popleft()
                is_right = drafted[matched] == token
                self._acceptance.observe_one(kind, matched, hit=is_right)
                if is_right and matched + 1 < len(drafted):
                    self._open.append((kind, drafted, matched + 1))

    def end(self) -> None:
        """The sequence has ended: what would have come is unknown."""
        self._open.clear()
