"""The lanes of the soak: one of each way to keep a worker, and what a reload or a control file may change of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import find_free_port
from tests.fakes import fake_command, set_knobs

TOK_S = 60.0
AGED = {"decay_from": TOK_S, "decay_to": 20.0, "decay_requests": 60}
"""A worker that has served 60 requests is slow; the next one is fresh again."""

CLIENTS = 10
"""Of a busy lane: enough that a crowd is in flight, and then held, whenever its worker is replaced."""

SLOW_START = {"start_delay": 1.5, "load_delay": 1.0}

CANARY = {
    "every": "3s",
    "prompt_tokens": [256],
    "max_tokens": 12,
    "max_time": "2s",
    "idle_for": "0s",
    "timeout": "5s",
    "budget": "100%",
    "burst_budget": "100%",
    "hold": "3s",
    "force_after": "12s",
}
"""What takes hours in life takes minutes here: the same steps, closer together."""

RECYCLE = {"min_uptime": "0s", "wait_idle": "0s", "max_hold": "60s", "max_per_hour": 1000, "max_per_day": 1000}


@dataclass
class SoakLane:
    """One lane: its clients, how many workers it may have, and its dials."""

    name: str
    clients: int
    most_workers: int
    control: Path
    digest_file: Path
    keys: dict[str, Any] = field(default_factory=dict)
    longest_pause_s: float = 0.0
    """Between two requests of one client; an idle lane unloads."""
    below: float = 0.89
    edition: int = 0
    """Part of the command: another one makes another worker."""
    knobs: dict[str, Any] = field(default_factory=dict)

    @property
    def is_busy(self) -> bool:
        """It is asked without a pause."""
        return self.clients > 0 and not self.longest_pause_s

    @property
    def overlaps(self) -> bool:
        """Its new worker starts beside the old one."""
        return self.most_workers > 1

    @property
    def share(self) -> float:
        """Of the events: a busy lane gets more of them where nobody else has to rest for its recycles."""
        if not self.clients:
            return 0.0
        return 2.0 if self.is_busy and not self.overlaps else 1.0

    def turn(self, **knobs: Any) -> None:
        """Set these dials of its workers, those to come too; None takes one back."""
        self.knobs = {name: value for name, value in (self.knobs | knobs).items() if value is not None}
        set_knobs(self.control, **self.knobs)

    def settings(self) -> dict[str, Any]:
        """The lane's part of lanes.yaml."""
        command = fake_command(
            model=self.name,
            strict_model=True,  # a request of another lane gets 404
            control=self.control,
            digest_file=self.digest_file,
            tok_s=TOK_S,
            noise=0.05,
            seed=self.edition,
        )
        port = self.keys.get("port")
        return {
            "command": [part.replace("{port}", str(port)) for part in command] if port else command,
            "max_inflight": 32,
            "stop_timeout": "5s",
            "start_timeout": "30s",
            "warm_timeout": "5s",
            "prefix": {"timeout": "1s"},
            "hang": {"after": "6s", "pulse": "2s"},
            "degraded": {"below": self.below},
            "canary": CANARY,
            "recycle": RECYCLE,
            **self.keys,
        }


def soak_lanes(folder: Path) -> dict[str, SoakLane]:
    """Of each kind one; ``guest`` comes and goes and has no clients."""

    def lane(name: str, clients: int, most_workers: int = 1, pause_s: float = 0.0, **keys: Any) -> SoakLane:
        control, digest_file = folder / f"{name}.json", folder / f"{name}.jsonl"
        return SoakLane(name, clients, most_workers, control, digest_file, keys, pause_s)

    lanes = [
        lane("home", CLIENTS, replace="in_place"),
        lane("beside", CLIENTS, most_workers=2, replace="overlap"),
        lane("asleep", 2, pause_s=8.0, replace="in_place", start="on_demand", idle_unload="2s"),
        lane("fixed", CLIENTS, port=find_free_port()),
        lane("guest", 0, replace="in_place"),
    ]
    return {one.name: one for one in lanes}


def configuration(lanes: dict[str, SoakLane], *, with_guest: bool) -> dict[str, Any]:
    """The whole of lanes.yaml as it is to be now."""
    shown = (lane for lane in lanes.values() if with_guest or lane.name != "guest")
    return {"lanes": {lane.name: lane.settings() for lane in shown}, "fleet": {"shutdown_timeout": "10s"}}
