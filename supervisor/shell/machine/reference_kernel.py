"""A program of its own: does a fixed piece of work whenever it is asked to, and says how long that took.

Each line on its standard input asks; the answer on its standard output is that line and the seconds. The work is what
a worker's is made of: some reckoning, and memory to read and to write. It ends with its standard input, so with whoever
started it.
"""

from __future__ import annotations

import sys
from time import perf_counter

ROUNDS = 8
STEPS = 30_000
BLOCK_BYTES = 4 * 2**20
MASK = 0xFFFFFFFF


def work() -> float:
    """Some 40 ms on a processor of today; seconds."""
    block = bytearray(BLOCK_BYTES)
    _round(block)
    began = perf_counter()
    for _ in range(ROUNDS):
        _round(block)
    return perf_counter() - began


def _round(block: bytearray) -> int:
    number = 0
    for step in range(STEPS):
        number = (number * 31 + step) & MASK
    return number + len(bytes(block))


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(f"{line.strip()} {work():.6f}\n")
        sys.stdout.flush()
