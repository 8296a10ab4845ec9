"""FreeToken: its ``Prefill batch`` and ``Decode batch`` lines, and ``/v1/stats``."""

from __future__ import annotations

from supervisor.readings.numbers import count, document, inner, number, plain, positive, share
from supervisor.readings.reading import Reading

_PREFILL, _DECODE = "Prefill batch", "Decode batch"
_THROUGHPUT = "gen throughput (token/s)"
SHORTEST_GAP_S = 5.0
GAPS_THAT_MEAN_IDLE = 3.0
"""Lines of decoding come at even steps: after so many times the last gap, nothing was decoded in between."""


class FreetokenLog:
    """Its log. A decode line's rate is over the time since the one before: the first behind a pause is false."""

    tells_of_answers = False

    def __init__(self) -> None:
        self._decoded_at: float | None = None
        self._gap_s: float | None = None

    def read(self, line: str, at: float) -> Reading | None:
        """What the line tells; None if nothing."""
        text = plain(line)
        if _PREFILL in text:
            self._decoded_at = None
            return _of_prefill(_fields(text, _PREFILL))
        if _DECODE in text:
            return _of_decoding(_fields(text, _DECODE), is_believed=self._is_even(at))
        return None

    def _is_even(self, at: float) -> bool:
        before, self._decoded_at = self._decoded_at, at
        if before is None:
            self._gap_s = None
            return False
        gap_s, usual_s = at - before, self._gap_s
        self._gap_s = gap_s
        return gap_s <= max(SHORTEST_GAP_S, GAPS_THAT_MEAN_IDLE * (usual_s or 0.0))


def _of_decoding(fields: dict[str, str], *, is_believed: bool) -> Reading:
    running = count(fields.get("#running-req"))
    rate = positive(fields.get(_THROUGHPUT)) if is_believed else None
    context = count(fields.get("#token"))
    return Reading(
        running=running,
        queued=count(fields.get("#queue-req")),
        decode_tok_s=share(rate, float(running)) if running else rate,
        context_tokens=context // running if context is not None and running else context,
        is_progress=True,
    )


def _of_prefill(fields: dict[str, str]) -> Reading:
    new, cached = number(fields.get("#new-token")), number(fields.get("#cached-token"))
    whole = new + cached if new is not None and cached is not None else None
    return Reading(
        running=count(fields.get("#running-req")),
        queued=count(fields.get("#queue-req")),
        prefill_tok_s=positive(fields.get("input throughput (token/s)") or fields.get("input throughput")),
        cache_hit=share(cached, whole),
        is_progress=True,
    )


def _fields(text: str, head: str) -> dict[str, str]:
    """``#running-req: 2, #token: 9, ...`` behind the head."""
    parts = text.partition(head)[2].split(",")
    return {key.strip(): value.strip() for key, _, value in (part.rpartition(":") for part in parts)}


def freetoken_stats(body: bytes) -> Reading | None:
    """``/v1/stats``. Its rates are over five seconds and fall to nothing when it idles."""
    said = document(body)
    if said is None:
        return None
    rates, identity = inner(said, "throughput"), said.get("instance_id")
    return Reading(
        running=count(inner(said, "requests").get("active")),
        decode_tok_s=positive(rates.get("decode_tps")),
        prefill_tok_s=positive(rates.get("prefill_tps")),
        uptime_s=number(said.get("uptime_s")),
        identity=identity if isinstance(identity, str) else None,
    )
