"""lanes.yaml as a whole: what the daemon listens on, keeps and runs."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import AfterValidator, Field
from pydantic.json_schema import SkipJsonSchema

from supervisor.settings.block import Block, key
from supervisor.settings.lane import LaneSettings
from supervisor.settings.numbers import Count, Duration, Size, SizeOrAuto
from supervisor.settings.texts import Choice, Location, Secret, Text, TextOrNull

_LISTEN = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})")


def split_listen(text: str) -> tuple[str, int]:
    """Host and port of ``host:port``. Raises ValueError that says how to write it."""
    found = _LISTEN.fullmatch(text)
    if found is None:
        raise ValueError("is not host:port; write 127.0.0.1:7411 or [::1]:7411")
    port = int(found[3])
    if port > 65535:
        raise ValueError("names a port beyond 65535")
    return found[1] or found[2], port


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(text: str) -> str:
    split_listen(text)
    return text


class FleetSettings(Block):
    """What all lanes share."""

    max_recycling: Count = key(1, "Most lanes recycling at once.")
    max_starting: Count = key(1, "Most workers starting at once, less those that stand still for `hang.after`.")
    memory_budget: SizeOrAuto = key("auto", "Memory for all workers; `auto` is 80% of the machine's.")
    shutdown_timeout: Duration = key("60s", "How long requests in flight get when the daemon stops.")


class LogSettings(Block):
    """The daemon's log and the workers' output."""

    format: Choice[Literal["auto", "console", "json"]] = key(
        "auto", "`auto`: readable on a terminal, JSON lines otherwise."
    )
    level: Choice[Literal["debug", "info", "warning", "error"]] = key("info", "The least that is logged.")
    max_size: Size = key("50MB", "A log file is rotated at this size.")
    keep: Count = key(5, "Rotated files that are kept.")


class HistorySettings(Block):
    """Samples and baselines."""

    keep: Duration = key("90d", "How long samples are kept, in running time of the daemon.")


class OnRecycleSettings(Block):
    """Who is told of a recycle; gets the record as JSON."""

    webhook: TextOrNull = key(None, "URL that the record is posted to.", shown=False)
    command: tuple[Text, ...] | None = key(None, "Command that gets the record on its standard input.")


class TopSettings(Block):
    """The keys of lanes.yaml beside `defaults` and `lanes`."""

    listen: Annotated[Text, AfterValidator(_listen)] = key(
        "127.0.0.1:7411", "Address and port; beyond this machine only with api_keys."
    )
    api_keys: tuple[Secret, ...] = key([], "Keys of clients, as `Authorization: Bearer` or `x-api-key`.", shown=False)
    admin_keys: tuple[Secret, ...] = key([], "Keys for /api and the page; default: api_keys.", shown=False)
    allowed_hosts: tuple[Text, ...] = key(
        [], "Host names beside IP literals, localhost, the machine's own names and .local."
    )
    allowed_origins: tuple[Text, ...] = key([], "Origins that may call /v1 from a browser.")
    max_body: Size = key("64MB", "Largest request body; those that wait may take 8 times as much, over all lanes.")
    state_dir: Location = Field(
        default_factory=lambda: Path(platformdirs.user_state_path("freshlane")),
        description="Where records, baselines, logs and tokens are kept; default: the platform's state folder.",
    )
    fleet: FleetSettings = key({}, "What all lanes share.")
    log: LogSettings = key({}, "The daemon's log and the workers' output.")
    history: HistorySettings = key({}, "Samples and baselines.")
    on_recycle: OnRecycleSettings = key({}, "Who is told of a recycle.")


class Settings(TopSettings):
    """All of lanes.yaml, with `defaults` and presets already filled into the lanes."""

    lanes: SkipJsonSchema[dict[str, LaneSettings]] = key({}, "The lanes, by name.")

    @property
    def listen_host(self) -> str:
        return split_listen(self.listen)[0]

    @property
    def listen_port(self) -> int:
        """0: any free port."""
        return split_listen(self.listen)[1]

    @property
    def is_local(self) -> bool:
        """Only this machine can reach the daemon."""
        return is_loopback(self.listen_host)

    def keys_of_clients(self) -> tuple[str, ...]:
        """The client keys, in the clear."""
        return tuple(secret.get_secret_value() for secret in self.api_keys)

    def keys_of_admins(self) -> tuple[str, ...]:
        """The keys for /api, in the clear; where none are given, the client keys."""
        return tuple(secret.get_secret_value() for secret in self.admin_keys or self.api_keys)

    def secrets(self) -> tuple[str, ...]:
        """Whatever in here must not be told to anybody, in the clear; of `Bearer KEY`, the key too."""
        told = [value for lane in self.lanes.values() for value in lane.sent_headers().values()]
        parts = (part for value in told for part in (value, value.rpartition(" ")[2]))
        webhook = self.on_recycle.webhook
        return (*self.keys_of_clients(), *self.keys_of_admins(), *parts, *((webhook,) if webhook else ()))
