"""What the demo knows of the lane: by the daemon's events, and a look now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from supervisor.cli.client import Daemon
from supervisor.cli.exits import CommandError
from supervisor.cli.sse import Event

LOOK_EVERY_S = 0.5

Heard = Callable[[str, dict[str, Any]], None]


class Facts:
    """Of one lane. ``heard(kind, document)`` is called for each event, after it has been taken in."""

    def __init__(self, daemon: Daemon, lane: str, heard: Heard) -> None:
        self._daemon = daemon
        self._name = lane
        self._heard = heard
        self._news = asyncio.Event()
        self.lane: dict[str, Any] = {}
        """Its newest document."""
        self.state = ""
        self.samples: list[dict[str, Any]] = []
        """Clean canary runs, oldest first."""
        self.records: list[dict[str, Any]] = []
        self.entered: dict[str, float] = {}
        """When the lane entered each state last, by the event loop's clock."""

    @property
    def rates(self) -> list[float]:
        """Decode rates of the clean canary runs, tokens/s."""
        return [float(sample["decode_tok_s"]) for sample in self.samples]

    @property
    def fresh_tok_s(self) -> float | None:
        """The lane's baseline."""
        return (self.lane.get("baseline") or {}).get("decode_tok_s")

    @property
    def pid(self) -> int:
        """The worker's. Raises CommandError where there is none."""
        pid = (self.lane.get("worker") or {}).get("pid")
        if pid is None:
            raise CommandError(f"the demo's lane has no worker: {self.lane.get('reason')}")
        return int(pid)

    async def follow(self) -> None:
        """Take in events for as long as it runs. Raises NotReachableError when the daemon goes."""
        async for event in self._daemon.events():
            self._take(event)
        raise CommandError("the demo's daemon ended its stream of events")

    async def look_on(self) -> None:
        """Ask for the lane's document every half second."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Ask for the lane's document."""
        self.lane = await self._daemon.get(f"/api/lanes/{self._name}")
        self.state = str(self.lane.get("state"))
        self._tell_waiters()

    async def until(self, fact: Callable[[], object], within_s: float, what: str) -> None:
        """Wait until ``fact`` is true.

        Raises:
            CommandError: it was not within ``within_s`` seconds, or the lane failed.
        """
        try:
            async with asyncio.timeout(within_s):
                while not fact():
                    if self.state == "failed":
                        raise CommandError(f"the demo's lane failed: {self.lane.get('reason')}")
                    await self._news.wait()
        except TimeoutError as error:
            raise CommandError(
                f"waited {within_s:.0f} s in vain for {what}; the lane is {self.state}: {self.lane.get('reason')}\n"
                "is this machine busy with something else? Try again when it is quiet"
            ) from error

    def _take(self, event: Event) -> None:
        document = event.document()
        match event.kind:
            case "state":
                self.state = str(document["state"])
                if document.get("was") != self.state:
                    self.entered[self.state] = asyncio.get_running_loop().time()
                self.lane |= {name: document.get(name) for name in ("state", "reason", "next_action")}
            case "sample" if document.get("decode_tok_s") is not None and document.get("void") is None:
                self.samples.append(document)
            case "recycle":
                self.records.append(document)
        self._heard(event.kind, document)
        self._tell_waiters()

    def _tell_waiters(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
