"""Requests of all sorts for a tiny model, as many clients would send them."""

from __future__ import annotations

import random

from tiny_model import random_prompt

from engine.decode_thread import DecodeThread
from engine.request import GenerationRequest, Sampling


async def mixed_request(thread: DecodeThread, dice: random.Random) -> None:
    """A request that shares a beginning with others; one in four leaves early."""
    prompt = [*random_prompt(dice.randrange(3), 40), *random_prompt(dice.randrange(50), dice.randrange(1, 60))]
    sampling = Sampling(dice.choice([0.0, 0.8]), seed=dice.randrange(9))
    generation = thread.submit(GenerationRequest("mixed", tuple(prompt), dice.randrange(1, 24), sampling))
    leaves_after = dice.randrange(8) if dice.random() < 0.25 else None
    seen = 0
    async for batch in generation:
        seen += len(batch.tokens)
        if leaves_after is not None and seen >= leaves_after:
            generation.cancel()
