"""Which lanes to write for what was found. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from supervisor.cli.finding.models import Model
from supervisor.cli.finding.servers import Running

MOST_LANES = 3
"""Further models are written as comments: a machine that loads all it has is not what was asked for."""
SERVERS_FOR = {
    "gguf": ("llama-server",),
    "mlx": ("mlx-lm", "dflash-mlx"),
    "safetensors": ("vllm", "freetoken", "mlx-lm"),
}
"""By format of the model: which preset can serve it, best first. Only those whose command takes the model."""
OMLX_ADVICE = "it serves the models of its own folder: say which with served_model"
_NO_NAME = re.compile(r"[^a-z0-9._-]+")
LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class LaneIdea:
    """A lane that could be. ``keys``: as in lanes.yaml, in that order; values are text."""

    name: str
    keys: tuple[tuple[str, str], ...]
    why: str


def ideas(
    models: Sequence[Model], installed: Mapping[str, str], running: Sequence[Running], *, is_macos: bool
) -> list[LaneIdea]:
    """Lanes for what was found, best first: servers that run, then models that a server here can serve."""
    found: list[LaneIdea] = []
    for server in running:
        found.append(_attached(server, found))
    for model in models:
        idea = _served(model, installed, found, is_macos=is_macos)
        if idea is not None:
            found.append(idea)
    if "omlx" in installed and not any(server.preset == "omlx" for server in running):
        found.append(LaneIdea(_name("omlx", found), (("preset", "omlx"),), f"{installed['omlx']}; {OMLX_ADVICE}"))
    return found


def _attached(server: Running, others: Iterable[LaneIdea]) -> LaneIdea:
    first = server.models[0] if server.models else "server"
    preset = (("preset", server.preset),) if server.preset else ()
    served = (("served_model", first),) if server.models else ()
    return LaneIdea(
        _name(first, others),
        (*preset, ("attach", server.url), *served),
        f"answers on {server.url}; watched, never stopped (to have it recycled, too: restart_command)",
    )


def _served(
    model: Model, installed: Mapping[str, str], others: Iterable[LaneIdea], *, is_macos: bool
) -> LaneIdea | None:
    preset = next((name for name in SERVERS_FOR[model.format] if name in installed), None)
    size = f"{model.size_bytes / 1e9:.1f} GB"
    name = _name(model.name, others)
    if preset is not None:
        keys = (("preset", preset), ("model", model.reference))
        return LaneIdea(name, keys, f"{model.name}, {size}, by {installed[preset]}")
    if model.format == "gguf" or (model.format == "safetensors" and not is_macos):
        return None  # nothing on this machine could serve it
    return LaneIdea(name, (("model", model.reference),), f"{model.name}, {size}, on freshlane's own engine")


def _name(model: str, others: Iterable[LaneIdea]) -> str:
    """A lane's name made of a model's: what clients will write."""
    short = _NO_NAME.sub("-", model.rsplit("/", 1)[-1].lower()).strip("-._")[:LONGEST_NAME].rstrip("-._") or "lane"
    taken = {idea.name for idea in others}
    return next(name for name in (short, *(f"{short}-{number}" for number in range(2, 1000))) if name not in taken)
