"""What a worker says to a request that it cannot serve."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import aiohttp
import openai
import pytest

from tests.contract.conftest import ENGINE_READY_S, Worker, chat
from tests.waiting import wait_until

HELLO = [{"role": "user", "content": "hello"}]
BAD_BODIES: dict[str, Any] = {
    "not JSON": b"{'messages': nonsense",
    "not an object": b"[1, 2]",
    "no messages": {},
    "no message": {"messages": []},
    "messages of text": {"messages": "hello"},
    "a message that is none": {"messages": ["hello"]},
    "no tokens": {"messages": HELLO, "max_tokens": 0},
    "tokens in words": {"messages": HELLO, "max_tokens": "many"},
    "too cold": {"messages": HELLO, "temperature": -1},
    "temperature in words": {"messages": HELLO, "temperature": "hot"},
}


async def assert_is_openai_error(answer: aiohttp.ClientResponse, *statuses: int) -> None:
    text = await answer.text()
    assert answer.status in statuses, text
    assert answer.content_type == "application/json"
    error = json.loads(text)["error"]
    assert isinstance(error["message"], str)
    assert error["message"]
    assert isinstance(error["type"], str)
    assert {"param", "code"} <= error.keys()


@pytest.mark.parametrize("what", BAD_BODIES)
async def test_a_bad_request_is_refused_with_an_error_of_openais_shape(
    worker: Worker, http: aiohttp.ClientSession, what: str
) -> None:
    body = BAD_BODIES[what]
    data = body if isinstance(body, bytes) else json.dumps({"model": worker.kind.model, **body}).encode()
    headers = {"Content-Type": "application/json"}
    async with http.post(f"{worker.url}/v1/chat/completions", data=data, headers=headers) as answer:
        await assert_is_openai_error(answer, 400, 422)


async def test_a_bad_request_leaves_the_worker_well(worker: Worker, http: aiohttp.ClientSession) -> None:
    url = f"{worker.url}/v1/chat/completions"
    async with http.post(url, data=b"{", headers={"Content-Type": "application/json"}) as answer:
        assert answer.status == 400
    async with http.post(url, json=chat(worker, "hello", max_tokens=1)) as answer:
        assert answer.status == 200


async def test_an_unknown_path_is_404(worker: Worker, http: aiohttp.ClientSession) -> None:
    async with http.get(f"{worker.url}/v1/no/such/path") as answer:
        await assert_is_openai_error(answer, 404)


async def test_a_wrong_method_is_405(worker: Worker, http: aiohttp.ClientSession) -> None:
    async with http.get(f"{worker.url}/v1/chat/completions") as answer:
        await assert_is_openai_error(answer, 405)


async def test_the_openai_client_raises_its_own_error_for_a_bad_request(worker: Worker) -> None:
    async with openai.AsyncOpenAI(base_url=f"{worker.url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(model=worker.kind.model, messages=[])


async def test_the_token_of_the_environment_is_asked_for(
    own_worker: Callable[..., Worker], http: aiohttp.ClientSession
) -> None:
    worker = own_worker(FRESHLANE_WORKER_TOKEN="secret-1")
    right = {"Authorization": "Bearer secret-1"}
    worker.headers.update(right)
    await wait_until(worker.answers_health, ENGINE_READY_S, "health, asked with the token")
    body = chat(worker, "hello", max_tokens=1)
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        async with http.post(f"{worker.url}/v1/chat/completions", json=body, headers=headers) as answer:
            await assert_is_openai_error(answer, 401)
        for path in ("/stats", "/health"):
            async with http.get(worker.url + path, headers=headers) as answer:
                await assert_is_openai_error(answer, 401)
    async with http.post(f"{worker.url}/v1/chat/completions", json=body, headers=right) as answer:
        assert answer.status == 200
    async with http.get(f"{worker.url}/stats", headers=right) as answer:
        assert answer.status == 200
