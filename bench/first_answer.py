"""Measure what a newcomer waits for: from a fresh clone, `make run` to the first whole answer.

    python bench/first_answer.py [--json FILE]

A clone of this repository, an empty cache and an empty state folder; the packages come from the registry.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.proxy_report import machine

REPOSITORY = Path(__file__).parents[1]
BAR_S = 240.0
URL = "http://127.0.0.1:7411"
QUESTION = {"model": "smollm2", "messages": [{"role": "user", "content": "What is the capital of France?"}]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = bench(Path(folder))
    text = json.dumps(result, indent=2)
    if options.json:
        options.json.write_text(text + "\n")
    print(text)


def bench(folder: Path) -> dict[str, Any]:
    clone = folder / "freshlane"
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "XDG_STATE_HOME": str(folder / "state")}
    began = time.monotonic()
    run = subprocess.Popen(["make", "run"], cwd=clone, env=env, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        listening_s = until(lambda: ask("/healthz") is not None, began, run)
        answer_s = until(lambda: ask("/v1/chat/completions", QUESTION) is not None, began, run)
    finally:
        os.killpg(run.pid, signal.SIGTERM)
        run.wait(60)
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load_average": os.getloadavg(),
        "listening_s": round(listening_s, 1),
        "first_answer_s": {"value": round(answer_s, 1), "bar": BAR_S, "met": answer_s <= BAR_S},
    }


def until(fact: Any, began: float, run: subprocess.Popen[bytes]) -> float:
    """Seconds from `began` until the fact holds."""
    while not fact():
        if run.poll() is not None or time.monotonic() - began > 2 * BAR_S:
            raise SystemExit("`make run` ended, or took too long")
        time.sleep(0.2)  # noqa: TID251 - a stopwatch, not a test
    return time.monotonic() - began


def ask(path: str, body: dict[str, Any] | None = None) -> Any:
    """The JSON that the daemon answers; None where it does not, yet."""
    content = json.dumps(body).encode() if body else None
    request = urllib.request.Request(URL + path, content, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=2 * BAR_S) as answer:
            return answer.read()
    except (urllib.error.URLError, OSError):
        return None


if __name__ == "__main__":
    main()
