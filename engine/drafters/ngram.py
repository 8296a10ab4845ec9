"""Guess that text repeats: find the longest suffix that occurred before, and propose what followed it then."""

from __future__ import annotations

from engine.drafters import Draft

SHORTEST = 2
LONGEST = 32
CANDIDATES = 16
"""Earlier occurrences compared, newest first; the one being copied from is always among them."""
KINDS = ((24, "ngram24"), (12, "ngram12"), (6, "ngram6"), (4, "ngram4"), (3, "ngram3"), (SHORTEST, "ngram2"))
"""The longer the match, the likelier the guess: acceptance is learned apart for each of these lengths."""


class NgramDrafter:
    """An index over the prompt and the output of one sequence; a few microseconds a token."""

    method = "ngram"

    def __init__(self) -> None:
        self.begin([])

    def begin(self, tokens: list[int]) -> None:
        self._tokens: list[int] = []
        self._latest: dict[tuple[int, ...], int] = {}
        self._earlier: list[int] = []
        self._source = 0
        self.extend(tokens)

    def extend(self, tokens: list[int]) -> None:
        known = self._tokens
        for token in tokens:
            # The source goes on as the text does, whether or not it was right about it.
            self._source = self._source + 1 if self._source else 0
            known.append(token)
            gram = tuple(known[-SHORTEST:])
            # `_earlier[end]` is where the same gram ended before it ended at `end`; 0 for nowhere.
            self._earlier.append(self._latest.get(gram, 0) if len(gram) == SHORTEST else 0)
            self._latest[gram] = len(known) - 1

    def propose(self, limit: int) -> Draft:
        if limit <= 0 or len(self._tokens) <= SHORTEST:
            return Draft()
        length, source = self._longest_match()
        self._source = source
        if not source:
            return Draft()
        kind = next(name for shortest, name in KINDS if length >= shortest)
        return Draft(self._copied(source + 1, limit), kind)

    def _longest_match(self) -> tuple[int, int]:
        """(length, end of the earlier occurrence) of the longest suffix seen before; (0, 0) if there is none."""
        best = (0, 0)
        if self._source:
            best = max(best, (self._match_at(self._source), self._source))
        candidate, left = self._earlier[-1], CANDIDATES
        while candidate and left and best[0] < LONGEST:
            best = max(best, (self._match_at(candidate), candidate))
            candidate, left = self._earlier[candidate], left - 1
        return best if best[0] >= SHORTEST else (0, 0)

    def _match_at(self, end: int) -> int:
        """How many tokens up to `end` are those at the end of the text."""
        known, length, last = self._tokens, 0, len(self._tokens) - 1
        while length < LONGEST and length <= end and known[end - length] == known[last - length]:
            length += 1
        return length

    def _copied(self, start: int, limit: int) -> tuple[int, ...]:
        """What followed; a copy that reaches the end of the text goes on with itself, as a repetition would."""
        copied = self._tokens[start : start + limit]
        period = len(self._tokens) - start
        while len(copied) < limit:
            copied.append(copied[-period])
        return tuple(copied)
