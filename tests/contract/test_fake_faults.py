"""The fake worker's faults are the faults that they claim to be."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest

from tests.conftest import FakeWorkerFactory, RunningWorker, find_free_port, port_is_open
from tests.fakes import expected_text, read_lines, set_knobs
from tests.waiting import wait_until

CHAT = "/v1/chat/completions"


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
        yield session


def body(text: str = "hi", tokens: int = 8, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": tokens, "stream": True, **more}


async def ask(http: aiohttp.ClientSession, worker: RunningWorker, **more: Any) -> tuple[int, bytes]:
    async with http.post(worker.url + CHAT, json=body(**more)) as answer:
        return answer.status, await answer.read()


async def stats(http: aiohttp.ClientSession, worker: RunningWorker) -> dict[str, Any]:
    async with http.get(f"{worker.url}/stats") as answer:
        return dict(await answer.json())


def raw_answer(worker: RunningWorker, request: bytes) -> bytes:
    """All bytes of an answer on a connection of its own."""
    with socket.create_connection(("127.0.0.1", worker.port), 5) as connection:
        connection.sendall(request)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def text_of(stream: bytes, key: str = "content") -> str:
    events = [json.loads(line[6:]) for line in stream.decode().split("\n") if line.startswith("data: {")]
    return "".join(event["choices"][0]["delta"].get(key, "") for event in events if event["choices"])


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
async def test_each_framing_carries_the_same_events(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession, framing: str, tmp_path: Path
) -> None:
    digests = tmp_path / "digests"
    worker = await fake_worker(framing=framing, digest_file=digests, split_writes=True)
    payload = json.dumps(body()).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nConnection: close\r\nContent-Length: {len(payload)}\r\n\r\n".encode()
    raw = await asyncio.to_thread(raw_answer, worker, head + payload)
    assert raw.startswith(b"HTTP/1.0 200" if framing == "close" else b"HTTP/1.1 200")
    assert (b"transfer-encoding: chunked" in raw) == (framing == "chunked")
    assert (b"content-length" in raw) == (framing == "length")
    async with http.post(worker.url + CHAT, json=body(), headers={"X-Request-Id": "r2"}) as answer:
        sent = await answer.read()
    assert text_of(sent) == expected_text("hi", 8)
    noted = await wait_until(lambda: read_lines(digests)[1:], 5, "the second digest")
    assert noted[0]["request_id"] == "r2"
    assert noted[0]["sha256"] == hashlib.sha256(sent).hexdigest()
    assert noted[0]["bytes"] == len(sent)
    assert noted[0]["tokens"] == 8
    assert noted[0]["complete"] is True


@pytest.mark.parametrize(("mode", "status"), [("500", 500), ("429", 429), ("empty_200", 200)])
async def test_a_failing_mode_answers_so(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession, mode: str, status: int
) -> None:
    worker = await fake_worker(mode=mode, mode_after=1, mode_for=1)
    assert (await ask(http, worker))[1].endswith(b"[DONE]\n\n")
    got, sent = await ask(http, worker)
    assert got == status
    assert b"error" in sent or sent == b""
    assert (await ask(http, worker))[1].endswith(b"[DONE]\n\n")


@pytest.mark.parametrize("mode", ["reset", "cut"])
async def test_a_reset_is_an_error_to_the_client(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession, mode: str
) -> None:
    worker = await fake_worker(mode=mode)
    with pytest.raises(aiohttp.ClientError):
        await ask(http, worker)


async def test_ends_without_a_terminal_event_are_clean(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession
) -> None:
    worker = await fake_worker(mode="no_done", mode_tokens=2)
    status, sent = await ask(http, worker)
    assert status == 200
    assert text_of(sent) == expected_text("hi", 2)
    assert b"[DONE]" not in sent
    worker = await fake_worker(mode="finish_error")
    assert b'"finish_reason": "error"' in (await ask(http, worker))[1]
    worker = await fake_worker(mode="error_event")
    assert b'data: {"error"' in (await ask(http, worker))[1]


@pytest.mark.parametrize("mode", ["hang", "headers_then_nothing", "stall"])
async def test_a_silent_worker_stays_healthy_and_silent(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession, mode: str
) -> None:
    worker = await fake_worker(mode=mode, mode_tokens=1)

    async def begin() -> aiohttp.ClientResponse:
        return await http.post(worker.url + CHAT, json=body())

    if mode == "hang":
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(begin(), 0.3)
    else:
        async with await begin() as answer:
            assert answer.status == 200
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(answer.read(), 0.3)
    async with http.get(f"{worker.url}/health") as answer:
        assert answer.status == 200


async def test_health_and_mode_change_through_the_control_file(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    control = tmp_path / "control"
    worker = await fake_worker(control=control)

    async def health() -> int:
        async with http.get(f"{worker.url}/health") as answer:
            return answer.status

    assert await health() == 200
    set_knobs(control, health="500", mode="500")

    async def is_ill() -> bool:
        return await health() == 500

    await wait_until(is_ill, 5, "an ill worker")
    assert (await ask(http, worker))[0] == 500


@pytest.mark.parametrize("tokens", [0, 2])
async def test_a_crash_comes_in_the_request_named_after_so_many_tokens(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession, tmp_path: Path, tokens: int
) -> None:
    digests = tmp_path / "digests"
    worker = await fake_worker(crash_marker="poison", crash_tokens=tokens, digest_file=digests)
    assert (await ask(http, worker))[0] == 200
    with pytest.raises(aiohttp.ClientError):
        await ask(http, worker, text="some poison")
    assert await asyncio.wait_for(worker.process.wait(), 5) == 70
    assert [(line["tokens"], line["complete"]) for line in read_lines(digests)] == [(8, True), (tokens, False)]


async def test_a_client_that_leaves_can_be_ignored(fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession) -> None:
    worker = await fake_worker(keep_generating=True)
    async with http.post(worker.url + CHAT, json=body(tokens=200)) as answer:
        await answer.content.readline()
        answer.close()

    async def all_generated() -> bool:
        return bool((await stats(http, worker))["generated_tokens"] == 200)

    await wait_until(all_generated, 5, "all the tokens that nobody reads")


async def test_a_worker_of_one_request_lets_health_wait(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession
) -> None:
    worker = await fake_worker(one_at_a_time=True, tok_s=20)
    async with http.post(worker.url + CHAT, json=body()) as answer:
        await answer.content.readline()
        with pytest.raises(TimeoutError):
            await http.get(f"{worker.url}/health", timeout=aiohttp.ClientTimeout(total=0.1))
        await answer.read()
    async with http.get(f"{worker.url}/health") as answer:
        assert answer.status == 200


async def test_sigterm_is_ignored_or_slow_or_at_once(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    control = tmp_path / "control"
    stubborn = await fake_worker(sigterm="ignored", control=control)
    hasty = await fake_worker(sigterm="now", tok_s=1)
    async with http.post(hasty.url + CHAT, json=body(early_headers=True)) as answer:
        stubborn.process.send_signal(signal.SIGTERM)
        hasty.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(hasty.process.wait(), 2) == 0
        assert (await ask(http, stubborn))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await answer.read()
    set_knobs(control, sigterm="slow", term_seconds=0.3)

    async def sees_the_knob() -> bool:
        stubborn.process.send_signal(signal.SIGTERM)
        return not port_is_open(stubborn.port)

    await wait_until(sees_the_knob, 5, "a worker that closes its port")
    assert stubborn.process.returncode is None
    assert await asyncio.wait_for(stubborn.process.wait(), 3) == 0


async def test_a_grandchild_keeps_the_port_and_another_the_memory(
    fake_worker: FakeWorkerFactory, tmp_path: Path
) -> None:
    pids = tmp_path / "port", tmp_path / "memory"
    holder = await fake_worker(grandchild="port", grandchild_setsid=True, grandchild_pid_file=pids[0])
    hoarder = await fake_worker(grandchild="memory", grandchild_mb=80, grandchild_pid_file=pids[1])
    grandchildren = [psutil.Process(int(await wait_until(path.read_text, 5, f"{path}"))) for path in pids]
    try:
        for worker in (holder, hoarder):
            worker.process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(worker.process.wait(), 5) == 0
        assert port_is_open(holder.port)
        assert not port_is_open(hoarder.port)
        assert os.getpgid(grandchildren[0].pid) == grandchildren[0].pid != holder.pid
        assert os.getpgid(grandchildren[1].pid) == hoarder.pid
        assert grandchildren[1].memory_info().rss > 80_000_000
    finally:
        for grandchild in grandchildren:
            grandchild.kill()
    await wait_until(lambda: not port_is_open(holder.port), 5, "the port, free again")


async def test_spawns_are_counted_and_the_first_fail(fake_worker: FakeWorkerFactory, tmp_path: Path) -> None:
    counter = tmp_path / "spawns"
    for _ in range(2):
        failed = await fake_worker(spawn_counter=counter, fail_spawns=2, exit_code=9, ready_s=None)
        assert await asyncio.wait_for(failed.process.wait(), 5) == 9
    await fake_worker(spawn_counter=counter, fail_spawns=2, exit_code=9)
    assert len(counter.read_text().splitlines()) == 3


async def test_a_start_may_be_delayed_and_the_load_too(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession
) -> None:
    port = find_free_port()
    worker = await fake_worker(port=port, start_delay=0.3, load_delay=0.3, ready_s=None)
    assert not port_is_open(port)
    await wait_until(lambda: port_is_open(port), 5, "the port")
    assert (await ask(http, worker))[0] == 503

    async def is_healthy() -> bool:
        async with http.get(f"{worker.url}/health") as answer:
            return answer.status == 200

    await wait_until(is_healthy, 5, "health")
    assert (await ask(http, worker))[0] == 200


async def test_memory_grows_and_output_floods(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    worker = await fake_worker(growth_mb=30, flood=100_000)
    process = psutil.Process(worker.pid)
    before = process.memory_info().rss
    for _ in range(3):
        await ask(http, worker)
    await wait_until(lambda: process.memory_info().rss - before > 80_000_000, 5, "90 MB more")
    await wait_until(lambda: "xxx" in capfd.readouterr().out, 5, "its output")


async def test_requests_are_noted_as_they_came(
    fake_worker: FakeWorkerFactory, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    worker = await fake_worker(requests_file=tmp_path / "requests", age_file=tmp_path / "age")
    async with http.post(worker.url + CHAT, data=json.dumps(body()).encode(), headers={"X-Mine": "1"}) as answer:
        await answer.read()
    noted = read_lines(tmp_path / "requests")[0]
    assert noted["body"] == json.dumps(body())
    assert noted["headers"]["x-mine"] == "1"
    age = await wait_until(lambda: read_lines(tmp_path / "age"), 5, "its age")
    assert age[0]["requests"] == 1
