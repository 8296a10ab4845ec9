"""Whether each whole answer is the one that a worker of its own lane says it sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.soak_failures import Deaths

UNWRITTEN_WITHIN_S = 1.0
"""A worker that is killed this close to the end of an answer may not have come to write down what it sent."""


@dataclass(frozen=True)
class Whole:
    """A whole answer, as its client got it; its text is the one that its own request asks for."""

    sha256: str
    ended: float
    """Monotonic seconds."""


@dataclass
class Comparison:
    """In words: what is mixed up, and answers that no worker wrote down since it was killed just then."""

    mixed: list[str] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)


def compared(
    whole: Mapping[str, Mapping[str, Whole]], sent: Mapping[str, Iterable[Mapping[str, Any]]], deaths: Deaths
) -> Comparison:
    """``whole``: by lane and request id; ``sent``: what each lane's workers wrote down."""
    result = Comparison()
    for lane, answers in whole.items():
        digests: dict[str, set[str]] = {}
        for line in sent[lane]:
            digests.setdefault(str(line["request_id"]), set()).add(line["sha256"])
        result.mixed += [f"lane {lane} got {one}" for one in digests if _lane_of(one, whole) not in (None, lane)]
        for request_id, answer in answers.items():
            if answer.sha256 in digests.get(request_id, ()):
                continue
            what = f"no worker of {lane} says that it sent the answer to {request_id}"
            is_unwritten = request_id not in digests and deaths(
                lane, answer.ended - UNWRITTEN_WITHIN_S, answer.ended + UNWRITTEN_WITHIN_S
            )
            (result.unwritten if is_unwritten else result.mixed).append(what)
    return result


def _lane_of(request_id: str, lanes: Iterable[str]) -> str | None:
    name = request_id.split("-", maxsplit=1)[0]
    return name if name in lanes else None
