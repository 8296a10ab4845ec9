"""Lanes whose model a server of somebody else's holds already: they would wait for it, and people are told before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from supervisor.settings import LaneSettings
from supervisor.shell.machine.holdings import Holding, holding_of


def held_models(lanes: Iterable[LaneSettings]) -> Iterator[tuple[LaneSettings, Holding]]:
    """Each such lane with who holds its model."""
    for lane in lanes:
        if lane.looks_for_holders and (holding := holding_of(lane.model or "")):
            yield lane, holding
