"""What a lane acts through, without a daemon around it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from supervisor.history import History
from supervisor.journal import Journal
from supervisor.settings import Settings
from supervisor.shell.device import Device
from supervisor.shell.eventbus import EventBus
from supervisor.shell.front.held_bytes import HeldBytes
from supervisor.shell.lane.surroundings import Surroundings
from supervisor.shell.machine.clock import Clock
from supervisor.shell.machine.host import Host
from supervisor.shell.slots import Slots
from supervisor.shell.worker.ledger import Ledger


@asynccontextmanager
async def surroundings(folder: Path, settings: Settings, host: Host | None = None) -> AsyncIterator[Surroundings]:
    clock = Clock()
    async with AsyncExitStack() as closing:
        journal = Journal(folder)
        await journal.open()
        closing.push_async_callback(journal.close)
        history = History(folder / "history.sqlite", keep_s=1000.0, wall=clock.wall)
        await history.open()
        closing.push_async_callback(history.close)
        host = host or Host()
        host.start()
        closing.callback(host.close)
        shared = (
            clock,
            host,
            Device(),
            Ledger(folder),
            journal,
            history,
            EventBus(),
            Slots(1),
            Slots(1),
            HeldBytes(settings.max_body),
        )
        yield Surroundings(folder, settings.log, *shared)
