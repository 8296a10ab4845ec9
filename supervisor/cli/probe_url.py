"""``freshlane probe --url URL --model M``: any running server, measured; and after its restart, what that brought."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from rich.text import Text

from supervisor.cli.exits import CommandError, Exit, UsageError
from supervisor.cli.render.layout import painted
from supervisor.cli.terminal import print_json, say
from supervisor.core.words import length, long_length, rate, share
from supervisor.jsontext import decode, encode
from supervisor.shell.probing.measure_url import compared, measure_url


def probe_url(*, url: str, model: str, compare: Path | None = None, as_json: bool = False) -> int:
    """Measure, print, and return the exit code. ``compare`` is written if it is not there, else compared with.

    Raises:
        UsageError: ``compare`` is not what an earlier probe wrote.
        CommandError: the server gave no rate, or ``compare`` cannot be written.
    """
    before = _kept(compare) if compare is not None else None
    now = asyncio.run(measure_url(url, model, key=os.environ.get("FRESHLANE_API_KEY", "")))
    if now["decode_tok_s"] is None:
        raise CommandError(f"{url} gave no rate: {now['detail']}")
    if before is not None:
        now = {**now, "before": before, **_ratio(before, now, compare)}
    elif compare is not None:
        _keep(compare, now)
    if as_json:
        print_json(now)
    else:
        say(*_in_words(now, compare))
    return Exit.DONE


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
    first.append(f" ({rate(low)} to {rate(high)}) over {len(now['samples'])} runs")
    first.append(f" after a prompt of about {now['prompt_tokens']} tokens, first token after {length(now['ttft_s'])}")
    lines = [first]
    if now["uptime_s"] is not None:
        lines.append(Text(f"the server has been up for {long_length(now['uptime_s'])}"))
    if "ratio" in now:
        low, high = now["ratio_interval"]
        before = now["before"]
        verdict = painted(f"{share(now['ratio'])} of the rate kept in {compare}", "name")
        verdict.append(f" ({share(low)} to {share(high)}; then {rate(before.get('decode_tok_s'))} tok/s")
        up = before.get("uptime_s")
        verdict.append(f" at an uptime of {long_length(up)})" if up is not None else ")")
        lines.append(verdict)
    elif compare is not None:
        lines.append(Text(f"kept in {compare}: restart the server, run this again, and it tells what that brought"))
    return lines
