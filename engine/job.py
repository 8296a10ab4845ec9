"""A generation as the decode thread sees it: what is left to decode, and what it has cost so far.

A job moves between the two ways of decoding, alone and in a batch, at any token: what is left is again a request, whose
prompt is everything decoded so far. Its KV cache travels through the prefix cache.
"""

from __future__ import annotations

import dataclasses

from engine.generation import Generation
from engine.request import Finish, GenerationRequest, TokenBatch, Usage


class Job:
    """`request` is what is left of `generation.request`; `usage` what all of it has cost."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.request: GenerationRequest = generation.request
        self.usage: Usage = generation.usage
        self._before = Usage()
        self._given: list[int] = []

    @property
    def is_begun(self) -> bool:
        """Whether it has been decoded before, in part."""
        return self.request is not self.generation.request

    def deliver(self, batch: TokenBatch, stretch: Usage) -> None:
        """Hand over what a step gave; `stretch` is the cost since the job was last taken up."""
        self.account(stretch)
        if batch.tokens or batch.finish:
            self._given.extend(batch.tokens)
            self.generation.deliver(batch, self.usage)

    def account(self, stretch: Usage) -> None:
        """Note the cost since the job was last taken up."""
        self.usage = _sum(self._before, stretch) if self.is_begun else stretch

    def put_down(self) -> None:
        """Make what is left of it its request."""
        given, self._given = tuple(self._given), []
        self._before = self.usage
        self.request = dataclasses.replace(
            self.request,
            prompt=self.request.prompt + given,
            max_tokens=self.request.max_tokens - len(given),
            begun=self.request.begun + len(given),
        )


def finish_of(token: int, room: int, stop_tokens: frozenset[int]) -> Finish | None:
    """Why decoding ends with this token, after which there would be room for `room` more; None if it goes on."""
    if token in stop_tokens:
        return "stop"
    return None if room > 0 else "length"


def _sum(before: Usage, stretch: Usage) -> Usage:
    """Tokens of the prompt are those of the first stretch; later ones only take up where it was put down."""
    return before.plus(
        completion_tokens=stretch.completion_tokens,
        drafted=stretch.drafted,
        accepted=stretch.accepted,
        cycles=stretch.cycles,
        prefill_s=stretch.prefill_s,
        decode_s=stretch.decode_s,
    )
