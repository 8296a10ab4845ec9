"""Lanes as a table, and one lane in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from supervisor.cli.render.layout import Column, hang, lay_out, painted
from supervisor.cli.words import NOTHING, ago, long_length, many, moment, plural, rate, share, size

Lane = Mapping[str, Any]

STYLE_OF_STATE = {
    "serving": "good",
    "suspect": "warn",
    "backing_off": "warn",
    "blocked": "bad",
    "failed": "bad",
    "stopped": "quiet",
    "unloaded": "quiet",
    "drained": "quiet",
}
"""Any other state is on its way to one of these."""
STYLE_OF_VERDICT = {"healthy": "good", "suspect": "warn", "degraded": "bad"}

COLUMNS = (
    Column("LANE", 100),
    Column("STATE", 90),
    Column("TOK/S", 80, "right"),
    Column("FRESH", 30, "right"),
    Column("OF FRESH", 70, "right"),
    Column("MEASURED", 40),
    Column("WORKER UP", 50),
    Column("MEMORY", 20, "right"),
    Column("REQUESTS", 60),
)
FIRST_TOTALS = ("requests", "generated_tokens", "recycles", "failed")
TREND = Column("TREND", 65)


def lanes_table(
    lanes: Sequence[Lane], width: int | None, console: Console, trends: Mapping[str, str] | None = None
) -> list[Text]:
    """A line of numbers for each lane, and under it why it is as it is and what comes next."""
    if not lanes:
        return [Text("no lanes", style="quiet")]
    columns = (*COLUMNS, TREND) if trends is not None else COLUMNS
    rows = []
    for lane in lanes:
        row = lane_row(lane)
        if trends is not None:
            row.append(Text(trends.get(str(lane.get("name")), ""), style=STYLE_OF_VERDICT.get(_status(lane), "quiet")))
        rows.append(row)
    head, *numbers = lay_out(columns, rows, width)
    lines = [head]
    for lane, line in zip(lanes, numbers, strict=True):
        lines.append(line)
        lines.extend(hang(Text(why_and_next(lane), style="quiet"), width, console, first=2, rest=2))
    return lines


def lane_row(lane: Lane) -> list[Text]:
    """The cells of a lane under ``COLUMNS``."""
    worker = lane.get("worker") or {}
    return [
        Text(str(lane.get("name", NOTHING)), style="name"),
        state(lane),
        Text(rate(speed_of(lane))),
        Text(rate((lane.get("baseline") or {}).get("decode_tok_s")), style="quiet"),
        Text(share(ratio_of(lane)), style=STYLE_OF_VERDICT.get(_status(lane), "quiet")),
        Text(ago(_measured_at(lane)) + (", void" if (lane.get("last_probe") or {}).get("void") else "")),
        Text(long_length(worker.get("uptime_s")) if worker else NOTHING),
        Text(size(worker.get("memory_bytes"))),
        Text(requests_of(lane)),
    ]


def lane_in_full(lane: Lane, width: int | None, console: Console) -> list[Text]:
    """Everything about one lane, a fact a line."""
    title = painted(f"{lane.get('name')}  ", "name").append_text(state(lane))
    if moment(lane.get("since")):
        title.append(f" for {ago(lane['since']).removesuffix(' ago')}", style="quiet")
    lines = [title]
    for name, fact in _facts(lane):
        lines += hang(painted(f"{name:<10}", "head").append_text(fact), width, console, first=2, rest=12)
    return lines


def state(lane: Lane) -> Text:
    """The state's name in its colour."""
    name = str(lane.get("state", "?"))
    return painted(name, STYLE_OF_STATE.get(name, "busy"))


def why_and_next(lane: Lane) -> str:
    """The reason of the state; the verdict's where that says more; and what comes next."""
    verdict = lane.get("verdict") or {}
    said = [str(lane.get("reason") or "")]
    if _status(lane) in ("suspect", "degraded") and verdict.get("reason"):
        said.append(
            str(verdict["reason"]) if lane.get("state") == "suspect" else f"{_status(lane)}: {verdict['reason']}"
        )
    elif _status(lane) == "unknown" and lane.get("state") in ("serving", "suspect") and verdict.get("reason"):
        said.append(f"speed unknown: {verdict['reason']}")
    text = "; ".join(dict.fromkeys(part for part in said if part))
    following = lane.get("next_action")
    return f"{text} → {following}" if following else text


def speed_of(lane: Lane) -> float | None:
    """Tokens/s now at the smallest prompt size: the verdict's, else that of the newest clean run."""
    verdict, baseline = lane.get("verdict") or {}, lane.get("baseline") or {}
    if verdict.get("decode_tok_s") is not None:
        return float(verdict["decode_tok_s"])
    if verdict.get("ratio") is not None and baseline.get("decode_tok_s") is not None:
        return float(verdict["ratio"] * baseline["decode_tok_s"])
    newest = (lane.get("last_probe") or {}).get("decode_tok_s")
    return None if newest is None else float(newest)


def ratio_of(lane: Lane) -> float | None:
    """The worker's speed over a fresh one's."""
    ratio = (lane.get("verdict") or {}).get("ratio")
    if ratio is not None:
        return float(ratio)
    fresh = (lane.get("baseline") or {}).get("decode_tok_s")
    speed = speed_of(lane)
    return speed / fresh if speed is not None and fresh else None


def requests_of(lane: Lane) -> str:
    """``2 now``, ``2 now, 5 wait``; a blank where there are none."""
    inflight, queued = int(lane.get("inflight") or 0), int(lane.get("queued") or 0)
    parts = ([f"{inflight} now"] if inflight else []) + ([f"{queued} wait"] if queued else [])
    return ", ".join(parts) or NOTHING


