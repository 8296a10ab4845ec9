"""Numbers in words: rates, shares, sizes, lengths and counts, as people read them."""

from __future__ import annotations

UNITS_S = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
"""Lengths of time, longest first, in seconds."""
SIZES = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
NOTHING = "-"


def rate(tok_s: float | None) -> str:
    """Tokens per second: ``8.42``, ``46.3``, ``185``."""
    if tok_s is None:
        return NOTHING
    digits = 2 if tok_s < 10 else 1 if tok_s < 100 else 0
    return f"{tok_s:.{digits}f}"


def share(ratio: float | None) -> str:
    """A ratio as percent: ``31 %``."""
    return NOTHING if ratio is None else f"{ratio * 100:.0f} %"


def size(count: float | None) -> str:
    """Bytes in powers of ten: ``1.4 GB``."""
    if count is None:
        return NOTHING
    for unit, worth in SIZES:
        if count >= worth:
            return f"{count / worth:.1f} {unit}"
    return f"{count:.0f} B"


def many(count: float | None) -> str:
    """A count that may be large: ``950``, ``12.4k``, ``3.1M``."""
    if count is None:
        return NOTHING
    for unit, worth in (("M", 1e6), ("k", 1e4)):
        if count >= worth:
            return f"{count / (1e6 if unit == 'M' else 1e3):.1f}{unit}"
    return f"{count:.0f}"


def length(seconds: float | None) -> str:
    """A length of time in its largest unit: ``35 ms``, ``1.4 s``, ``12 s``, ``3 min``, ``2 h``, ``7 d``."""
    if seconds is None:
        return NOTHING
    if 0 < seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    return f"{min(seconds, 9.9):.1f} s" if 0 < seconds < 10 else whole(seconds)


def long_length(seconds: float | None) -> str:
    """A length of time in its two largest units, without fractions: ``7 s``, ``6 h 12 min``."""
    if seconds is None or seconds < 60:
        return NOTHING if seconds is None else whole(seconds)
    index = next(i for i, (_, worth) in enumerate(UNITS_S) if seconds >= worth)
    unit, worth = UNITS_S[index]
    lower, lower_worth = UNITS_S[index + 1]
    rest = int(seconds % worth / lower_worth)
    return f"{int(seconds / worth)} {unit}" + (f" {rest} {lower}" if rest else "")


def plural(count: int, noun: str, many: str = "") -> str:
    """``1 request``, ``3 requests``; ``many`` where that is more than an s longer."""
    return f"{count} {noun}" if count == 1 else f"{count} {many or noun + 's'}"


def whole(seconds: float) -> str:
    """A length of time in its largest unit, without fractions: ``40 s``, ``2 h``."""
    for unit, worth in UNITS_S:
        if seconds >= worth:
            return f"{int(seconds / worth)} {unit}"
    return "0 s"
