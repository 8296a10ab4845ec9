"""What must hold between lanes, and between the daemon's own keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from supervisor.config.lane_rules import is_http_url
from supervisor.config.merge import RawLane
from supervisor.config.problems import KeyPath
from supervisor.settings import is_loopback
from supervisor.settings.daemon import split_listen

Complaint = tuple[KeyPath, str]

_LANE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def daemon_complaints(tree: dict[str, Any]) -> Iterator[Complaint]:
    """What is wrong between the daemon's own keys."""
    yield from _open_listen(tree)
    yield from _origins(tree)
    yield from _hosts(tree)
    on_recycle = tree.get("on_recycle")
    if isinstance(on_recycle, dict):
        webhook = on_recycle.get("webhook")
        if isinstance(webhook, str) and not is_http_url(webhook):
            yield ("on_recycle", "webhook"), "is not a URL; write https://host/path"
        if on_recycle.get("command") == []:
            yield ("on_recycle", "command"), "is empty; name the program and its arguments"


def lane_name_complaint(name: str) -> str | None:
    """What is wrong with a lane's name: it becomes a file's name and part of URLs."""
    if _LANE_NAME.fullmatch(name):
        return None
    return "is no lane name; use letters, digits, dot, dash and underscore, at most 64 (other names go into `aliases`)"


def clashes(lanes: list[RawLane], listen: object) -> Iterator[Complaint]:
    """Names and ports that two lanes claim, and names that one lane claims twice."""
    owners = {lane.name: lane.name for lane in lanes}
    folded: dict[str, str] = {}
    for lane in lanes:
        other = folded.setdefault(lane.name.casefold(), lane.name)
        if other != lane.name:
            yield ("lanes", lane.name), f"differs from lane {other} only by case, and their files would clash"
    for lane in lanes:
        for path, name in _further_names(lane):
            if name in owners:
                yield lane.origin(path), _clash(name, owners[name], lane.name)
            owners.setdefault(name, lane.name)
    yield from _port_clashes(lanes, listen)


def _clash(name: str, owner: str, lane: str) -> str:
    whose = "this lane" if owner == lane else f"lane {owner}"
    return f'"{name}" is already a name of {whose}; each name leads to one lane'


def _further_names(lane: RawLane) -> Iterator[tuple[KeyPath, str]]:
    aliases, serves = lane.filled.get("aliases"), lane.filled.get("serves")
    if isinstance(aliases, list):
        yield from ((("aliases", index), name) for index, name in enumerate(aliases) if type(name) is str)
    if isinstance(serves, dict):
        yield from ((("serves", name), name) for name in serves)


def _port_clashes(lanes: list[RawLane], listen: object) -> Iterator[Complaint]:
    address = _address(listen)
    owners = {address[1]: "the daemon itself"} if address else {}
    for lane in lanes:
        port = lane.filled.get("port")
        if type(port) is not int:
            continue
        if port in owners:
            yield lane.origin(("port",)), f"port {port} is already that of {owners[port]}"
        owners.setdefault(port, f"lane {lane.name}")


def _address(listen: object) -> tuple[str, int] | None:
    """Host and port; None where they cannot be read."""
    try:
        return split_listen(listen) if isinstance(listen, str) else None
    except ValueError:
        return None


def _open_listen(tree: dict[str, Any]) -> Iterator[Complaint]:
    address = _address(tree.get("listen"))
    if address is not None and not is_loopback(address[0]) and not tree.get("api_keys"):
        yield ("listen",), "reaches beyond this machine; give `api_keys`, or listen on 127.0.0.1"


def _origins(tree: dict[str, Any]) -> Iterator[Complaint]:
    for index, origin in enumerate(_texts(tree.get("allowed_origins"))):
        if origin is not None and origin != "*" and not _is_origin(origin):
            yield ("allowed_origins", index), "is no origin; write https://host or https://host:port, without a path"


def _hosts(tree: dict[str, Any]) -> Iterator[Complaint]:
    for index, host in enumerate(_texts(tree.get("allowed_hosts"))):
        if host is not None and not re.fullmatch(r"[A-Za-z0-9._-]+", host):
            yield ("allowed_hosts", index), "is no host name; write it without scheme, port and path"


def _texts(value: Any) -> list[str | None]:
    """The items of a list; None for each that is no text."""
    return [item if type(item) is str and item.strip() else None for item in value] if isinstance(value, list) else []


def _is_origin(text: str) -> bool:
    if not is_http_url(text):
        return False
    parts = urlsplit(text)
    return text == f"{parts.scheme}://{parts.netloc}" and "@" not in parts.netloc
