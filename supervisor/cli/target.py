"""Which daemon a command talks to, and with which key: from options, the environment, or lanes.yaml."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from supervisor.cli.exits import UsageError
from supervisor.cli.terminal import warn
from supervisor.errors import FreshlaneError

DEFAULT_LISTEN = "127.0.0.1:7411"
ANYWHERE = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104 - where to reach one that listens everywhere


@dataclass(frozen=True, slots=True)
class Target:
    """A daemon's address, and the key for it (None: it is asked without)."""

    url: str
    key: str | None = None
    where_the_key_was_sought: str = ""


def find_config(given: Path | None) -> Path | None:
    """The lanes.yaml that is meant; None if none was named and none lies where they lie.

    Raises:
        UsageError: the named file is not there.
    """
    if given is not None:
        if not given.expanduser().is_file():
            raise UsageError(f"{given}: no such file; name a lanes.yaml with -c or FRESHLANE_CONFIG")
        return given.expanduser()
    return next((place for place in usual_places() if place.is_file()), None)


def require_config(given: Path | None) -> Path:
    """The lanes.yaml that is meant.

    Raises:
        UsageError: there is none; says where it was looked for.
    """
    found = find_config(given)
    if found is None:
        looked = ", ".join(str(place) for place in usual_places())
        raise UsageError(
            f"no lanes.yaml found; looked for {looked}\nname one with -c FILE, or write one: freshlane init"
        )
    return found


def usual_places() -> tuple[Path, ...]:
    """Where a lanes.yaml is looked for, in order."""
    return (
        Path("lanes.yaml"),
        Path("~/.config/freshlane/lanes.yaml").expanduser(),
        Path("/etc/freshlane/lanes.yaml"),
    )


def find_target(config: Path | None, url: str | None) -> Target:
    """The daemon to ask. A lanes.yaml with errors is no hindrance: the daemon may well run with an older one."""
    listen, state_dir = _from_config(find_config(config))
    own_url = url_of(listen)
    asked_url = _checked(url) if url else own_url
    key = os.environ.get("FRESHLANE_API_KEY") or None
    if key or not (asked_url == own_url or _is_loopback(asked_url)):
        # The token of this machine's daemon is never shown to another machine.
        return Target(asked_url, key, "FRESHLANE_API_KEY")
    token, token_path = _read_token(state_dir)
    return Target(asked_url, token, f"FRESHLANE_API_KEY and {token_path}")


def url_of(listen: str) -> str:
    """``host:port`` as a URL that can be asked from this machine."""
    host, _, port = listen.rpartition(":")
    host = ANYWHERE.get(host.strip("[]"), host.strip("[]"))
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _from_config(path: Path | None) -> tuple[str, Path | None]:
    from supervisor.config import load  # noqa: PLC0415 - pydantic takes a while; only verbs that need it pay

    if path is None:
        return DEFAULT_LISTEN, None
    try:
        settings = load(path).settings
    except FreshlaneError:
        warn(f"{path} has errors (see: freshlane check); asking the daemon at {url_of(DEFAULT_LISTEN)}")
        return DEFAULT_LISTEN, None
    return str(settings.listen), settings.state_dir


def _read_token(state_dir: Path | None) -> tuple[str | None, Path]:
    from supervisor.token import read_token, token_path  # noqa: PLC0415

    path = token_path(state_dir)
    return read_token(path), path


def _checked(url: str) -> str:
    parts = urlsplit(url if "//" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--url {url}: not a URL such as http://127.0.0.1:7411")
    return parts.geturl().rstrip("/")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
