"""How much memory the bodies of requests that wait may take, over all lanes."""

from __future__ import annotations

LARGEST_BODIES = 8
"""The limit, in bodies of the largest size that is taken: `max_body` of lanes.yaml."""


class HeldBytes:
    """One of a daemon; each gate tells it who begins to wait and who does no more."""

    def __init__(self, max_body: int) -> None:
        self.held = 0
        self.limit = 0
        self.take(max_body)

    def take(self, max_body: int) -> None:
        """A reload changed the largest size of a body; nobody is sent away for it."""
        self.limit = LARGEST_BODIES * max_body

    def has_room(self, body_bytes: int) -> bool:
        """Whether one more body may wait."""
        return self.held + body_bytes <= self.limit

    def add(self, body_bytes: int) -> None:
        """A request begins to wait; one that was sent before may do so whatever the limit."""
        self.held += body_bytes

    def remove(self, body_bytes: int) -> None:
        """A request waits no more."""
        self.held -= body_bytes
