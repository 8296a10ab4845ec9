"""The single writer of one lane: events queue up, the lane answers each with commands, and they are performed in order.

Nobody else calls ``Lane.handle``. An error in here fails this lane and no other.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import structlog

from supervisor.core.account.record import Outcome
from supervisor.core.lane import events as ev
from supervisor.core.lane.commands import WriteRecord
from supervisor.core.lane.lane import Lane
from supervisor.core.speed.cadence import Cadence
from supervisor.core.speed.models_judge import ModelsJudge
from supervisor.core.states import SERVES, LaneState
from supervisor.core.terms import LaneTerms
from supervisor.settings import LaneSettings
from supervisor.shell.front import refusal as refusals
from supervisor.shell.front.gate import Gate
from supervisor.shell.lane.baseline_book import BaselineBook
from supervisor.shell.lane.chronicle import Chronicle
from supervisor.shell.lane.inbox import Inbox
from supervisor.shell.lane.performer import Performer
from supervisor.shell.lane.snapshot import lane_snapshot
from supervisor.shell.lane.surroundings import Surroundings
from supervisor.shell.lane.watched_files import WatchedFiles
from supervisor.shell.lane.wishes import MeaninglessWishError, What, ask
from supervisor.shell.neighbours import Neighbour
from supervisor.shell.tasks import Tasks
from supervisor.shell.worker.output import Output
from supervisor.shell.worker.rotated_file import last_lines

log = structlog.get_logger(__name__)

T = TypeVar("T")

CATCH_UP_S = 5.0
BRIEF_S = 10.0
"""For an event that is acted on at once."""
ENDING_S = 60.0
"""After a fault, how long the workers get to end before the lane takes another event."""


class Runner:
    """One lane with everything it acts through."""

    def __init__(self, settings: LaneSettings, terms: LaneTerms, around: Surroundings) -> None:
        self.settings = settings
        self.lane = Lane(settings.name, terms, ModelsJudge(terms), Cadence(terms.canary))
        self.last_record: dict[str, Any] | None = None
        self.has_served = False
        """Whether it has served once in this daemon's life."""
        self._around = around
        self._tasks = Tasks()
        self._inbox = Inbox()
        self._changed = asyncio.Event()
        self._chronicle = Chronicle(settings.name, around)
        self._performer = Performer(
            settings, around, self._tasks, tell=self.tell, sampled=self._chronicle.sampled, recycled=self._recycled
        )
        self._performer.body = self.lane.body
        self._book = BaselineBook(self.lane.organs.judge, self._performer.canaries.host.check, self._performer.memory)
        self._watched = WatchedFiles()
        self._changed_settings: dict[str, Any] | None = None
        self._taking_since: float | None = None
        self._is_closing = False

    @property
    def name(self) -> str:
        """The lane's name."""
        return self.settings.name

    @property
    def aliases(self) -> tuple[str, ...]:
        """What clients may call it too."""
        return self.settings.names[1:]

    @property
    def gate(self) -> Gate:
        """Where requests of this lane wait and pass."""
        return self._performer.gate

    @property
    def kind(self) -> str:
        """What the worker answers: chat, completions or embeddings."""
        return self.settings.kind

    def served_model(self, client_name: str) -> str:
        """The model name that the worker expects for what the client called it."""
        return self.settings.model_for(client_name)

    # ---- its life ----

    async def open(self) -> None:
        """Recall what an earlier daemon kept, and begin to take events."""
        await self._performer.memory.recall(self.lane.body)
        await self._look_at_fingerprint()
        self._around.device.join(self.name, self.gate.inflight, self.gate.pause)
        self._around.neighbours.join(self.name, Neighbour(self._spare_s, self._make_room))
        self._tasks.start(self._run(), "runner")

    async def close(self) -> None:
        """Stop taking events and let go of everything; workers that still live are their tethers' to end."""
        self._is_closing = True
        await self._performer.memory.keep(self.lane.body)
        await self._book.close()
        self._around.recycles.give_back(self.name)
        self._around.device.leave(self.name)
        self._around.falls.leave(self.name)
        self._around.neighbours.leave(self.name)
        await self._tasks.close()
        await self._performer.close()

    def tell(self, event: ev.Event) -> None:
        """Queue an event."""
        self._inbox.put(event)

    async def until(self, fact: Callable[[], T | None], within_s: float | None) -> T:
        """Wait until ``fact`` gives something; looks after each event. Raises TimeoutError; None waits for ever."""
        async with asyncio.timeout(within_s):
            while (found := fact()) is None:
                await self._changed.wait()
        return found

    async def caught_up(self) -> None:
        """Wait until what was told so far has been taken; a lane that is busy for long is not waited for."""
        with contextlib.suppress(TimeoutError):
            await self.until(lambda: True if not self._inbox and self._taking_since is None else None, CATCH_UP_S)

    async def _run(self) -> None:
        while True:
            event = await self._inbox.get()
            self._taking_since = self._around.clock.now()
            try:
                await self._take(event)
                self._chronicle.look(self.lane)
            except asyncio.CancelledError:
                if self._is_closing:
                    raise
                await self._fail_surely(RuntimeError(f"{type(event).__name__} was broken off"))
            except Exception as error:  # noqa: BLE001 - whatever is wrong with this lane, its siblings go on
                await self._fail_surely(error)
            self.has_served = self.has_served or self.lane.state in SERVES
            self._taking_since = None
            self._changed.set()
            self._changed = asyncio.Event()

    async def _take(self, event: ev.Event) -> None:
        await self._before(event)
        commands = self.lane.handle(event)
        recycler, papers = self.lane.organs.recycler, self._performer.recycles
        papers.look(recycler.under_way)
        for command in commands:
            await self._performer.perform(command)
        papers.look(recycler.under_way)
        await self._after(event)

    async def _before(self, event: ev.Event) -> None:
        """What the shell notes before the lane hears of it."""
        match event:
            case ev.WorkerSpawned():
                await self._watched.changed(self.settings.watch_files)
                await self._look_at_fingerprint()
                # A daemon that is killed now must not give this worker's generation to another one.
                await self._performer.memory.keep(self.lane.body)
            case ev.WorkerReady():
                self._performer.recycles.worker_ready()
            case ev.WorkerExited():
                self._performer.recycles.worker_gone()
            case _:
                pass

    async def _after(self, event: ev.Event) -> None:
        match event:
            case ev.WorkerExited() | ev.SpawnFailed():
                self._performer.part_with(event.generation)
            case ev.SampleTaken():
                await self._book.keep()
            case ev.WorkerMeasured():
                await self._look_at_watched_files(event.generation)
            case _:
                pass

    async def _fail_surely(self, error: Exception) -> None:
        """Whatever else breaks, the lane is seen to have failed, and its runner takes the next event."""
        try:
            await self._fail(error)
            self._chronicle.look(self.lane)
        except Exception as worse:
            log.error("lane_fault", lane=self.name, error=repr(worse), exc_info=worse)
            for generation in tuple(self._performer.attendants):
                self._performer.part_with(generation)
            self._begin_anew(error)

    async def _fail(self, error: Exception) -> None:
        """A fault of this program: the lane ends its workers and waits for a person."""
        log.error("lane_fault", lane=self.name, error=repr(error), exc_info=error)
        self._performer.timers.disarm_all()
        self._performer.canaries.cancel()
        self._around.device.let_go(self.name)
        self.gate.refuse(str(error), None)
        self._around.recycles.give_back(self.name)
        try:
            await self._close_papers()
        finally:
            await self._end_workers()
        self._begin_anew(error)

    def _begin_anew(self, error: Exception) -> None:
        """A machine without the broken one's state, but with what the lane has learned; it has failed."""
        old = self.lane.body
        self.lane = Lane(old.name, old.terms, self.lane.organs.judge, Cadence(old.terms.canary), old.wish)
        self._performer.body = self.lane.body
        self.lane.body.inherit(old)
        self.lane.body.state, self.lane.body.since = LaneState.FAILED, self._around.clock.now()
        self.lane.body.reason = f"a fault of freshlane: {str(error) or type(error).__name__}"

    async def _close_papers(self) -> None:
        """A recycle that was under way has failed with the lane, and its record says so."""
        body = self.lane.body
        body.take_commands()
        self.lane.organs.recycler.give_up(self._around.clock.now(), Outcome.FAILED, "waits for a person: a fault")
        for command in body.take_commands():
            if isinstance(command, WriteRecord):
                await self._performer.perform(command)

    async def _end_workers(self) -> None:
        """Stop them all, or let their tethers do it; nothing else is listened to meanwhile."""
        attendants = self._performer.attendants
        for attendant in tuple(attendants.values()):
            attendant.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ENDING_S):
                while attendants:
                    event = await self._inbox.get()
                    if isinstance(event, ev.WorkerExited | ev.SpawnFailed):
                        self._performer.part_with(event.generation)
        for generation in tuple(attendants):
            self._performer.part_with(generation)

    # ---- for its neighbours ----

    def _spare_s(self) -> float | None:
        if self.settings.start != "on_demand" or self.lane.state not in SERVES or self.gate.idle_since is None:
            return None
        return self.gate.idle_for(self._around.clock.now())

    def _make_room(self, by: str) -> None:
        self.tell(ev.RoomWanted(self._around.clock.now(), by))

    # ---- what it keeps ----

    def _recycled(self, record: dict[str, Any]) -> None:
        self.last_record = record
        self._chronicle.recycled(record)
        self._tasks.start(self._performer.memory.keep(self.lane.body), "keep the lane's memory")

    async def _look_at_fingerprint(self) -> bool:
        """Whether what the baseline belongs to has changed."""
        recalled = await self._book.look(self.settings, self._around.under)
        if recalled:
            await self._take(recalled)
            self._book.taken_up()
        return recalled is not None

    async def _look_at_watched_files(self, generation: int) -> None:
        """Settings that act at once make of a worker another one: it is measured anew, as if it were fresh."""
        attendant = self._performer.attendants.get(generation)
        changed = await self._watched.changed(self.settings.watch_files)
        if changed and attendant and await self._look_at_fingerprint():
            attendant.begin_anew()
            files = [str(path) for path in changed]
            self._changed_settings = {"time": self._around.clock.said(self._around.clock.now()), "files": files}
            log.info("settings_changed", lane=self.name, files=files, meaning="the worker is measured anew")

    # ---- what others read and ask ----

    def snapshot(self) -> dict[str, Any]:
        """The lane as the API shows it."""
        totals = {
            **asdict(self.gate.totals),
            **self._performer.recycles.totals.to_json(),
            "canaries": dict(self._chronicle.samples),
        }
        body = self.lane.body
        active = body.workers.active
        starting = self._performer.attendants.get(active.generation) if active and active.is_awaited else None
        trouble = starting.trouble if starting else ""
        document = lane_snapshot(
            self.settings, self.lane, self.gate, self._around.clock, totals=totals, trouble=trouble
        )
        return {**document, "settings_changed": self._changed_settings}

    async def ask(self, what: What, reason: str = "", *, now: bool = False, wait: bool = False) -> dict[str, Any]:
        """What a person wants; see ``wishes.ask`` for what it raises."""
        if self._inbox.is_crowded:
            raise refusals.is_crowded(len(self._inbox))
        return await ask(self, what, self._around.clock.now(), reason, now=now, wait=wait)

    def change(self, settings: LaneSettings, terms: LaneTerms, *, needs_worker: bool) -> None:
        """A reload: new settings, which only a new worker can take up if ``needs_worker``."""
        self.settings = settings
        self._performer.take(settings)
        self.tell(ev.TermsChanged(self._around.clock.now(), terms, needs_worker))

    @property
    def is_window_open(self) -> bool:
        """Whether it believes that the quiet hours allow a recycle."""
        return self.lane.body.is_window_open

    def window_changed(self, *, is_open: bool) -> None:
        """The quiet hours began or ended."""
        self.tell(ev.WindowChanged(self._around.clock.now(), is_open))

    @property
    def is_without_worker(self) -> bool:
        """Whether no process of this lane is left."""
        return not self._performer.attendants

    @property
    def event_under_way_s(self) -> float:
        """How long the event at hand has taken so far; 0 if none is at hand."""
        return 0.0 if self._taking_since is None else self._around.clock.now() - self._taking_since

    @property
    def stop_patience_s(self) -> float:
        """How long its worker may take to end once it was told to."""
        worker = self.lane.body.workers.active
        terms = self.lane.body.terms
        return terms.handoff_s + worker.stop_patience_s(terms.stop_timeout_s) if worker else 0.0

    def baseline(self) -> dict[str, Any]:
        """What fresh means for this lane."""
        return self._book.to_json()

    async def reset_baseline(self) -> dict[str, Any]:
        """Forget what fresh means; it is learned anew from the next fresh worker."""
        judge = self.lane.organs.judge
        self.tell(ev.BaselineForgotten(self._around.clock.now()))
        await self.until(lambda: True if not judge.baseline_summary()["runs"] else None, BRIEF_S)
        await self._book.forget()
        return self.baseline()

    @property
    def output_path(self) -> Path:
        """Where the workers' output is kept."""
        return self._around.state_dir / "logs" / f"{self.name}.log"

    async def output_tail(self, lines: int) -> str:
        """The last lines that a worker of this lane wrote. Raises MeaninglessWishError if it is not ours to read."""
        if self.settings.is_attached:
            raise MeaninglessWishError(f"{self.name}: someone else runs {self.settings.attach}, and has its output")
        return await asyncio.to_thread(last_lines, self.output_path, lines) or ""

    async def follow_output(self) -> AsyncIterator[bytes]:
        """What workers write from now on, of this generation and of those to come."""
        while True:
            output = await self.until(self._newest_output, None)
            async for chunk in output.follow():
                yield chunk

    def _newest_output(self) -> Output | None:
        """None also where the newest worker has closed it: to follow that ends at once, again and again."""
        attendants = self._performer.attendants
        newest = attendants[max(attendants)].process if attendants else None
        return newest.output if newest and newest.output and newest.output.is_open else None
