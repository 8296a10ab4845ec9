"""The proxy before real workers: the same bytes, whole events, one second try, and never a false end."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from supervisor.shell.front import gate as gate_module
from tests.conftest import FakeWorkerFactory
from tests.fakes import expected_text, set_knobs
from tests.front import chat, data_of, front, text_of
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def short_graces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "LOSS_GRACE_S", 0.1)
    monkeypatch.setattr(gate_module, "DEATH_GRACE_S", 0.5)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("split", [False, True])
async def test_a_stream_arrives_as_the_very_bytes_that_the_worker_sent(
    fake_worker: FakeWorkerFactory, tmp_path: Path, framing: str, split: bool
) -> None:
    digests = tmp_path / "digests"
    worker = await fake_worker(framing=framing, split_writes=split, digest_file=digests)
    async with front() as stage:
        stage.open_to(worker.url)
        async with stage.post(json=chat("déjà vu", 40), headers={"X-Request-Id": "one"}) as answer:
            stream = await answer.read()
            assert answer.headers["X-Request-Id"] == "one"
            assert answer.content_type == "text/event-stream"
        assert text_of(stream) == expected_text("déjà vu", 40)
        assert data_of(stream)[-1] == "[DONE]"
        await wait_until(lambda: lines_of(digests), what="the worker's digest")
        assert hashlib.sha256(stream).hexdigest() in digests.read_text()
        await stage.quiet()
        assert stage.gate.generated_tokens(1) == 40


async def test_of_the_request_only_the_models_name_changes(fake_worker: FakeWorkerFactory, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    worker = await fake_worker(requests_file=asked)
    body = (
        '{ "x":1.0e+2,"messages" : [{"role":"user","content":"\\u00e9 é model"}],\n\t"model" :"alias", "max_tokens":2}'
    )
    async with front() as stage:
        stage.open_to(worker.url, headers={"Authorization": "Bearer worker's"}, served_models={"alias": "Qwen/Ü"})
        headers = {
            "Content-Type": "application/json",
            "Authorization": "Bearer client's",
            "X-Api-Key": "client's",
            "Cookie": "freshlane_session=x",
            "X-Custom": "kept",
            "Connection": "keep-alive, X-Hop",
            "X-Hop": "dropped",
        }
        async with stage.post(data=body.encode(), headers=headers) as answer:
            assert answer.status == 200
    sent = next(line for line in lines_of(asked) if "chat" in json.dumps(line))
    assert sent["body"] == body.replace('"alias"', '"Qwen/\\u00dc"')
    names = {name.lower(): value for name, value in sent["headers"].items()}
    assert names["authorization"] == "Bearer worker's"
    assert names["x-custom"] == "kept"
    assert not {"x-api-key", "cookie", "x-hop"} & set(names)
    assert len(names["x-request-id"]) == 32


async def test_a_whole_answer_passes_and_its_usage_is_counted(fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker()
    async with front() as stage:
        stage.open_to(worker.url)
        async with stage.post(json=chat("whole", 7, stream=False)) as answer:
            document = await answer.json()
        assert document["choices"][0]["message"]["content"] == expected_text("whole", 7)
        assert (stage.gate.generated_tokens(1), stage.gate.inflight()) == (7, 0)


async def test_tokens_are_counted_by_usage_where_a_chunk_holds_several(fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker(chunk_tokens=4, usage="always")
    async with front() as stage:
        stage.open_to(worker.url)
        async with stage.post(json=chat(tokens=20)) as answer:
            await answer.read()
        await stage.quiet()
        assert stage.gate.generated_tokens(1) == 20


async def test_named_events_of_responses_pass_and_end_the_stream(fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker()
    async with front() as stage:
        stage.open_to(worker.url)
        body = {"model": "lane", "input": "hi", "stream": True, "max_output_tokens": 3}
        async with stage.post("/v1/responses", json=body) as answer:
            stream = await answer.read()
        assert b"event: response.incomplete" in stream
        assert stage.gate.totals.failed == 0


async def test_a_held_stream_gets_comments_and_then_its_answer(fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker()
    async with front(comments_after_s=0.02) as stage:
        stage.gate.hold("the worker is being recycled")
        async with stage.post(json=chat("held", 4)) as answer:
            assert answer.status == 200
            first = await answer.content.readuntil(b"\n\n")
            assert first == b": freshlane waits: the worker is being recycled\n\n"
            stage.open_to(worker.url)
            stream = await answer.read()
        assert text_of(stream) == expected_text("held", 4)
        assert stage.gate.totals.held == 1


async def test_a_held_stream_that_is_refused_in_the_end_hears_of_it_in_an_event() -> None:
    async with front(comments_after_s=0.02, hold_timeout_s=0.2) as stage:
        async with stage.post(json=chat()) as answer:
            assert answer.status == 200
            stream = await read_broken(answer)
        assert data_of(stream)[-1]["error"]["code"] == "hold_timeout"


async def test_a_held_stream_hears_of_the_workers_refusal_in_an_event(fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker(mode="429")
    async with front(comments_after_s=0.02) as stage:
        async with stage.post(json=chat()) as answer:
            await answer.content.readuntil(b"\n\n")
            stage.open_to(worker.url)
            stream = await read_broken(answer)
        assert "as it was told to" in data_of(stream)[-1]["error"]["message"]


async def test_a_stream_whose_worker_is_silent_before_the_first_token_gets_comments_too(
    fake_worker: FakeWorkerFactory,
) -> None:
    worker = await fake_worker(prefill_tok_s=10)
    async with front(comments_after_s=0.1) as stage:
        stage.open_to(worker.url)
        stream = await read_whole(stage, chat("hi", 3))
        assert stream.startswith(b": freshlane waits for the first token\n\n")
        assert text_of(stream) == expected_text("hi", 3)


async def test_a_held_call_without_a_stream_gets_503_in_the_end() -> None:
    async with front(hold_timeout_s=0.05) as stage, stage.post(json=chat(stream=False)) as answer:
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) >= 1
        error = (await answer.json())["error"]
        assert (error["source"], error["code"]) == ("freshlane", "hold_timeout")


@pytest.mark.parametrize("status", [429, 500])
async def test_a_workers_own_error_passes_untouched(fake_worker: FakeWorkerFactory, status: int) -> None:
    worker = await fake_worker(mode=str(status))
    async with front() as stage:
        stage.open_to(worker.url)
        async with stage.post(json=chat()) as answer:
            assert answer.status == status
            assert "source" not in (await answer.json())["error"]
            assert ("Retry-After" in answer.headers) == (status == 429)


async def read_broken(answer: aiohttp.ClientResponse) -> bytes:
    """What came of a stream that was not ended cleanly."""
    stream = bytearray()
    with pytest.raises(aiohttp.ClientPayloadError):
        await read_into(stream, answer)
    return bytes(stream)


async def read_into(stream: bytearray, answer: aiohttp.ClientResponse) -> None:
    async for part in answer.content.iter_any():
        stream += part


@pytest.mark.parametrize("mode", ["no_done", "cut", "crash"])
@pytest.mark.parametrize("framing", ["chunked", "close"])
async def test_a_stream_without_its_last_event_ends_in_an_error_and_never_cleanly(
    fake_worker: FakeWorkerFactory, mode: str, framing: str
) -> None:
    fault = {"crash_marker": "hello"} if mode == "crash" else {"mode": mode}
    worker = await fake_worker(framing=framing, split_writes=True, **fault)
    async with front() as stage:
        stage.open_to(worker.url)
        async with stage.post(json=chat(tokens=10)) as answer:
            stream = await read_broken(answer)
        assert text_of(stream) == expected_text("hello", 3)
        assert stream.endswith(b"\n\n")
        assert data_of(stream)[-1]["error"]["source"] == "freshlane"
        await stage.quiet()
        assert (stage.gate.totals.failed, stage.gate.totals.replayed) == (1, 0)


async def test_an_error_that_the_worker_has_told_is_not_told_twice(fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker(mode="error_event")
    async with front() as stage:
        stage.open_to(worker.url)
        async with stage.post(json=chat(tokens=10)) as answer:
            stream = await read_broken(answer)
        errors = [event for event in data_of(stream) if "error" in event]
        assert len(errors) == 1
        assert "source" not in errors[0]["error"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_worker_that_dies_before_a_token_costs_only_time(fake_worker: FakeWorkerFactory, stream: bool) -> None:
    dying = await fake_worker(crash_after=0, crash_marker="hello", crash_tokens=0, early_headers=True)
    healthy = await fake_worker()
    async with front() as stage:
        stage.open_to(dying.url)
        reading = asyncio.ensure_future(read_whole(stage, chat("hello", 6, stream=stream)))
        await dying.process.wait()
        stage.gate.worker_died(1)
        stage.open_to(healthy.url)
        body = await reading
        text = text_of(body) if stream else json.loads(body)["choices"][0]["message"]["content"]
        assert text == expected_text("hello", 6)
        assert body.count(b'"role"') == 1
        totals = stage.gate.totals
        assert (totals.replayed, totals.failed, totals.cut) == (1, 0, 0)


async def test_a_whole_answer_that_breaks_midway_is_asked_for_again(fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker(mode="cut", mode_for=1)
    async with front() as stage:
        stage.open_to(worker.url)
        document = json.loads(await read_whole(stage, chat("again", 9, stream=False)))
        assert document["choices"][0]["message"]["content"] == expected_text("again", 9)
        assert stage.gate.totals.replayed == 1


async def read_whole(stage: Any, body: dict[str, Any]) -> bytes:
    async with stage.post(json=body) as answer:
        assert answer.status == 200
        content: bytes = await answer.read()
        return content


async def test_a_worker_that_cannot_be_connected_to_is_waited_for(
    fake_worker: FakeWorkerFactory, free_port: int
) -> None:
    async with front() as stage:
        stage.open_to(f"http://127.0.0.1:{free_port}")
        asking = asyncio.ensure_future(read_whole(stage, chat("late", 4)))
        await wait_until(lambda: stage.gate.queued == 1, what="the first refusal")
        await fake_worker(port=free_port)
        assert text_of(await asking) == expected_text("late", 4)
        totals = stage.gate.totals
        assert (totals.requests, totals.replayed, stage.gate.requests(1)) == (1, 0, 1)


async def test_a_port_that_nobody_ever_listens_on_is_told_as_503_in_the_end(free_port: int) -> None:
    async with front(hold_timeout_s=0.3) as stage:
        stage.open_to(f"http://127.0.0.1:{free_port}")
        async with stage.post(json=chat()) as answer:
            assert answer.status == 503
            assert "takes no connections" in (await answer.json())["error"]["message"]


@pytest.mark.parametrize("mode", ["empty_200", "reset"])
async def test_resets_never_become_empty_answers(fake_worker: FakeWorkerFactory, mode: str) -> None:
    worker = await fake_worker(mode=mode)
    async with front() as stage:
        stage.open_to(worker.url)
        for stream in (True, False):
            async with stage.post(json=chat(stream=stream)) as answer:
                assert answer.status == 502


async def test_a_request_at_two_deaths_is_refused_and_named(fake_worker: FakeWorkerFactory) -> None:
    workers = [await fake_worker(crash_marker="poison", crash_tokens=0) for _ in range(2)]
    async with front() as stage:
        poison: list[str] = []
        stage.gate.on_poison = lambda request_id, _: poison.append(request_id)
        asking = asyncio.ensure_future(ask(stage, chat("poison"), {"X-Request-Id": "the-poison"}))
        for generation, worker in enumerate(workers, 1):
            stage.open_to(worker.url)
            await worker.process.wait()
            stage.gate.worker_died(generation)
        status, document = await asking
        assert status == 500
        assert "the-poison" in document["error"]["message"]
        assert poison == ["the-poison"]


async def ask(stage: Any, body: dict[str, Any], headers: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
    async with stage.post(json=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def inflight_of(stage: Any, url: str) -> int:
    async with stage.client.get(url + "/stats") as answer:
        return int((await answer.json())["inflight"])


@pytest.mark.parametrize("has_token", [True, False])
async def test_a_client_that_leaves_ends_the_workers_request_at_once(
    fake_worker: FakeWorkerFactory, has_token: bool
) -> None:
    worker = await fake_worker(tok_s=20, prefill_tok_s=0 if has_token else 0.5)
    async with front() as stage:
        stage.open_to(worker.url)
        reader, writer = await asyncio.open_connection("127.0.0.1", stage.port)
        send_raw(writer, chat(tokens=1000))
        if has_token:
            await reader.readuntil(b'"content": "')
        await wait_until(lambda: stage.gate.inflight() == 1)
        writer.close()
        await writer.wait_closed()
        await stage.quiet()
        await wait_until(lambda: none_in_flight(stage, worker.url), 5.0, "the worker's request to end")
        assert (stage.gate.totals.failed, stage.gate.totals.cut) == (0, 0)


async def none_in_flight(stage: Any, url: str) -> bool:
    return await inflight_of(stage, url) == 0


def send_raw(writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
    content = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
    writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n" + content)


async def test_a_client_that_leaves_while_it_is_held_frees_its_place() -> None:
    async with front() as stage:
        _, writer = await asyncio.open_connection("127.0.0.1", stage.port)
        send_raw(writer, chat())
        await wait_until(lambda: stage.gate.queued == 1)
        writer.close()
        await writer.wait_closed()
        await stage.quiet()


async def test_a_cut_ends_a_stream_after_a_whole_event_and_replays_what_has_not_begun(
    fake_worker: FakeWorkerFactory,
) -> None:
    old = await fake_worker(tok_s=50, slots=1)
    new = await fake_worker()
    async with front() as stage:
        stage.open_to(old.url)
        async with stage.post(json=chat("begun", 1000)) as begun:
            await begun.content.readuntil(b'"content": "')
            waiting = asyncio.ensure_future(read_whole(stage, chat("waits for the slot", 5)))
            await wait_until(lambda: stage.gate.inflight() == 2)
            stage.gate.cut(1, "asked for with --now")
            stage.gate.hold("recycling")
            stream = await read_broken(begun)
            assert data_of(b"\n" + stream.partition(b"\n\n")[2])[-1]["error"]["code"] == "stream_cut"
            stage.open_to(new.url)
            assert text_of(await waiting) == expected_text("waits for the slot", 5)
        assert (stage.gate.totals.cut, stage.gate.totals.replayed) == (1, 1)


async def test_a_client_that_stops_reading_is_stalled_and_can_be_cut(
    fake_worker: FakeWorkerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.shell.front.ticket.STALLED_AFTER_S", 0.2)
    worker = await fake_worker(tok_s=1e6, chunk_tokens=500)
    async with front() as stage:
        stage.open_to(worker.url)
        _, writer = await asyncio.open_connection("127.0.0.1", stage.port, limit=1024)
        send_raw(writer, chat(tokens=5_000_000))
        ticket = await wait_until(lambda: next(iter(stage.gate._inflight), None))
        await wait_until(lambda: ticket.is_stalled, 20.0, "a stalled client")
        stage.gate.cut(1, "the drain's time is over", only_stalled=True)
        await stage.quiet()
        assert stage.gate.totals.cut == 1
        writer.close()


async def test_a_whole_answer_to_a_client_that_does_not_read_is_stalled_too_and_cut_without_another_answer_in_it(
    free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.shell.front.ticket.STALLED_AFTER_S", 0.2)

    async def long_answer(_request: web.Request) -> web.Response:
        return web.json_response({"text": "x" * 7_000_000})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", long_answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", free_port).start()
    try:
        async with front() as stage:
            stage.open_to(f"http://127.0.0.1:{free_port}")
            reader, writer = await asyncio.open_connection("127.0.0.1", stage.port, limit=1024)
            send_raw(writer, chat(stream=False))
            ticket = await wait_until(lambda: next(iter(stage.gate._inflight), None))
            await wait_until(lambda: ticket.is_stalled, 20.0, "a stalled client")
            stage.gate.cut(1, "the drain's time is over", only_stalled=True)
            await stage.quiet()
            assert stage.gate.totals.cut == 1
            received = b""
            with contextlib.suppress(ConnectionError):
                while piece := await asyncio.wait_for(reader.read(65536), 10):
                    received += piece
            assert received.count(b"HTTP/1.1") == 1
            assert b"stream_cut" not in received
            assert len(received) < 7_000_000
            writer.close()
    finally:
        await runner.cleanup()


async def test_a_stream_that_waits_at_an_open_gate_is_told_that_the_slots_are_taken(
    fake_worker: FakeWorkerFactory,
) -> None:
    worker = await fake_worker(tok_s=50)
    async with front(comments_after_s=0.02, max_inflight=1) as stage:
        stage.open_to(worker.url)
        async with stage.post(json=chat("first", 500)) as first, stage.post(json=chat("second")) as second:
            assert await second.content.readuntil(b"\n\n") == b": freshlane waits: all its slots are taken\n\n"
            assert first.status == 200


async def test_encoded_answers_pass_as_they_are(free_port: int) -> None:
    content = b"\x1f\x8bnot really gzip"

    async def encoded(_request: web.Request) -> web.Response:
        return web.Response(body=content, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})

    app = web.Application()
    app.router.add_post("/v1/embeddings", encoded)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", free_port).start()
    try:
        async with front() as stage:
            stage.open_to(f"http://127.0.0.1:{free_port}")
            async with (
                aiohttp.ClientSession(auto_decompress=False) as raw,
                raw.post(stage.url + "/v1/embeddings", json={"model": "lane"}) as answer,
            ):
                assert await answer.read() == content
                assert answer.headers["Content-Encoding"] == "gzip"
    finally:
        await runner.cleanup()


async def test_json_that_lost_its_end_with_its_worker_is_not_taken_for_whole() -> None:
    parts = [b'{"text": "hal', b'{"text": "half", "usage": {"completion_tokens": 1}}']

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}")
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + parts.pop(0))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, front() as stage:
        stage.open_to(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        async with stage.post("/v1/completions", json={"model": "lane"}) as whole:
            assert (await whole.json())["text"] == "half"
        assert (stage.gate.totals.replayed, stage.gate.generated_tokens(1)) == (1, 1)


async def test_no_request_is_lost_or_cut_while_workers_take_turns(fake_worker: FakeWorkerFactory) -> None:
    workers = [await fake_worker(tok_s=300), await fake_worker(tok_s=300)]
    async with front(max_inflight=4, max_queue=200) as stage:
        emptied = asyncio.Event()
        stage.gate.on_emptied = lambda _: emptied.set()
        stage.open_to(workers[0].url)

        async def one(number: int) -> str:
            prompt = f"question {number}"
            body = await read_whole(stage, chat(prompt, 5 + number % 20, stream=number % 3 > 0))
            text = text_of(body) if number % 3 else json.loads(body)["choices"][0]["message"]["content"]
            assert text == expected_text(prompt, 5 + number % 20)
            return str(text)

        clients = [asyncio.ensure_future(one(number)) for number in range(120)]
        turns = 0
        while not all(client.done() for client in clients):
            emptied.clear()
            if turns % 2:
                stage.gate.hold("recycling")
                await emptied.wait()
            turns += 1
            stage.open_to(workers[turns % 2].url)
            await asyncio.wait(clients, timeout=0.05, return_when=asyncio.FIRST_COMPLETED)
        assert all([await client for client in clients])
        totals = stage.gate.totals
        assert (totals.failed, totals.cut, totals.replayed) == (0, 0, 0)
        assert turns > 3


async def test_multipart_bodies_name_their_model_too(free_port: int) -> None:
    seen: list[bytes] = []

    async def transcribe(request: web.Request) -> web.Response:
        seen.append(await request.read())
        return web.json_response({"text": "ok"})

    app = web.Application()
    app.router.add_post("/v1/audio/transcriptions", transcribe)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", free_port).start()
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="model"\r\n\r\n\x00\xff--\r\n'
    model = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n%s\r\n--b--\r\n'
    try:
        async with front() as stage:
            stage.open_to(f"http://127.0.0.1:{free_port}", served_models={"lane": "whisper"})
            headers = {"Content-Type": "multipart/form-data; boundary=b"}
            async with stage.post("/v1/audio/transcriptions", data=head + model % b"lane", headers=headers) as answer:
                assert await answer.json() == {"text": "ok"}
    finally:
        await runner.cleanup()
    assert seen == [head + model % b"whisper"]


async def test_a_full_queue_says_when_to_come_again(fake_worker: FakeWorkerFactory) -> None:
    async with front(max_queue=0) as stage:
        status, document = await ask(stage, chat())
        assert (status, document["error"]["code"]) == (503, "queue_full")


async def test_comments_of_a_worker_in_prefill_pass_at_once(fake_worker: FakeWorkerFactory, tmp_path: Path) -> None:
    control = tmp_path / "control"
    worker = await fake_worker(comments_every=0.05, prefill_tok_s=1, control=control)
    async with front() as stage:
        stage.open_to(worker.url)
        async with stage.post(json=chat("hello" * 3, 3)) as answer:
            early = await answer.content.readuntil(b": keep-alive\n\n")
            assert b'"role"' in early
            set_knobs(control, prefill_tok_s=0)
            assert text_of(early + await answer.read()) == expected_text("hello" * 3, 3)
