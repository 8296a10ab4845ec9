"""A recycle in two or three plain sentences, out of its record: why, what it brought, what it cost.

Records are read as JSON, for they may come from a file that another version wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from supervisor.core.words import NOTHING, length, long_length, plural, rate, share

Record = Mapping[str, Any]

BEGINNINGS = {
    "degraded": "The worker had become slow",
    "bad_spawn": "The worker was slow from the start",
    "crashed": "The worker died",
    "hung": "The worker hung",
    "memory": "The worker had grown too large",
    "budget": "The worker had done the work it was given",
    "age": "The worker had reached its age",
    "operator": "A person wanted a new worker",
    "config": "The configuration of the worker changed",
}
"""By trigger. What follows is the worker's age, and the evidence."""
REMEDY_ENDS = {
    "cured": "cured it",
    "partial": "helped a little",
    "futile": "brought nothing",
    "failed": "failed",
    "unmeasured": "could not be measured",
}
NEVER_STOPPED = "aborted"


def told(record: Record) -> str:
    """The whole of it in one text that begins with the lane's name."""
    following = f" Next: {record['next']}." if record.get("next") else ""
    return f"{record.get('lane', '?')}: {' '.join(sentences(record))}{following}"


def sentences(record: Record) -> list[str]:
    """Why; what mild remedies and a new worker brought, where that was measured; what it cost."""
    return [sentence for sentence in (_why(record), _tried(record), _brought(record), _cost(record)) if sentence]


def evidence(record: Record) -> str:
    """What speaks for the cause, and what the person or the judge said; empty where nothing is known."""
    cause = record.get("cause") or {}
    said = dict.fromkeys(str(part) for part in (*(cause.get("evidence") or ()), record.get("reason")) if part)
    return "; ".join(said)


def _why(record: Record) -> str:
    uptime_s = (record.get("worker") or {}).get("uptime_s")
    beginning = BEGINNINGS.get(str(record.get("trigger")), "The worker was to be replaced")
    text = f"{beginning} after {long_length(uptime_s)}" if uptime_s else beginning
    known = evidence(record)
    return f"{text}: {known.rstrip('.')}." if known else f"{text}."


def is_relieved(record: Record) -> bool:
    """Whether a mild remedy cured the worker, so that none was stopped."""
    remedies = record.get("remedies") or []
    return bool(remedies) and remedies[-1].get("outcome") == "cured"


def _tried(record: Record) -> str:
    """``First clear_cache was tried and brought nothing (31 % of fresh).``; empty where nothing was."""
    parts = [_remedy(remedy) for remedy in record.get("remedies") or []]
    return f"First {', then '.join(parts)}." if parts else ""


def _remedy(remedy: Record) -> str:
    name, outcome = remedy.get("name", "?"), str(remedy.get("outcome"))
    done = REMEDY_ENDS.get(outcome, outcome)
    ratio = share(remedy.get("ratio"))
    return f"{name} was tried and {done}" + ("" if ratio == NOTHING else f" ({ratio} of fresh)")


def _brought(record: Record) -> str:
    if is_relieved(record):
        return ""
    if record.get("outcome") == "failed":
        return "No new worker came up."
    old, new = (_speed(record.get(side) or {}) for side in ("before", "after"))
    if new and old:
        return f"The new one does {new}; the old one did {old}."
    if new:
        return f"The new one does {new}."
    return f"It did {old}." if old else ""


def _speed(side: Record) -> str:
    """``27.1 tok/s, 99 % of fresh``; empty where it was not measured."""
    if side.get("decode_tok_s") is None:
        return ""
    of_fresh = share(side.get("ratio"))
    return f"{rate(side['decode_tok_s'])} tok/s" + ("" if of_fresh == NOTHING else f", {of_fresh} of fresh")


def _cost(record: Record) -> str:
    parts = [_downtime(record), _requests(record)]
    text = "; ".join(part for part in parts if part)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _downtime(record: Record) -> str:
    if is_relieved(record):
        return "no worker was stopped"
    if record.get("outcome") == NEVER_STOPPED:
        return "the old worker serves on"
    seconds = record.get("downtime_s")
    if seconds is None:
        return ""
    return f"no worker served for {length(seconds)}" if seconds else "there was no downtime"


def _requests(record: Record) -> str:
    requests = record.get("requests") or {}
    held, failed = int(requests.get("held") or 0), int(requests.get("failed") or 0)
    replayed, cut = int(requests.get("replayed") or 0), int((record.get("drain") or {}).get("cut") or 0)
    parts = [f"{plural(held, 'request') if held else 'no request'} waited", f"{failed or 'none'} failed"]
    parts += [f"{replayed} sent again"] if replayed else []
    parts += [f"{cut} cut"] if cut else []
    return ", ".join(parts)
