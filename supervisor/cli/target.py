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
    key = os.environ.get("FRESHLANE_API_KEY") or None
    if url and key:
        return Target(_checked(url), key, "FRESHLANE_API_KEY")
    listen, state_dir = _from_config(find_config(config))
    own_url = url_of(listen)
    asked_url = _checked(url) if url else own_url
    if key or not (asked_url == own_url or _is_loopback(asked_url)):
        # The token of this machine's daemon is never shown to another machine.
        return Target(asked_url, key, "FRESHLANE_API_KEY")
    from supervisor.token import read_token, token_path  # noqa: PLC0415

    return Target(asked_url, read_token(state_dir), f"FRESHLANE_API_KEY and {token_path(state_dir)}")


def url_of(listen: str) -> str:
    """``host:port`` as a URL that can be asked from this machine."""
    host, _, port = listen.rpartition(":")
    host = ANYWHERE.get(host.strip("[]"), host.strip("[]"))
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _from_config(path: Path | None) -> tuple[str, Path]:
    from supervisor.settings import Settings  # noqa: PLC0415 - pydantic takes a while; only verbs that need it pay

    settings = Settings()
    if path is None:
        return settings.listen, settings.state_dir
    from supervisor.config import load  # noqa: PLC0415

    try:
        settings = load(path).settings
    except FreshlaneError:
        return _despite_errors(path, settings.listen, settings.state_dir)
    return settings.listen, settings.state_dir


def _despite_errors(path: Path, listen: str, state_dir: Path) -> tuple[str, Path]:
    """The two keys a command needs, of a file that is being edited or names variables only the daemon has."""
    import yaml  # noqa: PLC0415

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        document = None
    if not isinstance(document, dict):
        warn(f"{path} cannot be read (see: freshlane check); asking the daemon at {url_of(listen)}")
        return listen, state_dir
    written = {key: value for key, value in document.items() if isinstance(value, str) and "${" not in value}
    return written.get("listen", listen), Path(written.get("state_dir", state_dir)).expanduser()


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
