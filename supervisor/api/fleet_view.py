"""What the routes see of the fleet and its lanes: enough to look and to ask, nothing to change them by."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

from supervisor.history import History
from supervisor.journal import Journal
from supervisor.shell.eventbus import EventBus
from supervisor.shell.lane.wishes import What


class RunnerView(Protocol):
    """One lane."""

    @property
    def name(self) -> str:
        """The lane's name, which never changes."""

    def snapshot(self) -> dict[str, Any]:
        """The document of ``/api/lanes/{lane}``."""

    async def ask(self, what: What, reason: str = "", *, now: bool = False, wait: bool = False) -> dict[str, Any]:
        """Ask the lane for something; with ``wait`` come back with the outcome.

        Raises:
            MeaninglessWishError: the lane's state does not allow it.
            NotInTimeError: it is under way, and its outcome was not seen within the lane's own deadline.
        """

    async def output_tail(self, lines: int) -> str:
        """The last lines of what the worker wrote. Raises MeaninglessWishError if that is not ours to read."""

    def follow_output(self) -> AsyncIterator[bytes]:
        """What the worker writes from now on, as it comes."""

    def baseline(self) -> dict[str, Any]:
        """What fresh means for this lane, and from which spawns it is known."""

    async def reset_baseline(self) -> dict[str, Any]:
        """Forget it; the lane learns it anew."""


class FleetView(Protocol):
    """All lanes, and what is kept of them."""

    @property
    def version(self) -> str:
        """Of freshlane."""

    @property
    def events(self) -> EventBus:
        """What happens."""

    @property
    def history(self) -> History:
        """Samples and state changes."""

    @property
    def journal(self) -> Journal:
        """The recycle log."""

    @property
    def runners(self) -> Mapping[str, RunnerView]:
        """The lanes by name."""

    def find(self, name: str) -> RunnerView | None:
        """The lane of that name or alias."""

    def snapshot(self) -> dict[str, Any]:
        """Of the daemon and all lanes: lanes, version, started_at, config_path, the stores' trouble, loop_lag_ms."""

    def is_ready(self) -> tuple[bool, str]:
        """Whether every lane that should serve can, and if not, why not."""

    async def reload(self) -> dict[str, Any]:
        """Read lanes.yaml again: {lanes: {name: what was done}, needs_restart, errors}.

        Raises:
            ConfigError: the file has errors (``problems`` lists them); nothing was changed.
        """
