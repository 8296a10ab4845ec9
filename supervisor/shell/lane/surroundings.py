"""What all lanes of a daemon share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from supervisor.core.host.common_fall import CommonFall
from supervisor.history import History
from supervisor.journal import Journal
from supervisor.settings import LogSettings
from supervisor.shell.device import Device
from supervisor.shell.eventbus import EventBus
from supervisor.shell.front.held_bytes import HeldBytes
from supervisor.shell.machine.clock import Clock
from supervisor.shell.machine.host import Host
from supervisor.shell.machine.host_reference import HostReference
from supervisor.shell.neighbours import Neighbours
from supervisor.shell.slots import Slots
from supervisor.shell.worker.ledger import Ledger


@dataclass(frozen=True)
class Surroundings:
    """Built once by the daemon; a lane uses it and never closes it."""

    state_dir: Path
    log: LogSettings
    clock: Clock
    host: Host
    device: Device
    ledger: Ledger
    journal: Journal
    history: History
    events: EventBus
    starts: Slots
    recycles: Slots
    held: HeldBytes
    under: str | None = None
    """What started the daemon; None: a person, from a terminal."""
    neighbours: Neighbours = field(default_factory=Neighbours)
    reference: HostReference = field(default_factory=HostReference)
    falls: CommonFall = field(default_factory=CommonFall)
