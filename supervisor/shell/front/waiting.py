"""Those who wait at a gate, in the order in which they came."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Callable, Iterator

from supervisor.shell.front.held_bytes import HeldBytes
from supervisor.shell.front.refusal import RefusedError
from supervisor.shell.front.ticket import Ticket


class WaitingRoom:
    """A queue by order of arrival: who was sent and comes back stands where it stood before."""

    def __init__(self, held: HeldBytes) -> None:
        self._tickets: list[Ticket] = []
        self._held = held

    def __len__(self) -> int:
        return len(self._tickets)

    def __iter__(self) -> Iterator[Ticket]:
        """Those who wait now; they may leave meanwhile."""
        return iter(tuple(self._tickets))

    def __contains__(self, ticket: Ticket) -> bool:
        return ticket in self._tickets

    def can_go(self, generation: int) -> list[Ticket]:
        """Who may be sent to this worker."""
        return [ticket for ticket in self._tickets if ticket.avoids != generation and ticket.sends < 2]

    def add(self, ticket: Ticket, due_s: float, end: Callable[[Ticket], None]) -> None:
        """Let it wait, for at most ``due_s`` seconds: then ``end`` is called, and decides."""
        if ticket not in self._tickets:
            insort(self._tickets, ticket, key=lambda waiting: waiting.number)
            self._held.add(ticket.body_bytes)
        ticket.forget_timer()
        ticket.timer = asyncio.get_running_loop().call_later(due_s, end, ticket)

    def remove(self, ticket: Ticket) -> None:
        """It is sent, or its client has left."""
        if ticket in self._tickets:
            self._tickets.remove(ticket)
            self._held.remove(ticket.body_bytes)
        ticket.forget_timer()

    def refuse(self, ticket: Ticket, refusal: RefusedError) -> None:
        """It will not be sent."""
        self.remove(ticket)
        ticket.refuse(refusal)
