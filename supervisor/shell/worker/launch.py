"""How a lane's worker is started and addressed: its command line, its environment, its URL and what we send along."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from supervisor.settings import LaneSettings
from supervisor.settings.placeholders import expand

TOKEN_VARIABLE = "FRESHLANE_WORKER_TOKEN"  # noqa: S105 - the name of a variable, not a token
PREFIX_FOLDER = "prefix-disk"
GENERATION_VARIABLE = "FRESHLANE_GENERATION"


@dataclass(frozen=True, slots=True)
class Launch:
    """One worker's start, resolved: nothing in it is left to expand."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: Path | None
    """None: a folder of the lane under state_dir."""
    port: int
    url: str
    headers: Mapping[str, str] = field(repr=False)


def launch_of(lane: LaneSettings, *, generation: int, port: int, state_dir: Path) -> Launch:
    """What to execute for this generation, and how to speak to it."""
    words = {"port": str(port), "model": lane.model or "", "lane": lane.name, "state_dir": str(state_dir)}
    env = {**os.environ, **{name: expand(value, words) for name, value in lane.env.items()}}
    env[GENERATION_VARIABLE] = str(generation)
    headers = lane.sent_headers()
    if lane.is_ours:
        # A token per generation: nobody but this daemon drives the engine, and an old token opens nothing.
        env[TOKEN_VARIABLE] = secrets.token_urlsafe(32)
        headers["Authorization"] = f"Bearer {env[TOKEN_VARIABLE]}"
        argv = engine_command(lane, port, state_dir)
    else:
        env.pop(TOKEN_VARIABLE, None)
        argv = tuple(expand(word, words) for word in lane.command or ())
    return Launch(argv, env, lane.cwd, port, lane.attach or f"http://127.0.0.1:{port}", headers)


def engine_command(lane: LaneSettings, port: int, state_dir: Path) -> tuple[str, ...]:
    """Our engine, on this daemon's own interpreter. ``-P``: a file of the same name in the cwd must not win."""
    argv = [sys.executable, "-P", "-m", "engine", "--model", lane.model or "", "--port", str(port)]
    argv += ["--speculation", lane.speculation.method]
    if lane.speculation.draft is not None:
        argv += ["--draft", str(lane.speculation.draft)]
    if lane.speculation.max_tokens is not None:
        argv += ["--max-draft", str(lane.speculation.max_tokens)]
    if lane.prefix.ram is not None:
        argv += ["--prefix-ram", str(lane.prefix.ram)]
    if lane.prefix.disk:
        argv += ["--prefix-disk", str(lane.prefix.disk), "--prefix-folder", str(state_dir / PREFIX_FOLDER / lane.name)]
    return tuple(argv)


def served_models(lane: LaneSettings) -> dict[str, str]:
    """Each name a client may use, with the model name that the worker expects."""
    return {name: lane.model_for(name) for name in lane.names}
