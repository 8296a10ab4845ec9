"""Turns the daemon's events into lines of the story."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from supervisor.cli.demo.screen import Screen
from supervisor.cli.words import rate, share


class Narrator:
    """Silent until ``is_telling``: how a worker comes up, the demo tells itself."""

    def __init__(self, screen: Screen) -> None:
        self.is_telling = False
        self.canaries = 0
        """Told of since the slow-down. The runs of a burst belong to the canary that asked for it."""
        self.fresh_tok_s: float | None = None
        self._screen = screen

    def heard(self, kind: str, document: Mapping[str, Any]) -> None:
        """An event came."""
        if not self.is_telling:
            return
        if kind == "state":
            self._state(str(document.get("state")), str(document.get("reason") or ""))
        elif kind == "sample" and document.get("purpose") == "routine" and document.get("void") is None:
            self._canary(float(document["decode_tok_s"]))

    def _canary(self, tok_s: float) -> None:
        self.canaries += 1
        ratio = tok_s / self.fresh_tok_s if self.fresh_tok_s else None
        self._screen.tell("canary", f"{rate(tok_s)} tok/s, {share(ratio)} of fresh" + self._burst(ratio))

    @staticmethod
    def _burst(ratio: float | None) -> str:
        strange = ratio is not None and ratio < 1 / 1.5
        return ": strange, so 4 more at once" if strange else ""

    def _state(self, state: str, reason: str) -> None:
        told = {
            "suspect": ("suspicion", reason, "warn"),
            "draining": ("drain", "what is under way may finish; what comes now is held", "busy"),
            "stopping": ("recycle", "nothing is in flight: the old worker ends", "busy"),
            "starting": ("recycle", "a new worker loads the model", "busy"),
            "warming": ("verify", "it is up; 5 canaries come before the gate opens", "busy"),
            "serving": ("serving", "the gate is open; what was held is answered", "good"),
        }.get(state)
        if told:
            self._screen.tell(*told)
