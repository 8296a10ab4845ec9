"""mlx_lm.server: its log, which tells how far prompts are and how big its prompt cache is, and no rate of decoding."""

from __future__ import annotations

import re

from supervisor.readings.numbers import number, plain
from supervisor.readings.reading import Reading

_PROMPT = re.compile(r"Prompt processing progress: (\d+)/(\d+)")
_CACHE = re.compile(r"Prompt Cache: \d+ sequences, (\d+(?:\.\d+)?) GB")
SHORTEST_STRETCH_TOKENS = 256
"""Of fewer tokens the time says more of the machine than of reading them."""


class MlxLmLog:
    """Its log. A rate of prefill shows between two lines of one prompt."""

    tells_of_answers = False

    def __init__(self) -> None:
        self._last: tuple[float, float, float] | None = None
        """Tokens done, tokens in all, and when."""

    def read(self, line: str, at: float) -> Reading | None:
        """What the line tells; None if nothing."""
        line = plain(line)
        kept = _CACHE.search(line)
        if kept:
            size = number(kept.group(1))
            return None if size is None else Reading(cache_bytes=size * 1e9)
        found = _PROMPT.search(line)
        done, whole = (number(found.group(1)), number(found.group(2))) if found else (None, None)
        if done is None or whole is None:
            return None
        before, self._last = self._last, (done, whole, at)
        return Reading(
            prefill_tok_s=_rate(before, self._last),
            context_tokens=int(whole),
            is_progress=True,
        )


def _rate(before: tuple[float, float, float] | None, now: tuple[float, float, float]) -> float | None:
    if before is None or before[1] != now[1] or now[0] - before[0] < SHORTEST_STRETCH_TOKENS or now[2] <= before[2]:
        return None
    return (now[0] - before[0]) / (now[2] - before[2])
