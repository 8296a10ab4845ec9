"""The states a lane can be in, and the named sets the rest of the program asks about.

What each state means for a client is in ``GATE_BY_STATE``; which state may follow which is in ``SUCCESSORS``. Both are
data: the lane refuses a step that is not in them, and docs/architecture.md draws its diagram from them.
"""

from __future__ import annotations

from enum import StrEnum


class LaneState(StrEnum):
    """Where a lane is in its life. The words are fixed: they appear in the API, the log and the metrics."""

    STOPPED = "stopped"
    UNLOADED = "unloaded"
    STARTING = "starting"
    WARMING = "warming"
    SERVING = "serving"
    SUSPECT = "suspect"
    DRAINING = "draining"
    DRAINED = "drained"
    STOPPING = "stopping"
    BACKING_OFF = "backing_off"
    BLOCKED = "blocked"
    FAILED = "failed"


class GateMode(StrEnum):
    """What the gate does with a request that arrives now."""

    OPEN = "open"
    HELD = "held"
    REFUSING = "refusing"
    """Refused with Retry-After: it will be better soon."""
    SHUT = "shut"
    """Refused: only a person changes this."""


_S = LaneState

GATE_BY_STATE: dict[LaneState, GateMode] = {
    _S.STOPPED: GateMode.SHUT,
    _S.UNLOADED: GateMode.HELD,
    _S.STARTING: GateMode.HELD,
    _S.WARMING: GateMode.HELD,
    _S.SERVING: GateMode.OPEN,
    _S.SUSPECT: GateMode.OPEN,
    _S.DRAINING: GateMode.HELD,
    _S.DRAINED: GateMode.REFUSING,
    _S.STOPPING: GateMode.HELD,
    _S.BACKING_OFF: GateMode.HELD,
    _S.BLOCKED: GateMode.HELD,
    _S.FAILED: GateMode.SHUT,
}
"""The gate a state normally has. A forced canary holds an open one for a moment; a person's stop shuts a held one."""

SUCCESSORS: dict[LaneState, dict[LaneState, str]] = {
    _S.STOPPED: {_S.STARTING: "a person starts it", _S.UNLOADED: "started, but on demand"},
    _S.UNLOADED: {_S.STARTING: "a request arrives", _S.STOPPED: "a person stops it"},
    _S.STARTING: {
        _S.WARMING: "ready",
        _S.STOPPING: "start deadline, or a person stops it",
        _S.BACKING_OFF: "exit",
        _S.BLOCKED: "no memory, a stranger has the port, or its owner must start it",
        _S.FAILED: "crash loop",
    },
    _S.WARMING: {
        _S.SERVING: "enough runs, or warm_timeout",
        _S.DRAINED: "a person had drained it",
        _S.STOPPING: "hung, bad spawn, or a person stops it",
        _S.BACKING_OFF: "exit",
        _S.FAILED: "crash loop",
    },
    _S.SERVING: {
        _S.SUSPECT: "verdict suspect or degraded",
        _S.DRAINING: "a recycle, or a person drains or stops it",
        _S.STOPPING: "hung, idle_unload, or an empty lane is stopped",
        _S.BACKING_OFF: "exit",
        _S.DRAINED: "drained while empty",
        _S.FAILED: "crash loop",
    },
    _S.SUSPECT: {
        _S.SERVING: "more runs: back, or an overlap recycle is done",
        _S.DRAINING: "degraded: on to replacement",
        _S.STOPPING: "hung, or an empty lane is stopped",
        _S.BACKING_OFF: "exit",
        _S.DRAINED: "drained while empty",
        _S.FAILED: "crash loop",
    },
    _S.DRAINING: {
        _S.STOPPING: "gate empty, or a deadline that may cut",
        _S.DRAINED: "gate empty, and a person asked to drain",
        _S.SERVING: "drain deadline: aborted, or a person resumes",
        _S.BACKING_OFF: "exit",
        _S.FAILED: "crash loop",
    },
    _S.DRAINED: {
        _S.SERVING: "a person resumes",
        _S.STOPPING: "hung, recycled, or a person stops it",
        _S.BACKING_OFF: "exit",
        _S.FAILED: "crash loop",
    },
    _S.STOPPING: {
        _S.STARTING: "exit, and a new worker is wanted",
        _S.STOPPED: "exit, and a person stopped it",
        _S.UNLOADED: "exit after idle_unload",
        _S.BACKING_OFF: "exit after a failed start",
        _S.BLOCKED: "ignores its stop signal, or memory is not back",
        _S.FAILED: "crash loop",
    },
    _S.BACKING_OFF: {
        _S.STARTING: "timer",
        _S.STOPPED: "a person stops it",
        _S.BLOCKED: "no memory, or a stranger has the port",
    },
    _S.BLOCKED: {
        _S.STARTING: "its condition is gone",
        _S.STOPPED: "a person stops it",
        _S.STOPPING: "a person stops it, or its settings change, while a worker is still there",
        _S.BACKING_OFF: "the worker that would not go is gone",
        _S.UNLOADED: "the worker that would not go is gone, and the lane is on demand",
    },
    _S.FAILED: {_S.STARTING: "a person starts it", _S.STOPPED: "a person stops it"},
}

HAS_WORKER = frozenset(
    {_S.STARTING, _S.WARMING, _S.SERVING, _S.SUSPECT, _S.DRAINING, _S.DRAINED, _S.STOPPING},
)
"""States in which a process of the lane may be alive (blocked may have one too: one that will not go)."""

SERVES = frozenset({_S.SERVING, _S.SUSPECT})
"""States in which a request is sent to the worker at once."""

NEXT_ACTION: dict[LaneState, str] = {
    _S.STOPPED: "waits for `freshlane start`",
    _S.UNLOADED: "a request starts it",
    _S.STARTING: "serves once the worker is ready",
    _S.WARMING: "opens once the first canaries are in",
    _S.SERVING: "is measured again when idle",
    _S.SUSPECT: "is measured again at once",
    _S.DRAINING: "goes on when nothing is in flight",
    _S.DRAINED: "waits for `freshlane resume`",
    _S.STOPPING: "goes on when the worker is gone",
    _S.BACKING_OFF: "starts again by itself",
    _S.BLOCKED: "goes on by itself when the condition is gone",
    _S.FAILED: "waits for `freshlane start`",
}
"""What a lane does next, in words for people."""
