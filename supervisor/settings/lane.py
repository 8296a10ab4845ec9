"""One lane of lanes.yaml: a named route to one model, and how its worker is kept."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import Field, SecretStr
from pydantic.json_schema import SkipJsonSchema

from supervisor.settings.block import Block, key
from supervisor.settings.lane_blocks import (
    BaselineSettings,
    CanarySettings,
    DegradedSettings,
    HangSettings,
    HoldSettings,
    MemorySettings,
    PrefixSettings,
    RecycleSettings,
    SpeculationSettings,
)
from supervisor.settings.numbers import Count, CountOrZero, Duration, DurationOrAuto, DurationOrOff, Port
from supervisor.settings.texts import (
    Choice,
    ClientName,
    EnvironmentText,
    HeaderName,
    Location,
    LocationOrNull,
    Model,
    Secret,
    Text,
    TextOrNull,
    UrlPath,
)

PresetName = Literal["omlx", "mlx-lm", "dflash-mlx", "freetoken", "llama-server", "vllm"]


class LaneSettings(Block):
    """All of a lane, its preset and the file's `defaults` already filled in."""

    name: SkipJsonSchema[str] = Field(description="The lane's key under `lanes`.")

    model: Model = key(
        None, "Hub id, folder or built-in name: our engine serves it. Beside command or preset it only fills {model}."
    )
    aliases: tuple[ClientName, ...] = key([], "Further names that clients may use for this lane.")
    speculation: SpeculationSettings = key({}, "How our engine drafts tokens ahead.")
    prefix: PrefixSettings = key({}, "Our engine's prefix cache.")
    preset: Choice[PresetName | None] = key(None, "A known server; it fills what the lane leaves out.")
    command: tuple[Text, ...] | None = key(
        None, "Starts any OpenAI-compatible server; {port} {model} {lane} {state_dir} are filled in, no shell is used."
    )
    port: Port = key(None, "The worker's port, for a command that does not take {port}; then in_place only.")
    served_model: TextOrNull = key(None, "The name that the worker expects; default: what `model` says, or the lane.")
    serves: dict[ClientName, Text] = key({}, "Further names and the worker's models they stand for; each is judged.")
    attach: TextOrNull = key(None, "URL of a server that someone else runs: watched, not owned.")
    restart_command: tuple[Text, ...] | None = key(None, "Restarts an attached server; without it freshlane advises.")
    watch_files: tuple[Location, ...] = key([], "Settings that change speed without a restart; part of the baseline.")
    headers: dict[HeaderName, Secret] = key({}, "Sent to this worker; the client's own key never is.", shown=False)
    env: dict[Text, EnvironmentText] = key(
        {}, "Added to the worker's environment; {port} and the like work.", shown=False
    )
    cwd: LocationOrNull = key(None, "The worker's folder; default: a folder of the lane under state_dir.")
    health: UrlPath = key("/health", "Path that answers 200 when the worker is up.")
    kind: Choice[Literal["chat", "completions", "embeddings"]] = key("chat", "What the worker is asked for.")
    start: Choice[Literal["eager", "on_demand"]] = key("eager", "`on_demand` starts at the first request.")
    idle_unload: DurationOrOff = key("off", "The worker is unloaded after this much idling.")
    start_timeout: Duration = key("10m", "From spawn to healthy and a one-token request answered.")
    warm_timeout: Duration = key("60s", "Longest wait for the first canary before the gate opens all the same.")
    max_inflight: Count = key(8, "Most requests sent to the worker at once; more wait in the queue.")
    max_queue: CountOrZero = key(64, "Most waiting requests; beyond it 503 with Retry-After.")
    hold: HoldSettings = key({}, "How long a request may wait for a worker.")
    drain_timeout: Duration = key("10m", "How long requests in flight get to finish.")
    stop_signal: Choice[Literal["TERM", "INT", "QUIT", "HUP"]] = key("TERM", "What asks the worker to stop.")
    stop_timeout: DurationOrAuto = key("auto", "Patience after the signal; `auto` is 30 s and 0.5 s a resident GB.")
    kill: Choice[Literal["if_hung", "never"]] = key(
        "if_hung", "Whether a worker that ignores its signal beyond stop_timeout is killed. Mere slowness never is."
    )
    replace: Choice[Literal["auto", "overlap", "in_place"]] = key(
        "auto", "Whether the new worker starts beside the old one; `auto`: if twice the peak fits memory_budget."
    )
    memory: MemorySettings = key({}, "What the lane may take.")
    hang: HangSettings = key({}, "When the worker counts as hung.")
    canary: CanarySettings = key({}, "The fixed prompt that measures the lane.")
    baseline: BaselineSettings = key({}, "Up to when a worker counts as fresh.")
    degraded: DegradedSettings = key({}, "When a worker has aged.")
    recycle: RecycleSettings = key({}, "When a worker may be replaced.")
    power: Choice[Literal["busy", "always", "never"]] = key("busy", "When macOS is kept from sleeping.")

    @property
    def is_ours(self) -> bool:
        """Our engine serves it."""
        return self.model is not None and self.command is None and self.preset is None and self.attach is None

    @property
    def is_attached(self) -> bool:
        """Someone else runs the server."""
        return self.attach is not None

    @property
    def looks_for_holders(self) -> bool:
        """Whether a server of somebody else's with the same model is in its way; with overlap it says that two fit."""
        return self.model is not None and not self.is_attached and self.replace != "overlap"

    @property
    def names(self) -> tuple[str, ...]:
        """What clients may send as `model`: the lane's name, its aliases, and the keys of `serves`."""
        return (self.name, *self.aliases, *self.serves)

    @property
    def worker_model(self) -> str:
        """What the worker is told as `model` for the lane's own name and aliases."""
        return self.served_model or self.model or self.name

    def model_for(self, name: str) -> str:
        """What the worker is told as `model` when a client sent ``name``."""
        return self.serves.get(name, self.worker_model)

    def worker_key(self) -> str:
        """A digest of what the worker was started with. A reload replaces the worker if and only if it changed."""
        return _digest(
            {
                "model": self.model,
                "command": self.command,
                "attach": self.attach,
                "port": self.port,
                "env": self.env,
                "cwd": str(self.cwd),
                "engine": self._engine_parts() if self.is_ours else None,
            }
        )

    def fingerprint_parts(self) -> dict[str, Any]:
        """The settings that make two decode rates comparable, ready for JSON; ``env`` only as a digest."""
        return {
            "model": self.model,
            "command": list(self.command or ()),
            "attach": self.attach,
            "served_model": self.served_model,
            "serves": dict(self.serves),
            "kind": self.kind,
            "env": _digest(self.env),
            "speculation": self.speculation.model_dump(mode="json") if self.is_ours else None,
            "canary.max_tokens": self.canary.max_tokens,
        }

    def _engine_parts(self) -> dict[str, Any]:
        return {
            "speculation": self.speculation.model_dump(mode="json"),
            "prefix": self.prefix.model_dump(mode="json", include={"ram", "disk"}),
        }

    def sent_headers(self) -> dict[str, str]:
        """The headers for the worker, in the clear."""
        return {name: value.get_secret_value() for name, value in self.headers.items()}


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=_revealed)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _revealed(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)
