"""Measures any running server as a canary does: no configuration, no daemon, nothing kept."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import psutil

from supervisor.core.samples import Void
from supervisor.core.speed.ranks import median_interval, shift, shift_interval
from supervisor.core.terms import CanaryTerms
from supervisor.shell.machine import ports
from supervisor.shell.probing.probe import ProbeResult, TokenClock, run_canary

TIMEOUT_S = 30.0
LISTED_WITHIN_S = 10.0
VOIDS_ALLOWED = 3
"""So many runs without a rate, and the server is given up."""

HOME = frozenset({"localhost", "127.0.0.1", "::1"})


async def measure_url(
    url: str, model: str, *, runs: int = 8, prompt_tokens: int = 256, key: str = ""
) -> dict[str, Any]:
    """Run ``runs`` canaries, one after the other.

    Gives {url, model, time, prompt_tokens, kind, decode_tok_s, interval, samples, ttft_s, uptime_s, voids, detail}:
    median tokens/s and its interval at about 95 %, None where no run brought a rate (``detail`` says why); ``uptime_s``
    of a process on this machine, else None.
    """
    base = url.rstrip("/").removesuffix("/v1")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector, headers=headers, auto_decompress=False) as session:
        kind, results = await _measure(session, base, model, runs, prompt_tokens)
    clean = [result for result in results if result.void is None]
    rates = [result.decode_tok_s for result in clean if result.decode_tok_s is not None]
    up_s = await asyncio.to_thread(uptime_s, base)
    return {
        "url": base,
        "model": model,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "prompt_tokens": prompt_tokens,
        "kind": kind,
        "decode_tok_s": median(rates) if rates else None,
        "interval": list(median_interval(rates)) if rates else None,
        "samples": rates,
        "ttft_s": median(result.ttft_s or 0.0 for result in clean) if clean else None,
        "uptime_s": up_s,
        "voids": dict(Counter(str(result.void) for result in results if result.void)),
        "detail": next((result.detail for result in reversed(results) if result.void), ""),
    }


async def models_at(url: str, *, key: str = "") -> list[str]:
    """The names of the models that the server lists at /v1/models.

    Raises:
        OSError, TimeoutError: no answer, or not in time.
        ValueError: the answer is not a list of models.
    """
    base = url.rstrip("/").removesuffix("/v1")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = aiohttp.ClientTimeout(total=LISTED_WITHIN_S)
    try:
        async with (
            aiohttp.ClientSession(headers=headers, timeout=timeout) as session,
            session.get(f"{base}/v1/models") as answer,
        ):
            listed = json.loads(await answer.read())["data"]
        return [str(model["id"]) for model in listed]
    except aiohttp.ClientError as error:
        raise OSError(str(error)) from error
    except (KeyError, TypeError) as error:
        raise ValueError("/v1/models is not a list of models") from error


def compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """{ratio, interval}: how fast the server is ``after``, against ``before``; both as ``measure_url`` gave them.

    Raises:
        ValueError: one of them holds no rates.
    """
    olds, news = _logs(before), _logs(after)
    low, high = shift_interval(olds, news)
    return {"ratio": math.exp(shift(olds, news)), "interval": [math.exp(low), math.exp(high)]}


def uptime_s(url: str) -> float | None:
    """How long the process has lived that listens at ``url``; None if it is not here, or not ours to see."""
    where = urlsplit(url)
    if where.hostname not in HOME:
        return None
    holder = ports.holder_of(where.port or (443 if where.scheme == "https" else 80))
    if holder is None:
        return None
    try:
        began = psutil.Process(holder[0]).create_time()
    except psutil.Error:
        return None
    return max(datetime.now(UTC).timestamp() - began, 0.0)


async def _measure(
    session: aiohttp.ClientSession, base: str, model: str, runs: int, prompt_tokens: int
) -> tuple[str, list[ProbeResult]]:
    kind, clock, terms = "chat", TokenClock(), CanaryTerms()
    results: list[ProbeResult] = []
    voids = 0
    while len(results) - voids < runs and voids < VOIDS_ALLOWED:
        result = await run_canary(
            session,
            base,
            model=model,
            kind=kind,
            headers={},
            prompt_tokens=prompt_tokens,
            max_tokens=terms.max_tokens,
            max_time_s=terms.max_time_s,
            timeout_s=TIMEOUT_S,
            has_warmup=not results,
            token_clock=clock,
        )
        results.append(result)
        voids += result.void is not None
        if result.void is Void.UNMEASURABLE and kind == "chat":
            kind = "completions"  # a base model has no chat template
    return kind, results


def _logs(document: Mapping[str, Any]) -> list[float]:
    samples = document.get("samples")
    rates = (
        [rate for rate in samples if isinstance(rate, int | float) and rate > 0] if isinstance(samples, list) else []
    )
    if not rates:
        raise ValueError("no rates")
    return [math.log(rate) for rate in rates]
