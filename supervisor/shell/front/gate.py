"""The gate of a lane: it admits requests to a worker, holds them, or refuses them.

It alone counts what is in flight, and counts at once: no ``await`` lies between a decision and its count. All methods
are for one event loop. Callbacks are called last, when the gate is consistent, and may call the gate again.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from supervisor.shell.front import refusal as refusals
from supervisor.shell.front.counts import Counts, Totals
from supervisor.shell.front.held_bytes import HeldBytes
from supervisor.shell.front.refusal import RefusedError
from supervisor.shell.front.stream_count import StreamCount
from supervisor.shell.front.ticket import Ticket
from supervisor.shell.front.turned_away import LOSS_GRACE_S, TurnedAway
from supervisor.shell.front.upstream import Upstream
from supervisor.shell.front.waiting import WaitingRoom

DEATH_GRACE_S = 1.0
"""What a dead worker had sent may still be read for so long; a descendant can hold its socket open for ever."""

RETRY_AFTER_S = 5.0
USUAL_MAX_BODY = 64_000_000


class Mode(StrEnum):
    """What happens to a request that arrives."""

    OPEN = "open"
    HELD = "held"
    REFUSING = "refusing"


@dataclass(frozen=True, slots=True)
class GateTerms:
    """``max_inflight``: on one worker. ``comments_after_s`` None: no comments to a stream that waits."""

    max_inflight: int = 8
    max_queue: int = 64
    hold_timeout_s: float = 240.0
    comments_after_s: float | None = 15.0


def _ignore(*_: object) -> None:
    """Nobody listens."""


class Gate:
    """Open to one worker, or to none. Begins held."""

    def __init__(
        self,
        *,
        max_inflight: int = 8,
        max_queue: int = 64,
        hold_timeout_s: float = 240.0,
        comments_after_s: float | None = 15.0,
        held: HeldBytes | None = None,
    ) -> None:
        self.terms = GateTerms(max_inflight, max_queue, hold_timeout_s, comments_after_s)
        self.on_emptied: Callable[[int], None] = _ignore
        self.on_idled: Callable[[], None] = _ignore
        self.on_held: Callable[[], None] = _ignore
        self.on_admitted: Callable[[], None] = _ignore
        self.on_poison: Callable[[str, tuple[int, ...]], None] = _ignore
        self.on_stream: Callable[[int, int, StreamCount, str], None] = _ignore
        """Generation, bytes of the request, and what passed of its stream, which is complete."""
        self.mode = Mode.HELD
        self.reason = "the lane has not started yet"
        self.idle_since: float | None = None
        """Monotonic seconds; None unless the gate is open, nothing is in flight and nobody waits."""
        self._retry_after_s: float | None = None
        self._pause: str | None = None
        self._upstream: Upstream | None = None
        self._held = held or HeldBytes(USUAL_MAX_BODY)
        self._waiting = WaitingRoom(self._held)
        self._inflight: dict[Ticket, int] = {}
        self._wants_idle = False
        self._counts = Counts()
        self._turned_away = TurnedAway(self._counts, self._settle)
        self._outbox: deque[Callable[[], None]] = deque()
        self._last_number = 0

    # ---- what it counts ----

    @property
    def queued(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    @property
    def waits_for(self) -> str:
        """What those who wait wait for, in words."""
        if self.mode is Mode.OPEN:
            return self._pause or "all its slots are taken"
        return self.reason

    @property
    def totals(self) -> Totals:
        """Since the daemon began."""
        return self._counts.totals

    def inflight(self, generation: int | None = None) -> int:
        """Requests in flight: on one worker, or on all."""
        return self._counts.inflight() if generation is None else self._counts.of(generation).inflight

    def requests(self, generation: int) -> int:
        """Requests that were sent to this worker."""
        return self._counts.of(generation).requests

    def generated_tokens(self, generation: int) -> int:
        """Tokens that passed from this worker."""
        return self._counts.of(generation).generated_tokens

    def failed_with(self, generation: int) -> int:
        """Requests of this worker that have failed just now: streams break before it is known that it died."""
        return self._counts.failed_within(generation, LOSS_GRACE_S)

    def progress_at(self, generation: int) -> float | None:
        """Monotonic seconds at which this worker last sent a byte of an answer."""
        return self._counts.of(generation).progress_at

    def busy_since(self, generation: int) -> float | None:
        """Monotonic seconds since when it has had requests in flight without a break; None if it has none."""
        return self._counts.of(generation).busy_since

    def longest_body(self, generation: int) -> int:
        """Bytes of the longest request in flight on this worker: a bound for its prefill."""
        return max((ticket.body_bytes for ticket in self._of(generation)), default=0)

    def most_silent_tokens(self, generation: int) -> int:
        """The most tokens that a request in flight on this worker may have before a byte of its answer is seen."""
        return max((ticket.silent_tokens for ticket in self._of(generation)), default=0)

    def idle_for(self, now: float) -> float:
        """Seconds for which the gate has been open with nothing in flight."""
        return 0.0 if self.idle_since is None else max(0.0, now - self.idle_since)

    # ---- what the runner says ----

    def open(self, upstream: Upstream) -> None:
        """Turn to this worker in one step; those who wait go first, in the order in which they came.

        A worker that has died meanwhile is not turned to: requests wait on for the next one.
        """
        if self._turned_away.is_dead(upstream.generation):
            self.hold("the worker died")
            return
        if self._upstream and self._upstream.generation != upstream.generation:
            self._turn_away()
        self._turned_away.take_back(upstream.generation)
        self._upstream = upstream
        self.mode, self.reason = Mode.OPEN, "open"
        self._settle()

    def hold(self, reason: str) -> None:
        """Let requests wait; ``on_emptied`` follows, at once or when the last one in flight has ended."""
        self.mode, self.reason = Mode.HELD, reason
        self._turn_away()
        for ticket in self._waiting:
            self._count_held(ticket)
        if self._waiting:
            self._outbox.append(self.on_held)
        self._settle()

    def refuse(self, reason: str, retry_after_s: float | None = None) -> None:
        """Refuse requests, those that wait too; without ``retry_after_s`` nobody is told to come again."""
        self.mode, self.reason, self._retry_after_s = Mode.REFUSING, reason, retry_after_s
        self._turn_away()
        for ticket in self._waiting:
            self._drop(ticket, refusals.is_closed(reason, retry_after_s))
        self._settle()

    def pause(self, why: str | None) -> None:
        """Let those who arrive wait although it is open, for the sake of another lane; None: no longer."""
        self._pause = why
        self._settle()

    def watch_idle(self) -> None:
        """Call ``on_idled`` once: now, or when the gate is open and nothing is in flight."""
        self._wants_idle = True
        self._settle()

    def cut(self, generation: int, reason: str, only_stalled: bool = False) -> None:
        """End what is in flight on this worker. A request whose client has seen no token waits for the next worker.

        ``only_stalled``: only those whose clients have stopped reading.
        """
        for ticket in self._of(generation):
            if only_stalled and not ticket.is_stalled:
                continue
            if ticket.deaths:
                self._count_death(ticket, generation)
            ticket.interrupt(self._poison(ticket) or refusals.was_cut(reason))
        self._settle()

    def worker_died(self, generation: int) -> None:
        """A worker is gone: what it had in flight ends, or waits for the next one."""
        self._turned_away.died(generation)
        if self._upstream and self._upstream.generation == generation:
            self._upstream = None
            if self.mode is Mode.OPEN:
                self.mode, self.reason = Mode.HELD, "the worker died"
        for ticket in self._of(generation):
            self._count_death(ticket, generation)
            asyncio.get_running_loop().call_later(DEATH_GRACE_S, self._end_dead, ticket, generation)
        for ticket in [waiting for waiting in self._waiting if waiting.avoids == generation]:
            if ticket.was_reached:
                self._count_death(ticket, generation)
            ticket.avoids = None
            self._wait(ticket)
        self._settle()

    # ---- what the proxy says ----

    def enter(self, request_id: str, body_bytes: int = 0, silent_tokens: int = 0) -> Ticket:
        """A request arrives: it is admitted, or waits. Raises RefusedError."""
        if self.mode is Mode.REFUSING:
            raise refusals.is_closed(self.reason, self._retry_after_s)
        self._last_number += 1
        ticket = Ticket(self._last_number, request_id, body_bytes, silent_tokens)
        if self._has_room and self._upstream and not self._waiting.can_go(self._upstream.generation):
            self._admit(ticket, self._upstream)
        elif len(self._waiting) >= self.terms.max_queue:
            self._counts.failed(None)
            raise refusals.queue_is_full(len(self._waiting), RETRY_AFTER_S)
        elif not self._held.has_room(body_bytes):
            self._counts.failed(None)
            raise refusals.too_much_is_held(self._held.limit, RETRY_AFTER_S)
        else:
            self._wait(ticket)
        self._settle()
        return ticket

    def send_again(self, ticket: Ticket, *, was_reached: bool = True, is_cut: bool = False) -> None:
        """The worker broke off a request whose client has seen no token: wait for a worker, or for its refusal.

        ``was_reached``: the worker may have seen it; one that could not even be connected to costs the request no try.
        ``is_cut``: we broke it off, and this worker shall not get it again.
        """
        generation = self._inflight[ticket]
        if not is_cut:
            self._counts.broke_off(generation)
        self._end_flight(ticket)
        if not was_reached:
            self._counts.taken_back(generation, was_first=ticket.sends == 1)
        ticket.wait_again(was_reached=was_reached)
        if self._turned_away.is_dead(generation):
            if was_reached:
                self._count_death(ticket, generation)
            self._wait(ticket)
        else:
            ticket.avoids = generation
            self._wait(ticket, None if is_cut else self._end_doubt)
        self._settle()

    def leave(self, ticket: Ticket, *, is_failed: bool = False, is_cut: bool = False) -> None:
        """A request is over, however it ended. Leaving twice is leaving once."""
        if is_failed:
            self._counts.failed(ticket.generation)
            if ticket in self._inflight:
                self._counts.broke_off(self._inflight[ticket])
        self.totals.cut += is_cut
        self._waiting.remove(ticket)
        if ticket in self._inflight:
            self._end_flight(ticket)
        self._settle()

    def note_progress(self, ticket: Ticket, tokens: int = 0) -> None:
        """Bytes came from its worker, and with them so many tokens; a count that proved too high comes off again."""
        if ticket.upstream is not None:
            self._counts.progressed(ticket.upstream.generation, tokens)

    def note_stream(self, ticket: Ticket, count: StreamCount, model: str) -> None:
        """A stream is complete, and its client has kept up with it; ``model``: what the client called it."""
        if ticket.upstream is not None:
            self.on_stream(ticket.upstream.generation, ticket.body_bytes, count, model)

    # ---- inside ----

    @property
    def _has_room(self) -> bool:
        if self.mode is not Mode.OPEN or self._upstream is None or self._pause:
            return False
        return self._counts.of(self._upstream.generation).inflight < self.terms.max_inflight

    def _of(self, generation: int) -> list[Ticket]:
        return [ticket for ticket, worker in self._inflight.items() if worker == generation]

    def _turn_away(self) -> None:
        if self._upstream:
            self._turned_away.add(self._upstream.generation)

    def _wait(self, ticket: Ticket, end_doubt: Callable[[Ticket], None] | None = None) -> None:
        """Into the queue, by order of arrival, for at most ``hold.timeout``, or until its doubt ends."""
        refusal = self._poison(ticket)
        if refusal is None and self.mode is Mode.REFUSING:
            refusal = refusals.is_closed(self.reason, self._retry_after_s)
        if refusal is None and end_doubt is None and not ticket.can_be_sent_again:
            refusal = refusals.worker_lost(ticket.request_id)
        if refusal:
            self._drop(ticket, refusal)
            return
        if self.mode is Mode.HELD:
            self._count_held(ticket)
            self._outbox.append(self.on_held)
        left_s = max(self.terms.hold_timeout_s - ticket.waited_s, 0.0)
        due_s, end = (LOSS_GRACE_S, end_doubt) if end_doubt else (left_s, self._end_hold)
        self._waiting.add(ticket, due_s, end)

    @staticmethod
    def _poison(ticket: Ticket) -> RefusedError | None:
        if len(ticket.deaths) < 2:
            return None
        return refusals.is_poison(ticket.request_id, tuple(ticket.deaths))

    def _count_held(self, ticket: Ticket) -> None:
        self.totals.held += not ticket.is_held
        ticket.is_held = True

    def _admit(self, ticket: Ticket, upstream: Upstream) -> None:
        self._waiting.remove(ticket)
        ticket.admit(upstream)
        self._inflight[ticket] = upstream.generation
        self._counts.admitted(upstream.generation, is_first=ticket.sends == 1)
        self._outbox.append(self.on_admitted)

    def _end_flight(self, ticket: Ticket) -> None:
        self._counts.ended(self._inflight.pop(ticket))

    def _drop(self, ticket: Ticket, refusal: RefusedError) -> None:
        self._counts.failed(ticket.generation)
        self._waiting.refuse(ticket, refusal)

    def _end_hold(self, ticket: Ticket) -> None:
        reason = self.waits_for if ticket.was_reached or self.mode is not Mode.OPEN else "it takes no connections"
        self._drop(ticket, refusals.hold_timed_out(self.terms.hold_timeout_s, reason, RETRY_AFTER_S))
        self._settle()

    def _end_doubt(self, ticket: Ticket) -> None:
        """Its worker broke it off and is not dead: it may be sent there again, once."""
        if time.monotonic() - ticket.arrived_at > self.terms.hold_timeout_s:
            self._end_hold(ticket)
            return
        ticket.avoids = None
        self._wait(ticket)
        self._settle()

    def _end_dead(self, ticket: Ticket, generation: int) -> None:
        if self._inflight.get(ticket) == generation:
            ticket.interrupt(refusals.broken_off("the worker died"))

    def _count_death(self, ticket: Ticket, generation: int) -> None:
        if generation in ticket.deaths:
            return
        ticket.deaths.append(generation)
        if len(ticket.deaths) > 1:
            request_id, generations = ticket.request_id, tuple(ticket.deaths)
            self._outbox.append(lambda: self.on_poison(request_id, generations))

    def _settle(self) -> None:
        """Admit who can go, notice what has come true, and then tell it."""
        if self._upstream and self.mode is Mode.OPEN:
            for ticket in self._waiting.can_go(self._upstream.generation):
                if not self._has_room:
                    break
                self._admit(ticket, self._upstream)
        for generation in self._turned_away.take_empty():
            self._outbox.append(lambda gone=generation: self.on_emptied(gone))  # type: ignore[misc]
        self._notice_idleness()
        while self._outbox:
            self._outbox.popleft()()

    def _notice_idleness(self) -> None:
        is_idle = self.mode is Mode.OPEN and not self._inflight and not self._waiting
        if not is_idle:
            self.idle_since = None
        elif self.idle_since is None:
            self.idle_since = time.monotonic()
        if is_idle and self._wants_idle:
            self._wants_idle = False
            self._outbox.append(self.on_idled)
