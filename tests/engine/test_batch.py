"""Several requests at once: each gets what it would have got alone, and none waits for another to end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tiny_model import assert_same_up_to_ties, random_prompt, reference, tiny_model, write_tiny_model

from engine.decode_thread import DecodeThread
from engine.errors import EngineStoppedError
from engine.generation import Generation
from engine.request import EngineSettings, GenerationRequest, Sampling

LONG = 10_000
GREEDY = Sampling(temperature=0)


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


def request(prompt: list[int], count: int, sampling: Sampling = GREEDY, **options: object) -> GenerationRequest:
    return GenerationRequest("test", tuple(prompt), count, sampling, **options)


async def tokens_of(generation: Generation) -> list[int]:
    return [token async for batch in generation for token in batch.tokens]


async def together(thread: DecodeThread, requests: list[GenerationRequest]) -> list[list[int]]:
    return list(await asyncio.gather(*(tokens_of(thread.submit(one)) for one in requests)))


async def test_each_of_many_gets_the_tokens_it_gets_alone(thread):
    model = tiny_model()
    prompts = [random_prompt(seed, 5 + 9 * seed) for seed in range(9)]
    answers = await together(thread, [request(prompt, 20 + seed) for seed, prompt in enumerate(prompts)])
    assert thread.stats()["batch"]["tokens"] > 100
    for seed, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        assert_same_up_to_ties(model, prompt, reference(model, prompt, 20 + seed), answer)


async def test_usage_adds_up_for_one_that_was_alone_and_then_in_company_and_then_alone(thread):
    model, prompt = tiny_model(), random_prompt(1)
    first = thread.submit(request(prompt, 200))
    given = [token async for batch in _first(first, 20) for token in batch.tokens]
    others = await together(thread, [request(random_prompt(seed), 10) for seed in (2, 3)])
    given += await tokens_of(first)
    assert_same_up_to_ties(model, prompt, reference(model, prompt, 200), given)
    assert [len(other) for other in others] == [10, 10]
    usage = first.usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (len(prompt), 0, 200)
    assert thread.stats()["requests"] == 3
    assert thread.stats()["generated_tokens"] == 220


async def _first(generation: Generation, count: int) -> AsyncIterator:
    async for batch in generation:
        yield batch
        count -= len(batch.tokens)
        if count <= 0:
            return


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=0.8, seed=7),
        Sampling(temperature=1.0, seed=3, top_p=0.8, top_k=12),
        Sampling(temperature=0, repetition_penalty=1.3),
        Sampling(temperature=0.7, seed=5, presence_penalty=0.5, frequency_penalty=0.2, logit_bias={4: 1.5}),
    ],
)
async def test_a_seed_and_penalties_give_the_same_in_company(thread, sampling):
    prompt = random_prompt(4)
    alone = await tokens_of(thread.submit(request(prompt, 40, sampling)))
    answers = await together(
        thread, [request(prompt, 40, sampling), request(random_prompt(5), 40), request(prompt, 40)]
    )
    assert thread.stats()["batch"]["tokens"] > 40
    assert answers[0] == alone


async def test_short_ones_end_while_a_long_one_goes_on(thread):
    long = thread.submit(request(random_prompt(1), 400))
    await asyncio.wait_for(together(thread, [request(random_prompt(seed), 8) for seed in range(2, 8)]), 60)
    assert thread.progress().state == "busy"
    assert long.usage.completion_tokens < 400
    assert len(await tokens_of(long)) == 400


async def test_a_stop_token_ends_one_row_and_no_other(thread):
    model, prompt = tiny_model(), random_prompt(6)
    expected = reference(model, prompt, 30)
    stop = expected[10]
    stopped, whole = await together(
        thread, [request(prompt, 30, stop_tokens=frozenset({stop})), request(random_prompt(7), 30)]
    )
    assert stopped == expected[: expected.index(stop) + 1]
    assert len(whole) == 30


async def test_one_that_leaves_frees_its_row_and_nobody_notices(thread):
    generations = [thread.submit(request(random_prompt(seed), LONG)) for seed in (1, 2)]
    stays = thread.submit(request(random_prompt(3), 60))
    async for batch in generations[0]:
        if batch.tokens:
            break
    for generation in generations:
        generation.cancel()
    assert len(await tokens_of(stays)) == 60
    for generation in generations:
        await tokens_of(generation)
        assert generation.usage.completion_tokens < 450


async def test_more_than_there_are_rows_for_are_served_in_turn(thread):
    answers = await together(thread, [request(random_prompt(seed), 6) for seed in range(40)])
    assert [len(answer) for answer in answers] == [6] * 40


async def test_a_second_turn_finds_its_first_in_the_prefix_cache_whoever_was_beside_it(thread):
    prompts = [random_prompt(seed, 40) for seed in (1, 2, 3)]
    answers = await together(thread, [request(prompt, 12) for prompt in prompts])
    for prompt, answer in zip(prompts, answers, strict=True):
        turn = [*prompt, *answer, 5, 6, 7]
        generation = thread.submit(request(turn, 10))
        assert await tokens_of(generation) == reference(tiny_model(), turn, 10)
        assert generation.usage.cached_tokens >= len(prompt) + len(answer) - 1


async def test_stopping_ends_all_of_them_with_a_word(thread):
    generations = [thread.submit(request(random_prompt(seed), LONG)) for seed in range(3)]
    async for batch in generations[2]:
        if batch.tokens:
            break
    thread.stop()
    for generation in generations:
        with pytest.raises(EngineStoppedError):
            await tokens_of(generation)
