"""What freshlane was worth: recycles counted, and the speed they kept, told from measurements alone. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

Record = Mapping[str, Any]
LONGEST_SPELL_S = 1800.0
"""A measurement stands for the time to the next one, but for no longer than this."""
BROUGHT_SPEED = frozenset({"cured", "partial", "replaced"})


def counted(records: Iterable[Record], since: float) -> list[Record]:
    """The recycles that were carried out after Unix time ``since``."""
    return [record for record in records if moment_of(record) >= since and record.get("outcome") != "aborted"]


def worth(records: Sequence[Record], samples: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """{recycles, downtime_s, held, failed, gain} of ``records``; ``samples`` of their lanes, oldest first.

    ``gain``: tokens at the measured speeds over those at the speed that each recycled worker had last, less one, in
    the lanes that were recycled; None while nothing tells. A worker that is not recycled goes on ageing, so this errs
    on the low side.
    """
    return {
        "recycles": len(records),
        "downtime_s": round(sum(float(record.get("downtime_s") or 0.0) for record in records), 3),
        "held": sum(_requests(record, "held") for record in records),
        "failed": sum(_requests(record, "failed") for record in records),
        "gain": _gain(records, samples),
    }


def moment_of(record: Record) -> float:
    """Unix seconds; 0 where the record does not tell."""
    try:
        return datetime.fromisoformat(str(record.get("time"))).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _gain(records: Sequence[Record], samples: Mapping[str, Sequence[Mapping[str, Any]]]) -> float | None:
    had = without = 0.0
    for lane, runs in samples.items():
        floors = [(moment_of(record), floor) for record in records if (floor := _floor(record, lane)) is not None]
        clean = _clean_at_smallest_size(runs)
        for (wall, rate), (next_wall, _) in itertools.pairwise(clean):
            spell_s = min(LONGEST_SPELL_S, next_wall - wall)
            left_with = next((floor for time, floor in reversed(floors) if time <= wall), rate)
            had += rate * spell_s
            without += min(left_with, rate) * spell_s
    return round(had / without - 1, 4) if without > 0 else None


def _floor(record: Record, lane: str) -> float | None:
    """Tokens/s that the lane would have been left with; None if this record says nothing of it."""
    before = record.get("before") or {}
    rate, ratio = before.get("decode_tok_s"), before.get("ratio")
    is_telling = record.get("lane") == lane and record.get("outcome") in BROUGHT_SPEED
    return float(rate) if is_telling and rate and ratio is not None and ratio < 1 else None


def _clean_at_smallest_size(runs: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    own = [run for run in runs if not run.get("model")]
    clean = [run for run in own if run.get("void") is None and run.get("decode_tok_s") and not run.get("is_warmup")]
    smallest = min((run["prompt_tokens"] for run in clean), default=0)
    return [(float(run["wall"]), float(run["decode_tok_s"])) for run in clean if run["prompt_tokens"] == smallest]


def _requests(record: Record, what: str) -> int:
    return int((record.get("requests") or {}).get(what) or 0)
