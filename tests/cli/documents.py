"""What a daemon says, as recorded: three lanes, two recycles, samples."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

NOW = datetime.now(UTC)


def at(**before: float) -> str:
    return (NOW - timedelta(**before)).isoformat()


SMOLLM2: dict[str, Any] = {
    "name": "smollm2",
    "model": "smollm2-135m",
    "state": "serving",
    "since": at(hours=6, minutes=12),
    "reason": "the first canaries are in",
    "next_action": "is measured again when idle",
    "worker": {
        "pid": 4242,
        "port": 51234,
        "generation": 3,
        "started_at": at(hours=6, minutes=13),
        "uptime_s": 22380.0,
        "memory_bytes": 1_412_000_000,
    },
    "candidate": None,
    "retiring": [],
    "inflight": 1,
    "queued": 0,
    "baseline": {
        "decode_tok_s": 47.12,
        "by_prompt_tokens": {"256": 47.12, "3072": 43.9},
        "spawns": 3,
        "runs": 24,
        "quality": "good",
    },
    "last_probe": {"wall": (NOW - timedelta(seconds=40)).timestamp(), "decode_tok_s": 46.31, "prompt_tokens": 256},
    "verdict": {
        "status": "healthy",
        "ratio": 0.983,
        "interval": [0.95, 1.01],
        "confidence": 0.97,
        "reason": "the last 5 runs are within 3 % of fresh",
    },
    "totals": {"requests": 12480, "generated_tokens": 1_204_000, "recycles": 3},
}
QWEN: dict[str, Any] = {
    "name": "qwen",
    "model": "Qwen3.8-Flash",
    "state": "suspect",
    "since": at(seconds=12),
    "reason": "3 of 5 runs are below 0.89 of fresh",
    "next_action": "is measured again at once",
    "worker": {
        "pid": 977,
        "port": 8000,
        "generation": 11,
        "started_at": at(days=2),
        "uptime_s": 172800.0,
        "memory_bytes": 21_412_000_000,
    },
    "candidate": None,
    "retiring": [],
    "inflight": 2,
    "queued": 5,
    "baseline": {"decode_tok_s": 27.3, "by_prompt_tokens": {"256": 27.3}, "spawns": 5, "runs": 40, "quality": "good"},
    "last_probe": {"wall": (NOW - timedelta(seconds=5)).timestamp(), "decode_tok_s": 8.42, "prompt_tokens": 256},
    "verdict": {
        "status": "suspect",
        "ratio": 0.308,
        "interval": [0.29, 0.33],
        "confidence": 0.91,
        "reason": "decode rate fell to 31 % of fresh",
    },
    "clients": {"suspicion": "clients' streams run at 30 % of what such streams had at first", "context": None},
    "totals": {
        "requests": 950,
        "generated_tokens": 310_400,
        "recycles": 1,
        "canaries": {"clean": 940, "loop_lag": 1, "client_arrived": 12},
    },
}
CODER: dict[str, Any] = {
    "name": "coder",
    "model": "/models/coder",
    "state": "failed",
    "since": at(hours=3),
    "reason": "the worker ended with exit code 1 three times in 5 minutes: ModuleNotFoundError: No module named 'mlx'",
    "next_action": "waits for `freshlane start`",
    "worker": None,
    "candidate": None,
    "retiring": [],
    "inflight": 0,
    "queued": 0,
    "baseline": None,
    "last_probe": None,
    "verdict": {
        "status": "unknown",
        "ratio": None,
        "interval": None,
        "confidence": None,
        "reason": "not measured yet",
    },
    "totals": {"requests": 0, "generated_tokens": 0, "recycles": 0},
}
LANES = {lane["name"]: lane for lane in (SMOLLM2, QWEN, CODER)}

CURED: dict[str, Any] = {
    "id": "01J8",
    "time": at(hours=2),
    "lane": "qwen",
    "trigger": "degraded",
    "cause": {"kind": "worker_aged", "evidence": ["5 of 5 runs below 0.89", "uptime 2 d", "host check steady"]},
    "reason": "",
    "before": {"decode_tok_s": 8.42, "baseline_tok_s": 27.3, "ratio": 0.308},
    "worker": {"pid": 812, "generation": 10, "uptime_s": 172800.0},
    "drain": {"inflight": 1, "waited_s": 2.2, "held": 2, "cut": 0},
    "stop": {"signal": "TERM", "took_s": 1.2, "killed": False},
    "replace": "in_place",
    "downtime_s": 14.2,
    "requests": {"held": 2, "failed": 0, "replayed": 0},
    "after": {"decode_tok_s": 27.1, "ratio": 0.993},
    "outcome": "cured",
    "next": "is measured as usual",
    "a_field_of_tomorrow": 1,
}
CRASHED: dict[str, Any] = {
    "id": "01J7",
    "time": at(days=3),
    "lane": "smollm2",
    "trigger": "crashed",
    "cause": {"kind": "crash", "evidence": ["killed by SIGSEGV"]},
    "before": {"decode_tok_s": None, "ratio": None},
    "replace": "in_place",
    "downtime_s": 6.0,
    "requests": {"held": 0, "failed": 1, "replayed": 2},
    "after": {"decode_tok_s": None, "ratio": None},
    "outcome": "cured",
    "next": "",
}
RECYCLES = [CRASHED, CURED]

SAMPLES = [
    {
        "lane": lane,
        "wall": (NOW - timedelta(minutes=5 * (30 - i))).timestamp(),
        "prompt_tokens": 256,
        "decode_tok_s": tok_s * (1 - (0.03 * i if lane == "qwen" and i > 6 else 0.01 * (i % 3))),
        "void": None,
        "is_warmup": False,
    }
    for lane, tok_s in (("smollm2", 47.0), ("qwen", 27.3))
    for i in range(30)
]

SAMPLE = {
    "at": at(seconds=1),
    "wall": (NOW - timedelta(seconds=1)).timestamp(),
    "generation": 11,
    "prompt_tokens": 256,
    "purpose": "asked",
    "decode_tok_s": 26.98,
    "void": None,
    "detail": "",
    "tokens": 64,
    "ttft_s": 0.212,
}
