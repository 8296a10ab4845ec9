"""What must hold between the keys of one lane. Values may be of any kind here: their own check is another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from supervisor.config.merge import NOT_FOR_ATTACHED, RawLane
from supervisor.config.problems import KeyPath
from supervisor.settings import DegradedSettings, LaneSettings
from supervisor.settings.placeholders import PLACEHOLDERS, placeholders_in

Complaint = tuple[KeyPath, str]
Rule = Callable[[RawLane], Iterator[Complaint]]

_ONLY_OURS = ("speculation", "prefix")
_HARMLESS = {"start": ("eager",), "replace": ("auto", "in_place"), "idle_unload": ("off",)}


def complaints(lane: RawLane) -> Iterator[Complaint]:
    """All that is wrong between the keys of ``lane``; paths count from the lane."""
    for rule in _RULES:
        yield from rule(lane)


def remarks(lane: RawLane) -> Iterator[Complaint]:
    """What is allowed but surely not meant."""
    is_ours = not any(lane.filled.get(key) is not None for key in ("command", "preset", "attach"))
    for key in _ONLY_OURS:
        if key in lane.own and not is_ours and not _is_attached(lane) and not _is_for_any(lane.own[key]):
            yield (key,), "has no effect: only our own engine (a lane with `model` alone) knows it"
    if lane.filled.get("preset") == "omlx" and {"--port", "--host"} & set(_words(lane.own.get("command"))):
        yield ("command",), "omlx writes --port and --host into its settings.json; leave them to the preset"


def doubts(lane: LaneSettings) -> Iterator[Complaint]:
    """The same of a lane whose every value is right."""
    canary = lane.canary
    if canary.timeout is not None and canary.timeout <= canary.max_time:
        yield ("canary", "timeout"), "is no longer than canary.max_time, so that every canary would time out"
    if lane.hold.timeout < lane.recycle.max_hold:
        yield ("hold", "timeout"), "is shorter than recycle.max_hold, so that a recycle may refuse held requests"


def _is_for_any(block: Any) -> bool:
    """Any worker that has /prefix/save and /prefix/load hands its cache over."""
    return isinstance(block, dict) and bool(block) and set(block) <= {"handoff", "timeout"}


def _is_attached(lane: RawLane) -> bool:
    return lane.filled.get("attach") is not None


def _words(value: Any) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list | tuple) else []


def _environment(lane: RawLane) -> dict[str, str]:
    env = lane.filled.get("env")
    return {name: value for name, value in env.items() if isinstance(value, str)} if isinstance(env, dict) else {}


def _has_a_source(lane: RawLane) -> Iterator[Complaint]:
    if not any(lane.filled.get(key) is not None for key in ("model", "command", "preset", "attach")):
        yield (), "has nothing to serve; give it `model`, `command`, `preset` or `attach`"
    if lane.filled.get("command") == []:
        yield ("command",), "is empty; name the program and its arguments"


def _attach_stands_alone(lane: RawLane) -> Iterator[Complaint]:
    if not _is_attached(lane):
        if lane.filled.get("restart_command") is not None:
            yield ("restart_command",), "only works with `attach`; a worker of our own is restarted by its command"
        return
    for key in NOT_FOR_ATTACHED:
        if lane.own.get(key) not in (None, *_HARMLESS.get(key, ())):  # a tuple: the value may be unhashable
            yield (key,), "does not go with `attach`: someone else runs that server" + _instead(key)
    if lane.filled.get("restart_command") == []:
        yield ("restart_command",), "is empty; name the program and its arguments"


def _instead(key: str) -> str:
    return "; name its model with `served_model`" if key == "model" else ""


def _attach_is_a_url(lane: RawLane) -> Iterator[Complaint]:
    url = lane.filled.get("attach")
    if isinstance(url, str) and not is_http_url(url):
        yield ("attach",), "is not the URL of a server; write http://127.0.0.1:8000"


def is_http_url(text: str) -> bool:
    """Whether ``text`` is http(s)://host[:port][/path]."""
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def _command_takes_its_port(lane: RawLane) -> Iterator[Complaint]:
    command = lane.filled.get("command")
    if not isinstance(command, list) or not command or len(_words(command)) < len(command):
        return
    texts = [*_words(command), *_environment(lane).values()]
    if lane.filled.get("port") is None and not any("port" in placeholders_in(text) for text in texts):
        yield ("command",), "takes no port; put {port} into command or env, or give the lane `port: N`"


def _fixed_port_is_in_place(lane: RawLane) -> Iterator[Complaint]:
    if lane.filled.get("port") is not None and lane.filled.get("replace") == "overlap":
        yield ("replace",), "cannot be overlap with a fixed `port`: two workers cannot share it; write in_place"


def _placeholders_are_known(lane: RawLane) -> Iterator[Complaint]:
    command = lane.filled.get("command")
    places: list[tuple[KeyPath, str]] = []
    if isinstance(command, list | tuple):
        places += [(("command", index), word) for index, word in enumerate(command) if isinstance(word, str)]
    places += [(("env", name), text) for name, text in _environment(lane).items()]
    for path, text in places:
        for name in sorted(placeholders_in(text)):
            yield from _placeholder(lane, path, name)


def _placeholder(lane: RawLane, path: KeyPath, name: str) -> Iterator[Complaint]:
    if name not in PLACEHOLDERS:
        known = " ".join(f"{{{known}}}" for known in PLACEHOLDERS)
        yield path, f"has an unknown placeholder {{{name}}}; known: {known}; literal braces are doubled: {{{{{name}}}}}"
    elif name == "model" and lane.filled.get("model") is None:
        is_presets = lane.merged.get("command") is None
        where: KeyPath = ("preset",) if is_presets else path
        yield where, "needs `model`: " + ("the preset's command takes it" if is_presets else "{model} stands for it")


def _environment_names(lane: RawLane) -> Iterator[Complaint]:
    for name in _environment(lane):
        if "=" in name:
            yield ("env", name), "is no name of an environment variable: it holds ="


def _drafts_need_a_model(lane: RawLane) -> Iterator[Complaint]:
    speculation = lane.filled.get("speculation")
    if not isinstance(speculation, dict) or speculation.get("draft") is not None:
        return
    if speculation.get("method") in ("draft", "dflash"):  # a tuple: it may be unhashable
        yield ("speculation", "method"), "needs the folder of a draft model; give `draft: PATH` beside it"


def _severe_is_below(lane: RawLane) -> Iterator[Complaint]:
    written = lane.filled.get("degraded")
    if not isinstance(written, dict):
        return
    fresh = DegradedSettings()
    below, severe = written.get("below", fresh.below), written.get("severe", fresh.severe)
    if isinstance(below, float) and isinstance(severe, float) and 0 < below <= severe < 1:
        key = "severe" if "severe" in written else "below"
        yield ("degraded", key), f"severe ({severe:g}) must be less than below ({below:g})"


_RULES: tuple[Rule, ...] = (
    _has_a_source,
    _attach_stands_alone,
    _attach_is_a_url,
    _command_takes_its_port,
    _fixed_port_is_in_place,
    _placeholders_are_known,
    _environment_names,
    _drafts_need_a_model,
    _severe_is_below,
)
