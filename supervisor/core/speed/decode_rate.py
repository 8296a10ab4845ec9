"""The rate of a stream seen from outside: tokens after the first read, over the time from the first to the last.

    rate = (n - k) / (time of the last token - time of the first)

``n`` tokens, ``k`` of them those that came with the first read, which took no time that anybody saw.
"""

from __future__ import annotations

FEWEST_TOKENS = 8
"""After the first read; fewer say nothing."""


def timed_tokens(tokens: int, chunks: int, first_chunks: int) -> int:
    """``n - k``: ``chunks`` carried ``tokens``, ``first_chunks`` of them came with the first read."""
    return tokens - round(first_chunks * tokens / chunks)


def decode_rate(tokens: int, chunks: int, first_chunks: int, lasted_s: float) -> float | None:
    """Tokens/s; None where the stream is too short to tell."""
    if not chunks or lasted_s <= 0:
        return None
    timed = timed_tokens(tokens, chunks, first_chunks)
    return timed / lasted_s if timed >= FEWEST_TOKENS else None
