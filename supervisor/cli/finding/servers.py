"""Model servers on this machine: those that are installed, and those that run on the usual ports."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from supervisor.presets import PRESETS

OTHER_PORTS = (8080, 8081, 8001, 1234, 11434, 10240)
"""Of older llama-servers, second ones, LM Studio, Ollama, mlx-omni-server."""
USUAL_PORTS = tuple(dict.fromkeys([*(preset.usual_port for preset in PRESETS.values()), *OTHER_PORTS]))
ASK_TIMEOUT_S = 2.0
LONGEST_ANSWER_BYTES = 1_000_000
MOST_MODELS = 20
OWNERS = {"vllm": "vllm", "llamacpp": "llama-server", "omlx": "omlx"}
"""What a server says of itself in ``owned_by`` of /v1/models -> the preset that knows it."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers. ``preset``: which it is, where it says so."""

    url: str
    models: tuple[str, ...]
    preset: str | None = None


def installed_servers(path: str | None = None) -> dict[str, str]:
    """The presets whose program is on PATH: name -> where it is."""
    found = {name: shutil.which(str(preset.fills["command"][0]), path=path) for name, preset in PRESETS.items()}
    return {name: program for name, program in found.items() if program}


def running_servers(ports: Iterable[int] = USUAL_PORTS) -> list[Running]:
    """Those of 127.0.0.1 that answer ``/v1/models`` within two seconds, all asked at once."""
    asked = list(dict.fromkeys(ports))
    with ThreadPoolExecutor(max_workers=max(1, len(asked))) as pool:
        return [running for running in pool.map(_running_at, asked) if running is not None]


def _running_at(port: int) -> Running | None:
    url = f"http://127.0.0.1:{port}"
    models = ask_json(f"{url}/v1/models").get("data")
    if not isinstance(models, list):
        return None
    named = [entry for entry in models if isinstance(entry, dict) and isinstance(entry.get("id"), str)][:MOST_MODELS]
    if any(entry.get("owned_by") == "freshlane" for entry in named):
        return None
    preset = next((OWNERS[owner] for entry in named if (owner := str(entry.get("owned_by"))) in OWNERS), None)
    return Running(url, tuple(str(entry["id"]) for entry in named), preset)


def ask_json(url: str, timeout_s: float = ASK_TIMEOUT_S) -> dict[str, Any]:
    """The JSON object at a URL of this machine; empty if there is none."""
    try:
        # No proxy of the environment stands between two ports of one machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=timeout_s) as answer:
            document = json.loads(answer.read(LONGEST_ANSWER_BYTES))
    except (OSError, ValueError, urllib.error.URLError):
        return {}
    return document if isinstance(document, dict) else {}
