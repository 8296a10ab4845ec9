"""The comparisons of the engine's bench, and the bars they are held to."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from bench.engine_arms import Bench
from bench.engine_prompts import CHAT, COPY
from bench.paired import interleave, summary
from engine import blas

MODEL = "smollm2-135m"
BARS = {"plain against mlx-lm": 0.99, "copy and edit": 1.3, "chat": 0.985}


def machine() -> dict[str, Any]:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    versions = {name: importlib.metadata.version(name) for name in ("mlx", "mlx-lm", "transformers")}
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "blas": blas.state(),
        **versions,
    }


def compare(quick: bool) -> dict[str, Any]:
    """All comparisons with OpenBLAS in front (or whatever this machine has)."""
    bench = Bench(MODEL)
    say(f"calibrated: {bench.costs()}")
    pairs, tokens = (4, 24) if quick else (24, 64)
    prompt = next(iter(CHAT.values()))
    ours, theirs = bench.plain(prompt, tokens), bench.mlx_lm(prompt, tokens)
    ours(), theirs()
    results = {"plain against mlx-lm": summary(interleave(ours, theirs, pairs), BARS["plain against mlx-lm"])}
    for name, prompts, most in (("copy and edit", COPY, 4 * tokens), ("chat", CHAT, 2 * tokens)):
        runs = {}
        for about, prompt in prompts.items():
            say(f"{name}: {about}")
            runs[about] = interleave(bench.auto(prompt, most), bench.plain(prompt, most), pairs // len(prompts))
        results[name] = summary([pair for some in runs.values() for pair in some], BARS[name])
        results[name]["by_prompt"] = {about: summary(some, BARS[name]) for about, some in runs.items()}
    return results


def failures(results: dict[str, Any]) -> list[str]:
    """The comparisons that lie under their bar with all of their interval, or whose tokens differ."""
    return [name for name, result in results.items() if result["mismatches"] or not result["met"]]


def without_blas(quick: bool) -> dict[str, Any]:
    """Where verifying costs as much as decoding, the answer has to be: no drafts."""
    bench = Bench(MODEL)
    prompt = COPY["copy prose"]
    tokens = 16 if quick else 48
    result = summary(interleave(bench.auto(prompt, tokens), bench.plain(prompt, tokens), 2 if quick else 6), 0.985)
    return {"blas": blas.state(), **result, "costs_ms": bench.costs(), "settles_on_0": result["cycles"] == 0}


def say(line: str) -> None:
    print(f"[{time.monotonic():.0f}] {line}", file=sys.stderr, flush=True)
