"""How a worker counts, stops generating, stops, and keeps its prefix cache."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp

from tests.contract.conftest import ENGINE_READY_S, Worker, chat
from tests.waiting import wait_until

LONG = "Write a long story about a river, the town beside it, and its people."


async def stats(http: aiohttp.ClientSession, worker: Worker) -> dict[str, Any]:
    async with http.get(f"{worker.url}/stats") as answer:
        assert answer.status == 200
        return dict(await answer.json())


async def is_idle(http: aiohttp.ClientSession, worker: Worker) -> bool:
    return bool((await stats(http, worker))["phase"] == "idle")


async def test_stats_count_requests_and_tokens(worker: Worker, http: aiohttp.ClientSession) -> None:
    await wait_until(lambda: is_idle(http, worker), 20, "an idle worker")
    before = await stats(http, worker)
    async with http.post(f"{worker.url}/v1/chat/completions", json=chat(worker, "hello", max_tokens=9)) as answer:
        told = (await answer.json())["usage"]["completion_tokens"]
    after = await stats(http, worker)
    assert after["requests"] == before["requests"] + 1
    assert after["generated_tokens"] == before["generated_tokens"] + told
    for key in ("decode_windows", "phase_seconds", "acceptance"):
        assert isinstance(after[key], dict)
    assert {"backbone", "draft", "sample", "cache"} <= after["phase_seconds"].keys()
    assert after["phase_seconds"]["backbone"] > before["phase_seconds"]["backbone"]
    window = min(after["decode_windows"].items(), key=lambda item: int(item[0]))[1]
    assert window["tokens"] > 0
    assert abs(window["tok_s"] - window["tokens"] / window["seconds"]) < 0.1 * window["tok_s"]
    assert after["tokens_per_step"] >= 1
    assert {"active", "cache", "peak"} <= after["memory_bytes"].keys()
    assert after["uptime_s"] > 0


async def test_a_client_that_leaves_ends_its_generation(worker: Worker, http: aiohttp.ClientSession) -> None:
    asked = 1500
    before = await stats(http, worker)
    body = chat(worker, LONG, max_tokens=asked, stream=True)
    async with http.post(f"{worker.url}/v1/chat/completions", json=body) as answer:
        await answer.content.readuntil(b"\n\n")
        answer.close()
    await wait_until(lambda: is_idle(http, worker), 10, "an idle worker after the client has left")
    assert (await stats(http, worker))["generated_tokens"] - before["generated_tokens"] < asked / 2


async def test_sigterm_lets_a_stream_finish_and_then_the_worker_exits_with_0(
    own_worker: Callable[..., Worker], http: aiohttp.ClientSession
) -> None:
    worker = own_worker()
    await wait_until(worker.answers_health, ENGINE_READY_S, "health")
    body = chat(worker, LONG, max_tokens=40, stream=True)
    async with http.post(f"{worker.url}/v1/chat/completions", json=body) as answer:
        first = await answer.content.readuntil(b"\n\n")
        worker.process.send_signal(signal.SIGTERM)
        rest = await answer.read()
    assert (first + rest).endswith(b"data: [DONE]\n\n")
    assert b'"finish_reason":"length"' in rest.replace(b": ", b":")
    await wait_until(lambda: worker.process.poll() is not None, 20, "the worker's exit")
    assert worker.process.returncode == 0


async def test_sigterm_while_idle_ends_the_worker_with_0(
    own_worker: Callable[..., Worker], http: aiohttp.ClientSession
) -> None:
    worker = own_worker()
    await wait_until(worker.answers_health, ENGINE_READY_S, "health")
    async with http.get(f"{worker.url}/health"):  # and the connection stays open
        worker.process.send_signal(signal.SIGTERM)
    await wait_until(lambda: worker.process.poll() is not None, 20, "the worker's exit")
    assert worker.process.returncode == 0


async def test_several_streams_at_once_are_all_whole(worker: Worker, http: aiohttp.ClientSession) -> None:
    async def one(number: int) -> str:
        body = chat(worker, f"Name {number} animals.", max_tokens=8, stream=True)
        async with http.post(f"{worker.url}/v1/chat/completions", json=body) as answer:
            assert answer.status == 200
            return await answer.text()

    texts = await asyncio.gather(*(one(number) for number in range(2, 6)))
    assert all(text.endswith("data: [DONE]\n\n") for text in texts)


async def test_a_prefix_cache_saved_and_loaded_serves_the_next_worker(
    own_worker: Callable[..., Worker], http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    body = {"folder": str(tmp_path / "prefix")}
    prompt = "The river runs past the old mill and under the bridge. " * 30
    first = own_worker()
    await wait_until(first.answers_health, ENGINE_READY_S, "health")
    async with http.post(f"{first.url}/v1/chat/completions", json=chat(first, prompt, max_tokens=1)) as answer:
        assert answer.status == 200
    async with http.post(f"{first.url}/prefix/save", json=body) as answer:
        assert answer.status == 200, await answer.text()
        assert (await answer.json())["saved_tokens"] > 100
    first.end()
    second = own_worker()
    await wait_until(second.answers_health, ENGINE_READY_S, "health")
    async with http.post(f"{second.url}/prefix/load", json=body) as answer:
        assert answer.status == 200, await answer.text()
        assert (await answer.json())["restored_tokens"] > 100
    async with http.post(f"{second.url}/v1/chat/completions", json=chat(second, prompt, max_tokens=1)) as answer:
        assert (await answer.json())["usage"]["prompt_tokens_details"]["cached_tokens"] > 100


async def test_remedies_are_taken_and_unknown_ones_refused(worker: Worker, http: aiohttp.ClientSession) -> None:
    for name in ("clear_cache", "drop_prefix_cache"):
        async with http.post(f"{worker.url}/remedies/{name}") as answer:
            assert answer.status == 200, await answer.text()
    async with http.post(f"{worker.url}/remedies/no_such_remedy") as answer:
        assert answer.status == 404
