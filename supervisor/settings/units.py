"""Numbers with units, as people write them: ``90s``, ``64MB``, ``280k``, ``1%``, and back."""

from __future__ import annotations

import re
from decimal import Decimal

DURATION_UNITS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}
SIZE_UNITS = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
COUNT_UNITS = {"": 1, "k": 10**3, "M": 10**6}

LONGEST_S = 10 * 365 * 86400.0
LARGEST_SIZE = 2**60
LARGEST_COUNT = 10**12

NUMBER_PATTERN = r"[0-9]{1,15}(?:\.[0-9]{1,6})?"
DURATION_PATTERN = rf"({NUMBER_PATTERN})(ms|s|m|h|d)"
SIZE_PATTERN = rf"({NUMBER_PATTERN})(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)"
COUNT_PATTERN = rf"({NUMBER_PATTERN})(k|M|)"
SHARE_PATTERN = rf"({NUMBER_PATTERN})(%|)"

_DURATION = re.compile(DURATION_PATTERN)
_SIZE = re.compile(SIZE_PATTERN)
_COUNT = re.compile(COUNT_PATTERN)
_SHARE = re.compile(SHARE_PATTERN)
_BARE = re.compile(NUMBER_PATTERN)


class UnitError(ValueError):
    """A number that cannot be read; the text says how to write it and never repeats what was written."""


def parse_duration(text: str) -> float:
    """Seconds. Raises UnitError for a missing or unknown unit, and beyond ten years."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise UnitError(_how(text, "a duration", "90s, 5m, 6h or 7d"))
    seconds = float(Decimal(found[1]) * DURATION_UNITS[found[2]])
    if seconds > LONGEST_S:
        raise UnitError("is too long; at most 3650d")
    return seconds


def parse_size(text: str) -> int:
    """Bytes. Raises UnitError for a missing or unknown unit, and for parts of a byte."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise UnitError(_how(text, "a size", "64MB or 24GB (10^9 bytes), 24GiB (2^30)"))
    size = Decimal(found[1]) * SIZE_UNITS[found[2]]
    if size != int(size):
        raise UnitError("is not a whole number of bytes")
    if size > LARGEST_SIZE:
        raise UnitError("is too large; at most 1000000TB")
    return int(size)


def parse_count(text: str) -> int:
    """A whole number; ``280k`` and ``1.5M`` are read. Raises UnitError for anything else."""
    found = _COUNT.fullmatch(text)
    if found is None:
        raise UnitError("is not a count; write a whole number such as 5000, 280k or 1.5M")
    count = Decimal(found[1]) * COUNT_UNITS[found[2]]
    if count != int(count):
        raise UnitError("is not a whole number")
    if count > LARGEST_COUNT:
        raise UnitError("is too large; at most 1000000M")
    return int(count)


def parse_share(text: str) -> float:
    """A share in (0, 1], written ``1%`` or ``0.01``. Raises UnitError outside of it."""
    found = _SHARE.fullmatch(text)
    if found is None:
        raise UnitError("is not a share; write 1% or 0.01")
    value = float(Decimal(found[1]) / (100 if found[2] else 1))
    if not 0 < value <= 1:
        raise UnitError("must be more than 0 and at most 100%")
    return value


def parse_ratio(text: str) -> float:
    """A ratio in (0, 1), written ``0.89``. Raises UnitError outside of it."""
    if _BARE.fullmatch(text) is None:
        raise UnitError("is not a ratio; write a number between 0 and 1 such as 0.89")
    value = float(text)
    if not 0 < value < 1:
        raise UnitError("must lie between 0 and 1, such as 0.89")
    return value


def format_duration(seconds: float) -> str:
    """The shortest exact way to write ``seconds``; parse_duration reads it back to the microsecond."""
    exact = Decimal(repr(seconds)).quantize(Decimal("0.000001"))
    for unit in ("d", "h", "m", "s", "ms"):
        if exact and exact % DURATION_UNITS[unit] == 0:
            return f"{int(exact / DURATION_UNITS[unit])}{unit}"
    return f"{_plain(exact)}s"


def format_size(size: int) -> str:
    """The shortest exact way to write ``size`` bytes; parse_size reads it back."""
    for unit in ("TB", "TiB", "GB", "GiB", "MB", "MiB", "kB", "KiB"):
        if size and size % SIZE_UNITS[unit] == 0:
            return f"{size // SIZE_UNITS[unit]}{unit}"
    return f"{size}B"


def format_count(count: int) -> str:
    """``280k`` for 280000; parse_count reads it back."""
    for unit in ("M", "k"):
        if count and count % COUNT_UNITS[unit] == 0:
            return f"{count // COUNT_UNITS[unit]}{unit}"
    return str(count)


def format_share(share: float) -> str:
    """``1%`` for 0.01."""
    return f"{_plain(Decimal(repr(share)) * 100)}%"


def format_ratio(ratio: float) -> str:
    """``0.89``."""
    return _plain(Decimal(repr(ratio)))


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _how(text: str, thing: str, examples: str) -> str:
    if _BARE.fullmatch(text):
        return f"needs a unit; write {examples}"
    return f"is not {thing}; write {examples}"
