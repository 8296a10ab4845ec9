"""oMLX: the lines it writes after each answer, and ``/api/status``.

Builds differ in which words such a line has, and in their order, so each word is looked for by its key alone.
"""

from __future__ import annotations

import re

from supervisor.readings.numbers import count, document, number, pairs, plain, positive, ratio, share
from supervisor.readings.reading import Phases, Reading

_SPECULATION = re.compile(r"\b(?:MTP|NgramSpec|DSPARK)(?:\[[^\]]*\]|\s+batched:|:)")
_ANSWER = re.compile(r"(?:completion|message|Responses API): model=", re.IGNORECASE)
_GROUP = re.compile(r"(\w+)\[([^\[\]]*)\]")
_DEPTH = re.compile(r"d(\d+)")
_PERCENT = re.compile(r"accept=\S+ \([^()]*?([\d.]+)%\)")
_TOKENS_IN = re.compile(r"(\d+) tokens in ([\d.]+)s")
_PROMPT = re.compile(r"prompt: (\d+)")


class OmlxLog:
    """Its log. Each line stands for itself."""

    tells_of_answers = True

    def read(self, line: str, at: float) -> Reading | None:  # noqa: ARG002 - a line tells no time between lines
        """What the line tells; None if nothing."""
        text = plain(line)
        head = _SPECULATION.search(text)
        if head is not None:
            return _of_speculation(text[head.end() :])
        return _of_answer(text) if _ANSWER.search(text) else None


def _of_speculation(text: str) -> Reading:
    groups = {name: pairs(inside) for name, inside in _GROUP.findall(text)}
    words = pairs(_GROUP.sub(" ", text))
    cycles = positive(words.get("cycles"))
    spent = tuple((name, ms) for name, said in groups.get("timing", {}).items() if (ms := positive(said)) is not None)
    phases: Phases = tuple((name, ms / cycles) for name, ms in spent) if cycles else ()
    return Reading(
        tokens_per_step=positive(words.get("tok/cycle")) or share(positive(words.get("tokens")), cycles),
        acceptance=_by_depth(groups.get("depth", {})) or _as_a_whole(text, words),
        step_ms=sum(ms for _, ms in phases) or None,
        phases_ms=phases,
        is_progress=True,
    )


def _by_depth(depths: dict[str, str]) -> tuple[float, ...]:
    told = [(int(found.group(1)), ratio(said)) for key, said in depths.items() if (found := _DEPTH.fullmatch(key))]
    return tuple(taken for _, taken in sorted(told, key=lambda one: one[0]) if taken is not None)


def _as_a_whole(text: str, words: dict[str, str]) -> tuple[float, ...]:
    """The percentage, where there is one: what stands before it is not of drafts in every build."""
    percent = _PERCENT.search(text)
    said = number(percent.group(1)) if percent else None
    taken = said / 100.0 if said is not None else ratio(words.get("draft_accept") or words.get("accept"))
    return () if taken is None else (taken,)


def _of_answer(text: str) -> Reading:
    """Its own rate is over the whole answer; without the time to the first token it says nothing of decoding."""
    answer, prompt, words = _TOKENS_IN.search(text), _PROMPT.search(text), pairs(text)
    tokens, seconds = (number(answer.group(1)), number(answer.group(2))) if answer else (None, None)
    first_s = number(words.get("stream_model_ttft"))
    decode_s = seconds - first_s if seconds is not None and first_s is not None else None
    return Reading(
        decode_tok_s=positive(share(tokens, decode_s)),
        context_tokens=count(prompt.group(1)) if prompt else None,
        is_progress=True,
    )


def omlx_status(body: bytes) -> Reading | None:
    """``/api/status``. Its mean rate is of the server's whole life, and so no reading of now."""
    said = document(body)
    if said is None:
        return None
    return Reading(
        running=count(said.get("active_requests")),
        queued=count(said.get("waiting_requests")),
        uptime_s=number(said.get("uptime_seconds")),
    )
