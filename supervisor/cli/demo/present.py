"""The present, as the foot of the screen shows it."""

from __future__ import annotations

from rich.text import Text

from supervisor.cli.demo.facts import Facts
from supervisor.cli.demo.reader import Reader
from supervisor.cli.demo.screen import labelled
from supervisor.cli.render.lane_facts import state
from supervisor.cli.render.layout import painted
from supervisor.cli.words import sparkline
from supervisor.core.words import rate, share

SPARKS = 32
SLOW = 0.75
"""Under this share of fresh a rate is painted as slow."""


class Present:
    """Rates, the lane's state, and the answer that the client reads just now."""

    def __init__(self, facts: Facts, reader: Reader) -> None:
        self._facts = facts
        self._reader = reader
        self.loading = ""
        """What the worker says while it loads."""

    def lines(self, width: int) -> list[Text]:
        """Three lines, cut to ``width`` by whoever shows them."""
        return [
            labelled("decode", self._rates()),
            labelled("lane", self._lane()),
            labelled("client", self._client(width)),
        ]

    def _rates(self) -> Text:
        rates, fresh = self._facts.rates, self._facts.fresh_tok_s
        if not rates:
            return painted("not measured yet", "quiet")
        ratio = rates[-1] / fresh if fresh else None
        style = "bad" if ratio is not None and ratio < SLOW else "good"
        text = painted(sparkline(rates, SPARKS), style).append(f"  {rate(rates[-1])} tok/s")
        return text if ratio is None else text.append(f"  {share(ratio)} of fresh", style="quiet")

    def _lane(self) -> Text:
        if self._facts.state in ("", "starting") and self.loading:
            return painted("starting  ", "busy").append(self.loading, style="quiet")
        return state(self._facts.lane).append(f"  {self._facts.lane.get('reason') or ''}", style="quiet")

    def _client(self, width: int) -> Text:
        if not self._reader.answers:
            return painted("comes later", "quiet")
        answer = self._reader.answers[-1]
        if answer.ended_at is None and answer.first_at is None:
            return painted("waits for its answer", "warn").append(f" to “{answer.question}”", style="quiet")
        text = " ".join(answer.text.split())
        room = max(width - 24, 20)
        return Text(f"“{text if len(text) <= room else '…' + text[-room:]}”")
