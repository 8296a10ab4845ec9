"""Where a later prompt may part from this one: at the ends of its messages. Pure."""

from __future__ import annotations

from collections.abc import Sequence, Set


def boundaries(prompt: Sequence[int], end_tokens: Set[int]) -> tuple[int, ...]:
    """Lengths of beginnings of `prompt` worth coming back to, in order.

    After its first message, which other conversations share; after its last one, where templates that drop what a model
    thought go on differently; and before its last token, which is all but what is fed again. A message ends with one of
    `end_tokens`.
    """
    ends = [place + 1 for place, token in enumerate(prompt) if token in end_tokens]
    chosen = {*ends[:1], *ends[-1:], len(prompt) - 1}
    return tuple(sorted(length for length in chosen if 0 < length < len(prompt)))
