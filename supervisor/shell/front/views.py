"""What the front knows of lanes, and of one call of a client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from supervisor.shell.front.body import ModelBody
from supervisor.shell.front.gate import Gate


class LaneFront(Protocol):
    """A lane as the front sees it."""

    @property
    def name(self) -> str:
        """What clients call it."""

    @property
    def aliases(self) -> Sequence[str]:
        """What they may call it too."""

    @property
    def kind(self) -> str:
        """chat, completions or embeddings."""

    @property
    def gate(self) -> Gate:
        """Where its requests wait and pass."""


class Directory(Protocol):
    """All lanes, by the names that clients use."""

    def find(self, name: str, /) -> LaneFront | None:
        """The lane of this name or alias."""

    def lanes(self) -> Sequence[LaneFront]:
        """Every lane, in the order of the configuration."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a client, read whole."""

    request_id: str
    body: ModelBody
    model: str

    @property
    def wants_stream(self) -> bool:
        """Whether its answer comes as server-sent events."""
        return self.body.wants_stream
