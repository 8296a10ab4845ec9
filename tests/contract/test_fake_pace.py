"""The fake worker runs at the rate that its knobs say."""

from __future__ import annotations

import json
import signal
import statistics
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from tests.conftest import FakeWorkerFactory, RunningWorker
from tests.fakes import expected_text, set_knobs
from tests.waiting import wait_until


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
        yield session


async def events(
    http: aiohttp.ClientSession, worker: RunningWorker, prompt: str = "hi", tokens: int = 1, **more: Any
) -> list[tuple[float, dict[str, Any]]]:
    """The events of a stream, each with its moment."""
    body = {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        **more,
    }
    async with http.post(f"{worker.url}/v1/chat/completions", json=body) as answer:
        data = [(time.monotonic(), line[6:]) async for line in answer.content if line.startswith(b"data: {")]
    return [(moment, json.loads(line)) for moment, line in data]


async def rate(http: aiohttp.ClientSession, worker: RunningWorker, tokens: int, **more: Any) -> float:
    """Tokens a second from the first to the last token-bearing event, by usage and chunk size."""
    found = await events(http, worker, tokens=tokens, **more)
    moments = [moment for moment, event in found if event["choices"] and event["choices"][0]["delta"].keys() & KEYS]
    first, last = moments[1], moments[-1]  # [0] is the role
    assert found[-1][1]["usage"]["completion_tokens"] == tokens
    return tokens * (1 - 1 / (len(moments) - 1)) / (last - first)


KEYS = {"content", "reasoning_content"}


async def stats(http: aiohttp.ClientSession, worker: RunningWorker) -> dict[str, Any]:
    async with http.get(f"{worker.url}/stats") as answer:
        return dict(await answer.json())


async def test_the_rate_is_the_nominal_one(fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession) -> None:
    worker = await fake_worker(tok_s=200)
    assert await rate(http, worker, 100) == pytest.approx(200, rel=0.03)


async def test_the_rate_is_the_nominal_one_with_several_tokens_an_event(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession
) -> None:
    worker = await fake_worker(tok_s=400, chunk_tokens=4, reasoning_tokens=20)
    assert await rate(http, worker, 200) == pytest.approx(400, rel=0.03)


async def test_a_process_decays_over_requests_and_a_remedy_cures_it(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession
) -> None:
    worker = await fake_worker(decay_from=6650, decay_to=2050, decay_requests=4, cured_by="clear_cache")
    for _ in range(6):
        await events(http, worker)
    told = await stats(http, worker)
    assert told["rates"][0] == pytest.approx(6650, rel=0.001)
    assert told["rates"][2] == pytest.approx((6650 + 2050) / 2, rel=0.001)
    assert told["rates"][4] == told["rates"][5] == pytest.approx(2050, rel=0.001)
    await (await http.post(f"{worker.url}/remedies/clear_cache")).read()
    told = await stats(http, worker)
    assert told["nominal_tok_s"] == pytest.approx(6650, rel=0.001)
    assert told["calls"] == ["clear_cache"]


async def test_acceptance_falls_and_the_time_of_a_step_stays(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession
) -> None:
    worker = await fake_worker(tok_s=2900, acceptance=0.475, acceptance_to=0, decay_requests=2, decay_shape="step")

    async def ask_twice() -> tuple[float, float]:
        """Tokens a step and seconds a step of two more requests."""
        before = await stats(http, worker)
        for _ in range(2):
            await events(http, worker, tokens=290)
        after = await stats(http, worker)
        cycles = after["acceptance"]["cycles"] - before["acceptance"]["cycles"]
        tokens = after["generated_tokens"] - before["generated_tokens"]
        seconds = after["phase_seconds"]["backbone"] - before["phase_seconds"]["backbone"]
        return tokens / cycles, seconds / cycles

    fresh, worn = await ask_twice(), await ask_twice()
    assert fresh[0] == pytest.approx(2.9, rel=0.02)
    assert worn[0] == pytest.approx(1.0, rel=0.02)
    assert worn[1] == pytest.approx(fresh[1], rel=0.1)
    assert (await stats(http, worker))["rates"][0::2] == [2900, 1000]


async def test_noise_has_its_size_and_outliers_their_chance(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession
) -> None:
    worker = await fake_worker(tok_s=10_000, noise=0.14, seed=3)
    for _ in range(200):
        await events(http, worker)
    rates = (await stats(http, worker))["rates"]
    assert statistics.stdev(rates) / statistics.mean(rates) == pytest.approx(0.14, abs=0.03)
    worker = await fake_worker(tok_s=10_000, outliers=0.125, seed=3)
    for _ in range(200):
        await events(http, worker)
    rates = [round(rate) for rate in (await stats(http, worker))["rates"]]
    assert set(rates) == {10_000, 5_000}
    assert rates.count(5_000) / len(rates) == pytest.approx(0.125, abs=0.06)


