"""Turns the daemon's events into lines of the story."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from statistics import median
from typing import Any

from supervisor.cli.demo.screen import Screen
from supervisor.core.terms import RemedyName
from supervisor.core.words import rate, share

BURST_IS_OVER_S = 6.0
"""No run for so long, and the canary is told of."""


class Narrator:
    """Silent until ``is_telling``: how the first worker comes up, the demo tells itself."""

    def __init__(self, screen: Screen) -> None:
        self.is_telling = False
        self.fresh_tok_s: float | None = None
        self._screen = screen
        self._state = ""
        self._remedy: RemedyName | None = None
        self._runs: list[float] = []
        """Of the canary that was not told of yet: the runs of a burst belong to the one that asked for it."""
        self._later = asyncio.get_running_loop().call_later(0, self._tell_runs)

    def heard(self, kind: str, document: Mapping[str, Any]) -> None:
        """An event came."""
        if not self.is_telling:
            return
        if kind == "sample" and document.get("void") is None:
            if document.get("purpose") == "routine":
                self._tell_runs()
            self._runs.append(float(document["decode_tok_s"]))
            self._later.cancel()
            self._later = asyncio.get_running_loop().call_later(BURST_IS_OVER_S, self._tell_runs)
        elif kind == "state":
            self._told_of(str(document.get("state")), str(document.get("was")), str(document.get("reason") or ""))

    def _tell_runs(self) -> None:
        self._later.cancel()
        if not self._runs or not self.is_telling:
            return
        middle, count = median(self._runs), len(self._runs)
        of_fresh = share(middle / self.fresh_tok_s if self.fresh_tok_s else None)
        how = f"{rate(middle)} tok/s" if count == 1 else f"{rate(middle)} tok/s over {count} runs"
        self._screen.tell("canary", f"{how}, {of_fresh} of fresh")
        self._runs = []

    def _tell_remedy(self, reason: str) -> None:
        remedy = next((name for name in RemedyName if f"tries {name} " in reason), None)
        if remedy is None or remedy is self._remedy:
            return
        self._tell_runs()
        if self._remedy is None:
            self._screen.tell(
                "verdict", "the worker is slow: what it can undo by itself is tried before a restart", "bad"
            )
        self._screen.tell("remedy", f"{remedy}; canaries tell what it brings")
        self._remedy = remedy

    def _told_of(self, state: str, was: str, reason: str) -> None:
        if state == self._state:
            self._tell_remedy(reason)
            return
        self._state = state
        self._tell_runs()
        match state:
            case "suspect":
                self._screen.tell("suspicion", "the worker, or the machine? More canaries will tell", "warn")
            case "draining":
                self._screen.tell("verdict", f"worker aged: {reason}", "bad")
                self._screen.tell("drain", "the answer under way may finish; what is asked now is held")
            case "stopping":
                self._screen.tell("recycle", "nothing is in flight: a new worker takes its place")
            case "warming":
                self._screen.tell("verify", "it is up; the gate stays closed until 5 canaries are in")
            case "serving" if was == "warming":
                self._screen.tell("serving", "the gate is open; what was held is answered", "good")
            case "serving":
                self._screen.tell("serving", "the suspicion is lifted: it was the machine", "good")
