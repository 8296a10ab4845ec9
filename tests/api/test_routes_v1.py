"""/v1: models, the lane that a name finds, bodies and their limits, and OpenAI's own client."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import openai
import pytest

from supervisor.api import incoming
from tests.conftest import FakeWorkerFactory
from tests.fakes import expected_text
from tests.front import Front, PlainLane, PlainSettings, chat, front


async def error_of(stage: Front, data: bytes, path: str = "/v1/chat/completions", **headers: str) -> tuple[int, str]:
    named = {"Content-Type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
    async with stage.client.post(stage.url + path, data=data, headers=named) as answer:
        error = (await answer.json())["error"]
        assert error["source"] == "freshlane"
        return answer.status, f"{error['code']}: {error['message']}"


async def test_models_are_the_lanes_and_their_aliases() -> None:
    async with front(lanes=[PlainLane("one", ("also",)), PlainLane("two", ())]) as stage:
        async with stage.client.get(stage.url + "/v1/models") as answer:
            models = (await answer.json())["data"]
        assert [(model["id"], model["lane"]) for model in models] == [("one", "one"), ("also", "one"), ("two", "two")]
        async with stage.client.get(stage.url + "/v1/models/also") as answer:
            assert (await answer.json())["id"] == "also"
        async with stage.client.get(stage.url + "/v1/models/org/none") as answer:
            assert answer.status == 404


async def test_an_unknown_model_is_told_which_lanes_there_are() -> None:
    async with front(lanes=[PlainLane("one", ("also",)), PlainLane("two", ())]) as stage:
        status, text = await error_of(stage, b'{"model": "three"}')
        assert status == 404
        assert text == "model_not_found: No lane is called 'three'; there are: one (also also), two."


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"{}", 400, "model_missing"),
        (b"", 400, "invalid_body"),
        (b'{"model": 7}', 400, "invalid_body"),
        (b'{"model": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400, "invalid_body"),
        (b'{"model": "lane"', 400, "invalid_body"),
    ],
)
async def test_a_body_that_names_no_model_is_refused(data: bytes, status: int, code: str) -> None:
    async with front() as stage:
        told, text = await error_of(stage, data)
        assert told == status
        assert text.startswith(code)


async def test_a_body_beyond_max_body_is_refused_whether_or_not_it_tells_its_length() -> None:
    async with front(settings=PlainSettings(max_body=1000)) as stage:
        assert (await error_of(stage, b"x" * 1001))[0] == 413

        async def parts() -> object:
            for _ in range(3):
                yield b"x" * 400

        async with stage.client.post(stage.url + "/v1/completions", data=parts()) as answer:
            assert answer.status == 413


async def test_a_body_that_does_not_come_on_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "SILENCE_S", 0.05)
    async with front() as stage:
        reader, writer = await asyncio.open_connection("127.0.0.1", stage.port)
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        assert b" 408 " in await asyncio.wait_for(reader.readline(), 5)
        writer.close()
        await writer.wait_closed()


async def test_a_body_that_drips_is_not_waited_for_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "SILENCE_S", 0.5)
    async with front() as stage:
        reader, writer = await asyncio.open_connection("127.0.0.1", stage.port)
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")

        async def drip() -> None:
            while True:
                writer.write(b" ")
                await asyncio.sleep(0.02)

        dripper = asyncio.ensure_future(drip())
        assert b" 408 " in await asyncio.wait_for(reader.readline(), 5)
        dripper.cancel()
        writer.close()
        await writer.wait_closed()


async def test_a_long_body_passes_whole(fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker()
    async with front() as stage:
        stage.open_to(worker.url)
        prompt = 'long "text" ' * 250_000
        body = io.BytesIO(json.dumps(chat(prompt, 3, stream=False)).encode())
        async with stage.post(data=body, headers={"Content-Type": "application/json"}) as answer:
            document = await answer.json()
        assert document["choices"][0]["message"]["content"] == expected_text(prompt, 3)


async def test_request_ids_are_kept_made_and_never_injected() -> None:
    async with front() as stage:
        for given, is_kept in (("req_1-a.b:c", True), ("two words", False), ("x" * 129, False)):
            async with stage.post(data=b'{"model": "x"}', headers={"X-Request-Id": given}) as answer:
                assert (answer.headers["X-Request-Id"] == given) == is_kept


async def test_other_errors_have_openais_shape_too() -> None:
    async with front() as stage:
        status, _ = await error_of(stage, b"", path="/nothing")
        assert status == 404
        status, _ = await error_of(stage, b"", path="/v1/models/lane/nothing")
        assert status == 400


async def test_openais_client_is_served_streamed_and_whole(fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker()
    async with front() as stage:
        stage.open_to(worker.url)
        async with openai.AsyncOpenAI(base_url=stage.url + "/v1", api_key="any", max_retries=0) as client:
            messages: Any = [{"role": "user", "content": "hi"}]
            whole = await client.chat.completions.create(model="lane", messages=messages, max_tokens=5)
            stream: Any = await client.chat.completions.create(
                model="alias", messages=messages, max_tokens=5, stream=True
            )
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
            assert whole.choices[0].message.content == text == expected_text("hi", 5)
            stage.gate.refuse("drained by a person", 30.0)
            with pytest.raises(openai.InternalServerError, match="drained by a person"):
                await client.chat.completions.create(model="lane", messages=messages)
            assert len((await client.models.list()).data) == 2


async def test_an_unforeseen_error_is_told_without_its_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    async with front() as stage:

        def fail(*_: object) -> None:
            raise ZeroDivisionError("secret")

        monkeypatch.setattr(stage.gate, "enter", fail)
        status, text = await error_of(stage, json.dumps(chat()).encode())
        assert status == 500
        assert "secret" not in text
