"""What a client notices of starts, recycles, deaths and unloads: a longer wait, or a plain word."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import random
import time
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from tests.fakes import expected_text, read_lines, set_knobs
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import ask, begin, chat, config, inflight, quick_lane
from tests.waiting import wait_until


async def recycle(daemon: RunningDaemon) -> asyncio.Task[tuple[int, Any]]:
    """Ask for a recycle, and wait until the gate is closed."""
    asked = asyncio.ensure_future(daemon.post("/api/lanes/worker/recycle?wait=true"))

    async def fact() -> bool:
        return bool((await daemon.lane("worker"))["state"] in ("draining", "stopping", "starting", "warming"))

    await wait_until(fact, 10, f"the recycle to begin; see {daemon.log_path}")
    return asked


def text_of(stream: str) -> str:
    """The content of a whole stream; it has to end with [DONE]."""
    events = [part for part in stream.split("\n\n") if part and not part.startswith(":")]
    assert events[-1] == "data: [DONE]", events[-1]
    deltas = [json.loads(event.removeprefix("data: ")).get("choices") or [{}] for event in events[:-1]]
    return "".join(choices[0].get("delta", {}).get("content") or "" for choices in deltas)


async def read_to_its_end(answer: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """All that came, and whether it ended cleanly."""
    content = b""
    try:
        async for piece in answer.content.iter_any():
            content += piece
    except aiohttp.ClientPayloadError:
        return content, False
    return content, True


async def test_a_recycle_lets_what_is_in_flight_finish_and_holds_the_rest(tmp_path: Path) -> None:
    lane = quick_lane({"tok_s": 40}, stop_timeout="20s", recycle={"wait_idle": "0s"})
    async with running_daemon(tmp_path, config(worker=lane)) as daemon:
        await daemon.serving("worker")
        early = [begin(daemon, chat(f"early {number}", max_tokens=60)) for number in range(4)]
        await inflight(daemon, 4)
        asked = await recycle(daemon)
        late = [begin(daemon, chat(f"late {number}", stream=number % 2 == 0)) for number in range(8)]
        for number, (status, text) in enumerate(await asyncio.gather(*early)):
            assert (status, text_of(text)) == (200, expected_text(f"early {number}", 60))
        for number, (status, text) in enumerate(await asyncio.gather(*late)):
            answer = text_of(text) if number % 2 == 0 else json.loads(text)["choices"][0]["message"]["content"]
            assert (status, answer) == (200, expected_text(f"late {number}", 8))
        assert (await asked)[0] == 200
        record = (await daemon.recycles("worker"))[0]
        assert record["drain"]["inflight"] == 4
        assert record["drain"]["held"] == 8
        assert record["requests"] == {"held": 8, "failed": 0, "replayed": 0}
        assert record["drain"]["cut"] == 0


async def test_openais_client_gets_its_whole_answer_through_a_recycle(tmp_path: Path) -> None:
    lane = quick_lane({"tok_s": 40, "start_delay": 0.5}, recycle={"wait_idle": "0s"})
    async with running_daemon(tmp_path, config(worker=lane)) as daemon:
        await daemon.serving("worker")
        messages: Any = [{"role": "user", "content": "tell"}]
        async with openai.AsyncOpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=0) as client:
            stream = await client.chat.completions.create(
                model="worker", messages=messages, max_tokens=60, stream=True, stream_options={"include_usage": True}
            )
            first = await anext(stream)
            asked = await recycle(daemon)
            held = asyncio.ensure_future(
                client.chat.completions.create(model="worker", messages=messages, max_tokens=9)
            )
            chunks = [first, *[chunk async for chunk in stream]]
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
            assert text == expected_text("tell", 60)
            assert chunks[-1].usage
            assert chunks[-1].usage.completion_tokens == 60
            whole = await held
            assert whole.choices[0].message.content == expected_text("tell", 9)
            assert (await asked)[0] == 200


async def test_a_raw_stream_held_through_a_recycle_gets_comments_and_then_every_byte(tmp_path: Path) -> None:
    lane = quick_lane({"start_delay": 2.0}, hold={"comments_after": "300ms"}, recycle={"wait_idle": "0s"})
    async with running_daemon(tmp_path, config(worker=lane)) as daemon:
        await daemon.serving("worker")
        asked = await recycle(daemon)
        reader, writer = await asyncio.open_connection("127.0.0.1", daemon.port)
        body = json.dumps(chat("raw", max_tokens=20)).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        writer.write((head + "Content-Type: application/json\r\nConnection: close\r\n\r\n").encode() + body)
        arrivals: list[float] = []
        content = b""
        while piece := await asyncio.wait_for(reader.read(65536), 30):
            content += piece
            arrivals += [time.monotonic()] * piece.count(b": freshlane")
        writer.close()
        await writer.wait_closed()
        assert len(arrivals) >= 3
        gaps = [after - before for before, after in itertools.pairwise(arrivals)]
        assert max(gaps) < 1.5
        assert content.rstrip().endswith(b"0")  # the last chunk: a clean end
        assert content.count(b"data: [DONE]") == 1
        assert (await asked)[0] == 200


@pytest.mark.slow
async def test_a_start_beyond_its_deadline_is_tried_again_and_then_serves(tmp_path: Path) -> None:
    knobs = {"start_delay": 30, "slow_spawns": 2, "spawn_counter": tmp_path / "spawns"}
    lane = quick_lane(knobs, start_timeout="1s", stop_timeout="2s")
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        status, text = await ask(daemon, chat("patience"))
        assert (status, text_of(text)) == (200, expected_text("patience", 8))
        snapshot = await daemon.serving("worker")
        assert snapshot["worker"]["generation"] == 3
        assert "start_timeout" in daemon.log()


@pytest.mark.slow
async def test_a_failed_lane_is_started_again_by_a_person_without_a_new_daemon(tmp_path: Path) -> None:
    control = tmp_path / "control"
    set_knobs(control, crash_after=1)
    lane = quick_lane({"control": control, "exit_code": 3, "fail_spawns": 5, "spawn_counter": tmp_path / "spawns"})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        set_knobs(control)
        failed = await daemon.lane_is("worker", "failed", 60)
        assert "exit code 3" in failed["reason"]
        assert failed["next_action"] == "waits for `freshlane start`"
        status, text = await ask(daemon, chat(stream=False))
        assert status == 503
        assert "exit code 3" in text
        assert (await daemon.post("/api/lanes/worker/start?wait=true"))[0] == 200
        status, text = await ask(daemon, chat("again"))
        assert (status, text_of(text)) == (200, expected_text("again", 8))


@pytest.mark.slow
async def test_an_unload_racing_a_request_leaves_nobody_waiting(tmp_path: Path) -> None:
    """The lane is unloaded the moment it is idle, and requests come at that very moment, again and again."""
    lane = quick_lane({}, start="on_demand", idle_unload="50ms", canary={"every": "1h", "max_tokens": 12})
    async with running_daemon(tmp_path, config(worker=lane)) as daemon:
        dice = random.Random(7)

        async def client(name: int) -> None:
            for number in range(12):
                prompt = f"{name} {number}"
                status, text = await ask(daemon, chat(prompt, max_tokens=2), 60)
                assert (status, text_of(text)) == (200, expected_text(prompt, 2))
                await asyncio.sleep(dice.uniform(0.0, 2.5))

        async with asyncio.TaskGroup() as group:
            for name in range(6):
                group.create_task(client(name))
        assert daemon.log().count('"state": "unloaded"') >= 3
        await daemon.lane_is("worker", "unloaded")
        snapshot = await daemon.lane("worker")
        assert (snapshot["inflight"], snapshot["queued"]) == (0, 0)


@pytest.mark.slow
async def test_a_request_that_kills_two_workers_is_refused_and_named_and_the_lane_serves_on(tmp_path: Path) -> None:
    lane = quick_lane({"crash_marker": "deadly", "crash_tokens": 0})
    async with running_daemon(tmp_path, config(worker=lane)) as daemon:
        await daemon.serving("worker")
        for number in range(4):  # eight deaths, where five are a crash loop
            deadly = {"X-Request-Id": f"deadly-{number}"}
            assert daemon.session
            url = f"{daemon.url}/v1/chat/completions"
            async with daemon.session.post(url, json=chat(f"deadly {number}", stream=False), headers=deadly) as answer:
                told = await answer.json()
                assert answer.status == 500
                assert answer.headers["x-should-retry"] == "false"
            assert f"deadly-{number}" in told["error"]["message"]
            assert told["error"]["code"] == "request_poison"
            assert told["error"]["source"] == "freshlane"
        status, text = await ask(daemon, chat("harmless"))
        assert (status, text_of(text)) == (200, expected_text("harmless", 8))
        assert '"state": "failed"' not in daemon.log()
        assert "request deadly-0 was in flight at two worker deaths" in daemon.log()


@pytest.mark.slow
async def test_a_neighbour_of_a_deadly_request_is_served_in_the_end(tmp_path: Path) -> None:
    lane = quick_lane({"crash_marker": "deadly", "crash_tokens": 0, "prefill_tok_s": 20, "early_headers": True})
    async with running_daemon(tmp_path, config(worker=lane)) as daemon:
        await daemon.serving("worker")
        deadly = begin(daemon, chat("deadly", stream=False))
        status, _ = await deadly
        assert status == 500
        status, text = await ask(daemon, chat("a neighbour"))
        assert (status, text_of(text)) == (200, expected_text("a neighbour", 8))


@pytest.mark.parametrize("knobs", [{"split_writes": True}, {"framing": "close"}, {"chunk_tokens": 3}])
async def test_an_error_of_ours_comes_only_after_a_whole_event(tmp_path: Path, knobs: dict[str, Any]) -> None:
    lane = quick_lane({"crash_after": 0, "tok_s": 200, "control": tmp_path / "control", **knobs})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        set_knobs(tmp_path / "control", mode="cut", mode_tokens=7)
        await asyncio.sleep(0.1)
        assert daemon.session
        async with daemon.session.post(f"{daemon.url}/v1/chat/completions", json=chat("cut", max_tokens=30)) as answer:
            content, is_clean = await read_to_its_end(answer)
        assert not is_clean
        events = content.split(b"\n\n")
        assert events.pop() == b""
        documents = [json.loads(event.removeprefix(b"data: ")) for event in events if not event.startswith(b":")]
        assert documents[-1]["error"]["source"] == "freshlane"
        assert all("error" not in document for document in documents[:-1])
        text = "".join(
            (document["choices"] or [{}])[0].get("delta", {}).get("content") or "" for document in documents[:-1]
        )
        assert expected_text("cut", 30).startswith(text)


@pytest.mark.parametrize("split_writes", [False, True])
@pytest.mark.parametrize("answer_tokens", [0, 40])
async def test_named_events_pass_byte_for_byte_through_a_recycle(
    tmp_path: Path, split_writes: bool, answer_tokens: int
) -> None:
    digests = tmp_path / "digests"
    knobs = {"tok_s": 30, "split_writes": split_writes, "answer_tokens": answer_tokens, "digest_file": digests}
    lane = quick_lane(knobs, recycle={"wait_idle": "0s"})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        assert daemon.session
        body = {"model": "worker", "input": "named", "max_output_tokens": 40, "stream": True}
        headers = {"X-Request-Id": "the-named-one"}
        async with daemon.session.post(f"{daemon.url}/v1/responses", json=body, headers=headers) as answer:
            content = await answer.content.readuntil(b"\n\n")
            asked = await recycle(daemon)
            content += await answer.read()
        ending = b"event: response.completed" if answer_tokens else b"event: response.incomplete"
        assert content.split(b"\n\n")[-2].startswith(ending)

        def sent() -> str | None:  # the worker writes it down after its last byte
            return next((line["sha256"] for line in read_lines(digests) if line["request_id"] == "the-named-one"), None)

        assert hashlib.sha256(content).hexdigest() == await wait_until(sent, 5, "the worker's digest")
        assert (await asked)[0] == 200
