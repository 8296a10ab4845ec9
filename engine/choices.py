"""Several answers to one request, read as they come; on the event loop."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import Callable

from engine.generation import Generation
from engine.reading import Piece, Reading
from engine.request import GenerationRequest, Usage


class Choices:
    """The readings of one request, told apart by their index. For one reader; close it."""

    def __init__(
        self,
        readings: list[Reading],
        prompt: Generation | None = None,
        begin: Callable[[], list[Reading]] = list,
    ) -> None:
        """With a `prompt`, `begin` gives the readings once that has been fed."""
        self._readings = readings
        self._prompt = prompt
        self._begin = begin
        self._left = set(range(len(readings)))
        self._due: dict[int, asyncio.Future[Piece | None]] = {}

    async def next(self) -> tuple[int, Piece] | None:
        """The next piece of any of them, and whose it is; None after the last piece of the last one.

        May be cancelled while it waits, and called again, without losing anything. Raises EngineError.
        """
        if self._prompt is not None and not self._readings:
            async for _ in self._prompt:
                pass
            self._readings = self._begin()
            self._left = set(range(len(self._readings)))
        while self._left:
            for index in sorted(self._left - self._due.keys()):
                self._due[index] = asyncio.ensure_future(self._readings[index].next())
            await asyncio.wait(self._due.values(), return_when=asyncio.FIRST_COMPLETED)
            index = next(index for index, due in self._due.items() if due.done())
            piece = self._due.pop(index).result()
            if piece is None or piece.finish:
                self._left.discard(index)
            if piece is not None:
                return index, piece
        return None

    def close(self) -> None:
        """Nobody reads on: decoding ends within a step."""
        for due in self._due.values():
            due.cancel()
        if self._prompt is not None:
            self._prompt.cancel()
        for reading in self._readings:
            reading.close()

    @property
    def usage(self) -> Usage:
        """Of all of them; the prompt counts once."""
        prompt = None if self._prompt is None else self._prompt.usage
        if prompt is not None and not self._readings:
            return prompt
        first, *others = [reading.usage for reading in self._readings]
        if prompt is not None:
            first = first.plus(cached_tokens=prompt.cached_tokens - first.cached_tokens, prefill_s=prompt.prefill_s)
        for other in others:
            first = first.plus(
                completion_tokens=other.completion_tokens,
                drafted=other.drafted,
                accepted=other.accepted,
                cycles=other.cycles,
                prefill_s=other.prefill_s,
                decode_s=other.decode_s,
            )
        return first


def prompt_of(request: GenerationRequest) -> GenerationRequest:
    """A request that only feeds the prompt of another."""
    return dataclasses.replace(request, max_tokens=0, top_logprobs=None, grammar=None)


def choices_of(request: GenerationRequest, count: int) -> list[GenerationRequest]:
    """So many requests for the answers to one, each with a seed of its own."""
    seeds = [choice_seed(request.sampling.seed, index) for index in range(count)]
    return [
        dataclasses.replace(request, is_choice=True, sampling=dataclasses.replace(request.sampling, seed=seed))
        for seed in seeds
    ]


def choice_seed(seed: int | None, index: int) -> int | None:
    """The seed of one of several answers; the first has the request's own."""
    if seed is None or index == 0:
        return seed
    return int.from_bytes(hashlib.blake2b(f"{seed}/{index}".encode(), digest_size=8).digest(), "little")
