"""Measure what a recycle costs whoever asks next: the time to the first token of a prompt that the old process knew.

    python bench/prefix.py [--json FILE]

Real engine processes with the built-in model, one after the other, as a recycle in place has them. In each round: a
prompt that nobody knew (cold), the same again (warm), and once more in the next process (restored).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.proxy_report import machine
from tests.engine.engine_process import EngineProcess

ROUNDS = 5
WORDS = 420
HANDOFF = {"max_bytes": 4_000_000_000, "timeout_s": 8.0}
LONGEST_S = 300.0
MOST_OVER_WARM, LEAST_UNDER_COLD, LEAST_CACHED = 2.0, 3.0, 0.9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    options = parser.parse_args()
    load = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        rounds = measure(folder)
    result = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load_average": {"before": load, "after": os.getloadavg()},
        **summary(rounds),
        "rounds": rounds,
    }
    text = json.dumps(result, indent=2)
    if options.json:
        options.json.write_text(text + "\n")
    print(text)


def measure(folder: str) -> list[dict[str, float]]:
    rounds = []
    engine = EngineProcess("smollm2-135m")
    url = warmed_up(engine)
    for number in range(ROUNDS):
        prompt = prompt_of(number)
        cold_s, _, _ = first_token(url, prompt)
        warm_s, _, _ = first_token(url, prompt)
        saved = post(url, "/prefix/save", {"folder": folder, **HANDOFF})
        engine.close()
        engine = EngineProcess("smollm2-135m")
        url = warmed_up(engine)
        began = time.monotonic()
        loaded = post(url, "/prefix/load", {"folder": folder})
        load_s = time.monotonic() - began
        restored_s, tokens, cached = first_token(url, prompt)
        rounds.append(
            {
                "prompt_tokens": tokens,
                "cached_tokens": cached,
                "cold_s": round(cold_s, 3),
                "warm_s": round(warm_s, 3),
                "restored_s": round(restored_s, 3),
                "saved_tokens": saved["saved_tokens"],
                "restored_tokens": loaded["restored_tokens"],
                "load_s": round(load_s, 3),
            }
        )
    engine.close()
    return rounds


def summary(rounds: list[dict[str, float]]) -> dict[str, Any]:
    """Medians of the ratios of each round, beside their bars."""
    over_warm = statistics.median(one["restored_s"] / one["warm_s"] for one in rounds)
    under_cold = statistics.median(one["cold_s"] / one["restored_s"] for one in rounds)
    cached = min(one["cached_tokens"] / one["prompt_tokens"] for one in rounds)
    return {
        "restored_over_warm": {
            "median": round(over_warm, 3),
            "bar": MOST_OVER_WARM,
            "met": over_warm <= MOST_OVER_WARM,
        },
        "cold_over_restored": {
            "median": round(under_cold, 2),
            "bar": LEAST_UNDER_COLD,
            "met": under_cold >= LEAST_UNDER_COLD,
        },
        "least_cached_share": {"value": round(cached, 4), "bar": LEAST_CACHED, "met": cached >= LEAST_CACHED},
    }


def prompt_of(number: int) -> str:
    dice = random.Random(number)
    words = ("lane", "river", "stone", "seven", "window", "carries", "under", "green", "table", "quickly", "north")
    return " ".join(dice.choice(words) for _ in range(WORDS))


def warmed_up(engine: EngineProcess) -> str:
    """The URL, after one short answer: the daemon asks for one, too, before it opens a gate."""
    url = engine.serving()
    first_token(url, "hello")
    return url


def first_token(url: str, prompt: str) -> tuple[float, int, int]:
    """Seconds to an answer of one token, the prompt's tokens, and how many of them were cached."""
    began = time.monotonic()
    answer = post(url, "/v1/completions", {"prompt": prompt, "max_tokens": 1, "temperature": 0})
    seconds = time.monotonic() - began
    usage = answer["usage"]
    return seconds, usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def post(url: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=LONGEST_S) as answer:
        return dict(json.load(answer))


if __name__ == "__main__":
    main()