def _facts(lane: Lane) -> list[tuple[str, Text]]:
    facts = [
        ("reason", _plain(lane.get("reason"))),
        ("next", _plain(lane.get("next_action"))),
        ("model", _plain(lane.get("model"))),
        ("worker", worker_in_words(lane.get("worker"))),
        ("candidate", worker_in_words(lane.get("candidate"))),
        ("retiring", worker_in_words(lane.get("retiring"))),
        ("recycling", _plain(lane.get("recycling"))),
        ("requests", Text(f"{lane.get('inflight') or 0} in flight, {lane.get('queued') or 0} waiting")),
        ("speed", _speed(lane)),
        ("verdict", _verdict(lane)),
        ("fresh", fresh_in_words(lane.get("baseline"))),
        ("totals", _totals(lane.get("totals"))),
    ]
    return [(name, fact) for name, fact in facts if fact.plain]


def _plain(value: object) -> Text:
    return Text("" if value is None else str(value))


def worker_in_words(worker: object) -> Text:
    """``pid 4242, port 51234, generation 3, up 6 h, 1.4 GB``; a list is taken one by one."""
    if isinstance(worker, list):
        return Text("; ").join(worker_in_words(one) for one in worker)
    if not isinstance(worker, Mapping):
        return Text("" if worker is None else str(worker))
    parts = [f"{name} {worker[name]}" for name in ("pid", "port", "generation") if worker.get(name) is not None]
    if worker.get("uptime_s") is not None:
        parts.append(f"up {long_length(worker['uptime_s'])}")
    if worker.get("memory_bytes"):
        parts.append(size(worker["memory_bytes"]))
    if worker.get("requests"):
        parts.append(f"{many(worker['requests'])} requests and {many(worker.get('generated_tokens'))} tokens served")
    return Text(", ".join(parts))


def _speed(lane: Lane) -> Text:
    speed, ratio = speed_of(lane), ratio_of(lane)
    probe = lane.get("last_probe") or {}
    if speed is None and not probe:
        return Text("not measured yet", style="quiet")
    text = Text(f"{rate(speed)} tok/s")
    if ratio is not None:
        text.append(", ").append(f"{share(ratio)} of fresh", style=STYLE_OF_VERDICT.get(_status(lane), ""))
    text.append(f", measured {ago(_measured_at(lane))}")
    if probe.get("void"):
        text.append(
            f" (void: {probe['void']}{' ' + str(probe['detail']) if probe.get('detail') else ''})", style="quiet"
        )
    return text


def _verdict(lane: Lane) -> Text:
    verdict = lane.get("verdict") or {}
    if not verdict:
        return Text()
    text = painted(_status(lane), STYLE_OF_VERDICT.get(_status(lane), "quiet"))
    text.append(f": {verdict.get('reason')}" if verdict.get("reason") else "")
    extra = []
    interval = verdict.get("interval")
    if isinstance(interval, (list, tuple)) and len(interval) == 2:
        extra.append(f"{share(interval[0])} to {share(interval[1])}")
    if verdict.get("confidence"):
        extra.append(f"confidence {verdict['confidence']:.2f}")
    return text.append(f" ({', '.join(extra)})" if extra else "", style="quiet")


def fresh_in_words(baseline: object) -> Text:
    """``47.1 tok/s after 256 tokens, 43.9 after 3072; from 3 spawns and 24 runs; good``."""
    if not isinstance(baseline, Mapping) or not baseline:
        return Text("not known yet", style="quiet")
    parts = [speeds_by_size(baseline), where_from(baseline), str(baseline.get("quality") or "")]
    return Text("; ".join(part for part in parts if part))


def speeds_by_size(baseline: Mapping[str, Any]) -> str:
    """``47.1 tok/s after 256 tokens, 43.9 after 3072``."""
    by_size = baseline.get("by_prompt_tokens") or {}
    if not by_size:
        return f"{rate(baseline.get('decode_tok_s'))} tok/s"
    (smallest, first), *others = sorted(by_size.items(), key=lambda item: int(item[0]))
    more = "".join(f", {rate(value)} after {tokens}" for tokens, value in others)
    return f"{rate(first)} tok/s after {smallest} tokens{more}"


def where_from(baseline: Mapping[str, Any]) -> str:
    """``from 3 spawns and 24 runs``."""
    return (
        f"from {plural(count_of(baseline.get('spawns')), 'spawn')} and {plural(count_of(baseline.get('runs')), 'run')}"
    )


def count_of(value: object) -> int:
    """A number, or how many things a list holds."""
    if isinstance(value, (list, tuple)):
        return len(value)
    return int(value) if isinstance(value, (int, float)) else 0


def _totals(totals: object) -> Text:
    if not isinstance(totals, Mapping):
        return Text()
    counted = {name: value for name, value in totals.items() if type(value) in (int, float) and value}
    names = sorted(counted, key=lambda name: FIRST_TOTALS.index(name) if name in FIRST_TOTALS else len(FIRST_TOTALS))
    return Text(", ".join(_total(name, counted[name]) for name in names) or "nothing yet")


def _total(name: str, value: float) -> str:
    if name.endswith("_s"):
        return f"{long_length(value)} {name.removesuffix('_s').replace('_', ' ')}"
    words = name.replace("_", " ")
    return f"{many(value)} {words.removesuffix('s') if value == 1 else words}"


def _measured_at(lane: Lane) -> object:
    probe = lane.get("last_probe") or {}
    return probe.get("wall") or probe.get("at")


def _status(lane: Lane) -> str:
    return str((lane.get("verdict") or {}).get("status") or "")
