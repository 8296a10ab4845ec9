"""Asking something of a lane, and telling what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.text import Text

from supervisor.cli.client import Daemon
from supervisor.cli.conversation import talk
from supervisor.cli.exits import CommandError, LaneFailedError, TryLaterError
from supervisor.cli.render.lane_facts import Lane, state
from supervisor.cli.render.layout import hang, painted
from supervisor.cli.render.recycles import story
from supervisor.cli.render.samples import sample_in_words
from supervisor.cli.terminal import err, out, print_json, say, width

LOOK_EVERY_S = 0.5


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
        path = f"{_path_of(lane)}/{verb}"
        if wait and not as_json and err().is_terminal:
            return await _shown_meanwhile(daemon, lane, daemon.post(path, body, wait=True), f"{verb} {lane}")
        return await daemon.post(path, body, wait=wait)

    document = talk(config, url, ask)
    if as_json:
        print_json(document)
    else:
        _tell(verb, lane, document)
    _raise_for(lane, document)


def _path_of(lane: str) -> str:
    return f"/api/lanes/{quote(lane, safe='')}"


async def _shown_meanwhile(
    daemon: Daemon, lane: str, outcome: Coroutine[Any, Any, dict[str, Any]], asked: str
) -> dict[str, Any]:
    """Wait for the outcome, and show on the terminal how far the lane is."""
    with err().status(f"{asked}: waiting for the outcome") as line:
        asking = asyncio.ensure_future(outcome)
        while not (await asyncio.wait([asking], timeout=LOOK_EVERY_S))[0]:
            with suppress(CommandError):  # what fails is told by the outcome
                line.update(Text(f"{asked}: {progress(await daemon.get(_path_of(lane)))}"))
        return await asking


def progress(lane: Lane) -> str:
    """``draining, 2 in flight, 1 waiting, the worker aged``: how far a lane is, in one short line."""
    counts = ((lane.get("inflight"), "in flight"), (lane.get("queued"), "waiting"))
    numbers = [f"{count} {words}" for count, words in counts if count]
    return ", ".join([str(lane.get("state", "?")).replace("_", " "), *numbers, str(lane.get("reason") or "")]).rstrip(
        ", "
    )


def _tell(verb: str, lane: str, document: Mapping[str, Any]) -> None:
    """An answer is {lane, asked}, and once the outcome is known one of ``recycle``, ``sample``, ``state`` as well."""
    record, sample = document.get("recycle"), document.get("sample")
    if record:
        say(*story(record, width(), out()))
    elif sample:
        say(*hang(painted(f"{lane}  ", "name").append_text(sample_in_words(sample)), width(), out(), rest=4))
    elif "state" in document:
        line = painted(f"{lane}  ", "name").append_text(state(document))
        say(*hang(line.append(f"  {document.get('reason') or ''}"), width(), out(), rest=4))
    else:
        say(f"{lane}: {verb} is under way; see `freshlane status {lane}`")


def _raise_for(lane: str, document: Mapping[str, Any]) -> None:
    record = document.get("recycle") or {}
    if document.get("state") == "failed":
        raise LaneFailedError(f"{lane} failed: {document.get('reason') or f'see `freshlane logs {lane}`'}")
    if record.get("outcome") == "failed":
        raise LaneFailedError(f"{lane}: the recycle failed; {record.get('next') or f'see `freshlane logs {lane}`'}")
    if record.get("outcome") == "aborted":
        raise TryLaterError(f"{lane} was not recycled: {record.get('next') or 'it is tried again later'}")
