"""What a lane's document says, read once for all who show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from supervisor.cli.render.layout import painted

Lane = Mapping[str, Any]

HOST_SLOW = "host_slow: "
"""How the verdict's reason begins while the machine is slow."""

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


def state(lane: Lane) -> Text:
    """The state's name in its colour."""
    name = str(lane.get("state", "?"))
    return painted(name, STYLE_OF_STATE.get(name, "busy"))


def why_and_next(lane: Lane) -> str:
    """The reason of the state; the verdict's where that says more; and what comes next."""
    verdict = lane.get("verdict") or {}
    said = [str(lane.get("reason") or "")]
    if status_of(lane) in ("suspect", "degraded") and verdict.get("reason"):
        said.append(
            str(verdict["reason"]) if lane.get("state") == "suspect" else f"{status_of(lane)}: {verdict['reason']}"
        )
    elif status_of(lane) == "unknown" and lane.get("state") in ("serving", "suspect") and verdict.get("reason"):
        said.append(_unknown_because(str(verdict["reason"])))
    text = "; ".join(dict.fromkeys(part for part in said if part))
    following = lane.get("next_action")
    return f"{text} → {following}" if following else text


def _unknown_because(reason: str) -> str:
    shown = reason.removeprefix(HOST_SLOW)
    return f"speed unknown: {reason}" if shown == reason else f"the host is slow: {shown}"


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


def measured_at(lane: Lane) -> object:
    """The moment of the newest run, as the API writes moments; None before the first."""
    probe = lane.get("last_probe") or {}
    return probe.get("wall") or probe.get("at")


def status_of(lane: Lane) -> str:
    """The verdict's word; empty before the first verdict."""
    return str((lane.get("verdict") or {}).get("status") or "")
