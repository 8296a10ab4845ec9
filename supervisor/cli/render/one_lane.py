"""One lane in full: a fact a line."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from supervisor.cli.render.baselines import fresh_in_words
from supervisor.cli.render.lane_facts import STYLE_OF_VERDICT, Lane, measured_at, ratio_of, speed_of, state, status_of
from supervisor.cli.render.layout import labelled, painted
from supervisor.cli.words import ago, moment
from supervisor.core.words import long_length, many, rate, share, size

INDENT = 12
FIRST_TOTALS = ("requests", "generated_tokens", "recycles", "failed")


def lane_in_full(lane: Lane, width: int | None, console: Console) -> list[Text]:
    """Everything about one lane, a fact a line."""
    title = painted(f"{lane.get('name')}  ", "name").append_text(state(lane))
    if moment(lane.get("since")):
        title.append(f" for {ago(lane['since']).removesuffix(' ago')}", style="quiet")
    lines = [title]
    for name, fact in _facts(lane):
        lines += labelled(painted(f"  {name}", "head"), fact, width, console, indent=INDENT)
    return lines


def _facts(lane: Lane) -> list[tuple[str, Text]]:
    facts = [
        ("reason", _plain(lane.get("reason"))),
        ("next", _plain(lane.get("next_action"))),
        ("model", _plain(lane.get("model"))),
        ("worker", _worker_in_words(lane.get("worker"))),
        ("candidate", _worker_in_words(lane.get("candidate"))),
        ("retiring", _worker_in_words(lane.get("retiring"))),
        ("recycling", _plain(lane.get("recycling"))),
        ("requests", Text(f"{lane.get('inflight') or 0} in flight, {lane.get('queued') or 0} waiting")),
        ("speed", _speed(lane)),
        ("verdict", _verdict(lane)),
        ("fresh", fresh_in_words(lane.get("baseline"))),
        ("models", _models(lane.get("models"))),
        ("says", Text("; ".join(map(str, lane.get("said") or ())))),
        ("canaries", _canaries(lane.get("totals"))),
        ("clients", _clients(lane.get("clients"))),
        ("totals", _totals(lane.get("totals"))),
    ]
    return [(name, fact) for name, fact in facts if fact.plain]


def _plain(value: object) -> Text:
    return Text("" if value is None else str(value))


def _worker_in_words(worker: object) -> Text:
    """``pid 4242, port 51234, generation 3, up 6 h, 1.4 GB``; a list is taken one by one."""
    if isinstance(worker, list):
        return Text("; ").join(_worker_in_words(one) for one in worker)
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
        text.append(", ").append(f"{share(ratio)} of fresh", style=STYLE_OF_VERDICT.get(status_of(lane), ""))
    text.append(f", measured {ago(measured_at(lane))}")
    if probe.get("void"):
        text.append(
            f" (void: {probe['void']}{' ' + str(probe['detail']) if probe.get('detail') else ''})", style="quiet"
        )
    return text


def _verdict(lane: Lane) -> Text:
    verdict = lane.get("verdict") or {}
    if not verdict:
        return Text()
    text = painted(status_of(lane), STYLE_OF_VERDICT.get(status_of(lane), "quiet"))
    text.append(f": {verdict.get('reason')}" if verdict.get("reason") else "")
    confidence = verdict.get("confidence")  # the interval is part of the reason
    return text.append(f" (confidence {confidence:.2f})" if confidence else "", style="quiet")


def _models(models: object) -> Text:
    """``coder healthy, 25.1 tok/s``; why there is no speed, where there is none."""
    if not isinstance(models, Mapping):
        return Text()
    return Text("; ").join(_model(name, facts) for name, facts in models.items())


def _model(name: str, facts: Lane) -> Text:
    status, probe = status_of(facts) or "unknown", facts.get("last_probe") or {}
    text = Text(f"{name} ").append_text(painted(status, STYLE_OF_VERDICT.get(status, "quiet")))
    if probe.get("void"):
        return text.append(f", void: {probe.get('detail') or probe['void']}", style="quiet")
    return text.append(f", {rate(speed_of(facts))} tok/s" if probe else "")


def _canaries(totals: object) -> Text:
    """``40 count, 3 are void (client_arrived 2, loop_lag 1)``."""
    counts = totals.get("canaries") if isinstance(totals, Mapping) else None
    if not isinstance(counts, Mapping) or not counts:
        return Text()
    voids = {reason: count for reason, count in counts.items() if reason != "clean"}
    words = f"{many(counts.get('clean', 0))} count"
    if voids:
        reasons = ", ".join(f"{reason} {many(count)}" for reason, count in sorted(voids.items()))
        words += f", {many(sum(voids.values()))} are void ({reasons})"
    return Text(words)


def _clients(clients: object) -> Text:
    """What clients' own streams say, where they say something."""
    if not isinstance(clients, Mapping):
        return Text()
    return Text("; ".join(str(clients[word]) for word in ("suspicion", "context") if clients.get(word)))


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
