"""What a service is to be told of this installation, whichever manager is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NAME = "freshlane"
OPEN_FILES = 65_536
"""Of each client and each stream to a worker one, and macOS starts a job with 256."""
REFUSAL_VARIABLE = "FRESHLANE_REFUSAL_FILE"
"""Tells the daemon where to say why it will not run."""
STOP_MARGIN_S = 30
"""Beyond what draining and stopping may take: the listener, the journal, and a busy machine."""


@dataclass(frozen=True, slots=True)
class ServiceTerms:
    """Paths are absolute. Seconds."""

    program: tuple[str, ...]
    """The start of every command line: `freshlane`, or an interpreter and its module."""
    settle: tuple[str, ...]
    """Command line that waits until a dead daemon's tethers have ended its workers."""
    config: str
    is_system: bool
    """For the machine, from boot; else for one user, while logged in."""
    stop_s: int
    """`fleet.shutdown_timeout` and the longest patience with a worker."""
    is_local: bool = True
    """Listens on loopback only."""
    user: str | None = None
    """Whom a system service runs as; None: root."""
    home: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    environment_file: str = ""
    """Further variables, which may be secret; it need not exist."""
    log_folder: str = ""
    """Where launchd puts what the daemon says."""
    refusal_file: str = ""
    """Where the daemon says why it will not run."""

    @property
    def timeout_s(self) -> int:
        """How long a manager waits for the daemon to end."""
        return self.stop_s + STOP_MARGIN_S

    @property
    def variables(self) -> dict[str, str]:
        """The whole environment that it is started with."""
        return {**self.environment, **({REFUSAL_VARIABLE: self.refusal_file} if self.refusal_file else {})}

    def command(self, *words: str) -> list[str]:
        """A command line of freshlane for this service's lanes.yaml."""
        return [*self.program, *words, "-c", self.config]