async def test_spawns_draw_their_speed_in_turn(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    drawn = []
    for _ in range(3):
        worker = await fake_worker(spawn_speeds=[33, 26], spawn_counter=tmp_path / "spawns")
        drawn.append((await stats(http, worker))["nominal_tok_s"])
    assert drawn == [33, 26, 33]


async def test_the_host_and_the_control_file_change_the_rate_in_mid_stream(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    host, control = tmp_path / "host", tmp_path / "control"
    host.write_text("0.5")
    worker = await fake_worker(tok_s=200, host_speed_file=host, control=control)
    assert await rate(http, worker, 40) == pytest.approx(100, rel=0.05)
    host.write_text("1.0")
    before = time.monotonic()
    async with http.post(f"{worker.url}/v1/completions", json={"prompt": "x", "max_tokens": 4000, "stream": True}) as a:
        await a.content.readline()
        set_knobs(control, tok_s=40_000)
        await a.read()
    assert time.monotonic() - before < 10


async def test_context_makes_tokens_slower(fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession) -> None:
    worker = await fake_worker(tok_s=500, ms_per_1k=2)
    await events(http, worker, prompt="abcd" * 4000)
    assert (await stats(http, worker))["rates"][0] == pytest.approx(1 / (0.002 + 0.008), rel=0.01)


async def test_prefill_takes_time_and_a_cached_beginning_none(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession
) -> None:
    worker = await fake_worker(prefill_tok_s=2000, comments_every=0.05)
    prompt = "abcd" * 1000
    durations, cached = [], []
    for _ in range(2):
        before = time.monotonic()
        found = await events(http, worker, prompt=prompt)
        durations.append(time.monotonic() - before)
        cached.append(found[-1][1]["usage"]["prompt_tokens_details"]["cached_tokens"])
    assert durations[0] > 0.5 > durations[1]
    assert cached[0] == 0
    assert cached[1] >= 960
    async with http.post(
        f"{worker.url}/v1/completions", json={"prompt": "new " * 1000, "max_tokens": 2, "stream": True}
    ) as answer:
        text = await answer.text()
    assert text.count(": keep-alive\n\n") >= 5


async def test_reasoning_comes_first_under_its_own_name(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession
) -> None:
    worker = await fake_worker(reasoning_tokens=3)
    found = await events(http, worker, tokens=8)
    deltas = [event["choices"][0]["delta"] for _, event in found if event["choices"]]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == expected_text("hi", 3)
    assert "".join(delta.get("content", "") for delta in deltas) == expected_text("hi", 5, start=3)
    assert found[-1][1]["usage"]["completion_tokens"] == 8


async def test_a_response_is_named_events_that_end_in_completed(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession
) -> None:
    worker = await fake_worker(answer_tokens=5)
    async with http.post(f"{worker.url}/v1/responses", json={"input": "hi", "stream": True}) as answer:
        text = await answer.text()
    assert text.startswith("event: response.created\n")
    last = text.rstrip("\n").rpartition("\n\n")[2]
    name, data = last.split("\n")
    assert name == "event: response.completed"
    response = json.loads(data.removeprefix("data: "))["response"]
    assert response["output"][0]["content"][0]["text"] == expected_text("hi", 5)
    assert response["usage"]["output_tokens"] == 5


async def test_the_openai_client_reads_responses_streamed_and_whole(fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker(answer_tokens=5)
    async with openai.AsyncOpenAI(base_url=f"{worker.url}/v1", api_key="none", max_retries=0, timeout=20) as client:
        whole = await client.responses.create(model="fake", input="hi")
        stream = await client.responses.create(model="fake", input="hi", stream=True)
        kinds = [event.type async for event in stream]
        short = await client.responses.create(model="fake", input="hi", max_output_tokens=2)
    assert whole.output_text == expected_text("hi", 5)
    assert whole.status == "completed"
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.output_text.delta") == 5
    assert short.status == "incomplete"


async def test_embeddings_are_vectors_of_the_text(fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession) -> None:
    worker = await fake_worker()
    async with http.post(f"{worker.url}/v1/embeddings", json={"input": ["a", "b", "a"]}) as answer:
        data = (await answer.json())["data"]
    assert data[0]["embedding"] == data[2]["embedding"] != data[1]["embedding"]


async def test_a_stopped_process_does_not_catch_up_in_a_burst(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession
) -> None:
    worker = await fake_worker(tok_s=100)
    async with http.post(
        f"{worker.url}/v1/completions", json={"prompt": "x", "max_tokens": 150, "stream": True}
    ) as answer:
        await answer.content.readline()
        before = time.monotonic()
        worker.process.send_signal(signal.SIGSTOP)
        await wait_until(lambda: time.monotonic() - before > 1.0, 3, "a second")
        worker.process.send_signal(signal.SIGCONT)
        await answer.read()
    assert time.monotonic() - before > 1.8
