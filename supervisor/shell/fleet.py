"""All lanes of a daemon: built from the settings, found by their names, changed by a reload, stopped together."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import structlog

from supervisor.config import Loaded, lane_terms, load
from supervisor.core.lane import events as ev
from supervisor.core.states import SERVES, LaneState
from supervisor.core.terms import LaneTerms, Trigger, Wish
from supervisor.history import History
from supervisor.journal import Journal
from supervisor.settings import LaneSettings, Settings
from supervisor.shell.announce import Announcer
from supervisor.shell.eventbus import EventBus
from supervisor.shell.front.refusal import RefusedError
from supervisor.shell.lane.runner import Runner
from supervisor.shell.lane.surroundings import Surroundings
from supervisor.shell.mac_watch import mind_the_mac
from supervisor.shell.machine.awake import Awake
from supervisor.shell.machine.clock import rfc3339
from supervisor.shell.quiet_hours_watch import watch_quiet_hours
from supervisor.shell.reload import plan_reload
from supervisor.shell.tasks import Tasks

log = structlog.get_logger(__name__)

CLOSE_GRACE_S = 5.0
NO_WAY_TO_SERVE = frozenset({LaneState.FAILED, LaneState.BLOCKED, LaneState.BACKING_OFF})
UNPLANNED = frozenset({Trigger.CRASHED, Trigger.HUNG, Trigger.MEMORY})


class Fleet:
    """The lanes. A runner's error is its lane's alone."""

    def __init__(self, loaded: Loaded, config_path: Path, around: Surroundings, *, version: str) -> None:
        self.settings: Settings = loaded.settings
        self._started_with = loaded.settings
        self.config_path = config_path
        self.version = version
        self._around = around
        self._runners: dict[str, Runner] = {}
        self._by_name: dict[str, Runner] = {}
        self._tasks = Tasks()
        self._started_at = around.clock.wall()
        self._reloading = asyncio.Lock()
        self._is_stopping = False
        self._announcer = Announcer(loaded.settings.on_recycle, around.events)
        self.while_reloading: Callable[[], AbstractContextManager[None]] = nullcontext
        """Entered for as long as a reload takes."""
        self.on_settings: Callable[[Settings], None] = lambda _: None
        """Called with new settings before anything is done by them."""
        for lane in self.settings.lanes.values():  # known before the first request comes, which may be at once
            self._runners[lane.name] = Runner(lane, self._terms(lane), around)
        self._index()

    # ---- what it is made of ----

    @property
    def runners(self) -> Mapping[str, Runner]:
        """By lane name."""
        return self._runners

    @property
    def events(self) -> EventBus:
        return self._around.events

    @property
    def history(self) -> History:
        return self._around.history

    @property
    def journal(self) -> Journal:
        return self._around.journal

    def find(self, name: str, /) -> Runner | None:
        """The lane that answers to ``name``: its own, an alias, or a model that it serves besides."""
        return self._by_name.get(name)

    def lanes(self) -> list[Runner]:
        """In the order of the file."""
        return list(self._runners.values())

    # ---- its life ----

    async def open(self) -> None:
        """Start the lanes that are to run."""
        for runner in self.lanes():
            await self._start(runner)
        self._tasks.start(watch_quiet_hours(self.lanes, self._around.clock), "quiet hours")
        self._tasks.start(self._announcer.run(), "announce recycles")
        if sys.platform == "darwin":
            self._tasks.start(mind_the_mac(self.lanes, self._around.host.strain, Awake()), "mind the Mac")

    async def close(self) -> None:
        """Let go of the lanes; their workers have been stopped by ``stop``, or are their tethers' to end."""
        await self._tasks.close()
        for runner in self._runners.values():
            await runner.close()

    async def stop(self, *, is_now: bool = False) -> None:
        """Stop every lane: drained within ``fleet.shutdown_timeout``, or at once. Returns when no worker lives."""
        self._is_stopping = True
        await asyncio.gather(*(self._stop(runner, is_now=is_now) for runner in self._runners.values()))

    async def _stop(self, runner: Runner, *, is_now: bool = False) -> None:
        runner.tell(ev.StopAsked(self._around.clock.now(), is_shutdown=True, is_now=is_now))
        await self._until_gone(runner, self.settings.fleet.shutdown_timeout)

    async def _until_gone(self, runner: Runner, drain_s: float) -> None:
        patience_s = drain_s + runner.stop_patience_s + CLOSE_GRACE_S
        try:
            await runner.until(lambda: True if runner.is_without_worker else None, patience_s)
        except TimeoutError:
            log.error("lane_does_not_stop", lane=runner.name, state=runner.lane.state, reason=runner.lane.body.reason)

    async def _add(self, lane: LaneSettings) -> None:
        runner = self._runners[lane.name] = Runner(lane, self._terms(lane), self._around)
        self._index()
        await self._start(runner)

    async def _start(self, runner: Runner) -> None:
        await runner.open()
        self._set_going(runner)

    def _set_going(self, runner: Runner, why: str = "the daemon starts", *, is_return: bool = False) -> None:
        if runner.lane.body.wish is not Wish.STOPPED or is_return:
            is_resumed = runner.lane.body.wish is Wish.DRAINED
            runner.tell(ev.StartAsked(self._around.clock.now(), why, is_resumed=is_resumed, is_return=is_return))

    async def _remove(self, name: str) -> None:
        runner = self._runners[name]
        why = "it is no more in lanes.yaml"
        runner.tell(ev.StopAsked(self._around.clock.now(), why, is_removal=True))
        await self._until_gone(runner, runner.settings.drain_timeout)
        async with self._reloading:
            if name not in self.settings.lanes and self._runners.get(name) is runner:
                del self._runners[name]
                self._index()
                await runner.close()

    def _take_back(self, lane: LaneSettings) -> None:
        """A lane that is still on its way out is in lanes.yaml again."""
        runner = self._runners[lane.name]
        needs_worker = runner.settings.worker_key() != lane.worker_key()
        self._set_going(runner, "it is in lanes.yaml again", is_return=True)
        runner.change(lane, self._terms(lane), needs_worker=needs_worker)

    def _index(self) -> None:
        # A lane on its way out gives its names to whoever has them now.
        leaving = [runner for name, runner in self._runners.items() if name not in self.settings.lanes]
        staying = [runner for name, runner in self._runners.items() if name in self.settings.lanes]
        self._by_name = {name: runner for runner in (*leaving, *staying) for name in runner.settings.names}

    def _terms(self, lane: LaneSettings) -> LaneTerms:
        host = self._around.host
        return lane_terms(
            self.settings, lane, memory_total_bytes=host.memory_total_bytes(), is_macos=sys.platform == "darwin"
        )

    # ---- reload ----

    async def reload(self) -> dict[str, Any]:
        """Read the file again: checked whole, then applied whole.

        Raises ConfigError, or RefusedError while the daemon stops; then nothing has changed.
        """
        async with self._reloading:
            if self._is_stopping:
                raise RefusedError(503, "stopping", "The daemon stops; nothing is reloaded any more.")
            with self.while_reloading():
                return await self._reload()

    async def _reload(self) -> dict[str, Any]:
        loaded = await asyncio.to_thread(load, self.config_path)
        plan = plan_reload(self.settings, loaded.settings, self._started_with)
        self.on_settings(loaded.settings)
        self.settings = loaded.settings
        self._take_fleet_settings()
        for name, change in plan.lanes.items():
            match change:
                case "added" if name in self._runners:
                    self._take_back(loaded.settings.lanes[name])
                case "added":
                    await self._add(loaded.settings.lanes[name])
                case "removed":
                    self._tasks.start(self._remove(name), f"remove {name}")
                case "updated" | "recycled":
                    lane = loaded.settings.lanes[name]
                    self._runners[name].change(lane, self._terms(lane), needs_worker=change == "recycled")
                case _:
                    pass
        self._index()
        await asyncio.gather(*(runner.caught_up() for runner in self.lanes()))
        log.info("reloaded", lanes=plan.lanes, needs_restart=plan.needs_restart)
        return {"lanes": plan.lanes, "needs_restart": list(plan.needs_restart), "errors": []}

    def _take_fleet_settings(self) -> None:
        self._around.starts.resize(self.settings.fleet.max_starting)
        self._around.recycles.resize(self.settings.fleet.max_recycling)
        self._around.held.take(self.settings.max_body)
        self._around.history.keep(self.settings.history.keep)
        self._announcer.settings = self.settings.on_recycle

    # ---- what others read ----

    def is_ready(self) -> tuple[bool, str]:
        """Whether every lane that should serve has served once and can serve now; if not, which cannot."""
        for runner in self._runners.values():
            why = _why_not_ready(runner)
            if why:
                return False, f"{runner.name} {why}"
        return True, "ready"

    def snapshot(self) -> dict[str, Any]:
        """All lanes and the daemon itself, as the API shows them."""
        return {
            "version": self.version,
            "started_at": rfc3339(self._started_at),
            "config_path": str(self.config_path),
            "journal_trouble": self.journal.trouble,
            "history_trouble": self.history.trouble,
            "loop_lag_ms": round(self._around.host.loop_lag.worst_since(self._around.clock.now() - 60.0) * 1000, 1),
            "lanes": [runner.snapshot() for runner in self._runners.values()],
        }


def _why_not_ready(runner: Runner) -> str | None:
    body, recycler = runner.lane.body, runner.lane.organs.recycler
    if body.wish is not Wish.RUNNING or runner.settings.start == "on_demand":
        return None
    if not runner.has_served:
        return f"has not served yet: {body.reason}"
    if body.state in SERVES:
        return None
    is_unplanned = recycler.under_way is not None and recycler.under_way.trigger in UNPLANNED
    return f"is {body.state}: {body.reason}" if body.state in NO_WAY_TO_SERVE or is_unplanned else None
