"""Many mixed requests leave memory as it was, the budgets kept, and MLX's own cache cleared as often on each way."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import mlx.core as mx
import pytest
from mixed_requests import mixed_request
from mlx_lm.models.cache import make_prompt_cache
from tiny_model import OracleDrafter, ScriptedPolicy, random_prompt, tiny_model, write_tiny_model

from engine.decode_thread import DecodeThread
from engine.drafters import NoDrafter
from engine.plain import CLEAR_EVERY, Sequence
from engine.request import EngineSettings, Sampling
from engine.sampling import Chooser
from engine.speculate import decode

ROUNDS, TOGETHER = 40, 4
RAM, DISK = 600_000, 400_000
MARGIN = 300_000
"""Bytes by which active memory may differ between two moments of rest: a row's KV cache takes 66 kB."""


@pytest.fixture
async def thread(tmp_path: Path) -> AsyncIterator[DecodeThread]:
    folder = write_tiny_model(tmp_path / "tiny")
    settings = EngineSettings(
        str(folder), prefix_bytes=RAM, prefix_disk_bytes=DISK, prefix_folder=str(tmp_path / "disk")
    )
    decoding = DecodeThread(settings)
    decoding.start()
    await decoding.ready()
    yield decoding
    decoding.stop()


async def test_many_mixed_requests_leave_memory_flat_and_the_budgets_kept(thread):
    dice, at_rest = random.Random(1), []
    for number in range(ROUNDS):
        await asyncio.gather(*(mixed_request(thread, dice) for _ in range(dice.randrange(1, TOGETHER + 1))))
        prefixes = thread.stats()["prefix_cache"]
        assert prefixes["bytes"] <= RAM
        assert prefixes["disk_bytes"] <= DISK
        if number >= ROUNDS // 2:
            await thread.remedy("clear_cache")
            at_rest.append(mx.get_active_memory() - thread.stats()["prefix_cache"]["bytes"])
    assert prefixes["entries"] > 3
    assert max(at_rest) - min(at_rest) < MARGIN


@pytest.mark.parametrize("widths", [[0], [3], [0, 7]])
def test_plain_and_speculative_decoding_clear_as_often(monkeypatch, widths):
    cleared: list[int] = []
    prompt, count = random_prompt(1, 10), 2 * CLEAR_EVERY + 20
    model = tiny_model()
    sequence = Sequence(model, make_prompt_cache(model), Chooser(Sampling(temperature=0)), list(prompt))
    sequence.forward(mx.array(prompt[:-1]))
    truth = [*prompt, *[0] * count]
    clear = mx.clear_cache

    def noted() -> None:
        cleared.append(len(sequence.tokens))
        clear()

    monkeypatch.setattr(mx, "clear_cache", noted)
    drafter = OracleDrafter(truth, 0.0) if widths != [0] else NoDrafter()
    steps = decode(sequence, count, frozenset(), drafter=drafter, policy=ScriptedPolicy(widths), spend=lambda *_: None)
    assert sum(len(step.tokens) for step in steps) == count
    assert len(cleared) == 2
