"""Decode a sequence: draft, verify, accept, rewind; or one plain step where no draft pays.

What comes out is what plain decoding would have given: each row of a verification chooses the token that a plain step
would choose at its position, and only drafted tokens equal to it are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, cast

import mlx.core as mx

from engine.drafters import Draft, Drafter, PaidDrafter
from engine.plain import CLEAR_EVERY, Pipeline, Sequence
from engine.proposals import DraftPolicy, Proposer
from engine.rollback import rewind

Spend = Callable[[str, float], None]


@dataclass(frozen=True)
class Step:
    """What one plain step (`drafted` 0) or one cycle gave, and the seconds since the one before."""

    tokens: tuple[int, ...]
    drafted: int
    accepted: int
    seconds: float


class Policy(DraftPolicy, Protocol):
    """Decides how much to draft, and is told what came of it; engine.controller is the one that serves.

    `paid_s`: how much of a step's or cycle's seconds the paid drafter took.
    """

    def sequence_began(self) -> None:
        """New content begins."""

    def step_ended(self, context: int, tokens: tuple[int, ...], seconds: float, *, paid_s: float) -> None:
        """A plain step gave these tokens."""

    def cycle_ended(
        self, context: int, draft: Draft, accepted: int, tokens: tuple[int, ...], seconds: float, *, paid_s: float
    ) -> None:
        """A cycle verified this draft, accepted its first tokens, and gave these tokens."""

    def sequence_ended(self) -> None:
        """What was proposed for later tokens will never be known."""


def decode(
    sequence: Sequence,
    room: int,
    stops: frozenset[int],
    *,
    drafter: Drafter,
    policy: Policy,
    spend: Spend,
    paid: PaidDrafter | None = None,
    longest: int | None = None,
) -> Iterator[Step]:
    """Decode until a token of `stops`, which is the last one given, or `room` tokens.

    `drafter` is asked at each step, `paid` when the policy orders it; for `longest` tokens at most.
    `spend` is told where the time went: (`backbone`, `draft`, `sample` or `cache`, seconds).
    """
    pipeline = Pipeline(sequence)
    laps = _Laps(spend)
    ended = time.monotonic()
    proposer = Proposer(drafter, paid, policy, permitted=sequence.permitted, longest=longest)
    proposer.begin(sequence.tokens)
    policy.sequence_began()
    cleared = len(sequence.tokens)
    while room > 0:
        context = len(sequence.tokens)
        proposal = proposer.propose(context, room, is_ahead=pipeline.is_ahead)
        laps.end("draft")
        draft = proposal.draft
        if draft.tokens and not pipeline.is_ahead:
            tokens, accepted = _cycle(sequence, draft.tokens, stops, laps)
        else:
            # A step under way is read before a cycle begins: its token is needed, and its time is spent already.
            draft, accepted = Draft(), 0
            tokens = (pipeline.advance(launch_next=not proposal.wanted and room > 1),)
            laps.end("backbone")
        if len(sequence.tokens) - cleared >= CLEAR_EVERY:
            mx.clear_cache()
            cleared = len(sequence.tokens)
            laps.end("cache")
        proposer.extend(list(tokens))
        laps.end("draft")
        seconds, ended = laps.start - ended, laps.start
        if draft.tokens:
            policy.cycle_ended(context, draft, accepted, tokens, seconds, paid_s=proposal.paid_s)
        else:
            policy.step_ended(context, tokens, seconds, paid_s=proposal.paid_s)
        yield Step(tokens, len(draft.tokens), min(accepted, len(tokens)), seconds)
        laps.restart()
        room -= len(tokens)
        if tokens[-1] in stops:
            break
    policy.sequence_ended()


def _cycle(
    sequence: Sequence, draft: tuple[int, ...], stops: frozenset[int], laps: _Laps
) -> tuple[tuple[int, ...], int]:
    """Verify `draft` in one forward pass; returns the tokens it gave, and how many drafted ones were right."""
    inputs = [sequence.tokens[-1], *draft]
    logits = sequence.forward(mx.array(inputs, mx.uint32))
    chosen = sequence.chooser(logits, len(sequence.tokens), sequence.recent(list(draft)))
    rows = cast("list[int]", chosen.tolist())
    laps.end("backbone")
    accepted = next((index for index, token in enumerate(draft) if rows[index] != token), len(draft))
    kept = next((index for index in range(accepted) if rows[index] in stops), accepted) + 1
    sequence.tokens += rows[:kept]
    if sequence.scores is not None:
        sequence.scores.keep(sequence.scores.score(logits[:kept], chosen[:kept]), rows[:kept])
    laps.end("sample")
    rewind(sequence.cache, sequence.fed, len(sequence.tokens) - 1)
    sequence.fed = len(sequence.tokens) - 1
    laps.end("cache")
    return tuple(rows[:kept]), accepted


class _Laps:
    """Splits time into phases: each ends where the next one starts."""

    def __init__(self, spend: Spend) -> None:
        self._spend = spend
        self.start = time.monotonic()

    def restart(self) -> None:
        """What went by meanwhile belongs to no phase."""
        self.start = time.monotonic()

    def end(self, phase: str) -> None:
        now = time.monotonic()
        self._spend(phase, now - self.start)
        self.start = now
