"""What is known of one server. A lane's own keys always win over what its preset fills in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from supervisor.readings.reading import BodyReader, LogReader

SERVED: Final = "{served}"
"""In a preset's command: `served_model`, or the lane's name where there is none."""

NAMED: Final = ("--served-model-name", SERVED)
HERE: Final = ("--host", "127.0.0.1", "--port", "{port}")


@dataclass(frozen=True, slots=True)
class HealthRule:
    """How the JSON body of a 200 on the health path is read. An empty ``ready``: the 200 is enough."""

    ready: frozenset[str] = frozenset()
    """Values of `status` that mean ready; another one means not yet."""
    dead: frozenset[str] = frozenset()
    """Values of `status` that mean it will never serve, whatever the HTTP status."""


@dataclass(frozen=True, slots=True)
class NativeRemedy:
    """How a server is asked for a mild remedy: a POST to ``path``."""

    path: str
    body: Mapping[str, Any] | None = None
    of_each: str | None = None
    """A path that lists things with an `id`; then ``path`` is posted to for each, with its `{id}`."""


@dataclass(frozen=True, slots=True)
class Stats:
    """An endpoint that tells of the server, and how its answer is read."""

    path: str
    read: BodyReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One known server. What is known of it was read in its sources, or seen in a run: ``tested`` says which."""

    name: str
    title: str
    tested: str
    fills: Mapping[str, Any]
    """Lane keys that it gives where the lane has none."""
    usual_port: int
    """Where one that a person started listens."""
    health: HealthRule = HealthRule()
    is_lazy: bool = False
    """It loads its model at the first request, so healthy says nothing of the model."""
    extra_ports: tuple[int, ...] = ()
    """Further ports it takes, as distances from its own."""
    log: Callable[[], LogReader] | None = None
    """A new reader for the output of one process; None: its lines tell nothing."""
    stats: Stats | None = None
    remedies: Mapping[str, NativeRemedy] = field(default_factory=dict)
    """By our name for them; a server that answers 404 or 501 to one does not offer it."""
    thinking_off: str = '`chat_template_kwargs: {"enable_thinking": false}`, a request'
    """How an answer without thinking is asked for, for people."""
    reasoning_field: str = "reasoning_content"
    """Where a delta has its thinking."""
    traps: tuple[str, ...] = ()
    """What breaks a set-up of it, for people: a sentence each."""
