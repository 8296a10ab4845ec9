"""The text a canary sends: the same every time, about so many tokens long, and ending in a task that goes on.

Plain short words are one token each in every tokenizer we know, so the length needs no tokenizer. The same text each
time may be served from a prefix cache, which is wanted: a decode rate needs no miss, and clients keep their prefixes.
"""

from __future__ import annotations

from itertools import cycle, islice

TASK = "Count from 1 to 1000, one number a line, and write nothing else.\n1\n2\n3\n4\n"
TASK_TOKENS = 32

ONE_WORD = "Hi"

_TALE = (
    "the river ran down from the hills and past the old stone bridge where a boy sat with his dog and a book in the "
    "late sun while over the water a small boat came in with fish and salt and news of the war at the coast and the "
    "wind took the smoke of the fires up into the trees and on to the fields where men cut the last of the corn"
)


def canary_prompt(tokens: int, nonce: str = "") -> str:
    """A prompt of about ``tokens`` tokens; with a nonce at its start no cache can serve it."""
    words = " ".join(islice(cycle(_TALE.split()), max(tokens - TASK_TOKENS, 0)))
    return f"{nonce} {words}\n{TASK}".lstrip()
