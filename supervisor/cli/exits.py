"""How a command ends: the exit codes scripts and service managers rely on, and the errors that carry them."""

from __future__ import annotations

from enum import IntEnum

from supervisor.errors import FreshlaneError


class Exit(IntEnum):
    """Fixed by docs: systemd is told not to restart on ``USAGE`` and ``PORT_TAKEN``."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    """Bad usage or a bad lanes.yaml."""
    NOT_REACHABLE = 3
    LANE_FAILED = 4
    PORT_TAKEN = 69
    TRY_LATER = 75
    INTERRUPTED = 130


class CommandError(FreshlaneError):
    """Ends a command with an exit code of its own."""

    exit_code = Exit.FAILED


class UsageError(CommandError):
    """What was asked for cannot be meant: an unknown lane, no lanes.yaml."""

    exit_code = Exit.USAGE


class NotReachableError(CommandError):
    """No daemon answers."""

    exit_code = Exit.NOT_REACHABLE


class LaneFailedError(CommandError):
    """The lane waits for a person."""

    exit_code = Exit.LANE_FAILED


class TryLaterError(CommandError):
    """The daemon cannot do it now, but may soon."""

    exit_code = Exit.TRY_LATER
