"""The probe against a real fake worker over real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from supervisor.core.samples import Void
from supervisor.shell.probing.probe import ProbeResult, TokenClock, one_token, run_canary
from supervisor.shell.probing.token_stream import TokenStream
from tests.conftest import FakeWorkerFactory, RunningWorker
from tests.fakes import read_lines, set_knobs
from tests.waiting import wait_until


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as one:
        yield one


async def probe(session: aiohttp.ClientSession, worker: RunningWorker, **changes: Any) -> ProbeResult:
    asked: dict[str, Any] = {
        "model": "fake",
        "kind": "chat",
        "headers": {},
        "prompt_tokens": 256,
        "max_tokens": 64,
        "max_time_s": 4.0,
        "timeout_s": 10.0,
    }
    return await run_canary(session, worker.url, **{**asked, **changes})


@pytest.mark.parametrize("chunk_tokens", [1, 2, 4, 8])
async def test_the_rate_is_right_within_3_percent_whatever_a_chunk_holds(
    session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory, chunk_tokens: int
) -> None:
    worker = await fake_worker(tok_s=80, chunk_tokens=chunk_tokens)
    result = await probe(session, worker, has_warmup=True)
    assert result.void is None
    assert result.decode_tok_s == pytest.approx(80, rel=0.03)
    assert result.tokens == 64


async def test_text_completions_are_measured_too(
    session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory
) -> None:
    result = await probe(session, await fake_worker(tok_s=200), kind="completions")
    assert result.decode_tok_s == pytest.approx(200, rel=0.05)
    assert result.prompt_tokens == pytest.approx(256, rel=0.2)


async def test_tokens_of_reasoning_are_tokens(session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory) -> None:
    result = await probe(session, await fake_worker(tok_s=200, reasoning_tokens=60))
    assert result.decode_tok_s == pytest.approx(200, rel=0.05)


async def test_a_stream_cut_into_odd_writes_is_read_all_the_same(
    session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory
) -> None:
    result = await probe(session, await fake_worker(tok_s=200, split_writes=True, framing="close"))
    assert result.decode_tok_s == pytest.approx(200, rel=0.05)


async def test_embeddings_are_measured_by_tokens_read(
    session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory
) -> None:
    result = await probe(session, await fake_worker(tok_s=1000), kind="embeddings")
    assert result.void is None
    assert result.decode_tok_s == pytest.approx(1000, rel=0.15)
    assert result.tokens > 100


async def test_embeddings_of_a_server_without_usage_are_measured_by_texts(
    session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory
) -> None:
    result = await probe(session, await fake_worker(tok_s=1000, usage="never"), kind="embeddings", prompt_tokens=256)
    assert (result.void, result.tokens) == (None, 0)
    assert result.decode_tok_s == pytest.approx(1000 / 256, rel=0.2)


async def test_a_server_without_usage_is_counted_by_an_answer_in_one_piece(
    session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory
) -> None:
    clock = TokenClock()
    worker = await fake_worker(tok_s=400, usage="never", chunk_tokens=4)
    result = await probe(session, worker, token_clock=clock)
    assert result.decode_tok_s == pytest.approx(400, rel=0.1)
    assert clock.tokens_per_chunk == 4


async def test_a_slow_worker_is_cut_short_once_its_chunks_have_been_proven(
    session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory, tmp_path: Path
) -> None:
    clock, control = TokenClock(), tmp_path / "knobs"
    worker = await fake_worker(tok_s=300, chunk_tokens=2, control=control)
    assert not (await probe(session, worker, token_clock=clock)).detail
    set_knobs(control, tok_s=40)
    await probe(session, worker, max_tokens=9)  # by its end the worker has seen its new rate
    result = await probe(session, worker, token_clock=clock, max_time_s=0.4)
    assert "cut short" in result.detail
    assert result.decode_tok_s == pytest.approx(40, rel=0.1)
    assert result.took_s < 1.0


async def test_a_worker_too_slow_for_the_timeout_is_slow_and_not_silent(
    session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory
) -> None:
    worker = await fake_worker(tok_s=20)
    asked = {"prompt_tokens": 1, "timeout_s": 1.0, "max_time_s": 60.0}
    assert (await probe(session, worker, **asked)).void is Void.TOO_FEW_TOKENS
    result = await probe(session, worker, token_clock=TokenClock(tokens_per_chunk=1.0), **asked)
    assert result.decode_tok_s == pytest.approx(20, rel=0.15)


async def test_a_nonce_measures_prefill(session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker(tok_s=500, prefill_tok_s=1000)
    cached = await probe(session, worker, has_warmup=True)
    assert cached.ttft_s is not None
    assert cached.ttft_s < 0.15
    assert cached.prefill_tok_s is None
    fresh = await probe(session, worker, has_nonce=True)
    assert fresh.prefill_tok_s == pytest.approx(1000, rel=0.1)


@pytest.mark.parametrize(
    ("knobs", "void"),
    [
        ({"mode": "500"}, Void.FAILED),
        ({"mode": "429"}, Void.LANE_BUSY),
        ({"mode": "reset"}, Void.FAILED),
        ({"mode": "empty_200"}, Void.NO_TOKENS),
        ({"mode": "error_event"}, Void.FAILED),
        ({"mode": "cut"}, Void.FAILED),
        ({"mode": "finish_error"}, Void.FAILED),
        ({"mode": "stall"}, Void.TIMED_OUT),
        ({"mode": "hang"}, Void.TIMED_OUT),
        ({"mode": "headers_then_nothing"}, Void.TIMED_OUT),
        ({"strict_model": True, "model": "other"}, Void.UNMEASURABLE),
        ({"answer_tokens": 5}, Void.TOO_FEW_TOKENS),
    ],
)
async def test_a_run_that_brings_no_rate_says_why(
    session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory, knobs: dict[str, Any], void: Void
) -> None:
    worker = await fake_worker(**knobs)
    result = await probe(session, worker, timeout_s=0.5, prompt_tokens=1)
    assert (result.void, result.decode_tok_s) == (void, None)
    assert result.detail


async def test_nobody_there_is_a_failure(session: aiohttp.ClientSession, free_port: int) -> None:
    asked: dict[str, Any] = {"model": "m", "kind": "chat", "headers": {}, "timeout_s": 2.0}
    more = {"prompt_tokens": 9, "max_tokens": 9, "max_time_s": 1.0}
    result = await run_canary(session, f"http://127.0.0.1:{free_port}", **asked, **more)
    assert result.void is Void.FAILED
    assert await one_token(session, f"http://127.0.0.1:{free_port}", **asked)


async def test_a_cancelled_run_ends_its_request_at_once(
    session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory
) -> None:
    worker = await fake_worker(tok_s=10)

    async def active() -> int:
        async with session.get(f"{worker.url}/stats") as answer:
            return int((await answer.json(content_type=None))["inflight"])

    async with asyncio.TaskGroup() as group:
        run = group.create_task(probe(session, worker))
        await wait_until(active, what="the canary to be in flight")
        run.cancel()

        async def is_idle() -> bool:
            return await active() == 0

        await wait_until(is_idle, 2.0, "the worker to be rid of it")
    assert run.cancelled()


async def test_one_token_tells_an_answer_from_silence(
    session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory, tmp_path: Path
) -> None:
    control = tmp_path / "knobs"
    worker = await fake_worker(control=control)
    asked: dict[str, Any] = {"model": "fake", "headers": {}, "timeout_s": 0.5}
    for kind in ("chat", "completions", "embeddings"):
        assert await one_token(session, worker.url, kind=kind, **asked) is None
    set_knobs(control, mode="hang")
    said = await wait_until(lambda: one_token(session, worker.url, kind="chat", **asked))
    assert "no answer" in said.detail


def test_what_is_no_text_does_not_count() -> None:
    stream = TokenStream()
    stream.feed(b': a comment\n\ndata: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n', 1.0)
    stream.feed(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: {"choices":[{"text":"b"}]}\r\n\r\nda', 2.0)
    stream.feed(b'ta: {"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}\n\n', 3.0)
    stream.feed(
        b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: {"choices":[],"usage":{"x":1}}\n', 4.0
    )
    stream.feed(b"data: not json\n\ndata: [1]\n\ndata: [DONE]\n\n", 5.0)
    assert (stream.chunks, stream.first_chunks, stream.first_at, stream.last_at) == (3, 2, 2.0, 3.0)
    assert stream.is_complete
    assert stream.tokens is None


async def test_our_engine_is_asked_to_leave_speculation_off(
    session: aiohttp.ClientSession, fake_worker: FakeWorkerFactory, tmp_path: Path
) -> None:
    worker = await fake_worker(tok_s=400, requests_file=tmp_path / "requests")
    for is_plain in (False, True):
        assert (await probe(session, worker, is_plain=is_plain)).void is None
    bodies = [json.loads(line["body"]) for line in read_lines(tmp_path / "requests") if line["body"]]
    assert [body.get("freshlane") for body in bodies] == [None, {"speculation": False}]
