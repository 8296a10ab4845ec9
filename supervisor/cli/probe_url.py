"""``freshlane probe --url URL --model M``: any running server, measured; and after its restart, what that brought."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from rich.text import Text

from supervisor.cli.exits import CommandError, Exit, UsageError
from supervisor.cli.probe_memory import recall, remember
from supervisor.cli.render.layout import painted
from supervisor.cli.terminal import print_json, say
from supervisor.cli.words import ago, moment
from supervisor.core.words import length, long_length, rate, share
from supervisor.jsontext import decode, encode
from supervisor.shell.probing.measure_url import compared, measure_url, models_at

SAME_START_S = 2.0
"""Starts of a process that lie no further apart are one: a probe keeps its time in whole seconds."""


def probe_url(*, url: str, model: str | None, compare: Path | None = None, as_json: bool = False) -> int:
    """Measure, print, and return the exit code.

    ``model``: None is the only one that the server has. ``compare`` is written if it is not there, else compared with;
    without it, the last probe of this server is what is compared with, and this one is kept for the next.

    Raises:
        UsageError: ``compare`` is not what an earlier probe wrote, or the server has several models.
        CommandError: the server gave no rate, or ``compare`` cannot be written.
    """
    kept = _kept(compare) if compare is not None else None
    now = asyncio.run(_measured(url, model))
    if now["decode_tok_s"] is None:
        raise CommandError(f"{url} gave no rate: {now['detail']}")
    before = kept if compare is not None else recall(now["url"], now["model"])
    if compare is None:
        remember(now)
    elif before is None:
        _keep(compare, now)
    if before is not None:
        now = {**now, "before": before, **_ratio(before, now, compare)}
    if as_json:
        print_json(now)
    else:
        say(*_in_words(now, compare))
    return Exit.DONE


async def _measured(url: str, model: str | None) -> dict[str, Any]:
    key = os.environ.get("FRESHLANE_API_KEY", "")
    if model is None:
        try:
            models = await models_at(url, key=key)
        except (OSError, TimeoutError, ValueError) as trouble:
            raise CommandError(f"{url} does not say which models it has: {trouble or 'no answer in time'}") from trouble
        if len(models) != 1:
            known = ", ".join(models) or "none that it tells of"
            raise UsageError(f"which model of {url}? It has {known}; name one with --model")
        model = models[0]
    return await measure_url(url, model, key=key)


def _kept(file: Path) -> dict[str, Any] | None:
    try:
        document = decode(file.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as trouble:
        raise UsageError(f"{file} cannot be read: {trouble.strerror}") from trouble
    if document is None or not document.get("samples"):
        raise UsageError(f"{file} is not what `freshlane probe --compare` writes; name another file")
    return document


def _keep(file: Path, document: dict[str, Any]) -> None:
    try:
        file.write_text(encode(document) + "\n")
    except OSError as trouble:
        raise CommandError(f"{file} cannot be written: {trouble.strerror}") from trouble


def _ratio(before: dict[str, Any], now: dict[str, Any], file: Path | None) -> dict[str, Any]:
    if (before.get("model"), before.get("prompt_tokens")) != (now["model"], now["prompt_tokens"]):
        raise UsageError(f"{file} holds another model or prompt size ({before.get('model')}); name another file")
    try:
        comparison = compared(before, now)
    except ValueError as trouble:
        raise UsageError(f"{file} holds no rates; name another file") from trouble
    return {"ratio": comparison["ratio"], "ratio_interval": comparison["interval"]}


def _in_words(now: dict[str, Any], compare: Path | None) -> list[Text]:
    low, high = now["interval"]
    first = painted(f"{rate(now['decode_tok_s'])} tok/s", "name")
    first.append(f" ({rate(low)} to {rate(high)}) over {len(now['samples'])} runs of {now['model']}")
    first.append(f" after a prompt of about {now['prompt_tokens']} tokens, first token after {length(now['ttft_s'])}")
    lines = [first]
    if now["uptime_s"] is not None:
        lines.append(Text(f"the server has been up for {long_length(now['uptime_s'])}"))
    if "ratio" in now:
        lines.append(_against(now["before"], now, compare))
    else:
        kept = f"kept in {compare}" if compare is not None else "kept"
        lines.append(Text(f"{kept}: restart the server, run this again, and it tells what that brought"))
    return lines


def _against(before: dict[str, Any], now: dict[str, Any], compare: Path | None) -> Text:
    """``324 % of what it did before its restart (310 % to 340 %): 20.5 tok/s at an uptime of 10 h, 5 min ago``"""
    low, high = now["ratio_interval"]
    then = f"kept in {compare}" if compare is not None else "before its restart" if _restarted(before, now) else "last"
    text = painted(f"{share(now['ratio'])} of the rate {then}", "name")
    text.append(f" ({share(low)} to {share(high)}): {rate(before.get('decode_tok_s'))} tok/s")
    if before.get("uptime_s") is not None:
        text.append(f" at an uptime of {long_length(before['uptime_s'])}")
    return text.append(f", {ago(before.get('time'))}")


def _restarted(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether the server is another process than at the last probe."""
    old, new = _began(before), _began(now)
    return old is not None and new is not None and new - old > SAME_START_S


def _began(probe: dict[str, Any]) -> float | None:
    """Unix seconds of the server's start; None if it is not known."""
    at = moment(probe.get("time"))
    return None if at is None or probe.get("uptime_s") is None else at.timestamp() - float(probe["uptime_s"])
