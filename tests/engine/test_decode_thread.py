"""The decode thread with a tiny model in a folder: order, cancellation, remedies, draining, broken files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tiny_model import EOS, VOCABULARY, random_prompt, reference, tiny_model, write_tiny_model

from engine import prefix_disk
from engine.decode_thread import DecodeThread
from engine.errors import (
    DecodeError,
    DrainingError,
    EngineError,
    EngineStoppedError,
    ModelError,
    PromptTooLongError,
    RequestError,
    UnknownRemedyError,
)
from engine.request import EngineSettings, GenerationRequest, Sampling

LONG = 10_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
async def thread(folder: Path) -> AsyncIterator[DecodeThread]:
    decoding = DecodeThread(EngineSettings(str(folder)))
    decoding.start()
    await decoding.ready()
    yield decoding
    decoding.stop()


def request(prompt: list[int], count: int = 20, name: str = "test", **options: object) -> GenerationRequest:
    return GenerationRequest(name, tuple(prompt), count, Sampling(temperature=0), **options)


async def tokens_of(generation) -> list[int]:
    return [token async for batch in generation for token in batch.tokens]


async def test_it_says_what_it_has_loaded(folder):
    told: list[tuple[str, float]] = []
    decoding = DecodeThread(EngineSettings(str(folder)), lambda doing, share: told.append((doing, share)))
    decoding.start()
    info = await decoding.ready()
    assert (info.vocab_size, info.context_length, info.eos_ids) == (VOCABULARY, 512, {EOS})
    assert info.tokenizer.decode([1, 2, 3]) == "123"
    assert told[-1] == ("ready", 1.0)
    decoding.stop()


async def test_its_tokens_are_those_of_mlx_lm_and_its_usage_adds_up(thread):
    prompt = random_prompt(1)
    generation = thread.submit(request(prompt, 30))
    batches = [batch async for batch in generation]
    assert [token for batch in batches for token in batch.tokens] == reference(tiny_model(), prompt, 30)
    assert [batch.finish for batch in batches if batch.finish] == ["length"]
    assert generation.usage.completion_tokens == 30
    assert generation.usage.prompt_tokens == len(prompt)
    assert generation.usage.decode_s > 0


async def test_requests_are_served_in_the_order_they_came(thread):
    ended: list[str] = []

    async def read(name: str) -> None:
        await tokens_of(thread.submit(request(random_prompt(3), 12, name)))
        ended.append(name)

    async with asyncio.TaskGroup() as group:
        for name in "abcd":
            group.create_task(read(name))
    assert ended == list("abcd")


async def test_a_cancelled_request_makes_room_for_the_next_one(thread):
    first = thread.submit(request(random_prompt(1), LONG))
    second = thread.submit(request(random_prompt(2), 5))
    async for _ in first:
        first.cancel()
    assert first.usage.completion_tokens < 400
    assert len(await tokens_of(second)) == 5


async def test_one_cancelled_while_waiting_gives_nothing(thread):
    first = thread.submit(request(random_prompt(1), 40))
    second = thread.submit(request(random_prompt(2), LONG))
    second.cancel()
    await tokens_of(first)
    assert len(await tokens_of(second)) <= 1


async def test_an_answer_ends_where_the_context_does(thread):
    assert len(await tokens_of(thread.submit(request(random_prompt(1, 500), LONG)))) == 12


async def test_what_can_never_be_served_is_refused_at_once(thread):
    with pytest.raises(PromptTooLongError, match="512"):
        thread.submit(request([1] * 512))
    with pytest.raises(RequestError, match="empty"):
        thread.submit(request([]))
    with pytest.raises(UnknownRemedyError, match="clear_cache"):
        await thread.remedy("dance")


async def test_remedies_work_while_a_request_is_being_served(thread):
    prompt = random_prompt(1)
    await tokens_of(thread.submit(request(prompt)))
    assert thread.stats()["prefix_cache"]["entries"] == 1
    running = thread.submit(request(random_prompt(2), 300))
    await anext(running)
    await thread.remedy("drop_prefix_cache")
    await thread.remedy("speculation_off")
    assert thread.stats()["prefix_cache"]["entries"] == 0
    assert thread.stats()["speculation"]["method"] == "off"
    assert len(await tokens_of(running)) + 1 >= 300


async def test_progress_tells_idle_from_busy(thread):
    assert thread.progress().state == "idle"
    running = thread.submit(request(random_prompt(2), 400))
    await anext(running)
    assert thread.progress().state == "busy"
    assert thread.progress().phase == "decode"
    await tokens_of(running)
    assert thread.progress().tokens >= 400


async def test_draining_ends_what_is_there_and_takes_nothing_new(thread):
    running = thread.submit(request(random_prompt(2), 60))
    draining = asyncio.ensure_future(thread.drain(20))
    await asyncio.sleep(0)
    with pytest.raises(DrainingError):
        thread.submit(request(random_prompt(1)))
    assert len(await tokens_of(running)) == 60
    await draining


async def test_what_is_left_at_the_drain_deadline_is_told_so(thread):
    running, waiting = (thread.submit(request(random_prompt(seed, 20), 480)) for seed in (1, 2))
    await thread.drain(0.0)
    for generation in (running, waiting):
        with pytest.raises(EngineStoppedError):
            await tokens_of(generation)


async def test_stats_hold_what_the_contract_names(thread):
    await tokens_of(thread.submit(request(random_prompt(1), 30)))
    stats = thread.stats()
    assert stats["phase"] == "idle"
    assert stats["requests"] == 1
    assert stats["generated_tokens"] == 30
    assert stats["decode_windows"]["256"]["tokens"] == 30
    assert set(stats["phase_seconds"]) == {"backbone", "draft", "sample", "cache"}
    assert set(stats["memory_bytes"]) == {"active", "cache", "peak"}
    assert {"method", "k", "why"} <= set(stats["speculation"])


async def test_sampling_filters_run_in_the_thread(thread):
    sampling = Sampling(0.8, top_p=0.9, top_k=20, min_p=0.01, seed=4)
    asked = [GenerationRequest("s", tuple(random_prompt(1)), 20, sampling) for _ in range(2)]
    first, second = [await tokens_of(thread.submit(one)) for one in asked]
    assert first == second


async def load_error(folder: Path) -> str:
    decoding = DecodeThread(EngineSettings(str(folder)))
    decoding.start()
    with pytest.raises(ModelError) as raised:
        await decoding.ready()
    decoding.stop()
    return str(raised.value)


async def test_a_cut_off_weight_file_fails_at_load_and_says_so(tmp_path):
    broken = write_tiny_model(tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "is cut off" in await load_error(broken)
    weights.write_bytes(b"\x00\x01")
    assert "not a whole safetensors file" in await load_error(broken)


async def test_what_is_no_model_is_named(tmp_path):
    assert "no config.json" in await load_error(tmp_path)
    assert "neither a folder" in await load_error(Path("nonsense"))


async def test_a_fault_ends_the_request_that_met_it_and_no_other(thread):
    hopeless = GenerationRequest("h", tuple(random_prompt(1)), 20, Sampling(temperature="hot"))
    with pytest.raises(DecodeError, match="str"):
        await tokens_of(thread.submit(hopeless))
    assert len(await tokens_of(thread.submit(request(random_prompt(1), 20)))) == 20


async def test_prompts_that_cannot_be_saved_are_said_so(thread, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(EngineError, match="cannot save"):
        await thread.save_prefixes(tmp_path / "file", 1 << 30, 5.0)


async def test_a_save_goes_on_between_the_steps_of_a_stream_and_a_load_brings_it_back(thread, tmp_path, monkeypatch):
    monkeypatch.setattr(prefix_disk, "MOST_TOKENS", 8)
    prompts = [random_prompt(seed, 100) for seed in range(4)]
    for prompt in prompts:
        await tokens_of(thread.submit(request(prompt, 2)))
    stream = thread.submit(request(random_prompt(9), 400))
    await anext(stream)
    saved = await thread.save_prefixes(tmp_path / "prefix", 1 << 30, 20.0)
    assert stream.usage.completion_tokens < 400  # it had not ended, and still does not stand still
    assert len(await tokens_of(stream)) > 100
    await thread.remedy("drop_prefix_cache")
    assert await thread.load_prefixes(tmp_path / "prefix") == saved > 390
    again = thread.submit(request([*prompts[2], 1, 2], 5))
    assert await tokens_of(again) == reference(tiny_model(), [*prompts[2], 1, 2], 5)
    assert again.usage.cached_tokens >= 100


async def test_what_there_is_no_room_for_is_not_saved_and_the_newest_go_first(thread, tmp_path):
    prompts = [[seed, *random_prompt(seed, 99)] for seed in range(4)]
    for prompt in prompts:
        await tokens_of(thread.submit(request(prompt, 1)))
    await thread.save_prefixes(tmp_path / "prefix", 70_000, 20.0)
    await thread.remedy("drop_prefix_cache")
    await thread.load_prefixes(tmp_path / "prefix")
    cached = []
    for prompt in prompts:
        generation = thread.submit(request([*prompt, 1], 1))
        await tokens_of(generation)
        cached.append(generation.usage.cached_tokens)
    assert cached[-1] >= 100
    assert cached[0] < 5


async def test_after_it_has_ended_nothing_hangs(thread):
    thread.stop()
    await thread.ended()
    with pytest.raises(DrainingError):
        thread.submit(request(random_prompt(1)))
    with pytest.raises(EngineStoppedError):
        await thread.remedy("clear_cache")
