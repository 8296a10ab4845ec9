"""Asking something of a lane, and telling what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.text import Text

from supervisor.cli.client import Daemon
from supervisor.cli.conversation import talk
from supervisor.cli.exits import LaneFailedError, TryLaterError
from supervisor.cli.render.lanes import state, why_and_next
from supervisor.cli.render.layout import hang
from supervisor.cli.render.recycles import story
from supervisor.cli.render.samples import sample_in_words
from supervisor.cli.terminal import err, out, print_json, say, width


def ask_lane(
    verb: str,
    lane: str,
    config: Path | None,
    url: str | None,
    *,
    wait: bool,
    reason: str | None = None,
    now: bool = False,
    as_json: bool = False,
) -> None:
    """Post ``verb`` to the lane and show the answer.

    Raises:
        LaneFailedError: the lane waits for a person now.
        TryLaterError: the recycle was given up for now.
    """
    body: dict[str, Any] = {name: value for name, value in (("reason", reason), ("now", now)) if value}

    async def ask(daemon: Daemon) -> dict[str, Any]:
        path = f"/api/lanes/{quote(lane, safe='')}/{verb}"
        if wait and not as_json and err().is_terminal:
            with err().status(f"{verb} {lane}: waiting for the outcome"):
                return await daemon.post(path, body, wait=True)
        return await daemon.post(path, body, wait=wait)

    document = talk(config, url, ask)
    if as_json:
        print_json(document)
    else:
        _tell(verb, lane, document)
    _raise_for(lane, document)


def lane_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The lane in an answer: under ``lane``, or the answer itself."""
    inner = document.get("lane")
    return inner if isinstance(inner, Mapping) else document


def record_of(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The recycle record in an answer, if there is one."""
    for candidate in (document.get("recycle"), document.get("record"), document):
        if isinstance(candidate, Mapping) and "trigger" in candidate and "outcome" in candidate:
            return candidate
    return None


def _tell(verb: str, lane: str, document: Mapping[str, Any]) -> None:
    record, sample = record_of(document), document.get("sample")
    if record is not None:
        say(*story(record, width(), out()))
    if isinstance(sample, Mapping):
        say(sample_in_words(sample))
    about = lane_of(document)
    if "state" in about:
        line = (
            Text(f"{lane}  ", style="name").append_text(state(about)).append(f"  {why_and_next(about)}", style="quiet")
        )
        say(*hang(line, width(), out(), rest=4))
    elif record is None and not isinstance(sample, Mapping):
        say(f"asked {lane} to {verb}; see `freshlane status {lane}`")


def _raise_for(lane: str, document: Mapping[str, Any]) -> None:
    record = record_of(document) or {}
    if lane_of(document).get("state") == "failed" or record.get("outcome") == "failed":
        raise LaneFailedError(
            f"{lane} failed: {lane_of(document).get('reason') or record.get('next') or 'see its logs'}"
        )
    if record.get("outcome") == "aborted":
        raise TryLaterError(f"{lane} was not recycled: {record.get('next') or 'it is tried again later'}")
