"""Known servers: what each needs on its command line, and what it says of itself. A lane's own keys always win.

Read in the servers' sources or wheels, or seen in a run; ``tested`` says which. Traps behind single values:

* omlx writes command-line flags into the user's ``settings.json``, so its port goes in by environment.
* mlx_lm.server takes any model name but ``default_model`` for an order to load that model.
* mlx_lm.server dies uncleanly of SIGTERM; SIGINT is its clean stop.
* FreeToken answers its health path with 200 while it is still loading; only the body tells.
* FreeToken also takes the port above its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_SERVED: Final = "{served}"
"""In a preset's command: `served_model`, or the lane's name where there is none."""

_NAMED: Final = ("--served-model-name", _SERVED)
_HERE: Final = ("--host", "127.0.0.1", "--port", "{port}")
_PROCESS_KEYS: Final = frozenset({"command", "env", "stop_signal", "replace"})


@dataclass(frozen=True, slots=True)
class HealthRule:
    """How the JSON body of a 200 on the health path is read. An empty ``ready``: the 200 is enough."""

    ready: frozenset[str] = frozenset()
    """Values of `status` that mean ready; another one means not yet."""
    dead: frozenset[str] = frozenset()
    """Values of `status` that mean it will never serve, whatever the HTTP status."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One known server."""

    name: str
    title: str
    tested: str
    fills: Mapping[str, Any]
    """Lane keys that it gives where the lane has none."""
    health: HealthRule = HealthRule()
    is_lazy: bool = False
    """It loads its model at the first request, so healthy says nothing of the model."""
    extra_ports: tuple[int, ...] = ()
    """Further ports it takes, as distances from its own."""
    stats_path: str | None = None
    stats_format: str | None = None
    """``json`` or ``prometheus``: how ``stats_path`` answers."""
    log_format: str | None = None
    """Whose log lines are understood: the preset's name, or None."""
    remedies: Mapping[str, str] = field(default_factory=dict)
    """Native remedies: our name -> path to POST to."""


_ALL: Final = (
    Preset(
        name="omlx",
        title="oMLX",
        tested="read in sources partly of the 0.3 line; not run",
        fills={
            "command": ["omlx", "serve"],
            "env": {"OMLX_HOST": "127.0.0.1", "OMLX_PORT": "{port}"},
            # Two of them on one base folder tear its settings file.
            "replace": "in_place",
        },
        health=HealthRule(ready=frozenset({"healthy"})),
        is_lazy=True,
        stats_path="/api/status",
        stats_format="json",
        log_format="omlx",
    ),
    Preset(
        name="mlx-lm",
        title="mlx_lm.server",
        tested="0.32.2 run on Linux",
        fills={
            "command": ["mlx_lm.server", "--model", "{model}", *_HERE],
            "served_model": "default_model",
            "stop_signal": "INT",
        },
        health=HealthRule(ready=frozenset({"ok"}), dead=frozenset({"unavailable"})),
        is_lazy=True,
        log_format="mlx-lm",
    ),
    Preset(
        name="dflash-mlx",
        title="dflash-mlx",
        tested="0.1.8 read in its wheel; not run",
        fills={
            "command": ["dflash", "serve", "--model", "{model}", *_HERE],
            "served_model": "default_model",
            "stop_signal": "INT",
        },
        health=HealthRule(ready=frozenset({"ok"}), dead=frozenset({"unavailable"})),
        stats_path="/metrics",
        stats_format="json",
    ),
    Preset(
        name="freetoken",
        title="FreeToken",
        tested="read in its repository (0ab982f) and wheel 0.2.1; not run",
        fills={
            "command": ["ft", "serve", "--model", "{model}", *_HERE, *_NAMED, "--enable-cache-report"],
            # It fills its device's memory, so a second one does not fit beside it.
            "replace": "in_place",
        },
        health=HealthRule(ready=frozenset({"ok"}), dead=frozenset({"error"})),
        extra_ports=(1,),
        stats_path="/v1/stats",
        stats_format="json",
        log_format="freetoken",
        remedies={"clear_cache": "/v1/cache/rebuild"},
    ),
    Preset(
        name="llama-server",
        title="llama.cpp's llama-server",
        tested="its README (00dc8057); not run",
        fills={"command": ["llama-server", "-m", "{model}", "--alias", _SERVED, *_HERE, "--metrics"]},
        health=HealthRule(ready=frozenset({"ok"})),
        stats_path="/metrics",
        stats_format="prometheus",
    ),
    Preset(
        name="vllm",
        title="vLLM",
        tested="0.19.1 read in its wheel; not run",
        fills={
            "command": ["vllm", "serve", "{model}", *_NAMED, *_HERE],
            # It fills its device's memory, so a second one does not fit beside it.
            "replace": "in_place",
        },
        stats_path="/metrics",
        stats_format="prometheus",
    ),
)

PRESETS: Final[Mapping[str, Preset]] = {preset.name: preset for preset in _ALL}


def fill_in(lane: str, written: Mapping[str, Any]) -> dict[str, Any]:
    """The lane's keys, with those of its preset added where it has none; unchecked values pass through.

    An attached server is not ours to start: its preset says only how to talk to it.
    """
    filled = dict(written)
    name = written.get("preset")
    preset = PRESETS.get(name) if isinstance(name, str) else None
    if preset is None:
        return filled
    is_attached = written.get("attach") is not None
    for key, value in preset.fills.items():
        if is_attached and key in _PROCESS_KEYS:
            continue
        if isinstance(value, Mapping) and isinstance(filled.get(key), Mapping):
            filled[key] = {**value, **filled[key]}
        elif filled.get(key) is None:
            filled[key] = value
    return _with_served_name(lane, filled, preset, is_own_command=written.get("command") is not None)


def _with_served_name(lane: str, filled: dict[str, Any], preset: Preset, is_own_command: bool) -> dict[str, Any]:
    """Puts the served name into the preset's command; a command of the lane's own is left alone."""
    command = preset.fills["command"]
    if is_own_command or "command" not in filled or _SERVED not in command:
        return filled
    served = filled.get("served_model") or lane
    filled["served_model"] = served
    filled["command"] = [str(served) if word == _SERVED else word for word in command]
    return filled
