"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["good", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """``subject``: what was looked at, in a word or two. ``remedy``: what to do; empty where nothing need be done."""

    level: Level
    subject: str
    text: str
    remedy: str = ""


def good(subject: str, text: str) -> Finding:
    """As it should be."""
    return Finding("good", subject, text)


def doubtful(subject: str, text: str, remedy: str) -> Finding:
    """It runs so, but not as well as it could."""
    return Finding("warn", subject, text, remedy)


def bad(subject: str, text: str, remedy: str) -> Finding:
    """Something will not work."""
    return Finding("bad", subject, text, remedy)
