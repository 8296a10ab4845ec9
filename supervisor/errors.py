"""What can go wrong, by whose fault it is."""

from __future__ import annotations


class FreshlaneError(Exception):
    """Anything freshlane raises on purpose; its text is meant for a person."""


class ImpossibleEventError(FreshlaneError):
    """A fault of this program: a lane was told of something that cannot happen in its state."""

    def __init__(self, lane: str, state: str, event: str) -> None:
        super().__init__(f"lane {lane} is {state} and was told {event}, which cannot be; this is a bug in freshlane")


class ImpossibleTransitionError(FreshlaneError):
    """A fault of this program: a lane was asked to take a step that its tables do not have."""

    def __init__(self, lane: str, state: str, wanted: str, reason: str) -> None:
        super().__init__(f"lane {lane} cannot go from {state} to {wanted} ({reason}); this is a bug in freshlane")
